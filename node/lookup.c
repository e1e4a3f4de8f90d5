#include "node/lookup.h"

#include "apiserver/base/json.h"
#include "apiserver/base/str.h"

static const cJSON *find(const cJSON *pod, const char *const lists[2], const char *name)
{
    for (int i = 0; i < 2; i++) {
        const cJSON *c;
        cJSON_ArrayForEach(c, json_at(pod, lists[i]))
        {
            if (strcmp(json_str_or(c, "name", ""), name) == 0)
                return c;
        }
    }
    return NULL;
}

const cJSON *lookup_spec(const cJSON *pod, const char *container)
{
    static const char *const lists[] = {"spec.containers", "spec.initContainers"};
    return find(pod, lists, container);
}

const cJSON *lookup_status(const cJSON *pod, const char *container)
{
    static const char *const lists[] = {"status.containerStatuses", "status.initContainerStatuses"};
    return find(pod, lists, container);
}

const char *lookup_engine_id(const char *container_id)
{
    return str_has_prefix(container_id, LOOKUP_SCHEME) ? container_id + strlen(LOOKUP_SCHEME) : "";
}
