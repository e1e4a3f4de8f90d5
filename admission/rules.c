/* Evaluates the rules of a kind's table, wherever they stand in its shapes, with the checks of its
 * strategy. */
#include <string.h>

#include "admission/steps.h"
#include "admission/strategy.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

#define DEPTH_MAX 8 /* of objects in objects that are searched for rules */

static const char not_checked[] =
    "some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation";

static const struct strategy *const strategies[] = {&strategy_sandbox};

const struct strategy *strategy_find(const struct kind *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(strategies); i++)
        if (strategies[i]->kind == kind)
            return strategies[i];
    return NULL;
}

const struct rule_check *strategy_rule(const struct kind *kind, const struct rule *rule)
{
    const struct strategy *s = strategy_find(kind);
    for (const struct rule_check *c = s ? s->rules : NULL; c && c->message; c++)
        if (strcmp(c->message, rule->message) == 0)
            return c;
    return NULL;
}

/* A rule that looks at what was there runs only when something was. */
static bool is_transition(const struct rule *rule)
{
    return strstr(rule->rule, "oldSelf") != NULL;
}

/* One shape on the way through the tables, with the nodes beside it. */
struct place {
    const struct kind *kind;
    const struct shape *shape;
    const cJSON *self, *old_self;
    const char *path; /* "" = the whole object */
    int depth;
};
typedef void (*place_fn)(const struct place *p, const struct rule *rule, void *ctx);

/* Calls fn for every rule of the shape and of the objects in it; unless all, only where the tree
 * goes. */
static void each_rule(const struct place *p, bool all, place_fn fn, void *ctx)
{
    for (const struct rule *r = p->shape->rules; r && r->rule; r++)
        fn(p, r, ctx);
    for (const struct field *f = p->shape->fields; f && f->name && p->depth < DEPTH_MAX; f++) {
        const cJSON *self = json_get(p->self, f->name);
        if (f->type != F_OBJECT || !f->of || (!all && !self))
            continue;
        SCOPED_FREE char *path = xasprintf("%s%s%s", p->path, p->path[0] ? "." : "", f->name);
        struct place inner = {p->kind, f->of,       self, json_get(p->old_self, f->name),
                              path,    p->depth + 1};
        each_rule(&inner, all, fn, ctx);
    }
}

static void evaluate(const struct place *p, const struct rule *rule, void *ctx)
{
    struct err *causes = ctx;
    const struct rule_check *check = strategy_rule(p->kind, rule);
    bool has_nodes =
        cJSON_IsObject(p->self) && (!is_transition(rule) || cJSON_IsObject(p->old_self));
    if (!check || !has_nodes || check->holds(p->self, is_transition(rule) ? p->old_self : NULL))
        return;
    SCOPED_FREE char *path = xasprintf("%s%s%s", p->path, p->path[0] && rule->field ? "." : "",
                                       rule->field ? rule->field : "");
    err_cause(causes, rule->reason ? rule->reason : "FieldValueInvalid", path[0] ? path : "<nil>",
              "Invalid value: %s", rule->message);
}

static void count(const struct place *p, const struct rule *rule, void *ctx)
{
    (void)p, (void)rule;
    ++*(size_t *)ctx;
}

void rules_validate(const struct admission *a, bool is_blocked, struct err *causes)
{
    const struct kind *k = a->req->kind;
    struct place whole = {k, k->shape, a->object, a->req->old, "", 0};
    if (!is_blocked) {
        each_rule(&whole, false, evaluate, causes);
        return;
    }
    size_t n = 0;
    each_rule(&whole, true, count, &n);
    if (n > 0)
        err_cause(causes, "FieldValueInvalid", "<nil>", "Invalid value: null: %s", not_checked);
}
