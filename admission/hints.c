/* Hints: warnings of what is allowed and surely not meant. */
#include "admission/steps.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

static bool container_uses(const cJSON *container, const char *volume)
{
    static const char *const lists[] = {"volumeMounts", "volumeDevices"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const cJSON *use;
        cJSON_ArrayForEach(use, json_get(container, lists[i]))
        {
            if (str_equal(json_str(use, "name"), volume))
                return true;
        }
    }
    return false;
}

static bool pod_uses(const cJSON *pod_spec, const char *volume)
{
    static const char *const lists[] = {"initContainers", "containers"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const cJSON *container;
        cJSON_ArrayForEach(container, json_get(pod_spec, lists[i]))
        {
            if (container_uses(container, volume))
                return true;
        }
    }
    return false;
}

/* Objects of kinds that have no Pod are left alone. */
static void hint_volumes(const struct admission *a)
{
    const cJSON *pod_spec = json_at(a->object, "spec.podTemplate.spec"), *template;
    if (!pod_spec)
        return;
    cJSON_ArrayForEach(template, json_at(a->object, "spec.volumeClaimTemplates"))
    {
        const char *name = json_str_or(template, "metadata.name", "");
        if (!pod_uses(pod_spec, name))
            warn(a, "spec.volumeClaimTemplates: no container mounts volume \"%s\"", name);
    }
}

int step_hints(struct admission *a, struct err *err)
{
    (void)err;
    hint_volumes(a);
    SCOPED_FREE char *foreseen =
        a->env->foresee ? a->env->foresee(a->env->ctx, a->req->kind, a->object) : NULL;
    if (foreseen)
        warn(a, "%s", foreseen);
    return 0;
}
