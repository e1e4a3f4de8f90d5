/* Plain scalars by the rules that Kubernetes has: YAML 1.1 without base 60, timestamps left as
 * strings, integers up to 64 bits and everything else that looks like a number a double, printed as
 * Go prints it. Source: sigs.k8s.io/yaml, goyaml.v2. */
#include "apiserver/base/yaml_scalar.h"

#include <stdio.h>

#include "apiserver/base/json_node.h"
#include "apiserver/base/mem.h"

struct word {
    const char *text;
    enum yaml_kind kind;
    int type; /* of the JSON node */
};
static const struct word words[] = {
    {"", YAML_KIND_NULL, cJSON_NULL},       {"~", YAML_KIND_NULL, cJSON_NULL},
    {"null", YAML_KIND_NULL, cJSON_NULL},   {"Null", YAML_KIND_NULL, cJSON_NULL},
    {"NULL", YAML_KIND_NULL, cJSON_NULL},   {"y", YAML_KIND_BOOL, cJSON_True},
    {"Y", YAML_KIND_BOOL, cJSON_True},      {"yes", YAML_KIND_BOOL, cJSON_True},
    {"Yes", YAML_KIND_BOOL, cJSON_True},    {"YES", YAML_KIND_BOOL, cJSON_True},
    {"true", YAML_KIND_BOOL, cJSON_True},   {"True", YAML_KIND_BOOL, cJSON_True},
    {"TRUE", YAML_KIND_BOOL, cJSON_True},   {"on", YAML_KIND_BOOL, cJSON_True},
    {"On", YAML_KIND_BOOL, cJSON_True},     {"ON", YAML_KIND_BOOL, cJSON_True},
    {"n", YAML_KIND_BOOL, cJSON_False},     {"N", YAML_KIND_BOOL, cJSON_False},
    {"no", YAML_KIND_BOOL, cJSON_False},    {"No", YAML_KIND_BOOL, cJSON_False},
    {"NO", YAML_KIND_BOOL, cJSON_False},    {"false", YAML_KIND_BOOL, cJSON_False},
    {"False", YAML_KIND_BOOL, cJSON_False}, {"FALSE", YAML_KIND_BOOL, cJSON_False},
    {"off", YAML_KIND_BOOL, cJSON_False},   {"Off", YAML_KIND_BOOL, cJSON_False},
    {"OFF", YAML_KIND_BOOL, cJSON_False},   {".nan", YAML_KIND_NO_JSON, 0},
    {".NaN", YAML_KIND_NO_JSON, 0},         {".NAN", YAML_KIND_NO_JSON, 0},
    {".inf", YAML_KIND_NO_JSON, 0},         {".Inf", YAML_KIND_NO_JSON, 0},
    {".INF", YAML_KIND_NO_JSON, 0},         {"+.inf", YAML_KIND_NO_JSON, 0},
    {"+.Inf", YAML_KIND_NO_JSON, 0},        {"+.INF", YAML_KIND_NO_JSON, 0},
    {"-.inf", YAML_KIND_NO_JSON, 0},        {"-.Inf", YAML_KIND_NO_JSON, 0},
    {"-.INF", YAML_KIND_NO_JSON, 0},
};

/* The base that the prefix of a number (without sign) names; moves behind the prefix. */
static int take_base(const char **s)
{
    const char *p = *s;
    char letter = p[0] == '0' ? (char)(p[1] | 0x20) : '\0';
    int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (base) {
        *s += 2;
        return base;
    }
    return p[0] == '0' && p[1] ? 8 : 10;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* An integer of at most 64 bits as decimal text; false when s is none. A sign limits it to
 * int64. */
static bool read_int(const char *s, char out[32])
{
    bool has_sign = *s == '-' || *s == '+', negative = *s == '-';
    uint64_t v = 0;
    s += has_sign;
    int base = take_base(&s);
    if (!*s)
        return false;
    for (; *s; s++) {
        int d = digit_value(*s);
        if (d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    }
    if (has_sign && v > (uint64_t)INT64_MAX + negative)
        return false;
    snprintf(out, 32, "%s%llu", negative && v ? "-" : "", (unsigned long long)v);
    return true;
}

static const char *skip_digits(const char *s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return s;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool looks_like_float(const char *s)
{
    s += *s == '-' || *s == '+';
    const char *whole = skip_digits(s), *rest = whole;
    if (*whole == '.')
        rest = skip_digits(whole + 1);
    if (whole == s && rest <= whole + 1)
        return false;
    if (*rest == 'e' || *rest == 'E') {
        rest++;
        rest += *rest == '-' || *rest == '+';
        const char *end = skip_digits(rest);
        if (end == rest)
            return false;
        rest = end;
    }
    return *rest == '\0';
}

/* Reads s as a double; false when it is too large for one. node may be NULL. */
static bool read_float(const char *s, cJSON *node)
{
    char space[JSON_NUMBER_SIZE];
    cJSON number = {.type = cJSON_Number, .valuedouble = strtod(s, NULL)};
    if (__builtin_isinf(number.valuedouble))
        return false;
    const char *text = json_node_number(&number, space);
    if (node)
        json_node_set_number(node, text, strlen(text), !strpbrk(text, ".e"));
    return true;
}

static char *without_underscores(const char *s)
{
    char *out = xstrdup(s), *to = out;
    for (; *s; s++)
        if (*s != '_')
            *to++ = *s;
    *to = '\0';
    return out;
}

static enum yaml_kind resolve_number(const char *text, cJSON *node)
{
    char decimal[32];
    SCOPED_FREE char *plain = without_underscores(text);
    if (read_int(plain, decimal)) {
        if (node)
            json_node_set_number(node, decimal, strlen(decimal), true);
        return YAML_KIND_INT;
    }
    return looks_like_float(plain) && read_float(plain, node) ? YAML_KIND_FLOAT : YAML_KIND_STRING;
}

static enum yaml_kind resolve_word(const char *text, cJSON *node)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i].text, text) == 0) {
            if (node)
                node->type = words[i].type;
            return words[i].kind;
        }
    return YAML_KIND_STRING;
}

enum yaml_kind yaml_resolve(const char *text, cJSON *node)
{
    enum yaml_kind kind =
        strlen(text) <= strlen("+.inf") ? resolve_word(text, node) : YAML_KIND_STRING;
    if (kind == YAML_KIND_STRING && *text && strchr("+-0123456789", *text))
        kind = resolve_number(text, node);
    else if (kind == YAML_KIND_STRING && *text == '.' && looks_like_float(text) &&
             read_float(text, node))
        kind = YAML_KIND_FLOAT;
    if (kind == YAML_KIND_STRING && node)
        json_node_set_string(node, xstrdup(text));
    return kind;
}

const char *yaml_kind_tag(enum yaml_kind kind)
{
    static const char *const tags[] = {
        [YAML_KIND_STRING] = "!!str",  [YAML_KIND_NULL] = "!!null",
        [YAML_KIND_BOOL] = "!!bool",   [YAML_KIND_INT] = "!!int",
        [YAML_KIND_FLOAT] = "!!float", [YAML_KIND_NO_JSON] = "!!float",
    };
    return tags[kind];
}
