#include "reconcile/claim_bind.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"

#define READ_MS 1000 /* reads from memory do not wait; a ceiling all the same */

struct plan {
    struct bind_plan base;
    cJSON *pool, *template; /* template NULL = there is none */
    struct blueprint blueprint;
};

/* ---- members ---- */

static bool describe(void *ctx, const cJSON *member, struct bind_member *ret)
{
    (void)ctx;
    const char *created = json_str_or(member, "metadata.creationTimestamp", "");
    int64_t created_ms = 0;
    bool has_address = json_len(json_at(member, "status.podIPs")) > 0;
    const cJSON *ready = condition_find(json_at(member, "status.conditions"), "Ready");
    ret->pool = claim_member_pool(member);
    if (!ret->pool)
        return false;
    if (clock_parse_rfc3339(created, &created_ms) < 0)
        created_ms = 0;
    ret->node = json_str_or(member, "status.nodeName", "");
    ret->created_s = created_ms / 1000;
    ret->class = !has_address                                   ? BIND_PENDING
                 : str_equal(json_str(ready, "status"), "True") ? BIND_READY
                                                                : BIND_ADDRESS;
    return true;
}

/* ---- the plan of one claim ---- */

static cJSON *read_tree(struct registry *r, const struct kind *kind, const char *namespace_name,
                        const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    if (registry_get(r, kind, namespace_name, name, (struct read_version){.match = READ_ANY},
                     clock_monotonic_ms(&clock_system) + READ_MS, &o, NULL) < 0)
        return NULL;
    return object_tree(o);
}

/* What a new claim must not be bound over: the reconciler sorts it out. */
static bool is_for_reconciler(struct registry *r, const cJSON *claim)
{
    bool from_label;
    SCOPED(object_unref_p) struct object *namesake = NULL;
    if (claim_assignment(claim, &from_label))
        return true;
    return registry_get(r, &kind_sandbox, meta_namespace(claim), meta_name(claim),
                        (struct read_version){.match = READ_ANY},
                        clock_monotonic_ms(&clock_system) + READ_MS, &namesake, NULL) == 0;
}

static void plan_free(struct bind_plan *base)
{
    struct plan *plan = (struct plan *)base;
    json_free(plan->pool);
    json_free(plan->template);
    free(plan);
}

static struct bind_plan *make_plan(void *ctx, struct registry *r, const cJSON *claim)
{
    const struct claim_binder *b = ctx;
    SCOPED(claim_error_fini) struct claim_error wrong = {0};
    bool is_new = !json_str(claim, "metadata.resourceVersion");
    if (claim_is_cold_only(claim) || claim_check_metadata(claim, &b->settings, &wrong) < 0 ||
        claim_time_left_ms(claim, clock_unix_ms(b->clock)) <= 0 ||
        (is_new && is_for_reconciler(r, claim)))
        return NULL;
    const char *ns = meta_namespace(claim);
    cJSON *pool = read_tree(r, &kind_sandbox_warm_pool, ns, claim_pool_name(claim));
    if (!pool)
        return NULL;
    struct plan *plan = xcalloc(1, sizeof *plan);
    plan->base.pool = meta_name(pool);
    plan->pool = pool;
    plan->template = read_tree(r, &kind_sandbox_template, ns,
                               json_str_or(pool, "spec.sandboxTemplateRef.name", ""));
    if (plan->template)
        blueprint_init(&plan->blueprint, plan->template);
    return &plan->base;
}

/* ---- the verdict ---- */

static bool recreates(const cJSON *pool)
{
    return str_equal(json_str(pool, "spec.updateStrategy.type"), "Recreate");
}

static bool is_suitable(const cJSON *pool, const struct blueprint *b, const cJSON *template,
                        const cJSON *member)
{
    return template ? !blueprint_is_stale(b, member, true) : !recreates(pool);
}

const char *claim_staleness(const cJSON *pool, const cJSON *template, const cJSON *member)
{
    struct blueprint b;
    if (template)
        blueprint_init(&b, template);
    return is_suitable(pool, &b, template, member) ? NULL : "the template has changed since";
}

static enum bind_verdict adopt(void *ctx, const struct bind_plan *base, const cJSON *claim,
                               const cJSON *member, cJSON **ret_claim, cJSON **ret_member)
{
    const struct claim_binder *b = ctx;
    const struct plan *plan = (const struct plan *)base;
    SCOPED(claim_error_fini) struct claim_error wrong = {0};
    SCOPED_FREE char *no_candidate = claim_candidate_error(claim, member);
    if (no_candidate || !is_suitable(plan->pool, &plan->blueprint, plan->template, member))
        return BIND_SKIP;
    if (claim_adopt(claim, plan->template, member, ret_member, &wrong) < 0)
        return BIND_LEAVE; /* the reconciler says why */
    *ret_claim = claim_bound(claim, *ret_member, &b->settings, clock_unix_ms(b->clock));
    return BIND_TAKE;
}

void claim_binder_init(struct claim_binder *b, const struct claim_settings *settings,
                       const struct clock *clock)
{
    *b = (struct claim_binder){
        .ops =
            {
                .claim = &kind_sandbox_claim,
                .member = &kind_sandbox,
                .member_label = LABEL_WARM_POOL,
                .describe = describe,
                .plan = make_plan,
                .plan_free = plan_free,
                .adopt = adopt,
                .manager = CLAIM_CONTROLLER,
                .ctx = b,
            },
        .settings = *settings,
        .clock = clock,
    };
}
