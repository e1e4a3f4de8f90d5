/* The YAML printer: block style as kubectl shows it, lists at the indent of their key. A string is
 * plain if it reads back as itself, a literal block if it has several lines, else in single or
 * double quotes. All but blocks are folded at 80 columns, as kube-apiserver folds them. */
#include <stdio.h>

#include "apiserver/base/json_node.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/yaml.h"
#include "apiserver/base/yaml_scalar.h"

/* Bytes; longer keys need the explicit form. Source: YAML 1.1, 1024 characters. */
#define SIMPLE_KEY_MAX 1000

enum place { AT_TOP, AFTER_KEY, AFTER_DASH };

struct level {
    const cJSON *node;
    size_t indent;
};

struct printer {
    struct buf *out;
    struct level *levels;
    size_t depth, cap;
    bool is_line_started; /* the first entry of a container goes behind the dash it is in */
};

/* ---- strings ---- */

/* Characters that may stand in a YAML text as they are, line breaks not counted. */
static bool is_printable(uint32_t rune)
{
    return (rune >= 0x20 && rune < 0x7f) ||
           (rune >= 0xa0 && rune < 0xfffe && rune != 0x2028 && rune != 0x2029 && rune != 0xfeff);
}

struct looks {
    bool has_newline, has_tab, has_other; /* other: needs an escape */
};

static struct looks look_at(const char *s)
{
    struct looks l = {0};
    uint32_t rune;
    for (size_t n = strlen(s), len; n > 0; s += len, n -= len) {
        len = str_utf8_decode(s, n, &rune);
        if (*s == '\n')
            l.has_newline = true;
        else if (*s == '\t')
            l.has_tab = true;
        else if (len == 0 || !is_printable(rune))
            l.has_other = true;
        len += len == 0;
    }
    return l;
}

/* Only blanks and printable characters are in s. */
static bool may_be_plain(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || s[0] == ' ' || s[n - 1] == ' ' || s[n - 1] == ':')
        return false;
    if (strchr(",[]{}#&*!|>'\"%@`", *s) || (strchr("?:-", *s) && (n == 1 || s[1] == ' ')))
        return false;
    if (str_has_prefix(s, "---") || str_has_prefix(s, "..."))
        return false;
    return !strstr(s, ": ") && !strstr(s, " #");
}

/* A text as it is written on lines that may be folded. Source of when: libyaml's emitter, which
 * breaks a line at the first blank behind its width that no blank stands beside. */
struct folding {
    struct buf *out;
    size_t column; /* characters on this line */
    size_t indent; /* of further lines; UNFOLDED = there are none */
    bool is_behind_blank;
};
#define UNFOLDED SIZE_MAX
#define LINE_WIDTH 80

static struct folding folding_start(struct buf *out, size_t indent)
{
    struct folding f = {.out = out, .indent = indent};
    for (size_t i = out->len; i > 0 && out->data[i - 1] != '\n'; i--)
        f.column += ((unsigned char)out->data[i - 1] & 0xc0) != 0x80;
    return f;
}

static void put_indent(struct buf *out, size_t n)
{
    static const char blanks[] = "                                ";
    for (; n >= sizeof blanks; n -= sizeof blanks - 1)
        buf_append(out, blanks, sizeof blanks - 1);
    buf_append(out, blanks, n);
}

static void fold_put(struct folding *f, const char *bytes, size_t n)
{
    buf_append(f->out, bytes, n);
    f->is_behind_blank = n == 1 && *bytes == ' ';
    for (size_t i = 0; i < n; i++)
        f->column += ((unsigned char)bytes[i] & 0xc0) != 0x80;
}

/* Whether the line is broken in the place of the blank at s, which text begins before. */
static bool fold_break(struct folding *f, const char *text, const char *s)
{
    if (f->indent == UNFOLDED || *s != ' ' || f->is_behind_blank || f->column <= LINE_WIDTH ||
        s == text || !s[1])
        return false;
    buf_putc(f->out, '\n');
    put_indent(f->out, f->indent);
    f->column = f->indent;
    f->is_behind_blank = true;
    return true;
}

