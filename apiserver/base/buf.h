/* Growing byte buffer with a ceiling. After the ceiling is hit every append is dropped and
 * buf_failed says so, so one check at the end is enough. data is always NUL-terminated once
 * something was appended. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/str.h"

struct buf { /* starts as {0} (ceiling BUF_MAX_DEFAULT), or set max first */
    char *data;
    size_t len, cap;
    size_t max; /* bytes; 0 = BUF_MAX_DEFAULT */
    bool failed;
};
#define BUF_MAX_DEFAULT ((size_t)64 << 20)

void buf_append(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_i64(struct buf *b, int64_t n); /* in decimal; what each event and each list item needs */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_json_string(struct buf *b, const char *s, size_t n); /* quoted and escaped as JSON */
/* quoted as Go's %q does, for texts of errors */
void buf_go_quote(struct buf *b, const char *s, size_t n);
void buf_base64(struct buf *b, const void *p, size_t n);
/* Appends the decoded bytes; false (and nothing appended) when s is no standard base64 (padded). */
bool buf_unbase64(struct buf *b, const char *s, size_t n);
/* The same in the URL's alphabet without padding. *ret_good is how many bytes from the start are of
 * it. */
void buf_base64url(struct buf *b, const void *p, size_t n);
bool buf_unbase64url(struct buf *b, const char *s, size_t n, size_t *ret_good);
bool buf_failed(const struct buf *b);
const char *buf_cstr(const struct buf *b); /* "" when empty; never NULL */
struct str buf_str(const struct buf *b);
/* hands the bytes on (never NULL, NUL-terminated); b becomes {0}; ret_len may be NULL */
char *buf_take(struct buf *b, size_t *ret_len);
void buf_clear(struct buf *b); /* keeps the memory */
/* Memory that goes from one buffer to the next, for those that are full for a moment only. b, which
 * is {0}, gets what spare has; later b becomes {0} again, and spare keeps its memory unless it has
 * some, or it is more than max bytes. */
void buf_borrow(struct buf *b, struct buf *spare);
void buf_give_back(struct buf *b, struct buf *spare, size_t max);
void buf_fini(struct buf *b);
