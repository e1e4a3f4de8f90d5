/* Nodes, numbers and key look-up below json.c; see json_node.h. */
#include "apiserver/base/json_node.h"

#include <stdio.h>

#include "apiserver/base/hash.h"
#include "apiserver/base/mem.h"

/* Objects with at most this many members are searched linearly. */
#define KEYS_LINEAR 16

cJSON *json_node_new(int type)
{
    cJSON *node = xcalloc(1, sizeof *node);
    node->type = type;
    return node;
}

/* cJSON's lists: the first child's prev is the last child. */
void json_node_append(cJSON *parent, cJSON *child)
{
    cJSON *first = parent->child;
    child->next = NULL;
    if (!first) {
        parent->child = child;
        child->prev = child;
        return;
    }
    cJSON *last = first->prev;
    last->next = child;
    child->prev = last;
    first->prev = child;
}

void json_node_clear(cJSON *node)
{
    for (cJSON *child = node->child, *next; child; child = next) {
        next = child->next;
        child->next = NULL;
        json_free(child);
    }
    free(node->valuestring);
    node->child = NULL;
    node->valuestring = NULL;
    node->valuedouble = 0;
    node->valueint = 0;
    node->type = cJSON_Invalid;
}

void json_node_set_string(cJSON *node, char *take_text)
{
    node->type = cJSON_String;
    node->valuestring = take_text;
}

static int saturate(double v)
{
    return v >= INT32_MAX ? INT32_MAX : v <= INT32_MIN ? INT32_MIN : (int)v;
}

/* The value of a short integer; false when it is not within ±JSON_EXACT_INT. */
static bool exact_int(const char *text, size_t n, int64_t *ret)
{
    bool negative = n > 0 && *text == '-';
    int64_t v = 0;
    if (n > 17)
        return false;
    for (size_t i = negative; i < n; i++)
        v = v * 10 + (text[i] - '0');
    *ret = negative ? -v : v;
    return v <= JSON_EXACT_INT;
}

bool json_node_set_number(cJSON *node, const char *text, size_t n, bool is_int)
{
    int64_t v;
    node->type = cJSON_Number;
    if (is_int && exact_int(text, n, &v)) {
        node->valuedouble = (double)v;
    } else {
        node->valuestring = xstrndup(text, n);
        node->valuedouble = strtod(node->valuestring, NULL);
    }
    node->valueint = saturate(node->valuedouble);
    return !__builtin_isinf(node->valuedouble);
}

/* Digits and decimal exponent of the shortest text that reads back as v (finite, not zero). */
static int shortest(double v, char digits[JSON_NUMBER_SIZE])
{
    char text[JSON_NUMBER_SIZE];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, v < 0 ? -v : v);
        if (strtod(text, NULL) == (v < 0 ? -v : v))
            break;
    }
    char *e = strchr(text, 'e');
    size_t n = 0;
    for (const char *c = text; c < e; c++)
        if (*c != '.')
            digits[n++] = *c;
    digits[n] = '\0';
    return (int)strtol(e + 1, NULL, 10);
}

/* As Go prints a float64: positional from 1e-6 up to 1e21, else with an exponent. */
static void format_double(double v, char out[JSON_NUMBER_SIZE])
{
    char d[JSON_NUMBER_SIZE];
    const char *sign = v < 0 ? "-" : "";
    int e = shortest(v, d), n = (int)strlen(d);
    if (e < -6 || e >= 21)
        snprintf(out, JSON_NUMBER_SIZE, "%s%c%s%.20se%+d", sign, d[0], n > 1 ? "." : "", d + 1, e);
    else if (e < 0)
        snprintf(out, JSON_NUMBER_SIZE, "%s0.%.*s%.20s", sign, -e - 1, "00000", d);
    else if (n <= e + 1)
        snprintf(out, JSON_NUMBER_SIZE, "%s%.20s%.*s", sign, d, e + 1 - n, "00000000000000000000");
    else
        snprintf(out, JSON_NUMBER_SIZE, "%s%.*s.%.20s", sign, e + 1, d, d + e + 1);
}

const char *json_node_number(const cJSON *node, char space[JSON_NUMBER_SIZE])
{
    double v = node->valuedouble;
    if (node->valuestring)
        return node->valuestring;
    if (__builtin_isnan(v) || __builtin_isinf(v))
        return "null";
    if (v == 0)
        return "0";
    if (v > -1e15 && v < 1e15 && v == (double)(int64_t)v)
        snprintf(space, JSON_NUMBER_SIZE, "%lld", (long long)v);
    else
        format_double(v, space);
    return space;
}

/* ---- keys ---- */

/* Open addressing. */
struct json_key {
    uint64_t hash;
    cJSON *node; /* NULL = free */
};

static uint64_t hash_name(const char *s)
{
    return hash_bytes(s, strlen(s));
}

/* The slot of that name, or the free one where it belongs. */
static struct json_key *slot_of(const struct json_keys *k, uint64_t hash, const char *name)
{
    for (size_t i = hash & (k->cap - 1);; i = (i + 1) & (k->cap - 1)) {
        struct json_key *s = &k->slots[i];
        if (!s->node || (s->hash == hash && strcmp(s->node->string, name) == 0))
            return s;
    }
}

cJSON *json_keys_find(const struct json_keys *k, const cJSON *object, const char *name)
{
    if (k->slots)
        return slot_of(k, hash_name(name), name)->node;
    cJSON *node;
    cJSON_ArrayForEach(node, object)
    {
        if (*node->string == *name && strcmp(node->string, name) == 0)
            return node;
    }
    return NULL;
}

static void keys_put(struct json_keys *k, cJSON *node)
{
    uint64_t hash = hash_name(node->string);
    *slot_of(k, hash, node->string) = (struct json_key){.hash = hash, .node = node};
}

static void keys_start(struct json_keys *k, const cJSON *object)
{
    cJSON *node;
    k->cap = (size_t)KEYS_LINEAR * 4;
    k->slots = xcalloc(k->cap, sizeof *k->slots);
    cJSON_ArrayForEach(node, object)
    {
        keys_put(k, node);
    }
}

static void keys_grow(struct json_keys *k)
{
    struct json_keys bigger = {.cap = k->cap * 2, .n = k->n};
    bigger.slots = xcalloc(bigger.cap, sizeof *bigger.slots);
    for (size_t i = 0; i < k->cap; i++)
        if (k->slots[i].node)
            *slot_of(&bigger, k->slots[i].hash, k->slots[i].node->string) = k->slots[i];
    free(k->slots);
    *k = bigger;
}

void json_keys_add(struct json_keys *k, const cJSON *object, cJSON *node)
{
    k->n++;
    if (!k->slots && k->n <= KEYS_LINEAR)
        return;
    if (!k->slots) {
        keys_start(k, object);
        return;
    }
    if (k->n > k->cap / 2)
        keys_grow(k);
    keys_put(k, node);
}

void json_keys_fini(struct json_keys *k)
{
    free(k->slots);
    *k = (struct json_keys){0};
}

void json_stack_push(struct json_stack *s, union json_ref ref)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 32;
        s->v = xreallocarray(s->v, s->cap, sizeof *s->v);
    }
    s->v[s->n++] = ref;
}

void json_stack_fini(struct json_stack *s)
{
    free(s->v);
    *s = (struct json_stack){0};
}
