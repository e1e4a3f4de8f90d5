/* Plans of rules; see rule_plan.h. */
#include "admission/rule_plan.h"

#include <pthread.h>

#include "apiserver/base/mem.h"
#include "openapi/kinds.h"

#define DEPTH_MAX 64     /* of shapes in shapes; deeper than any table */
#define BRANCHES_MAX 200 /* fields of one shape */
#define PARTS_MAX 64     /* of one rule; a rule that reads more is not ratcheted by its parts */
#define RULES_MAX 64     /* of one shape */

struct planner {
    struct arena *arena;
    rule_mistake_fn report;
    void *ctx;
};

/* ---- one rule ---- */

struct parts {
    struct arena *arena;
    const struct shape *shape;
    rule_part *v;
    size_t n;
};

/* Names as they are in the tree: members of a shape are written escaped in a rule. */
static void keep_part(void *ctx, const char *const *names, size_t n)
{
    struct parts *parts = ctx;
    if (parts->n == PARTS_MAX)
        return;
    const char **copy = arena_alloc(parts->arena, (n + 1) * sizeof *copy);
    const struct shape *shape = parts->shape;
    for (size_t i = 0; i < n; i++) {
        copy[i] = shape ? cel_member_name(parts->arena, names[i]) : names[i];
        const struct field *row = shape ? shape_field(shape, copy[i]) : NULL;
        shape = row && row->type == F_OBJECT ? row->of : NULL;
    }
    parts->v[parts->n++] = copy;
}

/* The expression that a rule or its message is; NULL when it does not compile. */
static const struct cel_node *compile(struct planner *p, const struct shape *shape,
                                      const struct rule *rule, const char *text,
                                      enum cel_type result)
{
    static const char *const names[] = {"self", "oldSelf", NULL};
    const struct cel_value self = cel_typed(shape), optional = {.type = CEL_OPTIONAL};
    const struct cel_variable vars[] = {
        {"self", self}, {"oldSelf", rule->is_old_optional ? optional : self}, {0}};
    SCOPED(err_fini) struct err err = {0};
    const struct cel_node *expr = NULL;
    if (cel_parse(p->arena, text, names, &expr, &err) == 0 &&
        cel_check(p->arena, expr, vars, result, &err) == 0)
        return expr;
    if (p->report)
        p->report(p->ctx, shape, rule, err_text(&err));
    return NULL;
}

static struct planned_rule plan_rule(struct planner *p, const struct shape *shape,
                                     const struct rule *rule)
{
    struct planned_rule made = {.rule = rule,
                                .expr = compile(p, shape, rule, rule->rule, CEL_BOOL)};
    if (rule->message_expression)
        made.message = compile(p, shape, rule, rule->message_expression, CEL_STRING);
    if (!made.expr)
        return made;
    struct parts parts = {.arena = p->arena, .shape = shape};
    parts.v = arena_alloc(p->arena, PARTS_MAX * sizeof *parts.v);
    made.uses_old = cel_uses(made.expr, "oldSelf");
    cel_each_part(made.expr, "self", keep_part, &parts);
    made.parts = parts.v;
    made.n_parts = parts.n < PARTS_MAX ? parts.n : 0;
    return made;
}

/* ---- a shape and those below ---- */

static size_t plan_rules(struct planner *p, const struct shape *shape,
                         const struct planned_rule **ret)
{
    size_t n = 0, i = 0;
    while (shape->rules && shape->rules[n].rule && n < RULES_MAX)
        n++;
    struct planned_rule *rules = arena_alloc(p->arena, (n + 1) * sizeof *rules);
    for (; i < n; i++)
        rules[i] = plan_rule(p, shape, &shape->rules[i]);
    *ret = rules;
    return n;
}

static const struct rule_plan *plan_shape(struct planner *p, const struct shape *shape, int depth);

static bool holds_objects(const struct field *f)
{
    bool is_list = f->type == F_LIST || f->type == F_MAP;
    return f->of && (f->type == F_OBJECT || (is_list && f->item == F_OBJECT));
}

static size_t plan_branches(struct planner *p, const struct shape *shape, int depth,
                            const struct rule_branch **ret)
{
    struct rule_branch found[BRANCHES_MAX];
    size_t n = 0;
    for (const struct field *f = shape->fields; f && f->name && n < BRANCHES_MAX; f++) {
        const struct rule_plan *below = holds_objects(f) ? plan_shape(p, f->of, depth + 1) : NULL;
        if (below)
            found[n++] = (struct rule_branch){f, below};
    }
    struct rule_branch *copy = n ? arena_alloc(p->arena, n * sizeof *copy) : NULL;
    for (size_t i = 0; i < n; i++)
        copy[i] = found[i];
    *ret = copy;
    return n;
}

static const struct rule_plan *plan_shape(struct planner *p, const struct shape *shape, int depth)
{
    struct rule_plan plan = {.shape = shape};
    if (depth > DEPTH_MAX)
        return NULL;
    plan.n_rules = shape->rules ? plan_rules(p, shape, &plan.rules) : 0;
    plan.n_branches = plan_branches(p, shape, depth, &plan.branches);
    if (plan.n_rules + plan.n_branches == 0)
        return NULL;
    struct rule_plan *made = arena_alloc(p->arena, sizeof *made);
    *made = plan;
    return made;
}

const struct rule_plan *rule_plan_make(struct arena *arena, const struct shape *shape,
                                       rule_mistake_fn report, void *ctx)
{
    return plan_shape(&(struct planner){arena, report, ctx}, shape, 0);
}

/* ---- kept plans ---- */

struct kept {
    const struct kind *kind;
    const struct rule_plan *plan;
    struct kept *next;
};
static struct {
    pthread_mutex_t lock;
    struct arena arena;
    struct kept *first;
} plans = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct kept *find_locked(const struct kind *kind)
{
    for (const struct kept *k = plans.first; k; k = k->next)
        if (k->kind == kind)
            return k;
    struct kept *made = arena_alloc(&plans.arena, sizeof *made);
    *made = (struct kept){kind, rule_plan_make(&plans.arena, kind->shape, NULL, NULL), plans.first};
    plans.first = made;
    return made;
}

const struct rule_plan *rule_plan_of(const struct kind *kind)
{
    pthread_mutex_lock(&plans.lock);
    const struct rule_plan *plan = find_locked(kind)->plan;
    pthread_mutex_unlock(&plans.lock);
    return plan;
}