static void fold_escape(struct folding *f, uint32_t rune)
{
    static const struct {
        uint32_t rune;
        char letter;
    } letters[] = {{0, '0'},  {7, 'a'},    {8, 'b'},    {11, 'v'},     {12, 'f'},
                   {27, 'e'}, {0x85, 'N'}, {0xa0, '_'}, {0x2028, 'L'}, {0x2029, 'P'}};
    for (size_t i = 0; i < ARRAY_LEN(letters); i++)
        if (rune == letters[i].rune) {
            fold_put(f, (char[]){'\\', letters[i].letter}, 2);
            return;
        }
    char text[16];
    int n = rune < 0x100     ? snprintf(text, sizeof text, "\\x%02X", rune)
            : rune < 0x10000 ? snprintf(text, sizeof text, "\\u%04X", rune)
                             : snprintf(text, sizeof text, "\\U%08X", rune);
    fold_put(f, text, (size_t)n);
}

/* A line that is broken before a blank says so. */
static void put_double_quoted(struct folding *f, const char *text)
{
    static const char from[] = "\"\\\n\t\r", to[] = "\"\\ntr";
    uint32_t rune = 0;
    const char *s = text;
    fold_put(f, "\"", 1);
    for (size_t n = strlen(s), len; n > 0; s += len, n -= len) {
        const char *escape = strchr(from, *s);
        len = str_utf8_decode(s, n, &rune);
        if (fold_break(f, text, s)) {
            if (s[1] == ' ') {
                fold_put(f, "\\", 1);
                f->is_behind_blank = true;
            }
        } else if (escape) {
            fold_put(f, (char[]){'\\', to[escape - from]}, 2);
        } else if (len == 0) {
            fold_put(f, "\xef\xbf\xbd", 3);
        } else if (is_printable(rune)) {
            fold_put(f, s, len);
        } else {
            fold_escape(f, rune);
        }
        len += len == 0;
    }
    fold_put(f, "\"", 1);
}

/* Plain or, with quotes, single-quoted: there is nothing else to escape. */
static void put_bare(struct folding *f, const char *text, bool with_quotes)
{
    if (with_quotes)
        fold_put(f, "'", 1);
    for (const char *s = text; *s; s++) {
        if (s[1] != ' ' && fold_break(f, text, s))
            continue;
        if (with_quotes && *s == '\'')
            fold_put(f, s, 1);
        fold_put(f, s, 1);
    }
    if (with_quotes)
        fold_put(f, "'", 1);
}

/* 2026-01-02 and what may follow it: YAML 1.1 has a type of its own for times, so that the text is
 * quoted. */
static bool is_time(const char *s)
{
    static const size_t least[] = {4, 1, 1}, most[] = {4, 2, 2};
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t parts[3];
    for (int part = 0; part < 3; part++) {
        size_t digits = strspn(s, "0123456789");
        SCOPED_FREE char *text = xstrndup(s, digits < 4 ? digits : 4);
        if (digits < least[part] || digits > most[part] || str_to_i64(text, &parts[part]) < 0)
            return false;
        s += digits;
        if (part < 2 && *s++ != '-')
            return false;
    }
    bool is_day =
        parts[1] >= 1 && parts[1] <= 12 && parts[2] >= 1 && parts[2] <= days[parts[1] - 1];
    return is_day && (!*s || strchr("Tt ", *s));
}

/* 12:30, which older readers take for a number of base 60. */
static bool is_base60(const char *s)
{
    bool has_colon = false;
    s += *s == '-' || *s == '+';
    if (*s < '0' || *s > '9')
        return false;
    for (s += strspn(s, "0123456789_"); *s == ':'; has_colon = true) {
        size_t digits = strspn(++s, "0123456789");
        if (digits < 1 || digits > 2 || (digits == 2 && *s > '5'))
            return false;
        s += digits;
    }
    if (*s == '.')
        s += 1 + strspn(s + 1, "0123456789_");
    return has_colon && !*s;
}

/* indent is that of further lines, or UNFOLDED as keys must be. */
static void put_flow_string(struct buf *out, const char *s, size_t indent)
{
    struct looks l = look_at(s);
    struct folding f = folding_start(out, indent);
    bool is_merge = indent == UNFOLDED && strcmp(s, "<<") == 0; /* as a key it means something */
    bool is_other =
        yaml_resolve(s, NULL) != YAML_KIND_STRING || is_time(s) || is_base60(s) || is_merge;
    if (l.has_newline || l.has_tab || l.has_other || is_other)
        put_double_quoted(&f, s);
    else
        put_bare(&f, s, !may_be_plain(s));
}

/* A blank at the end of a line could not be seen. */
static bool may_be_block(const char *s)
{
    struct looks l = look_at(s);
    return l.has_newline && !l.has_tab && !l.has_other && !strstr(s, " \n") &&
           !str_has_suffix(s, " ");
}

/* Ends without a newline: its last line is the caller's to end. A block tells its indent by its
 * first line, so that one that starts with a blank says it. */
