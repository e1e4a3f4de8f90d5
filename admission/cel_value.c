/* Values of CEL: made, opened from JSON, compared. */
#include <math.h>

#include "admission/cel_tree.h"
#include "apiserver/base/json.h"
#include "openapi/kinds.h"

struct cel_value cel_error(const char *text)
{
    return (struct cel_value){.type = CEL_ERROR, .error = text};
}

struct cel_value cel_no_overload(void)
{
    return cel_error("no such overload");
}

struct cel_value cel_bool(bool b)
{
    return (struct cel_value){.type = CEL_BOOL, .b = b};
}

struct cel_value cel_int(int64_t i)
{
    return (struct cel_value){.type = CEL_INT, .i = i};
}

struct cel_value cel_uint(uint64_t u)
{
    return (struct cel_value){.type = CEL_UINT, .u = u};
}

struct cel_value cel_double(double d)
{
    return (struct cel_value){.type = CEL_DOUBLE, .d = d};
}

struct cel_value cel_string(const char *p, size_t n)
{
    return (struct cel_value){.type = CEL_STRING, .s = {p, n}};
}

struct cel_value cel_list(const struct cel_value *v, size_t n)
{
    return (struct cel_value){.type = CEL_LIST, .items = {v, n}};
}

struct cel_value cel_duration(int64_t ns)
{
    return (struct cel_value){.type = CEL_DURATION, .i = ns};
}

struct cel_value cel_spent(void)
{
    return cel_error(CEL_TOO_COSTLY);
}

bool cel_spend(struct cel_ctx *c, uint64_t n)
{
    if (n > c->steps)
        c->is_exhausted = true;
    c->steps -= n > c->steps ? c->steps : n;
    return !c->is_exhausted;
}

void *cel_alloc(struct cel_ctx *c, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || !cel_spend(c, 1 + bytes / CEL_STEP_BYTES))
        return NULL;
    return arena_alloc(c->arena, bytes + 1); /* never none, and room for a NUL */
}

/* ---- optionals ---- */

struct cel_value cel_optional(struct arena *arena, const struct cel_value *inner)
{
    struct cel_value *copy = inner ? arena_alloc(arena, sizeof *copy) : NULL;
    if (copy)
        *copy = *inner;
    return (struct cel_value){.type = CEL_OPTIONAL, .inner = copy};
}

struct cel_value cel_some(struct cel_ctx *c, const struct cel_value *inner)
{
    return inner && !cel_spend(c, 2) ? cel_spent() : cel_optional(c->arena, inner);
}

/* ---- from JSON ---- */

static struct cel_value number_from_json(const cJSON *node, bool is_double)
{
    int64_t i;
    if (!is_double && json_node_is_int(node) && json_node_i64(node, &i) == 0)
        return cel_int(i);
    return cel_double(node->valuedouble);
}

/* A time is one where the table says so, as in Kubernetes. */
static struct cel_value scalar_from_json(const cJSON *node, enum field_type type)
{
    if (cJSON_IsBool(node))
        return cel_bool(cJSON_IsTrue(node));
    if (cJSON_IsNumber(node))
        return number_from_json(node, type == F_NUMBER);
    if (cJSON_IsString(node) && type == F_TIME)
        return cel_timestamp(STR(node->valuestring));
    if (cJSON_IsString(node))
        return cel_string(node->valuestring, strlen(node->valuestring));
    return (struct cel_value){.type = CEL_NULL};
}

static struct cel_value container_from_json(const cJSON *node)
{
    return (struct cel_value){.type = cJSON_IsArray(node) ? CEL_LIST : CEL_MAP, .node = node};
}

static bool is_container(const cJSON *node)
{
    return cJSON_IsArray(node) || cJSON_IsObject(node);
}

struct cel_value cel_from_json(const cJSON *node, const struct shape *shape)
{
    if (!node || !is_container(node))
        return scalar_from_json(node, F_ANY);
    struct cel_value v = container_from_json(node);
    v.shape = shape;
    return v;
}

/* A child of a JSON value, with the type that its parent's table gives it. */
static struct cel_value child_from_json(const struct cel_value *parent, const cJSON *node)
{
    const struct field *row =
        !parent->has_item && parent->shape && node->string && parent->type == CEL_MAP
            ? shape_field(parent->shape, node->string)
            : NULL;
    enum field_type type = parent->has_item ? parent->item : row ? row->type : F_ANY;
    if (!is_container(node))
        return scalar_from_json(node, type);
    struct cel_value v = container_from_json(node);
    if (parent->has_item && type == F_OBJECT)
        v.shape = parent->shape;
    if (row && (type == F_OBJECT || type == F_LIST || type == F_MAP))
        v.shape = row->of;
    if (row && (type == F_LIST || type == F_MAP)) {
        v.has_item = true;
        v.item = row->item;
    }
    return v;
}

struct cel_value cel_open(struct cel_ctx *c, const struct cel_value *v)
{
    if (!v->node)
        return *v;
    bool is_map = v->type == CEL_MAP;
    size_t n = json_len(v->node) * (is_map ? 2 : 1), i = 0;
    struct cel_value *items = cel_alloc(c, n, sizeof *items);
    if (!items)
        return cel_spent();
    const cJSON *child;
    cJSON_ArrayForEach(child, v->node)
    {
        if (is_map)
            items[i++] = cel_string(child->string, strlen(child->string));
        items[i++] = child_from_json(v, child);
    }
    return (struct cel_value){.type = v->type, .items = {items, n}};
}

