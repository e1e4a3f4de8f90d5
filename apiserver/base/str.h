/* String view (pointer and length, not owned), small string helpers, and lists of name/value pairs.
 * Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *p;
    size_t n;
};
#define STR(s) ((struct str){(s), strlen(s)})

bool str_eq(struct str a, const char *b);
bool str_has_prefix(const char *s, const char *prefix);
bool str_has_suffix(const char *s, const char *suffix);
bool str_equal(const char *a, const char *b);  /* NULL equals only NULL */
int str_cmp_ptr(const void *a, const void *b); /* qsort over char* arrays, bytewise */
/* Whole string, decimal, range checked; "" and blanks are refused. 0 or -1; *ret untouched on
 * failure. */
int str_to_i64(const char *s, int64_t *ret);
int str_to_u64(const char *s, uint64_t *ret);
/* Go's strconv.ParseBool: 1 t T TRUE true True / 0 f F FALSE false False. 0 or -1. */
int str_to_bool(const char *s, bool *ret);

void str_lower(char *s);   /* ASCII letters, in place */
int str_hex_digit(char c); /* its value, in either case; -1 when it is none */

/* The character NUL is held as the two bytes C0 80, since texts end at a zero byte. Who reads bytes
 * from outside must not take these two for it: they are broken UTF-8. */
#define STR_NUL "\xc0\x80"
char *str_hold(const char *p, size_t n); /* p[0..n) as text, owned; its zero bytes so */

/* The code point that p[0..n) starts with and the length of its sequence, also of STR_NUL; 0 when
 * it is broken (overlong, surrogate, beyond U+10FFFF, cut off) or n is 0. encode writes a code
 * point up to U+10FFFF and returns how many bytes. */
size_t str_utf8_decode(const char *p, size_t n, uint32_t *ret_rune);
size_t str_utf8_encode(uint32_t rune, char out[4]);
size_t str_utf8_count(const char *s); /* characters */
/* Length of s, which has len bytes, cut to max bytes without splitting a character. */
size_t str_utf8_cut(const char *s, size_t len, size_t max);

/* Ordered list of name/value pairs (HTTP headers, query, labels). Strings are owned. Starts as
 * {0}. */
struct pair {
    char *name, *value;
};
struct pairs {
    struct pair *v;
    size_t n;
};
void pairs_add(struct pairs *p, const char *name, const char *value);
/* First value of that name, or NULL. pairs_get_ci compares names without case (HTTP headers). */
const char *pairs_get(const struct pairs *p, const char *name);
const char *pairs_get_ci(const struct pairs *p, const char *name);
void pairs_remove_ci(struct pairs *p, const char *name); /* all of that name */
/* all whose name begins so; none for "" */
void pairs_remove_prefix_ci(struct pairs *p, const char *prefix);
void pairs_fini(struct pairs *p);

/* Lists of owned strings, ended by NULL; NULL itself is the empty list. */
char **strv_copy(const char *const *list); /* never NULL */
void strv_add(char ***list, char *take_s);
bool strv_has(char *const *list, const char *s);
void strv_free(char **list);
