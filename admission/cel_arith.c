/* Arithmetic of CEL: both sides have one type, and what does not fit is an error. Source: the
 * language definition of cel-spec, "Numeric Values" and "Abstract Types". */
#include <math.h>

#include "admission/cel_tree.h"

static struct cel_value overflow(void)
{
    return cel_error("integer overflow");
}

static struct cel_value int_arithmetic(enum cel_op op, int64_t a, int64_t b)
{
    int64_t r;
    switch (op) {
    case CEL_OP_ADD:
        return __builtin_add_overflow(a, b, &r) ? overflow() : cel_int(r);
    case CEL_OP_SUBTRACT:
        return __builtin_sub_overflow(a, b, &r) ? overflow() : cel_int(r);
    case CEL_OP_MULTIPLY:
        return __builtin_mul_overflow(a, b, &r) ? overflow() : cel_int(r);
    default:
        if (b == 0)
            return cel_error(op == CEL_OP_DIVIDE ? "division by zero" : "modulus by zero");
        if (a == INT64_MIN && b == -1)
            return overflow();
        return cel_int(op == CEL_OP_DIVIDE ? a / b : a % b);
    }
}

static struct cel_value uint_arithmetic(enum cel_op op, uint64_t a, uint64_t b)
{
    uint64_t r;
    switch (op) {
    case CEL_OP_ADD:
        return __builtin_add_overflow(a, b, &r) ? overflow() : cel_uint(r);
    case CEL_OP_SUBTRACT:
        return __builtin_sub_overflow(a, b, &r) ? overflow() : cel_uint(r);
    case CEL_OP_MULTIPLY:
        return __builtin_mul_overflow(a, b, &r) ? overflow() : cel_uint(r);
    default:
        if (b == 0)
            return cel_error(op == CEL_OP_DIVIDE ? "division by zero" : "modulus by zero");
        return cel_uint(op == CEL_OP_DIVIDE ? a / b : a % b);
    }
}

/* a / b as IEEE 754 says, also where the language C leaves it open. */
static double divide(double a, double b)
{
    if (b != 0)
        return a / b;
    if (a == 0 || isnan(a))
        return NAN;
    return signbit(a) == signbit(b) ? INFINITY : -INFINITY;
}

static struct cel_value double_arithmetic(enum cel_op op, double a, double b)
{
    switch (op) {
    case CEL_OP_ADD:
        return cel_double(a + b);
    case CEL_OP_SUBTRACT:
        return cel_double(a - b);
    case CEL_OP_MULTIPLY:
        return cel_double(a * b);
    case CEL_OP_DIVIDE:
        return cel_double(divide(a, b));
    default:
        return cel_no_overload();
    }
}

static struct cel_value join_text(struct cel_ctx *c, const struct cel_value *a,
                                  const struct cel_value *b)
{
    size_t n = a->s.n + b->s.n;
    char *text = cel_alloc(c, n, 1);
    if (!text)
        return cel_spent();
    memcpy(text, a->s.p, a->s.n);
    memcpy(text + a->s.n, b->s.p, b->s.n);
    struct cel_value v = cel_string(text, n);
    v.type = a->type;
    return v;
}

static struct cel_value join_lists(struct cel_ctx *c, const struct cel_value *a,
                                   const struct cel_value *b)
{
    struct cel_value x = cel_open(c, a), y = cel_open(c, b);
    size_t n = x.items.n + y.items.n;
    struct cel_value *items = cel_alloc(c, n, sizeof *items);
    if (!items)
        return cel_spent();
    for (size_t i = 0; i < n; i++)
        items[i] = i < x.items.n ? x.items.v[i] : y.items.v[i - x.items.n];
    return cel_list(items, n);
}

/* Times: 0001-01-01 to 9999-12-31. Source: cel-spec, "Timestamp". */
#define TIME_MIN_S INT64_C(-62135596800)
#define TIME_MAX_S INT64_C(253402300799)
#define NS_PER_S INT64_C(1000000000)

static struct cel_value time_plus(const struct cel_value *at, int64_t ns)
{
    int64_t s = at->at.s + ns / NS_PER_S, rest = at->at.ns + ns % NS_PER_S;
    s += rest < 0 ? -1 : rest / NS_PER_S;
    rest = (rest + NS_PER_S) % NS_PER_S;
    if (s < TIME_MIN_S || s > TIME_MAX_S)
        return cel_error("timestamp overflow");
    return (struct cel_value){.type = CEL_TIMESTAMP, .at = {s, (int32_t)rest}};
}

static struct cel_value time_between(const struct cel_value *a, const struct cel_value *b)
{
    int64_t ns;
    if (__builtin_mul_overflow(a->at.s - b->at.s, NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, (int64_t)a->at.ns - b->at.ns, &ns))
        return cel_error("duration overflow");
    return cel_duration(ns);
}

static struct cel_value time_arithmetic(enum cel_op op, const struct cel_value *a,
                                        const struct cel_value *b)
{
    bool is_add = op == CEL_OP_ADD;
    if (!is_add && op != CEL_OP_SUBTRACT)
        return cel_no_overload();
    if (a->type == CEL_DURATION && b->type == CEL_DURATION) {
        struct cel_value v = int_arithmetic(op, a->i, b->i);
        v.type = v.type == CEL_INT ? CEL_DURATION : CEL_ERROR;
        return v;
    }
    if (a->type == CEL_TIMESTAMP && b->type == CEL_TIMESTAMP && !is_add)
        return time_between(a, b);
    if (a->type == CEL_TIMESTAMP && b->type == CEL_DURATION && b->i != INT64_MIN)
        return time_plus(a, is_add ? b->i : -b->i);
    if (a->type == CEL_DURATION && b->type == CEL_TIMESTAMP && is_add)
        return time_plus(b, a->i);
    return cel_no_overload();
}

static bool is_time(const struct cel_value *v)
{
    return v->type == CEL_TIMESTAMP || v->type == CEL_DURATION;
}

struct cel_value cel_arithmetic(struct cel_ctx *c, enum cel_op op, const struct cel_value *a,
                                const struct cel_value *b)
{
    if (is_time(a) && is_time(b))
        return time_arithmetic(op, a, b);
    if (a->type != b->type)
        return cel_no_overload();
    switch (a->type) {
    case CEL_INT:
        return int_arithmetic(op, a->i, b->i);
    case CEL_UINT:
        return uint_arithmetic(op, a->u, b->u);
    case CEL_DOUBLE:
        return double_arithmetic(op, a->d, b->d);
    case CEL_STRING:
    case CEL_BYTES:
        return op == CEL_OP_ADD ? join_text(c, a, b) : cel_no_overload();
    case CEL_LIST:
        return op == CEL_OP_ADD ? join_lists(c, a, b) : cel_no_overload();
    default:
        return cel_no_overload();
    }
}

struct cel_value cel_negate(const struct cel_value *v)
{
    if (v->type == CEL_DOUBLE)
        return cel_double(-v->d);
    if (v->type != CEL_INT && v->type != CEL_DURATION)
        return cel_no_overload();
    if (v->i == INT64_MIN)
        return overflow();
    struct cel_value r = *v;
    r.i = -v->i;
    return r;
}
