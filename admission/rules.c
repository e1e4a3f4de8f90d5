/* Evaluates the rules of a kind's table, wherever they stand in its shapes: the text that is
 * published is the one that counts. Order, texts, budgets and ratcheting: apiextensions-apiserver,
 * schema/cel/validation.go. Ratcheting goes further here: an error is dropped as well when just the
 * parts that the rule reads are as they were, so that an object which was there before a rule came
 * can still change in all else. */
#include "admission/rules.h"

#include "admission/cel.h"
#include "admission/rule_plan.h"
#include "admission/steps.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/unchanged.h"
#include "openapi/walk.h"

/* Steps of all rules of one object together. Source: Kubernetes' RuntimeCELCostBudget. */
#define OBJECT_STEPS_MAX 10000000
#define MESSAGE_MAX 5120 /* bytes of what a messageExpression gives. Source: as above */

static const char not_checked[] =
    "some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation";
static const char out_of_budget[] = "validation failed due to running out of cost budget, no "
                                    "further validation rules will be run";

struct run {
    const struct admission *a;
    struct err *causes;
    uint64_t steps; /* left */
    bool is_over;   /* no further rule is evaluated */
};

/* An object with rules in it or below, and what was there before. */
struct place {
    const struct rule_plan *plan;
    struct field row;
    const cJSON *self, *old; /* old: NULL = nothing to compare with */
    const struct place *up;  /* NULL = the whole object */
    const char *name;        /* in an object; key in a map; NULL in a list */
    size_t index;            /* in a list */
    bool is_item;            /* of a list or map */
};

/* ---- what is said ---- */

static struct str trimmed(struct str s)
{
    static const char blanks[] = " \t\r\n\v\f";
    while (s.n > 0 && memchr(blanks, s.p[0], sizeof blanks - 1))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n > 0 && memchr(blanks, s.p[s.n - 1], sizeof blanks - 1))
        s.n--;
    return s;
}

/* How texts about a rule name it. */
static struct str rule_name(const struct rule *rule)
{
    return trimmed(STR(rule->message && *rule->message ? rule->message : rule->rule));
}

static void print_path(const struct place *p, struct buf *out)
{
    if (!p->up)
        return;
    print_path(p->up, out);
    if (p->is_item && p->name)
        buf_printf(out, "[%s]", p->name);
    else if (p->is_item)
        buf_printf(out, "[%zu]", p->index);
    else
        buf_printf(out, "%s%s", out->len ? "." : "", p->name);
}

static void add_cause(struct run *r, const struct place *p, const char *text)
{
    SCOPED(buf_fini) struct buf path = {0};
    print_path(p, &path);
    err_cause(r->causes, "FieldValueInvalid", path.len ? buf_cstr(&path) : "<nil>",
              "Invalid value: \"object\": %s", text);
}

/* The same, and nothing else is looked at. */
static void end_run(struct run *r, const struct place *p, const char *text)
{
    add_cause(r, p, text);
    r->is_over = true;
}

/* Texts that begin an error of evaluation, and how kube-apiserver goes on then; the last is for all
 * others. */
static const struct {
    const char *error, *quote, *text;
} troubles[] = {
    {"no such overload", "'",
     ": call arguments did not match a supported operator, function or macro signature for rule: "},
    {CEL_TOO_COSTLY, "'",
     ": no further validation rules will be run due to call cost exceeds limit for rule: "},
    {"", "", " evaluating rule: "},
};

static void report_error(struct run *r, const struct place *p, const struct rule *rule,
                         const char *error)
{
    size_t i = 0;
    while (!str_has_prefix(error, troubles[i].error))
        i++;
    struct str name = rule_name(rule);
    SCOPED_FREE char *text = xasprintf("%s%s%s%s%.*s", troubles[i].quote, error, troubles[i].quote,
                                       troubles[i].text, (int)name.n, name.p);
    add_cause(r, p, text);
    r->is_over = str_equal(error, CEL_TOO_COSTLY);
}

