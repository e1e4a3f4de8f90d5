/* Optionals of CEL: values that may be absent. Source: cel-spec, "Optional values". */
#include "admission/cel_tree.h"
#include "apiserver/base/json.h"

static struct cel_value none(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)v, (void)n;
    return cel_some(c, NULL);
}

static struct cel_value of(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    return cel_some(c, v);
}

static bool is_zero(const struct cel_value *v)
{
    switch (v->type) {
    case CEL_NULL:
        return true;
    case CEL_BOOL:
        return !v->b;
    case CEL_INT:
    case CEL_DURATION:
        return v->i == 0;
    case CEL_UINT:
        return v->u == 0;
    case CEL_DOUBLE:
        return v->d == 0;
    case CEL_STRING:
    case CEL_BYTES:
        return v->s.n == 0;
    case CEL_LIST:
    case CEL_MAP:
        return v->node ? json_len(v->node) == 0 : v->items.n == 0;
    case CEL_OPTIONAL:
        return !v->inner;
    case CEL_TIMESTAMP:
        return v->at.s == 0 && v->at.ns == 0;
    default:
        return false;
    }
}

static struct cel_value of_non_zero(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    return cel_some(c, is_zero(v) ? NULL : v);
}

static struct cel_value has_value(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_bool(v->inner != NULL);
}

static struct cel_value value(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return v->inner ? *v->inner : cel_error("optional.none() dereference");
}

static struct cel_value or_other(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return v->inner ? v[0] : v[1];
}

static struct cel_value or_value(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return v->inner ? *v->inner : v[1];
}

const struct cel_function cel_optional_functions[] = {
    {"hasValue", "o.:b", has_value}, {"optional.none", ":o", none},
    {"optional.of", "?:o", of},      {"optional.ofNonZeroValue", "?:o", of_non_zero},
    {"or", "o.o:o", or_other},       {"orValue", "o.?:?", or_value},
    {"value", "o.:?", value},        {0},
};
