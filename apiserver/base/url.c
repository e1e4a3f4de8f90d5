#include "apiserver/base/url.h"

#include "apiserver/base/mem.h"

char *url_unescape(struct str s, bool plus_is_blank)
{
    SCOPED_FREE char *out = xmalloc(s.n + 1); /* %00 shrinks from three bytes to two */
    char *to = out;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '%') {
            *to++ = plus_is_blank && s.p[i] == '+' ? ' ' : s.p[i];
            continue;
        }
        int high = i + 2 < s.n ? str_hex_digit(s.p[i + 1]) : -1;
        int low = i + 2 < s.n ? str_hex_digit(s.p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return NULL;
        int byte = high * 16 + low;
        if (byte == 0)
            *to++ = STR_NUL[0];
        *to++ = byte ? (char)byte : STR_NUL[1];
        i += 2;
    }
    *to = '\0';
    return steal(&out);
}

static void parse_param(struct str part, struct pairs *ret)
{
    const char *eq = memchr(part.p, '=', part.n);
    struct str name = {part.p, eq ? (size_t)(eq - part.p) : part.n};
    struct str value = eq ? (struct str){eq + 1, part.n - name.n - 1} : (struct str){"", 0};
    if (!part.n || memchr(part.p, ';', part.n))
        return;
    SCOPED_FREE char *n = url_unescape(name, true);
    SCOPED_FREE char *v = url_unescape(value, true);
    if (n && v)
        pairs_add(ret, n, v);
}

void url_parse_query(const char *query, struct pairs *ret)
{
    while (*query) {
        size_t n = strcspn(query, "&");
        parse_param((struct str){query, n}, ret);
        query += n + (query[n] == '&');
    }
}