static const char *reason_text(const char *reason)
{
    static const struct {
        const char *reason, *text;
    } texts[] = {{"FieldValueForbidden", "Forbidden"},
                 {"FieldValueRequired", "Required value"},
                 {"FieldValueDuplicate", "Duplicate value"}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (str_equal(texts[i].reason, reason))
            return texts[i].text;
    return "Invalid value";
}

static void report_broken(struct run *r, const struct place *p, const struct rule *rule,
                          struct str message, bool is_ratcheted)
{
    const char *reason = rule->reason ? rule->reason : "FieldValueInvalid";
    SCOPED(buf_fini) struct buf path = {0}, text = {0};
    print_path(p, &path);
    if (rule->field)
        buf_printf(&path, "%s%s", path.len ? "." : "", rule->field);
    if (path.len == 0)
        buf_puts(&path, "<nil>");
    buf_printf(&text, "%s: ", reason_text(reason));
    buf_append(&text, message.p, message.n);
    if (is_ratcheted)
        warn(r->a, "%s: %s", buf_cstr(&path), buf_cstr(&text));
    else
        err_cause(r->causes, reason, buf_cstr(&path), "%s", buf_cstr(&text));
}

/* ---- ratcheting ---- */

/* Whether a part of self is as it was. Behind the end of the tables names count as they stand. */
static bool is_part_kept(const struct place *p, rule_part part)
{
    struct field row = p->row;
    const cJSON *self = p->self, *old = p->old;
    for (; *part && cJSON_IsObject(self) && cJSON_IsObject(old); part++) {
        const struct field *f = row.type == F_OBJECT && row.of ? shape_field(row.of, *part) : NULL;
        row = f ? *f : row.type == F_MAP ? walk_item_field(&row) : (struct field){.type = F_ANY};
        self = json_get(self, *part);
        old = json_get(old, *part);
        if (!self || !old)
            return self == old;
    }
    return unchanged_value(self, old, &row);
}

static bool are_parts_kept(const struct place *p, const struct planned_rule *rule)
{
    size_t i = 0;
    while (p->old && i < rule->n_parts && is_part_kept(p, rule->parts[i]))
        i++;
    return i > 0 && i == rule->n_parts;
}

/* Whether an object, or one that it is in, is as it was. */
static bool is_kept(const struct place *p)
{
    while (p && !(p->old && unchanged_value(p->self, p->old, &p->row)))
        p = p->up;
    return p != NULL;
}

/* ---- evaluation ---- */

/* Evaluates, and pays from the object's budget; false when that was too small. */
static bool evaluate(struct run *r, struct arena *arena, const struct cel_node *expr,
                     const struct cel_variable *vars, struct cel_value *ret)
{
    uint64_t taken = 0;
    *ret = cel_eval(arena, expr, vars, CEL_STEPS_MAX, &taken);
    bool is_enough = taken <= r->steps;
    r->steps -= is_enough ? taken : r->steps;
    return is_enough;
}

/* Whether a messageExpression gave what may be shown: one line that is neither empty nor long. */
static bool is_message(const struct cel_value *v, struct str *ret)
{
    if (v->type != CEL_STRING)
        return false;
    *ret = trimmed(v->s);
    return ret->n > 0 && ret->n <= MESSAGE_MAX && !memchr(ret->p, '\n', ret->n);
}

/* The message of a broken rule: of its messageExpression, or else its message, or else its text.
 * False when the budget was spent on the way, which is reported then. */
static bool find_message(struct run *r, const struct place *p, struct arena *arena,
                         const struct planned_rule *rule, const struct cel_variable *vars,
                         struct str *ret)
{
    struct cel_value v = {0};
    if (rule->message && !evaluate(r, arena, rule->message, vars, &v)) {
        end_run(r, p,
                "messageExpression evaluation failed due to running out of cost budget, no "
                "further validation rules will be run");
        return false;
    }
    if (rule->message && v.type == CEL_ERROR && str_equal(v.error, CEL_TOO_COSTLY)) {
        SCOPED(buf_fini) struct buf text = {0};
        buf_puts(&text, "no further validation rules will be run due to call cost exceeds limit "
                        "for messageExpression: ");
        buf_go_quote(&text, rule->rule->message_expression, strlen(rule->rule->message_expression));
        end_run(r, p, buf_cstr(&text));
        return false;
    }
    if (rule->message && is_message(&v, ret))
        return true;
    bool is_named = rule->rule->message && *rule->rule->message;
    struct str name = rule_name(rule->rule);
    *ret = is_named ? name : STR(arena_printf(arena, "failed rule: %.*s", (int)name.n, name.p));
    return true;
}

static void check_rule(struct run *r, const struct place *p, const struct planned_rule *rule)
{
    SCOPED(arena_fini) struct arena arena = {0};
    bool is_optional = rule->rule->is_old_optional;
    if (!rule->expr) { /* a server with it does not start */
        add_cause(r, p, "rule compile error");
        return;
    }
    if (rule->uses_old && !p->old && !is_optional)
        return;
    struct cel_value old = cel_from_json(p->old, p->plan->shape);
    const struct cel_variable vars[] = {
        {"self", cel_from_json(p->self, p->plan->shape)},
        {"oldSelf", is_optional ? cel_optional(&arena, p->old ? &old : NULL) : old},
        {0},
    };
    struct cel_value v;
    struct str message;
    if (!evaluate(r, &arena, rule->expr, vars, &v))
        end_run(r, p, out_of_budget);
    else if (v.type != CEL_BOOL)
        report_error(r, p, rule->rule, v.type == CEL_ERROR ? v.error : "no truth value");
    else if (!v.b && find_message(r, p, &arena, rule, vars, &message))
        report_broken(r, p, rule->rule, message,
                      !rule->uses_old && (are_parts_kept(p, rule) || is_kept(p)));
}

/* ---- the way through an object ---- */

static void check_place(struct run *r, const struct place *p);

static void check_if_object(struct run *r, struct place p)
{
    if (!cJSON_IsObject(p.self))
        return;
    p.old = cJSON_IsObject(p.old) ? p.old : NULL;
    check_place(r, &p);
}

/* Items of map lists are compared with those of the same keys, of other lists with nothing. */
static void check_list(struct run *r, struct place p, const struct field *f, const cJSON *list,
                       const cJSON *old)
{
    struct map *index = unchanged_index(old, f);
    cJSON_ArrayForEach(p.self, list)
    {
        p.old = unchanged_counterpart(index, p.self, f);
        check_if_object(r, p);
        p.index++;
    }
    map_free(index);
}

static void check_map(struct run *r, struct place p, const cJSON *map, const cJSON *old)
{
    cJSON_ArrayForEach(p.self, map)
    {
        p.name = p.self->string;
        p.old = json_get(old, p.name);
        check_if_object(r, p);
    }
}

static void check_branch(struct run *r, const struct place *p, const struct rule_branch *b)
{
    const struct field *f = b->field;
    const cJSON *self = json_get(p->self, f->name), *old = json_get(p->old, f->name);
    struct place below = {
        .plan = b->plan, .row = *f, .self = self, .old = old, .up = p, .name = f->name};
    if (f->type == F_OBJECT) {
        check_if_object(r, below);
        return;
    }
    struct place list = below;
    struct place item = {.plan = b->plan, .row = walk_item_field(f), .up = &list, .is_item = true};
    if (f->type == F_MAP && cJSON_IsObject(self))
        check_map(r, item, self, cJSON_IsObject(old) ? old : NULL);
    else if (f->type == F_LIST && cJSON_IsArray(self))
        check_list(r, item, f, self, old);
}

static void check_place(struct run *r, const struct place *p)
{
    for (size_t i = 0; i < p->plan->n_rules && !r->is_over; i++)
        check_rule(r, p, &p->plan->rules[i]);
    for (size_t i = 0; i < p->plan->n_branches && !r->is_over; i++)
        check_branch(r, p, &p->plan->branches[i]);
}

/* ---- a kind's rules ---- */

/* Whether a client is told when rules were not looked at. */
static bool is_telling(const struct rule_plan *plan)
{
    for (size_t i = 0; i < plan->n_rules; i++)
        if (!plan->rules[i].rule->is_added)
            return true;
    for (size_t i = 0; i < plan->n_branches; i++)
        if (is_telling(plan->branches[i].plan))
            return true;
    return false;
}

void rules_validate(const struct admission *a, bool is_blocked, struct err *causes)
{
    const struct kind *k = a->req->kind;
    const struct rule_plan *plan = rule_plan_of(k);
    if (!plan)
        return;
    if (is_blocked) {
        if (is_telling(plan))
            err_cause(causes, "FieldValueInvalid", "<nil>", "Invalid value: null: %s", not_checked);
        return;
    }
    struct run run = {.a = a, .causes = causes, .steps = OBJECT_STEPS_MAX};
    check_if_object(&run, (struct place){.plan = plan,
                                         .row = {.type = F_OBJECT, .of = k->shape},
                                         .self = a->object,
                                         .old = a->req->old});
}

/* ---- at start ---- */

struct reporter {
    void (*report)(void *ctx, const char *text);
    void *ctx;
    size_t mistakes;
};

static void report_mistake(void *ctx, const struct shape *shape, const struct rule *rule,
                           const char *what)
{
    struct reporter *r = ctx;
    struct str name = rule_name(rule);
    SCOPED_FREE char *text =
        xasprintf("%s: rule \"%.*s\": %s", shape->name, (int)name.n, name.p, what);
    r->mistakes++;
    if (r->report)
        r->report(r->ctx, text);
}

size_t rules_check_kind(const struct kind *kind, void (*report)(void *, const char *), void *ctx)
{
    SCOPED(arena_fini) struct arena arena = {0};
    struct reporter reporter = {.report = report, .ctx = ctx};
    rule_plan_make(&arena, kind->shape, report_mistake, &reporter);
    return reporter.mistakes;
}

size_t rules_check(void (*report)(void *ctx, const char *text), void *ctx)
{
    size_t mistakes = 0;
    for (const struct kind *const *k = kinds_served; *k; k++)
        mistakes += rules_check_kind(*k, report, ctx);
    return mistakes;
}
