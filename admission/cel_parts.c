/* Which variables an expression of CEL reads, and which of their members. */
#include "admission/cel_tree.h"

typedef const struct cel_node *node;

/* Whether a macro has a variable of that name, which hides the outer one in its bodies. */
static bool hides(node x, const char *name)
{
    return x->op >= CEL_OP_ALL && (str_equal(x->name, name) || str_equal(x->second, name));
}

bool cel_uses(const struct cel_node *expr, const char *variable)
{
    if (expr->op == CEL_OP_VARIABLE)
        return str_equal(expr->name, variable);
    size_t n = hides(expr, variable) ? 1 : expr->n;
    for (size_t i = 0; i < n; i++)
        if (cel_uses(expr->args[i], variable))
            return true;
    return false;
}

/* A chain of members behind the variable: its names; false when it is none. */
static bool is_part(node x, const char *variable, const char *names[CEL_DEPTH_MAX], size_t *ret_n)
{
    size_t n = 0, i;
    for (; x->op == CEL_OP_SELECT || x->op == CEL_OP_HAS || x->op == CEL_OP_OPTIONAL_SELECT;
         x = x->args[0])
        names[n++] = x->name;
    if (x->op != CEL_OP_VARIABLE || !str_equal(x->name, variable))
        return false;
    for (i = 0; i < n / 2; i++) {
        const char *name = names[i];
        names[i] = names[n - 1 - i];
        names[n - 1 - i] = name;
    }
    *ret_n = n;
    return true;
}

void cel_each_part(const struct cel_node *expr, const char *variable, cel_part_fn *found, void *ctx)
{
    const char *names[CEL_DEPTH_MAX];
    size_t n;
    if (is_part(expr, variable, names, &n)) {
        found(ctx, names, n);
        return;
    }
    n = hides(expr, variable) ? 1 : expr->n;
    for (size_t i = 0; i < n; i++)
        cel_each_part(expr->args[i], variable, found, ctx);
}
