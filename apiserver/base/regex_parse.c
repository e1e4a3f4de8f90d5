/* The syntax of regular expressions, by recursive descent; see regex.h. */
#include <string.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/regex_tree.h"

#define DEPTH_MAX 200  /* of groups in groups */
#define RANGES_MAX 500 /* of one class, those of its parts together */
#define RUNE_MAX 0x10FFFF

struct parser {
    struct arena *arena;
    const char *p, *end;
    const char *mistake; /* the first */
    int depth;
    /* i m s U, as they hold for what is being read */
    bool folds_case, is_multiline, dot_takes_newline, is_ungreedy;
};
typedef const struct regex_node *node;

static node fail(struct parser *ps, const char *mistake)
{
    if (!ps->mistake)
        ps->mistake = mistake;
    return NULL;
}

static bool at_end(const struct parser *ps)
{
    return ps->mistake || ps->p >= ps->end;
}

static bool take(struct parser *ps, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, text, n) != 0)
        return false;
    ps->p += n;
    return true;
}

/* The next character, stepped over. */
static uint32_t take_rune(struct parser *ps)
{
    uint32_t rune = 0;
    size_t n = str_utf8_decode(ps->p, (size_t)(ps->end - ps->p), &rune);
    if (n == 0)
        fail(ps, "not UTF-8");
    ps->p += n ? n : 1;
    return rune;
}

static struct regex_node *make(struct parser *ps, enum regex_kind kind)
{
    struct regex_node *made = arena_alloc(ps->arena, sizeof *made);
    made->kind = kind;
    made->copies = 1;
    return made;
}

static node make_assert(struct parser *ps, enum regex_assert which)
{
    struct regex_node *made = make(ps, REGEX_ASSERT);
    made->assert = which;
    return made;
}

static node make_pair(struct parser *ps, enum regex_kind kind, node left, node right)
{
    struct regex_node *made = make(ps, kind);
    made->left = left;
    made->right = right;
    if (left && right) /* neither is there once something failed */
        made->copies = left->copies > right->copies ? left->copies : right->copies;
    return made;
}

/* ---- classes ---- */

static void grow(struct parser *ps, struct regex_class *set)
{
    size_t cap = set->cap ? set->cap * 4 : 2;
    struct regex_range *v = arena_alloc(ps->arena, cap * sizeof *v);
    if (set->n > 0)
        memcpy(v, set->v, set->n * sizeof *v);
    set->v = v;
    set->cap = cap;
}

static void add_range(struct parser *ps, struct regex_class *set, uint32_t from, uint32_t to)
{
    if (set->n == RANGES_MAX) {
        fail(ps, "a class with too many ranges");
        return;
    }
    if (set->n == set->cap)
        grow(ps, set);
    set->v[set->n++] = (struct regex_range){from, to};
}

/* The part of a range that is between two letters, in the other case. */
static void add_folded(struct parser *ps, struct regex_class *set, uint32_t from, uint32_t to,
                       uint32_t first, uint32_t other)
{
    uint32_t low = from > first ? from : first, high = to < first + 25 ? to : first + 25;
    if (low <= high)
        add_range(ps, set, low - first + other, high - first + other);
}

static void add_runes(struct parser *ps, struct regex_class *set, uint32_t from, uint32_t to)
{
    add_range(ps, set, from, to);
    if (!ps->folds_case)
        return;
    if (from >= 0x80)
        fail(ps, "case folding beyond ASCII is not supported");
    add_folded(ps, set, from, to, 'a', 'A');
    add_folded(ps, set, from, to, 'A', 'a');
}

/* What is not in ranges that are in order and apart. */
static void add_others(struct parser *ps, struct regex_class *set, const struct regex_range *v,
                       size_t n)
{
    uint32_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i].from > from)
            add_range(ps, set, from, v[i].from - 1);
        from = v[i].to + 1;
    }
    add_range(ps, set, from, RUNE_MAX);
}

