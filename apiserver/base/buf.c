/* Growing byte buffer with a ceiling, and the encodings that are written into one: JSON strings,
 * Go's quotes, base64. */
#include "apiserver/base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "apiserver/base/mem.h"

#define CAP_MIN ((size_t)64)

/* Makes room for n more bytes and a NUL. False when the ceiling is hit, now or before. */
static bool reserve(struct buf *b, size_t n)
{
    size_t max = b->max ? b->max : BUF_MAX_DEFAULT;
    if (b->failed)
        return false;
    if (n > max || b->len > max - n || b->len + n == SIZE_MAX) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return true;
    size_t cap = b->cap > SIZE_MAX / 2 ? need : b->cap * 2;
    if (cap < need)
        cap = need;
    if (cap < CAP_MIN)
        cap = CAP_MIN;
    b->data = xrealloc(b->data, cap);
    b->cap = cap;
    return true;
}

void buf_append(struct buf *b, const void *p, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
    buf_append(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
    if (!reserve(b, 1))
        return;
    b->data[b->len++] = c;
    b->data[b->len] = '\0';
}

void buf_i64(struct buf *b, int64_t n)
{
    char text[20], *end = text + sizeof text, *p = end; /* the sign and 19 digits */
    uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    if (n < 0)
        *--p = '-';
    buf_append(b, p, (size_t)(end - p));
}

/* Into the room there is; once more when that was too little. */
void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;
    size_t room = b->failed ? 0 : b->cap - b->len;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, args);
    va_end(args);
    if (n < 0)
        b->failed = true;
    else if (!reserve(b, (size_t)n) && room)
        b->data[b->len] = '\0';
    if (!b->failed) {
        if ((size_t)n >= room)
            vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

static void put_escape(struct buf *b, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = memchr(from, c, sizeof from - 1);
    if (at) {
        char text[2] = {'\\', to[at - from]};
        buf_append(b, text, sizeof text);
    } else {
        buf_printf(b, "\\u%04x", c);
    }
}

/* Number of bytes at s that stand for themselves in a JSON string. */
static size_t plain_run(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == '"' || c == '\\' || c >= 0x80)
            break;
        i++;
    }
    return i;
}

/* As Go's encoding/json with HTML escaping off: the line separators are escaped for JavaScript's
 * sake, and a broken byte becomes the escaped replacement character. */
void buf_json_string(struct buf *b, const char *s, size_t n)
{
    buf_putc(b, '"');
    while (n > 0) {
        uint32_t rune;
        size_t run = plain_run(s, n);
        if (run) {
            buf_append(b, s, run);
        } else if ((unsigned char)*s < 0x80) {
            put_escape(b, (unsigned char)*s);
            run = 1;
        } else if ((run = str_utf8_decode(s, n, &rune)) == 0) {
            buf_puts(b, "\\ufffd");
            run = 1;
        } else if (rune == 0 || rune == 0x2028 || rune == 0x2029) {
            buf_printf(b, "\\u%04x", rune);
        } else {
            buf_append(b, s, run);
        }
        s += run;
        n -= run;
    }
    buf_putc(b, '"');
}

/* Ranges that Go's unicode.IsPrint refuses: controls, every blank but the ordinary one, format
 * characters, surrogates, private use, non-characters. Unassigned code points are not listed; they
 * are printed as they are. */
static const uint32_t unprintable[][2] = {
    {0x00, 0x1f},     {0x7f, 0xa0},     {0xad, 0xad},        {0x0600, 0x0605}, {0x061c, 0x061c},
    {0x06dd, 0x06dd}, {0x070f, 0x070f}, {0x1680, 0x1680},    {0x180e, 0x180e}, {0x2000, 0x200f},
    {0x2028, 0x202f}, {0x205f, 0x206f}, {0x3000, 0x3000},    {0xd800, 0xf8ff}, {0xfeff, 0xfeff},
    {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0x10ffff},
};

static bool is_printable(uint32_t rune)
{
    for (size_t i = 0; i < sizeof unprintable / sizeof unprintable[0]; i++)
        if (rune >= unprintable[i][0] && rune <= unprintable[i][1])
            return false;
    return true;
}

static void put_go_rune(struct buf *b, const char *s, size_t n, uint32_t rune)
{
    static const char from[] = "\"\\\a\b\f\n\r\t\v", to[] = "\"\\abfnrtv";
    const char *at = rune && rune < 0x80 ? strchr(from, (int)rune) : NULL;
    if (at) {
        buf_putc(b, '\\');
        buf_putc(b, to[at - from]);
    } else if (is_printable(rune)) {
        buf_append(b, s, n);
    } else if (rune < 0x80) {
        buf_printf(b, "\\x%02x", rune);
    } else {
        buf_printf(b, rune > 0xffff ? "\\U%08x" : "\\u%04x", rune);
    }
}

