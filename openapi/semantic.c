#include "openapi/semantic.h"

#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/walk.h"

/* ---- quantities ---- */

struct decimal { /* digits times 10^exponent */
    unsigned __int128 digits;
    int exponent;
};
#define DIGITS_MAX ((unsigned __int128)1 << 66) /* times 2^60 still fits */

/* Binary suffixes multiply by 1024 for each step, decimal ones by 1000. */
static const struct suffix {
    const char *text;
    int binary, decimal;
} suffixes[] = {
    {"", 0, 0},   {"n", 0, -3}, {"u", 0, -2}, {"m", 0, -1}, {"k", 0, 1},  {"M", 0, 2},
    {"G", 0, 3},  {"T", 0, 4},  {"P", 0, 5},  {"E", 0, 6},  {"Ki", 1, 0}, {"Mi", 2, 0},
    {"Gi", 3, 0}, {"Ti", 4, 0}, {"Pi", 5, 0}, {"Ei", 6, 0},
};

/* Behind the digits; NULL when they are too many or none. */
static const char *read_digits(const char *p, struct decimal *ret)
{
    bool is_fraction = false;
    const char *start = p;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !is_fraction); p++) {
        if (*p == '.') {
            is_fraction = true;
            continue;
        }
        ret->digits = ret->digits * 10 + (unsigned)(*p - '0');
        ret->exponent -= is_fraction;
        if (ret->digits > DIGITS_MAX)
            return NULL;
    }
    return p > start + is_fraction ? p : NULL;
}

static int read_suffix(const char *p, struct decimal *d)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (strcmp(p, suffixes[i].text) != 0)
            continue;
        d->digits <<= 10 * suffixes[i].binary;
        d->exponent += 3 * suffixes[i].decimal;
        return 0;
    }
    int64_t exponent;
    if ((*p != 'e' && *p != 'E') || str_to_i64(p + 1, &exponent) < 0 || exponent > 1000 ||
        exponent < -1000)
        return -1;
    d->exponent += (int)exponent;
    return 0;
}

static void print_u128(unsigned __int128 v, struct buf *out)
{
    char text[40], *p = text + sizeof text - 1;
    *p = 0;
    do
        *--p = (char)('0' + (int)(v % 10));
    while (v /= 10);
    buf_puts(out, p);
}

void semantic_quantity(const char *text, struct buf *out)
{
    struct decimal d = {0};
    const char *p = text + (*text == '-' || *text == '+');
    p = read_digits(p, &d);
    if (!p || read_suffix(p, &d) < 0) {
        buf_puts(out, text);
        return;
    }
    for (; d.digits && d.digits % 10 == 0; d.exponent++)
        d.digits /= 10;
    if (!d.digits)
        d.exponent = 0;
    if (*text == '-' && d.digits)
        buf_putc(out, '-');
    print_u128(d.digits, out);
    buf_printf(out, "e%d", d.exponent);
}

/* ---- trees ---- */

/* Booleans and numbers that Kubernetes cannot tell from absent ones when they are false or 0:
 * members without a pointer in its types. Source: k8s.io/api core/v1. */
static const char *const zero_is_absent[] = {
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "stdin",
    "stdinOnce",
    "tty",
    "readOnly",
    "hostPort",
    "timeoutSeconds",
    "periodSeconds",
    "initialDelaySeconds",
    "successThreshold",
    "failureThreshold",
};
/* Objects that Kubernetes cannot tell from absent ones when they are empty. */
static const char *const empty_is_absent[] = {
    "ResourceRequirements",
    "VolumeResourceRequirements",
    "PodMetadata",
    "VolumeClaimMetadata",
};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_equal(name, names[i]))
            return true;
    }
    return false;
}

static bool means_absent(const struct field *f, const cJSON *node)
{
    if (cJSON_IsNull(node))
        return true;
    switch (f->type) {
    case F_LIST:
    case F_MAP:
        return (cJSON_IsArray(node) || cJSON_IsObject(node)) && !node->child;
    case F_OBJECT:
        return cJSON_IsObject(node) && !node->child &&
               is_one_of(f->of->name, empty_is_absent, ARRAY_LEN(empty_is_absent));
    case F_BOOL:
        return cJSON_IsFalse(node) && is_one_of(f->name, zero_is_absent, ARRAY_LEN(zero_is_absent));
    case F_INT32: {
        int64_t v;
        return json_node_i64(node, &v) == 0 && v == 0 &&
               is_one_of(f->name, zero_is_absent, ARRAY_LEN(zero_is_absent));
    }
    default:
        return false;
    }
}

static void normalize_quantity(cJSON *parent, cJSON *node)
{
    SCOPED(buf_fini) struct buf text = {0}, out = {0};
    if (cJSON_IsString(node))
        buf_puts(&text, node->valuestring);
    else if (cJSON_IsNumber(node))
        json_print(node, &text);
    else
        return;
    semantic_quantity(buf_cstr(&text), &out);
    json_replace_item(parent, node, json_string(buf_cstr(&out)));
}

static void normalize_time(cJSON *parent, cJSON *node)
{
    int64_t ms;
    if (!cJSON_IsString(node) || clock_parse_rfc3339(node->valuestring, &ms) < 0)
        return;
    char text[CLOCK_TEXT_SIZE];
    clock_print_rfc3339_micro(ms * 1000, text);
    json_replace_item(parent, node, json_string(text));
}

static void normalize_node(const struct field *f, cJSON *parent, cJSON *node);

static void normalize_items(const struct field *f, cJSON *container)
{
    struct field item = walk_item_field(f);
    for (cJSON *child = container->child, *next; child; child = next) {
        next = child->next;
        normalize_node(&item, container, child);
    }
}

static void normalize_members(const struct shape *shape, cJSON *object)
{
    for (cJSON *child = object->child, *next; child; child = next) {
        next = child->next;
        const struct field *f = shape_field(shape, child->string);
        if (!f)
            continue;
        /* The replaced node has the same name; find it again rather than keep a dangling
         * pointer. */
        normalize_node(f, object, child);
        cJSON *now = json_get(object, f->name);
        if (now && means_absent(f, now))
            json_remove_node(object, now);
    }
}

static void normalize_node(const struct field *f, cJSON *parent, cJSON *node)
{
    switch (f->type) {
    case F_OBJECT:
        if (cJSON_IsObject(node))
            normalize_members(f->of, node);
        break;
    case F_LIST:
        if (cJSON_IsArray(node))
            normalize_items(f, node);
        break;
    case F_MAP:
        if (cJSON_IsObject(node))
            normalize_items(f, node);
        break;
    case F_QUANTITY:
        normalize_quantity(parent, node);
        break;
    case F_TIME:
        normalize_time(parent, node);
        break;
    default:
        break;
    }
}

void semantic_normalize(const struct shape *shape, cJSON *tree)
{
    if (cJSON_IsObject(tree))
        normalize_members(shape, tree);
    json_sort(tree);
}

bool semantic_equal(const struct shape *shape, const cJSON *a, const cJSON *b)
{
    if (!a || !b)
        return a == b;
    SCOPED(json_free_p) cJSON *x = json_copy(a), *y = json_copy(b);
    semantic_normalize(shape, x);
    semantic_normalize(shape, y);
    return json_equal(x, y);
}