static const struct named_class {
    const char *name;
    struct regex_range v[4];
    size_t n;
} named[] = {
    /* escapes, lower case */
    {"d", {{'0', '9'}}, 1},
    {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, 3},
    {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    /* in [: :] */
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
    {"ascii", {{0, 0x7f}}, 1},
    {"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
    {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}, 2},
    {"digit", {{'0', '9'}}, 1},
    {"graph", {{'!', '~'}}, 1},
    {"lower", {{'a', 'z'}}, 1},
    {"print", {{' ', '~'}}, 1},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
    {"space", {{'\t', '\r'}, {' ', ' '}}, 2},
    {"upper", {{'A', 'Z'}}, 1},
    {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
};

static bool add_named(struct parser *ps, struct regex_class *set, struct str name, bool is_negated)
{
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        if (!str_eq(name, named[i].name))
            continue;
        if (is_negated)
            add_others(ps, set, named[i].v, named[i].n);
        for (size_t j = 0; j < named[i].n && !is_negated; j++)
            add_runes(ps, set, named[i].v[j].from, named[i].v[j].to);
        return true;
    }
    return false;
}

/* \d \D \s \S \w \W at the parser's place; false when it is none of them. */
static bool take_escaped_class(struct parser *ps, struct regex_class *set)
{
    if (ps->end - ps->p < 2 || ps->p[0] != '\\' || !memchr("dDsSwW", ps->p[1], 6))
        return false;
    char lower = (char)(ps->p[1] | 0x20);
    add_named(ps, set, (struct str){&lower, 1}, ps->p[1] != lower);
    ps->p += 2;
    return true;
}

/* [:name:] or [:^name:] within brackets. */
static bool take_posix_class(struct parser *ps, struct regex_class *set)
{
    if (ps->end - ps->p < 4 || ps->p[0] != '[' || ps->p[1] != ':')
        return false;
    const char *close = memmem(ps->p + 2, (size_t)(ps->end - ps->p) - 2, ":]", 2);
    if (!close)
        return false;
    const char *name = ps->p + 2;
    bool is_negated = *name == '^';
    name += is_negated;
    if (!add_named(ps, set, (struct str){name, (size_t)(close - name)}, is_negated) ||
        close - name < 2)
        fail(ps, "an unknown class of characters");
    ps->p = close + 2;
    return true;
}

/* ---- escapes ---- */

static uint32_t take_number(struct parser *ps, int base, int digits_max)
{
    uint32_t v = 0;
    int digits = 0, digit;
    while (digits < digits_max && ps->p < ps->end && (digit = str_hex_digit(*ps->p)) >= 0 &&
           digit < base) {
        v = v * (uint32_t)base + (uint32_t)digit;
        ps->p++;
        digits++;
    }
    if (digits == 0 || v > RUNE_MAX)
        fail(ps, "an unknown escape");
    return v;
}

/* Behind \x: two digits, or any number in braces. */
static uint32_t take_hex(struct parser *ps)
{
    if (take(ps, "{")) {
        uint32_t v = take_number(ps, 16, 8);
        if (!take(ps, "}"))
            fail(ps, "an unknown escape");
        return v;
    }
    const char *before = ps->p;
    uint32_t v = take_number(ps, 16, 2);
    if (ps->p - before != 2)
        fail(ps, "an unknown escape");
    return v;
}

/* The one character that an escape means; behind the backslash. */
static uint32_t take_escape(struct parser *ps)
{
    static const char letters[] = "afnrtv", meant[] = "\a\f\n\r\t\v";
    if (at_end(ps)) {
        fail(ps, "a backslash at the end");
        return 0;
    }
    char c = *ps->p;
    const char *at = memchr(letters, c, sizeof letters - 1);
    if (at) {
        ps->p++;
        return (unsigned char)meant[at - letters];
    }
    if (take(ps, "x"))
        return take_hex(ps);
    if (c == '0' ||
        (c >= '1' && c <= '7' && ps->end - ps->p > 1 && ps->p[1] >= '0' && ps->p[1] <= '7'))
        return take_number(ps, 8, 3);
    bool is_punctuation = (unsigned char)c < 0x80 && !memchr("_", c, 1) && str_hex_digit(c) < 0 &&
                          !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    if (!is_punctuation && c != '_')
        fail(ps, c == 'p' || c == 'P' ? "classes of Unicode are not supported"
                 : c == 'C'           ? "single bytes are not supported"
                                      : "an unknown escape");
    return take_rune(ps);
}

/* ---- [...] ---- */

static uint32_t take_class_rune(struct parser *ps)
{
    return take(ps, "\\") ? take_escape(ps) : take_rune(ps);
}

static void take_class_range(struct parser *ps, struct regex_class *set)
{
    uint32_t from = take_class_rune(ps), to = from;
    if (ps->end - ps->p > 1 && ps->p[0] == '-' && ps->p[1] != ']') {
        ps->p++;
        to = at_end(ps) ? from : take_class_rune(ps);
    }
    if (to < from)
        fail(ps, "a range whose end is before its start");
    add_runes(ps, set, from, to);
}

/* Behind the opening bracket. A closing one that comes first stands for itself. */
static node parse_class(struct parser *ps)
{
    struct regex_node *made = make(ps, REGEX_CLASS);
    made->set.is_negated = take(ps, "^");
    bool is_first = true;
    while (!at_end(ps) && (is_first || *ps->p != ']')) {
        if (!take_escaped_class(ps, &made->set) && !take_posix_class(ps, &made->set))
            take_class_range(ps, &made->set);
        is_first = false;
    }
    return take(ps, "]") ? made : fail(ps, "a class without end");
}

/* ---- groups and what stands alone ---- */

static node parse_either(struct parser *ps);

static node parse_rune(struct parser *ps, uint32_t rune)
{
    struct regex_node *made = make(ps, REGEX_CLASS);
    add_runes(ps, &made->set, rune, rune);
    return made;
}

/* i, m, s, U, and - before those that are taken away; up to : or ). */
static void take_flags(struct parser *ps)
{
    bool value = true;
    for (; !at_end(ps) && *ps->p != ':' && *ps->p != ')'; ps->p++) {
        switch (*ps->p) {
        case 'i':
            ps->folds_case = value;
            break;
        case 'm':
            ps->is_multiline = value;
            break;
        case 's':
            ps->dot_takes_newline = value;
            break;
        case 'U':
            ps->is_ungreedy = value;
            break;
        case '-':
            value = false;
            break;
        default:
            fail(ps, "an unknown flag of a group");
        }
    }
}

static void take_group_name(struct parser *ps)
{
    const char *close = memchr(ps->p, '>', (size_t)(ps->end - ps->p));
    if (!close || close == ps->p)
        fail(ps, "a group with a broken name");
    else
        ps->p = close + 1;
}

/* Flags of an opened group hold up to its end; those of (?i) up to the end of the group around. */
static node parse_group(struct parser *ps)
{
    struct parser before = *ps;
    if (take(ps, "?P<") || take(ps, "?<")) {
        take_group_name(ps);
    } else if (take(ps, "?")) {
        take_flags(ps);
        if (take(ps, ")"))
            return make(ps, REGEX_EMPTY);
        if (!take(ps, ":"))
            return fail(ps, "an unknown kind of group");
    }
    node inner = parse_either(ps);
    if (!take(ps, ")"))
        return fail(ps, "a group without end");
    ps->folds_case = before.folds_case;
    ps->is_multiline = before.is_multiline;
    ps->dot_takes_newline = before.dot_takes_newline;
    ps->is_ungreedy = before.is_ungreedy;
    return inner;
}

static node parse_dot(struct parser *ps)
{
    static const struct regex_range newline = {'\n', '\n'};
    struct regex_node *made = make(ps, REGEX_CLASS);
    add_others(ps, &made->set, &newline, ps->dot_takes_newline ? 0 : 1);
    return made;
}

/* \Q...\E: as it is written. */
static node parse_quoted(struct parser *ps)
{
    node all = make(ps, REGEX_EMPTY);
    while (!at_end(ps) && !take(ps, "\\E"))
        all = make_pair(ps, REGEX_THEN, all, parse_rune(ps, take_rune(ps)));
    return all;
}

static node parse_escape(struct parser *ps)
{
    static const struct {
        const char *text;
        enum regex_assert which;
    } asserts[] = {{"\\A", REGEX_TEXT_START},
                   {"\\z", REGEX_TEXT_END},
                   {"\\b", REGEX_WORD_EDGE},
                   {"\\B", REGEX_NO_WORD_EDGE}};
    for (size_t i = 0; i < ARRAY_LEN(asserts); i++)
        if (take(ps, asserts[i].text))
            return make_assert(ps, asserts[i].which);
    if (take(ps, "\\Q"))
        return parse_quoted(ps);
    struct regex_node *made = make(ps, REGEX_CLASS);
    if (take_escaped_class(ps, &made->set))
        return made;
    ps->p++;
    return parse_rune(ps, take_escape(ps));
}

static node parse_atom(struct parser *ps)
{
    if (*ps->p == '\\')
        return parse_escape(ps);
    if (take(ps, "["))
        return parse_class(ps);
    if (take(ps, "("))
        return parse_group(ps);
    if (take(ps, "."))
        return parse_dot(ps);
    if (take(ps, "^"))
        return make_assert(ps, ps->is_multiline ? REGEX_LINE_START : REGEX_TEXT_START);
    if (take(ps, "$"))
        return make_assert(ps, ps->is_multiline ? REGEX_LINE_END : REGEX_TEXT_END);
    if (memchr("*+?", *ps->p, 3))
        return fail(ps, "nothing to repeat");
    return parse_rune(ps, take_rune(ps));
}

/* ---- repetition, sequence, alternatives ---- */

static bool take_count(struct parser *ps, int *ret)
{
    const char *from = ps->p;
    int v = 0;
    while (ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9') {
        v = v > REGEX_REPEAT_MAX ? v : v * 10 + (*ps->p - '0');
        ps->p++;
    }
    *ret = v;
    return ps->p > from;
}

/* {n}, {n,} or {n,m}; what looks otherwise is text, and is left where it is. */
static bool take_counts(struct parser *ps, int *min, int *max)
{
    const char *before = ps->p;
    if (take(ps, "{") && take_count(ps, min)) {
        *max = *min;
        if (take(ps, ",") && !take_count(ps, max))
            *max = -1;
        if (take(ps, "}"))
            return true;
    }
    ps->p = before;
    return false;
}

static bool take_repetition(struct parser *ps, int *min, int *max)
{
    *min = 0;
    *max = -1;
    if (take(ps, "*"))
        return true;
    if (take(ps, "+")) {
        *min = 1;
        return true;
    }
    if (take(ps, "?")) {
        *max = 1;
        return true;
    }
    return take_counts(ps, min, max);
}

/* Counts within counts are limited together, or nothing repeated often would keep the emitter busy
 * without end. */
static node make_repeat(struct parser *ps, node inner, int min, int max)
{
    int most = max < 0 ? min : max;
    if (min > REGEX_REPEAT_MAX || max > REGEX_REPEAT_MAX || (max >= 0 && max < min) ||
        most * inner->copies > REGEX_REPEAT_MAX)
        return fail(ps, "a repetition that is too large, or ends before it begins");
    struct regex_node *repeat = make(ps, REGEX_REPEAT);
    repeat->left = inner;
    repeat->min = min;
    repeat->max = max;
    repeat->copies = inner->copies * (most > 0 ? most : 1);
    repeat->is_lazy = take(ps, "?") != ps->is_ungreedy;
    return repeat;
}

static node parse_repeated(struct parser *ps)
{
    node made = parse_atom(ps);
    int min, max;
    bool is_repeated = false;
    while (!at_end(ps) && take_repetition(ps, &min, &max)) {
        if (is_repeated)
            return fail(ps, "a repetition of a repetition");
        made = make_repeat(ps, made, min, max);
        is_repeated = true;
    }
    return made;
}

static node parse_sequence(struct parser *ps)
{
    node all = NULL;
    while (!at_end(ps) && *ps->p != '|' && *ps->p != ')') {
        node next = parse_repeated(ps);
        all = all ? make_pair(ps, REGEX_THEN, all, next) : next;
    }
    return all ? all : make(ps, REGEX_EMPTY);
}

static node parse_either(struct parser *ps)
{
    if (++ps->depth > DEPTH_MAX)
        return fail(ps, "groups that are nested too deep");
    node all = parse_sequence(ps);
    while (take(ps, "|"))
        all = make_pair(ps, REGEX_EITHER, all, parse_sequence(ps));
    ps->depth--;
    return all;
}

const struct regex_node *regex_parse(struct arena *arena, struct str pattern,
                                     const char **ret_mistake)
{
    struct parser ps = {.arena = arena, .p = pattern.p, .end = pattern.p + pattern.n};
    node whole =
        pattern.n > REGEX_TEXT_MAX ? fail(&ps, "the pattern is too long") : parse_either(&ps);
    if (!ps.mistake && ps.p < ps.end)
        fail(&ps, "a parenthesis that closes nothing");
    *ret_mistake = ps.mistake;
    return ps.mistake ? NULL : whole;
}
