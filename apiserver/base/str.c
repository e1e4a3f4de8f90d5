/* String views, number parsing in the manner of Go's strconv, UTF-8, and name/value lists. */
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

size_t str_utf8_decode(const char *p, size_t n, uint32_t *ret_rune)
{
    uint32_t rune, least;
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

void pairs_remove_ci(struct pairs *p, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (strcasecmp(p->v[i].name, name) == 0)
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

void pairs_fini(struct pairs *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        pair_fini(&p->v[i]);
    free(p->v);
    *p = (struct pairs){0};
}
