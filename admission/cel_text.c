/* Functions on texts: CEL's own and those that Kubernetes adds. Places and lengths count
 * characters, not bytes. Source: cel-go's ext.Strings, version 0, as Kubernetes enables it. */
#include "admission/cel_tree.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/regex.h"

static struct cel_value size_of_text(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    if (!cel_spend(c, v->s.n / 64))
        return cel_spent();
    int64_t characters = 0;
    for (size_t i = 0; i < v->s.n; i++)
        characters += (v->s.p[i] & 0xC0) != 0x80;
    return cel_int(characters);
}

static struct cel_value size_of_bytes(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_int((int64_t)v->s.n);
}

static bool pay(struct cel_ctx *c, struct str text)
{
    return cel_spend(c, 1 + text.n / 16);
}

/* Where needle is in text at or behind from; text.n + 1 when it is not. */
static size_t find_text(struct str text, struct str needle, size_t from)
{
    if (needle.n > text.n || from > text.n - needle.n)
        return text.n + 1;
    if (needle.n == 0)
        return from;
    const char *at = memmem(text.p + from, text.n - from, needle.p, needle.n);
    return at ? (size_t)(at - text.p) : text.n + 1;
}

static struct cel_value contains(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    pay(c, v[0].s);
    return cel_bool(find_text(v[0].s, v[1].s, 0) <= v[0].s.n);
}

static struct cel_value starts_with(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_bool(v[1].s.n <= v[0].s.n && memcmp(v[0].s.p, v[1].s.p, v[1].s.n) == 0);
}

static struct cel_value ends_with(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    size_t rest = v[0].s.n - v[1].s.n;
    return cel_bool(v[1].s.n <= v[0].s.n && memcmp(v[0].s.p + rest, v[1].s.p, v[1].s.n) == 0);
}

/* ---- places ---- */

/* The bytes before the i-th character; false when there are fewer. */
static bool offset_of(struct str s, int64_t i, size_t *ret)
{
    size_t at = 0;
    if (i < 0)
        return false;
    for (; i > 0 && at < s.n; i--)
        do
            at++;
        while (at < s.n && (s.p[at] & 0xC0) == 0x80);
    *ret = at;
    return i == 0;
}

static int64_t characters(struct str s, size_t bytes)
{
    int64_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += (s.p[i] & 0xC0) != 0x80;
    return count;
}

static struct cel_value index_error(void)
{
    return cel_error("index out of range");
}

static struct cel_value char_at(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    size_t from, to;
    if (!pay(c, v[0].s) || !offset_of(v[0].s, v[1].i, &from))
        return index_error();
    struct str rest = {v[0].s.p + from, v[0].s.n - from};
    return offset_of(rest, 1, &to) ? cel_string(rest.p, to) : cel_string("", 0);
}

static struct cel_value substring(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    size_t from, to = 0;
    to = v[0].s.n;
    if (!pay(c, v[0].s) || !offset_of(v[0].s, v[1].i, &from) ||
        (n == 3 && !offset_of(v[0].s, v[2].i, &to)) || from > to)
        return index_error();
    return cel_string(v[0].s.p + from, to - from);
}

static struct cel_value index_of(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    size_t from = 0;
    if (!pay(c, v[0].s) || (n == 3 && !offset_of(v[0].s, v[2].i, &from)))
        return index_error();
    size_t at = find_text(v[0].s, v[1].s, from);
    return cel_int(at <= v[0].s.n ? characters(v[0].s, at) : -1);
}

static struct cel_value last_index_of(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    struct str s = v[0].s;
    size_t from = s.n;
    if (!cel_spend(c, 1 + s.n) || (n == 3 && !offset_of(s, v[2].i, &from)))
        return index_error();
    for (size_t at = from + 1; at-- > 0 && cel_spend(c, v[1].s.n / 16);)
        if (v[1].s.n <= s.n - at && memcmp(s.p + at, v[1].s.p, v[1].s.n) == 0)
            return cel_int(characters(s, at));
    return cel_int(-1);
}

/* ---- changed texts ---- */

static struct cel_value made(struct cel_ctx *c, const struct buf *out)
{
    if (buf_failed(out))
        return cel_error("the text is too long");
    char *copy = cel_alloc(c, out->len, 1);
    if (!copy)
        return cel_spent();
    if (out->len > 0)
        memcpy(copy, out->data, out->len);
    return cel_string(copy, out->len);
}