void buf_go_quote(struct buf *b, const char *s, size_t n)
{
    buf_putc(b, '"');
    for (size_t i = 0; i < n;) {
        uint32_t rune;
        size_t len = str_utf8_decode(s + i, n - i, &rune);
        if (len)
            put_go_rune(b, s + i, len, rune);
        else
            buf_printf(b, "\\x%02x", (unsigned)(unsigned char)s[i]);
        i += len ? len : 1;
    }
    buf_putc(b, '"');
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void buf_base64(struct buf *b, const void *p, size_t n)
{
    const unsigned char *in = p;
    if (n > SIZE_MAX / 2 || !reserve(b, (n + 2) / 3 * 4)) {
        b->failed = true;
        return;
    }
    char *out = b->data + b->len;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)in[i] << 16;
        if (left > 1)
            v |= (uint32_t)in[i + 1] << 8;
        if (left > 2)
            v |= in[i + 2];
        *out++ = base64_digits[v >> 18];
        *out++ = base64_digits[v >> 12 & 63];
        *out++ = left > 1 ? base64_digits[v >> 6 & 63] : '=';
        *out++ = left > 2 ? base64_digits[v & 63] : '=';
    }
    *out = '\0';
    b->len = (size_t)(out - b->data);
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes into out, which has room for n / 4 * 3 + 3 bytes; false when s is not base64. */
static bool unbase64(const char *s, size_t n, char *out, size_t *ret_len)
{
    uint32_t v = 0;
    size_t digits = 0, pads = 0, len = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n' || s[i] == '\r')
            continue;
        int d = base64_value(s[i]);
        if (d < 0 && s[i] != '=')
            return false;
        if (d >= 0 && pads)
            return false;
        pads += d < 0;
        v = v << 6 | (d < 0 ? 0 : (uint32_t)d);
        if (++digits % 4 != 0)
            continue;
        if (pads > 2)
            return false;
        out[len++] = (char)(v >> 16);
        if (pads < 2)
            out[len++] = (char)(v >> 8);
        if (pads < 1)
            out[len++] = (char)v;
        v = 0;
        if (pads) { /* the group is the last one: only line ends may follow */
            while (++i < n)
                if (s[i] != '\n' && s[i] != '\r')
                    return false;
        }
    }
    *ret_len = len;
    return digits % 4 == 0;
}

bool buf_unbase64(struct buf *b, const char *s, size_t n)
{
    size_t len;
    SCOPED_FREE char *out = xmalloc(n / 4 * 3 + 3);
    if (!unbase64(s, n, out, &len))
        return false;
    buf_append(b, out, len);
    return true;
}

/* By way of the usual alphabet: these texts are short. */
void buf_base64url(struct buf *b, const void *p, size_t n)
{
    SCOPED(buf_fini) struct buf usual = {0};
    buf_base64(&usual, p, n);
    for (size_t i = 0; i < usual.len && usual.data[i] != '='; i++)
        buf_putc(b, usual.data[i] == '+' ? '-' : usual.data[i] == '/' ? '_' : usual.data[i]);
    b->failed = b->failed || usual.failed;
}

bool buf_unbase64url(struct buf *b, const char *s, size_t n, size_t *ret_good)
{
    SCOPED(buf_fini) struct buf usual = {0};
    size_t good = 0;
    for (; good < n; good++) {
        char c = s[good] == '-' ? '+' : s[good] == '_' ? '/' : s[good];
        if (base64_value(c) < 0 || (c == s[good] && (c == '+' || c == '/')))
            break;
        buf_putc(&usual, c);
    }
    bool is_odd = good == n && n % 4 == 1; /* the last digit says nothing */
    *ret_good = good - is_odd;
    if (good < n || is_odd)
        return false;
    while (usual.len % 4)
        buf_putc(&usual, '=');
    return buf_unbase64(b, buf_cstr(&usual), usual.len);
}

bool buf_failed(const struct buf *b)
{
    return b->failed;
}

const char *buf_cstr(const struct buf *b)
{
    return b->data ? b->data : "";
}

struct str buf_str(const struct buf *b)
{
    return (struct str){buf_cstr(b), b->len};
}

char *buf_take(struct buf *b, size_t *ret_len)
{
    char *data = b->data ? b->data : xstrdup("");
    if (ret_len)
        *ret_len = b->len;
    *b = (struct buf){0};
    return data;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

void buf_borrow(struct buf *b, struct buf *spare)
{
    *b = steal(spare);
}

void buf_give_back(struct buf *b, struct buf *spare, size_t max)
{
    if (spare->data || b->cap > max) {
        buf_fini(b);
        return;
    }
    *spare = (struct buf){.data = b->data, .cap = b->cap};
    *b = (struct buf){0};
}

void buf_fini(struct buf *b)
{
    if (!b)
        return;
    free(b->data);
    *b = (struct buf){0};
}
