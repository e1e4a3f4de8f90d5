/* A recogniser for RFC 8259 that keeps no stack but a bit per level: is this level an object or a
 * list. */
#include "apiserver/base/scan.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

static void skip_blanks(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static bool skip_escape(struct scan *s) /* at the character behind the backslash */
{
    if (s->p == s->end)
        return false;
    char c = *s->p++;
    if (c != 'u')
        return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
    for (int i = 0; i < 4; i++, s->p++)
        if (s->p == s->end || str_hex_digit(*s->p) < 0)
            return false;
    return true;
}

/* Ends a run of plain characters of a string. */
static const bool is_special[256] = {
    [0 ... 0x1f] = true,
    ['"'] = true,
    ['\\'] = true,
};

/* At the opening quote. Most of a document is strings: this loop is most of a walk. */
static bool skip_string(struct scan *s)
{
    for (s->p++;;) {
        const char *p = s->p;
        while (p < s->end && !is_special[(unsigned char)*p])
            p++;
        s->p = p;
        if (p == s->end || (unsigned char)*p < 0x20)
            return false;
        s->p++;
        if (*p == '"')
            return true;
        if (!skip_escape(s))
            return false;
    }
}

static size_t skip_digits(struct scan *s)
{
    const char *from = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return (size_t)(s->p - from);
}

static bool skip_number(struct scan *s)
{
    if (*s->p == '-')
        s->p++;
    bool leading_zero = s->p < s->end && *s->p == '0';
    size_t digits = skip_digits(s);
    if (digits == 0 || (leading_zero && digits > 1))
        return false;
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        if (skip_digits(s) == 0)
            return false;
    }
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
        s->p++;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
            s->p++;
        if (skip_digits(s) == 0)
            return false;
    }
    return true;
}

static bool skip_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return false;
    s->p += n;
    return true;
}

static bool skip_scalar(struct scan *s)
{
    switch (*s->p) {
    case '"':
        return skip_string(s);
    case 't':
        return skip_word(s, "true");
    case 'f':
        return skip_word(s, "false");
    case 'n':
        return skip_word(s, "null");
    default:
        return skip_number(s);
    }
}

/* Behind '{' or ',' of an object: the key and the colon. */
static bool read_key(struct scan *s, struct scan_piece *ret)
{
    skip_blanks(s);
    const char *from = s->p;
    if (s->p == s->end || *s->p != '"' || !skip_string(s))
        return false;
    *ret = (struct scan_piece){from + 1, (size_t)(s->p - from) - 2};
    skip_blanks(s);
    if (s->p == s->end || *s->p != ':')
        return false;
    s->p++;
    return true;
}

static bool skip_key(struct scan *s)
{
    struct scan_piece ignored;
    return read_key(s, &ignored);
}

struct levels {
    size_t depth;
    unsigned char is_object[SCAN_DEPTH_MAX / 8 + 1]; /* a byte counts from its first level on */
};

static bool levels_push(struct levels *l, bool is_object)
{
    if (l->depth == SCAN_DEPTH_MAX)
        return false;
    unsigned shift = l->depth % 8, below = shift == 0 ? 0 : l->is_object[l->depth / 8];
    below &= (1u << shift) - 1;
    l->is_object[l->depth / 8] = (unsigned char)(below | (unsigned)is_object << shift);
    l->depth++;
    return true;
}

static bool levels_top_is_object(const struct levels *l)
{
    size_t top = l->depth - 1;
    return (l->is_object[top / 8] >> (top % 8)) & 1;
}

/* Behind a complete value inside something: its comma (then true and the next value is due), or
 * what closes it. */
static bool close_levels(struct scan *s, struct levels *l, bool *failed)
{
    while (l->depth > 0) {
        skip_blanks(s);
        bool is_object = levels_top_is_object(l);
        if (s->p == s->end)
            break;
        char c = *s->p++;
        if (c == ',') {
            *failed = is_object && !skip_key(s);
            return true;
        }
        if (c != (is_object ? '}' : ']'))
            break;
        l->depth--;
    }
    *failed = l->depth > 0;
    return false;
}

/* Opens an object or list; true when it has something inside, so that a value is due. */
static bool open_level(struct scan *s, struct levels *l, bool *failed)
{
    bool is_object = *s->p++ == '{';
    skip_blanks(s);
    if (s->p < s->end && *s->p == (is_object ? '}' : ']')) {
        s->p++;
        return false;
    }
    *failed = !levels_push(l, is_object) || (is_object && !skip_key(s));
    return true;
}

bool scan_value(struct scan *s, struct scan_piece *ret)
{
    struct levels l;
    l.depth = 0;
    bool failed = false, is_due = true;
    skip_blanks(s);
    const char *from = s->p;
    while (is_due && !failed) {
        skip_blanks(s);
        if (s->p == s->end)
            return false;
        if (*s->p == '{' || *s->p == '[') {
            if (open_level(s, &l, &failed))
                continue;
        } else if (!skip_scalar(s)) {
            return false;
        }
        is_due = close_levels(s, &l, &failed);
    }
    if (!failed && ret)
        *ret = (struct scan_piece){from, (size_t)(s->p - from)};
    return !failed;
}

bool scan_enter(struct scan *s, char open)
{
    skip_blanks(s);
    if (s->p == s->end || *s->p != open)
        return false;
    s->p++;
    return true;
}

/* Before a member or item: true when there is one. */
static bool step(struct scan *s, char close, bool *is_first, bool *failed)
{
    skip_blanks(s);
    if (s->p < s->end && *s->p == close) {
        s->p++;
        return false;
    }
    if (!*is_first) {
        if (s->p == s->end || *s->p != ',') {
            *failed = true;
            return false;
        }
        s->p++;
    }
    *is_first = false;
    return true;
}

bool scan_member(struct scan *s, bool *is_first, struct scan_piece *ret_key, bool *failed)
{
    if (!step(s, '}', is_first, failed))
        return false;
    *failed = !read_key(s, ret_key);
    return !*failed;
}

bool scan_item(struct scan *s, bool *is_first, bool *failed)
{
    return step(s, ']', is_first, failed);
}

bool scan_at_end(struct scan *s)
{
    skip_blanks(s);
    return s->p == s->end;
}

bool scan_key_is(struct scan_piece key, const char *name)
{
    return key.n == strlen(name) && memcmp(key.p, name, key.n) == 0;
}

static const char *unescape_all(struct arena *arena, struct scan_piece piece)
{
    SCOPED(buf_fini) struct buf quoted = {0};
    SCOPED(json_free_p) cJSON *string = NULL;
    buf_putc(&quoted, '"');
    buf_append(&quoted, piece.p, piece.n);
    buf_putc(&quoted, '"');
    if (json_parse(buf_cstr(&quoted), quoted.len, NULL, &string, NULL) < 0)
        return NULL;
    return arena_strdup(arena, string->valuestring);
}

/* Most have no escapes, or only those of quotes. */
const char *scan_text(struct arena *arena, struct scan_piece piece)
{
    char *out = arena_alloc(arena, piece.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < piece.n; i++) {
        bool is_escape = piece.p[i] == '\\';
        i += is_escape;
        if (is_escape && piece.p[i] != '"' && piece.p[i] != '\\')
            return unescape_all(arena, piece);
        out[n++] = piece.p[i];
    }
    return out;
}
