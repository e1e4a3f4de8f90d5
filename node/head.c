#include "node/head.h"

#include <strings.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/url.h"

#define HEADERS_MAX 100
#define BLANKS " \t"

void head_fini(struct head *h)
{
    free(h->method);
    free(h->path);
    pairs_fini(&h->query);
    pairs_fini(&h->headers);
    *h = (struct head){0};
}

size_t head_length(const char *p, size_t n)
{
    const char *end = memmem(p, n, "\r\n\r\n", 4);
    return end ? (size_t)(end - p) + 4 : 0;
}

static bool is_token(struct str s)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i], lower = (char)(c | 0x20);
        bool is_alnum = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
        if (!is_alnum && (!c || !strchr(marks, c)))
            return false;
    }
    return s.n > 0;
}

/* What stands before the character, which p moves behind; without it all of the rest. */
static struct str cut(struct str *p, char at)
{
    const char *end = memchr(p->p, at, p->n);
    struct str part = {p->p, end ? (size_t)(end - p->p) : p->n};
    size_t used = part.n + (end != NULL);
    *p = (struct str){p->p + used, p->n - used};
    return part;
}

static struct str trim(struct str s)
{
    while (s.n && strchr(BLANKS, s.p[0]))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n && strchr(BLANKS, s.p[s.n - 1]))
        s.n--;
    return s;
}

/* GET /path?query HTTP/1.1 */
static bool parse_first(struct str line, struct head *h)
{
    struct str method = cut(&line, ' '), target = cut(&line, ' ');
    SCOPED_FREE char *query = NULL;
    if (!is_token(method) || !target.n || target.p[0] != '/')
        return false;
    if (!str_eq(line, "HTTP/1.1") && !str_eq(line, "HTTP/1.0"))
        return false;
    h->is_old = str_eq(line, "HTTP/1.0");
    h->method = xstrndup(method.p, method.n);
    h->path = url_unescape(cut(&target, '?'), false);
    query = xstrndup(target.p, target.n);
    url_parse_query(query, &h->query);
    return h->path != NULL;
}

/* Lines that go on in the next one are no longer legal (RFC 9112, 5.2): they are no token. */
static bool parse_header(struct str line, struct head *h)
{
    struct str name = cut(&line, ':'), value = trim(line);
    if (!is_token(name) || h->headers.n >= HEADERS_MAX)
        return false;
    SCOPED_FREE char *n = xstrndup(name.p, name.n);
    SCOPED_FREE char *v = xstrndup(value.p, value.n);
    pairs_add(&h->headers, n, v);
    return true;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (((unsigned char)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f)
            return true;
    }
    return false;
}

int head_parse(const char *p, size_t n, struct head *ret, struct err *err)
{
    SCOPED(head_fini) struct head h = {0};
    struct str rest = {p, n}, line;
    while ((line = cut(&rest, '\n')).n > 1) {
        line.n--;
        bool is_good = line.p[line.n] == '\r' && !has_control(line) &&
                       (h.method ? parse_header(line, &h) : parse_first(line, &h));
        if (!is_good)
            return err_set(err, ERR_BAD_REQUEST, "the request cannot be read");
    }
    if (!h.method)
        return err_set(err, ERR_BAD_REQUEST, "the request cannot be read");
    *ret = steal(&h);
    return 0;
}

bool head_next_token(struct head_tokens *t, struct str *ret)
{
    const struct pairs *headers = &t->head->headers;
    for (;;) {
        while (t->rest.n) {
            struct str token = trim(cut(&t->rest, ','));
            if (!token.n)
                continue;
            *ret = token;
            return true;
        }
        while (t->at < headers->n && strcasecmp(headers->v[t->at].name, t->name) != 0)
            t->at++;
        if (t->at == headers->n)
            return false;
        t->rest = STR(headers->v[t->at].value);
        t->at++;
    }
}

bool head_has_token(const struct head *h, const char *name, const char *token)
{
    struct head_tokens tokens = {.head = h, .name = name};
    struct str one;
    while (head_next_token(&tokens, &one)) {
        if (one.n == strlen(token) && strncasecmp(one.p, token, one.n) == 0)
            return true;
    }
    return false;
}