static void put_block_string(struct buf *out, const char *s, size_t indent)
{
    size_t n = strlen(s);
    bool ends = s[n - 1] == '\n', ends_twice = ends && (n == 1 || s[n - 2] == '\n');
    buf_puts(out, strchr(" \n", *s) ? "|2" : "|");
    buf_puts(out, ends_twice ? "+" : ends ? "" : "-");
    n -= ends;
    for (const char *end = s + n, *line = s; line <= end;) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        eol = eol ? eol : end;
        buf_putc(out, '\n');
        if (eol > line)
            put_indent(out, indent);
        buf_append(out, line, (size_t)(eol - line));
        line = eol + 1;
    }
}

/* ---- structure ---- */

static bool has_children(const cJSON *node)
{
    return (cJSON_IsObject(node) || cJSON_IsArray(node)) && node->child;
}

static void put_scalar(struct printer *p, const cJSON *node)
{
    char space[JSON_NUMBER_SIZE];
    size_t indent = p->depth ? p->levels[p->depth - 1].indent + 2 : 2;
    if (cJSON_IsString(node) && may_be_block(node->valuestring))
        put_block_string(p->out, node->valuestring, indent);
    else if (cJSON_IsString(node))
        put_flow_string(p->out, node->valuestring, indent);
    else if (cJSON_IsNumber(node))
        buf_puts(p->out, json_node_number(node, space));
    else if (cJSON_IsBool(node))
        buf_puts(p->out, cJSON_IsTrue(node) ? "true" : "false");
    else if (cJSON_IsObject(node))
        buf_puts(p->out, "{}");
    else
        buf_puts(p->out, cJSON_IsArray(node) ? "[]" : "null");
    buf_putc(p->out, '\n');
}

/* The key with its colon; one that is too long for the usual form goes to a line of its own. */
static void put_key(struct printer *p, const char *name)
{
    SCOPED(buf_fini) struct buf key = {.max = SIZE_MAX / 2};
    put_flow_string(&key, name ? name : "", UNFOLDED);
    if (key.len > SIMPLE_KEY_MAX) {
        buf_puts(p->out, "? ");
        buf_append(p->out, key.data, key.len);
        buf_putc(p->out, '\n');
        put_indent(p->out, p->levels[p->depth - 1].indent);
    } else {
        buf_append(p->out, key.data, key.len);
    }
    buf_putc(p->out, ':');
}

static void push_level(struct printer *p, const cJSON *node, enum place place)
{
    size_t indent = p->depth ? p->levels[p->depth - 1].indent + 2 : 0;
    if (place == AFTER_KEY && cJSON_IsArray(node))
        indent -= 2;
    if (p->depth == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 16;
        p->levels = xreallocarray(p->levels, p->cap, sizeof *p->levels);
    }
    p->levels[p->depth++] = (struct level){.node = node, .indent = indent};
}

/* The value at its place; of a container only what comes before its first entry. */
static void put_value(struct printer *p, const cJSON *node, enum place place)
{
    if (has_children(node)) {
        if (place == AFTER_KEY)
            buf_putc(p->out, '\n');
        p->is_line_started = place != AFTER_KEY;
        push_level(p, node, place);
        return;
    }
    if (place == AFTER_KEY)
        buf_putc(p->out, ' ');
    put_scalar(p, node);
}

/* One entry of the innermost container. */
static void put_entry(struct printer *p, const cJSON *node)
{
    const struct level *l = &p->levels[p->depth - 1];
    if (!p->is_line_started)
        put_indent(p->out, l->indent);
    p->is_line_started = false;
    if (cJSON_IsObject(l->node)) {
        put_key(p, node->string);
        put_value(p, node, AFTER_KEY);
    } else {
        buf_puts(p->out, "- ");
        put_value(p, node, AFTER_DASH);
    }
}

/* What is printed after node and everything in it; NULL at the end. */
static const cJSON *next_entry(struct printer *p, const cJSON *node)
{
    if (has_children(node))
        return node->child;
    while (p->depth > 0 && !node->next)
        node = p->levels[--p->depth].node;
    return p->depth > 0 ? node->next : NULL;
}

void yaml_print(const cJSON *tree, struct buf *out)
{
    struct printer p = {.out = out};
    if (!tree) {
        buf_puts(out, "null\n");
        return;
    }
    put_value(&p, tree, AT_TOP);
    for (const cJSON *node = p.depth > 0 ? tree->child : NULL; node && !buf_failed(out);
         node = next_entry(&p, node))
        put_entry(&p, node);
    free(p.levels);
}