static struct cel_value change_case(struct cel_ctx *c, const struct cel_value *v, char first,
                                    int by)
{
    char *copy = cel_alloc(c, v->s.n, 1);
    if (!copy)
        return cel_spent();
    for (size_t i = 0; i < v->s.n; i++) {
        bool changes = v->s.p[i] >= first && v->s.p[i] < first + 26;
        copy[i] = (char)(v->s.p[i] + (changes ? by : 0));
    }
    return cel_string(copy, v->s.n);
}

static struct cel_value lower_ascii(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    return change_case(c, v, 'A', 'a' - 'A');
}

static struct cel_value upper_ascii(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    return change_case(c, v, 'a', 'A' - 'a');
}

/* What Unicode calls White_Space. */
static bool is_blank(uint32_t r)
{
    return (r >= 9 && r <= 13) || r == ' ' || r == 0x85 || r == 0xA0 || r == 0x1680 ||
           (r >= 0x2000 && r <= 0x200A) || r == 0x2028 || r == 0x2029 || r == 0x202F ||
           r == 0x205F || r == 0x3000;
}

static struct cel_value trim(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    pay(c, v->s);
    size_t from = 0, to = 0, len;
    bool is_begun = false;
    for (size_t i = 0; i < v->s.n; i += len) {
        uint32_t rune = 0;
        len = str_utf8_decode(v->s.p + i, v->s.n - i, &rune);
        len += len == 0;
        if (is_blank(rune))
            continue;
        from = is_begun ? from : i;
        to = i + len;
        is_begun = true;
    }
    return cel_string(v->s.p + from, to - from);
}

/* How far a piece reaches when the separator is empty: one character. */
static size_t one_character(struct str s, size_t at)
{
    size_t n = 0;
    offset_of((struct str){s.p + at, s.n - at}, 1, &n);
    return n;
}

#define TEXT_MAX ((size_t)4 << 20) /* bytes that replace and join may make */

static struct cel_value replace(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    struct str s = v[0].s, old = v[1].s;
    int64_t left = n == 4 ? v[3].i : -1;
    SCOPED(buf_fini) struct buf out = {.max = TEXT_MAX};
    size_t at = 0;
    while (left != 0 && at <= s.n && cel_spend(c, 1 + v[2].s.n / 16)) {
        size_t found = find_text(s, old, at);
        if (found > s.n)
            break;
        buf_append(&out, s.p + at, found - at);
        buf_append(&out, v[2].s.p, v[2].s.n);
        at = found + old.n;
        left -= left > 0;
        if (old.n > 0)
            continue;
        size_t step = at < s.n ? one_character(s, at) : 0;
        buf_append(&out, s.p + at, step);
        at += step;
        if (step == 0)
            return made(c, &out);
    }
    buf_append(&out, s.p + at, s.n - at);
    return pay(c, s) ? made(c, &out) : cel_spent();
}

/* Pieces of a text; at most left of them, the last with what remains. */
static struct cel_value split(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    struct str s = v[0].s, by = v[1].s;
    int64_t left = n == 3 ? v[2].i : -1;
    if (left == 0 || (by.n == 0 && s.n == 0))
        return cel_list(NULL, 0);
    struct cel_value *pieces = cel_alloc(c, s.n + 2, sizeof *pieces);
    if (!pieces)
        return cel_spent();
    size_t count = 0, at = 0;
    while (left < 0 || (int64_t)count + 1 < left) {
        size_t end = by.n ? find_text(s, by, at) : at + one_character(s, at);
        if (end > s.n || (by.n == 0 && end == s.n))
            break;
        pieces[count++] = cel_string(s.p + at, end - at);
        at = end + by.n;
    }
    pieces[count++] = cel_string(s.p + at, s.n - at);
    return cel_list(pieces, count);
}

static struct cel_value join(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    struct cel_value open = cel_open(c, &v[0]);
    SCOPED(buf_fini) struct buf out = {.max = TEXT_MAX};
    for (size_t i = 0; i < open.items.n; i++) {
        if (open.items.v[i].type != CEL_STRING)
            return cel_no_overload();
        if (i > 0 && n == 2)
            buf_append(&out, v[1].s.p, v[1].s.n);
        buf_append(&out, open.items.v[i].s.p, open.items.v[i].s.n);
        if (!pay(c, open.items.v[i].s))
            return cel_spent();
    }
    return made(c, &out);
}

