/* The rules of a Sandbox. Source: docs/resources.md 4. */
#include "admission/strategy.h"
#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"

#define SERVICE_NAME_MAX 63 /* characters */

/* On spec: there or not there, and the same in every member; an empty list is there. */
static bool volumes_are_kept(const cJSON *self, const cJSON *old_self)
{
    const cJSON *now = json_get(self, "volumeClaimTemplates"),
                *before = json_get(old_self, "volumeClaimTemplates");
    return (!now && !before) || (now && before && json_equal(now, before));
}

/* On the whole: the service is named like the sandbox. */
static bool service_can_be_named(const cJSON *self, const cJSON *old_self)
{
    (void)old_self;
    if (!json_bool_or(self, "spec.service", false))
        return true;
    return str_utf8_count(json_str_or(self, "metadata.name", "")) <= SERVICE_NAME_MAX;
}

static const struct rule_check rules[] = {
    {"volumeClaimTemplates is immutable", volumes_are_kept},
    {"metadata.name must have at most 63 characters when spec.service is true",
     service_can_be_named},
    {0},
};

const struct strategy strategy_sandbox = {.kind = &kind_sandbox, .rules = rules};
