#include "reconcile/warmpool_wake.h"

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/pass.h"
#include "reconcile/peek.h"

void warmpool_wake_note(struct registry *registry, const struct object *template,
                        void (*found)(void *ctx, const char *key), void *ctx)
{
    SCOPED(list_result_fini) struct list_result pools = {0};
    SCOPED(err_fini) struct err err = {0};
    struct list_request request = {.kind = &kind_sandbox_warm_pool,
                                   .namespace_name = template->namespace_name,
                                   .version = {.match = READ_ANY}};
    if (registry_list(registry, &request, &pools, &err) < 0) {
        log_debug("pools of a template cannot be listed: %s", err_text(&err));
        return;
    }
    for (size_t i = 0; i < pools.n; i++) {
        const struct object *pool = pools.objects[i];
        SCOPED(json_free_p) cJSON *ref = object_peek(pool, "spec", "sandboxTemplateRef");
        if (!str_equal(json_str(ref, "name"), template->name))
            continue;
        SCOPED_FREE char *key = pass_key(pool->namespace_name, pool->name);
        found(ctx, key);
    }
}
