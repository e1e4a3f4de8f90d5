/* String views, number parsing in the manner of Go's strconv, UTF-8, and lists. */
#include "apiserver/base/str.h"

#include <strings.h>

#include "apiserver/base/mem.h"

bool str_eq(struct str a, const char *b)
{
    size_t n = strlen(b);
    return a.n == n && (n == 0 || memcmp(a.p, b, n) == 0);
}

bool str_has_prefix(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool str_equal(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

int str_cmp_ptr(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

int str_to_u64(const char *s, uint64_t *ret)
{
    uint64_t v = 0;
    if (*s == '\0')
        return -1;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return -1;
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return -1;
    }
    *ret = v;
    return 0;
}

int str_to_i64(const char *s, int64_t *ret)
{
    bool negative = *s == '-';
    uint64_t v;
    if (str_to_u64(*s == '-' || *s == '+' ? s + 1 : s, &v) < 0)
        return -1;
    if (v > (uint64_t)INT64_MAX + negative)
        return -1;
    *ret = negative ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

int str_to_bool(const char *s, bool *ret)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        bool is_yes = strcmp(s, yes[i]) == 0;
        if (is_yes || strcmp(s, no[i]) == 0) {
            *ret = is_yes;
            return 0;
        }
    }
    return -1;
}

void str_lower(char *s)
{
    for (; *s; s++)
        if (*s >= 'A' && *s <= 'Z')
            *s = (char)(*s - 'A' + 'a');
}

int str_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Number of bytes of the sequence that starts with lead, and its smallest code point; 0 for no lead
 * byte. */
static size_t utf8_lead(unsigned char lead, uint32_t *bits, uint32_t *least)
{
    if (lead < 0x80) {
        *bits = lead, *least = 0;
        return 1;
    }
    if (lead >= 0xc2 && lead < 0xe0) {
        *bits = lead & 0x1fu, *least = 0x80;
        return 2;
    }
    if (lead >= 0xe0 && lead < 0xf0) {
        *bits = lead & 0x0fu, *least = 0x800;
        return 3;
    }
    if (lead >= 0xf0 && lead < 0xf5) {
        *bits = lead & 0x07u, *least = 0x10000;
        return 4;
    }
    return 0;
}

char *str_hold(const char *p, size_t n)
{
    char *out = xmalloc(2 * n + 1), *to = out;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\0')
            *to++ = STR_NUL[0];
        *to++ = p[i] ? p[i] : STR_NUL[1];
    }
    *to = '\0';
    return out;
}

size_t str_utf8_decode(const char *p, size_t n, uint32_t *ret_rune)
{
    uint32_t rune, least;
    if (n >= 2 && memcmp(p, STR_NUL, 2) == 0) {
        *ret_rune = 0;
        return 2;
    }
    size_t len = n ? utf8_lead((unsigned char)*p, &rune, &least) : 0;
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        if ((c & 0xc0) != 0x80)
            return 0;
        rune = rune << 6 | (c & 0x3fu);
    }
    if (rune < least || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000))
        return 0;
    *ret_rune = rune;
    return len;
}

size_t str_utf8_encode(uint32_t rune, char out[4])
{
    if (rune < 0x80) {
        out[0] = (char)rune;
        return 1;
    }
    if (rune < 0x800) {
        out[0] = (char)(0xc0 | rune >> 6);
        out[1] = (char)(0x80 | (rune & 0x3f));
        return 2;
    }
    if (rune < 0x10000) {
        out[0] = (char)(0xe0 | rune >> 12);
        out[1] = (char)(0x80 | (rune >> 6 & 0x3f));
        out[2] = (char)(0x80 | (rune & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | rune >> 18);
    out[1] = (char)(0x80 | (rune >> 12 & 0x3f));
    out[2] = (char)(0x80 | (rune >> 6 & 0x3f));
    out[3] = (char)(0x80 | (rune & 0x3f));
    return 4;
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t str_utf8_count(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += !continues(*s);
    return n;
}

size_t str_utf8_cut(const char *s, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && continues(s[max]))
        max--;
    return max;
}

/* The list holds no capacity: it grows whenever its length is a power of two. */
void pairs_add(struct pairs *p, const char *name, const char *value)
{
    if ((p->n & (p->n - 1)) == 0)
        p->v = xreallocarray(p->v, p->n ? p->n * 2 : 1, sizeof *p->v);
    p->v[p->n++] = (struct pair){.name = xstrdup(name), .value = xstrdup(value)};
}

const char *pairs_get(const struct pairs *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i].name, name) == 0)
            return p->v[i].value;
    return NULL;
}

const char *pairs_get_ci(const struct pairs *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcasecmp(p->v[i].name, name) == 0)
            return p->v[i].value;
    return NULL;
}

static void pair_fini(struct pair *p)
{
    free(p->name);
    free(p->value);
}

/* Removes those whose first n bytes of the name are these, without case. */
static void remove_ci(struct pairs *p, const char *text, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (strncasecmp(p->v[i].name, text, n) == 0)
            pair_fini(&p->v[i]);
        else
            p->v[kept++] = p->v[i];
    }
    if (kept == p->n)
        return;
    p->n = kept;
    size_t cap = 1; /* as pairs_add expects it: the next power of two */
    while (cap < kept)
        cap *= 2;
    p->v = xreallocarray(p->v, cap, sizeof *p->v);
}

void pairs_remove_ci(struct pairs *p, const char *name)
{
    remove_ci(p, name, strlen(name) + 1);
}

void pairs_remove_prefix_ci(struct pairs *p, const char *prefix)
{
    if (*prefix)
        remove_ci(p, prefix, strlen(prefix));
}

void pairs_fini(struct pairs *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        pair_fini(&p->v[i]);
    free(p->v);
    *p = (struct pairs){0};
}

static size_t strv_len(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

char **strv_copy(const char *const *list)
{
    char **copy = NULL;
    for (; list && *list; list++)
        strv_add(&copy, xstrdup(*list));
    return copy ? copy : xcalloc(1, sizeof(char *));
}

void strv_add(char ***list, char *take_s)
{
    size_t n = strv_len(*list);
    *list = xreallocarray(*list, n + 2, sizeof(char *));
    (*list)[n] = take_s;
    (*list)[n + 1] = NULL;
}

bool strv_has(char *const *list, const char *s)
{
    for (; list && *list; list++)
        if (strcmp(*list, s) == 0)
            return true;
    return false;
}

void strv_free(char **list)
{
    for (char **s = list; s && *s; s++)
        free(*s);
    free(list);
}