bool cel_find(struct cel_ctx *c, const struct cel_value *map, const struct cel_value *key,
              struct cel_value *ret)
{
    if (map->node) {
        if (key->type != CEL_STRING || memchr(key->s.p, 0, key->s.n))
            return false;
        char *name = cel_alloc(c, key->s.n, 1);
        if (!name)
            return false;
        memcpy(name, key->s.p, key->s.n);
        const cJSON *child = json_get(map->node, name);
        if (child)
            *ret = child_from_json(map, child);
        return child != NULL;
    }
    for (size_t i = 0; i + 1 < map->items.n && cel_spend(c, 1); i += 2)
        if (cel_equal(c, &map->items.v[i], key)) {
            *ret = map->items.v[i + 1];
            return true;
        }
    return false;
}

/* ---- comparing ---- */

static bool is_number(const struct cel_value *v)
{
    return v->type == CEL_INT || v->type == CEL_UINT || v->type == CEL_DOUBLE;
}

/* Integers are compared exactly, but with a double as doubles. Source: cel-go. A long double holds
 * any of them on what we build for. */
static long double number_of(const struct cel_value *v, bool as_double)
{
    if (v->type == CEL_DOUBLE)
        return (long double)v->d;
    if (as_double)
        return (long double)(v->type == CEL_INT ? (double)v->i : (double)v->u);
    return v->type == CEL_INT ? (long double)v->i : (long double)v->u;
}

static enum cel_order order_of(long double a, long double b)
{
    if (isnan(a) || isnan(b))
        return CEL_UNORDERED;
    return a < b ? CEL_BEFORE : a > b ? CEL_AFTER : CEL_SAME;
}

static enum cel_order compare_bytes(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int d = n ? memcmp(a.p, b.p, n) : 0;
    if (d == 0)
        return order_of((long double)a.n, (long double)b.n);
    return d < 0 ? CEL_BEFORE : CEL_AFTER;
}

enum cel_order cel_compare(const struct cel_value *a, const struct cel_value *b)
{
    bool as_double = a->type == CEL_DOUBLE || b->type == CEL_DOUBLE;
    if (is_number(a) && is_number(b))
        return order_of(number_of(a, as_double), number_of(b, as_double));
    if (a->type != b->type)
        return CEL_INCOMPARABLE;
    switch (a->type) {
    case CEL_BOOL:
        return order_of(a->b, b->b);
    case CEL_STRING:
    case CEL_BYTES:
        return compare_bytes(a->s, b->s);
    case CEL_TIMESTAMP:
        return a->at.s == b->at.s ? order_of(a->at.ns, b->at.ns)
                                  : order_of((long double)a->at.s, (long double)b->at.s);
    case CEL_DURATION:
        return order_of((long double)a->i, (long double)b->i);
    default:
        return CEL_INCOMPARABLE;
    }
}

static bool optionals_equal(struct cel_ctx *c, const struct cel_value *a, const struct cel_value *b)
{
    if (!a->inner || !b->inner)
        return a->inner == b->inner;
    return cel_spend(c, 1) && cel_equal(c, a->inner, b->inner);
}

/* The four bytes of an IPv4 address, also of one that is written as IPv6; NULL of others. */
static const uint8_t *v4_of(const struct cel_address *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (a->size == 4)
        return a->bytes;
    return memcmp(a->bytes, mapped, sizeof mapped) == 0 ? a->bytes + sizeof mapped : NULL;
}

static bool addresses_equal(const struct cel_address *a, const struct cel_address *b)
{
    if (v4_of(a) && v4_of(b) && a->prefix == b->prefix)
        return memcmp(v4_of(a), v4_of(b), 4) == 0;
    return a->size == b->size && a->prefix == b->prefix && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static size_t count_nodes(const cJSON *node)
{
    size_t n = 1;
    for (const cJSON *child = node->child; child; child = child->next)
        n += count_nodes(child);
    return n;
}

/* Linear in practice, so it is paid before it is done. */
static bool nodes_equal(struct cel_ctx *c, const cJSON *a, const cJSON *b)
{
    return a == b || (cel_spend(c, count_nodes(a)) && json_equal(a, b));
}

static bool lists_equal(struct cel_ctx *c, const struct cel_value *a, const struct cel_value *b)
{
    struct cel_value x = cel_open(c, a), y = cel_open(c, b);
    if (c->is_exhausted || x.items.n != y.items.n)
        return false;
    for (size_t i = 0; i < x.items.n; i++)
        if (!cel_spend(c, 1) || !cel_equal(c, &x.items.v[i], &y.items.v[i]))
            return false;
    return true;
}

static bool maps_equal(struct cel_ctx *c, const struct cel_value *a, const struct cel_value *b)
{
    struct cel_value x = cel_open(c, a), y = cel_open(c, b), other;
    if (c->is_exhausted || x.items.n != y.items.n)
        return false;
    for (size_t i = 0; i + 1 < x.items.n; i += 2)
        if (!cel_spend(c, 1) || !cel_find(c, &y, &x.items.v[i], &other) ||
            !cel_equal(c, &x.items.v[i + 1], &other))
            return false;
    return true;
}

bool cel_equal(struct cel_ctx *c, const struct cel_value *a, const struct cel_value *b)
{
    if (a->type != b->type)
        return cel_compare(a, b) == CEL_SAME;
    if (a->node && b->node)
        return nodes_equal(c, a->node, b->node);
    switch (a->type) {
    case CEL_NULL:
        return true;
    case CEL_TYPE:
        return a->named == b->named;
    case CEL_LIST:
        return lists_equal(c, a, b);
    case CEL_MAP:
        return maps_equal(c, a, b);
    case CEL_OPTIONAL:
        return optionals_equal(c, a, b);
    case CEL_IP:
    case CEL_CIDR:
        return addresses_equal(a->address, b->address);
    default:
        return cel_spend(c, 1) && cel_compare(a, b) == CEL_SAME;
    }
}
