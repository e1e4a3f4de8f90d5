/* Evaluates the rules of a kind's table, wherever they stand in its shapes: the text that is
 * published is the one that counts. */
#include "admission/rules.h"

#include "admission/cel.h"
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"

#define DEPTH_MAX 8 /* of objects in objects that are searched for rules */

static const char not_checked[] =
    "some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation";

static const char *const rule_vars[] = {"self", "oldSelf", NULL};

/* One shape on the way through the tables, with the nodes beside it. */
struct place {
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
        struct place inner = {f->of, self, json_get(p->old_self, f->name), path, p->depth + 1};
        each_rule(&inner, all, fn, ctx);
    }
}

/* Texts that begin an error of evaluation, and how kube-apiserver goes on then; the last is for all
 * others. Source: apiextensions-apiserver, schema/cel/validation.go. */
static const struct {
    const char *error, *quote, *text;
} troubles[] = {
    {"no such overload", "'",
     ": call arguments did not match a supported operator, function or macro signature for rule: "},
    {CEL_TOO_COSTLY, "'",
     ": no further validation rules will be run due to call cost exceeds limit for rule: "},
    {"", "", " evaluating rule: "},
};

static void report_trouble(const struct place *p, const struct rule *rule, const char *error,
                           struct err *causes)
{
    size_t i = 0;
    while (!str_has_prefix(error, troubles[i].error))
        i++;
    err_cause(causes, "FieldValueInvalid", p->path[0] ? p->path : "<nil>",
              "Invalid value: %s%s%s%s%s", troubles[i].quote, error, troubles[i].quote,
              troubles[i].text, rule->message);
}

static void report_broken(const struct place *p, const struct rule *rule, struct err *causes)
{
    SCOPED_FREE char *path = xasprintf("%s%s%s", p->path, p->path[0] && rule->field ? "." : "",
                                       rule->field ? rule->field : "");
    err_cause(causes, rule->reason ? rule->reason : "FieldValueInvalid", path[0] ? path : "<nil>",
              "Invalid value: %s", rule->message);
}

/* A rule that looks at what was there runs only when something was. */
static void evaluate(const struct place *p, const struct rule *rule, void *ctx)
{
    SCOPED(arena_fini) struct arena arena = {0};
    const struct cel_node *expr = NULL;
    bool has_old = cJSON_IsObject(p->old_self);
    if (!cJSON_IsObject(p->self))
        return;
    if (cel_parse(&arena, rule->rule, rule_vars, &expr, NULL) < 0) {
        report_trouble(p, rule, "the rule does not parse",
                       ctx); /* a server with it does not start */
        return;
    }
    if (!has_old && cel_uses(expr, "oldSelf"))
        return;
    const struct cel_variable vars[] = {
        {"self", cel_from_json(p->self, p->shape)},
        {has_old ? "oldSelf" : NULL, cel_from_json(p->old_self, p->shape)},
        {0},
    };
    struct cel_value v = cel_eval(&arena, expr, vars, CEL_STEPS_MAX);
    if (v.type != CEL_BOOL)
        report_trouble(p, rule, v.type == CEL_ERROR ? v.error : "no truth value", ctx);
    else if (!v.b)
        report_broken(p, rule, ctx);
}

static void count(const struct place *p, const struct rule *rule, void *ctx)
{
    (void)p, (void)rule;
    ++*(size_t *)ctx;
}

void rules_validate(const struct admission *a, bool is_blocked, struct err *causes)
{
    const struct kind *k = a->req->kind;
    struct place whole = {k->shape, a->object, a->req->old, "", 0};
    if (!is_blocked) {
        each_rule(&whole, false, evaluate, causes);
        return;
    }
    size_t n = 0;
    each_rule(&whole, true, count, &n);
    if (n > 0)
        err_cause(causes, "FieldValueInvalid", "<nil>", "Invalid value: null: %s", not_checked);
}

/* ---- at start ---- */

struct rule_checker {
    void (*report)(void *ctx, const char *text);
    void *ctx;
    size_t mistakes;
};

static void mistake(struct rule_checker *c, const struct shape *shape, const struct rule *rule,
                    const char *what)
{
    SCOPED_FREE char *text = xasprintf("%s: rule \"%s\": %s", shape->name, rule->message, what);
    c->mistakes++;
    if (c->report)
        c->report(c->ctx, text);
}

static void check_rule(const struct place *p, const struct rule *rule, void *ctx)
{
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED(err_fini) struct err err = {0};
    const struct cel_node *expr = NULL;
    if (cel_parse(&arena, rule->rule, rule_vars, &expr, &err) < 0)
        mistake(ctx, p->shape, rule, err_text(&err));
}

/* Rules of items and of what lies below them are not evaluated: none may stand there. */
static void check_no_rules(struct rule_checker *c, const struct shape *shape, int depth)
{
    for (const struct rule *r = shape->rules; r && r->rule; r++)
        mistake(c, shape, r, "stands below a list or map, or too deep");
    for (const struct field *f = shape->fields; f && f->name && depth < DEPTH_MAX; f++)
        if (f->of)
            check_no_rules(c, f->of, depth + 1);
}

static void check_items(struct rule_checker *c, const struct shape *shape, int depth)
{
    for (const struct field *f = shape->fields; f && f->name; f++)
        if (f->of && (f->type != F_OBJECT || depth == DEPTH_MAX))
            check_no_rules(c, f->of, 0);
        else if (f->of)
            check_items(c, f->of, depth + 1);
}

size_t rules_check_kind(const struct kind *kind, void (*report_mistake)(void *, const char *),
                        void *ctx)
{
    struct rule_checker c = {.report = report_mistake, .ctx = ctx};
    struct place whole = {.shape = kind->shape, .path = ""};
    each_rule(&whole, true, check_rule, &c);
    check_items(&c, kind->shape, 0);
    return c.mistakes;
}

size_t rules_check(void (*report_mistake)(void *, const char *), void *ctx)
{
    size_t mistakes = 0;
    for (const struct kind *const *k = kinds_all; *k; k++)
        mistakes += rules_check_kind(*k, report_mistake, ctx);
    return mistakes;
}