/* ---- regular expressions ---- */

/* The pattern: of a literal it was compiled with the rule. NULL and an error when it is none. */
static const struct regex *pattern_of(struct cel_ctx *c, const struct cel_value *v,
                                      struct cel_value *ret_error)
{
    if (v->regex)
        return v->regex;
    const char *mistake = NULL;
    const struct regex *re = NULL;
    if (cel_spend(c, 20 + v->s.n)) /* about what compiling takes */
        re = regex_compile(c->arena, v->s, &mistake);
    if (!re)
        *ret_error =
            c->is_exhausted
                ? cel_spent()
                : cel_error(arena_printf(c->arena, "invalid regular expression: %s", mistake));
    return re;
}

/* Steps of a match: its thread steps are cheaper than those of an evaluation. */
static bool pay_match(struct cel_ctx *c, const struct regex *re, size_t text_bytes)
{
    return cel_spend(c, 1 + regex_cost(re, text_bytes) / 8);
}

static struct cel_value matches(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value error;
    const struct regex *re = pattern_of(c, &v[1], &error);
    if (!re)
        return error;
    return pay_match(c, re, v[0].s.n) ? cel_bool(regex_matches(re, v[0].s)) : cel_spent();
}

static struct cel_value find(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value error;
    size_t start = 0, end = 0;
    const struct regex *re = pattern_of(c, &v[1], &error);
    if (!re)
        return error;
    if (!pay_match(c, re, v[0].s.n))
        return cel_spent();
    regex_find(re, v[0].s, 0, &start, &end);
    return cel_string(v[0].s.p + start, end - start);
}

/* Matches from left to right that do not overlap; the third argument is how many, negative = all.
 * An empty one right behind another is none. Source: Go's FindAllString. */
static struct cel_value find_all(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    struct cel_value error;
    struct str s = v[0].s;
    int64_t left = n == 3 ? v[2].i : -1;
    const struct regex *re = pattern_of(c, &v[1], &error);
    if (!re)
        return error;
    struct cel_value *found = cel_alloc(c, s.n + 1, sizeof *found);
    size_t count = 0, at = 0, start, end, last = SIZE_MAX;
    while (found && left != 0 && at <= s.n && pay_match(c, re, s.n - at) &&
           regex_find(re, s, at, &start, &end)) {
        if (start < end || start != last) {
            found[count++] = cel_string(s.p + start, end - start);
            left -= left > 0;
        }
        last = end;
        at = end > start ? end : end + (end < s.n ? one_character(s, end) : 1);
    }
    return c->is_exhausted ? cel_spent() : cel_list(found, count);
}

const struct cel_function cel_text_functions[] = {
    {"charAt", "s.i:s", char_at},
    {"contains", "s.s:b", contains},
    {"endsWith", "s.s:b", ends_with},
    {"find", "s.s:s", find},
    {"findAll", "s.s:l", find_all},
    {"findAll", "s.si:l", find_all},
    {"indexOf", "s.s:i", index_of},
    {"indexOf", "s.si:i", index_of},
    {"join", "l.:s", join},
    {"join", "l.s:s", join},
    {"lastIndexOf", "s.s:i", last_index_of},
    {"lastIndexOf", "s.si:i", last_index_of},
    {"lowerAscii", "s.:s", lower_ascii},
    {"matches", "s.s:b", matches},
    {"matches", "ss:b", matches},
    {"replace", "s.ss:s", replace},
    {"replace", "s.ssi:s", replace},
    {"size", "s.:i", size_of_text},
    {"size", "s:i", size_of_text},
    {"size", "y.:i", size_of_bytes},
    {"size", "y:i", size_of_bytes},
    {"split", "s.s:l", split},
    {"split", "s.si:l", split},
    {"startsWith", "s.s:b", starts_with},
    {"substring", "s.i:s", substring},
    {"substring", "s.ii:s", substring},
    {"trim", "s.:s", trim},
    {"upperAscii", "s.:s", upper_ascii},
    {0},
};
