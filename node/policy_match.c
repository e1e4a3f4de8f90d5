/* Label selectors and whom a policy is for. */
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "node/policy.h"

/* Keys have dots, so they are no paths. */
static const char *text_of(const cJSON *node)
{
    return cJSON_IsString(node) ? node->valuestring : NULL;
}

static bool match_expression(const cJSON *expression, const cJSON *labels)
{
    const char *operator= json_str_or(expression, "operator", "");
    const char *label = text_of(json_get(labels, json_str_or(expression, "key", "")));
    bool is_in = label && json_has_str(json_get(expression, "values"), label);
    if (strcmp(operator, "In") == 0)
        return is_in;
    if (strcmp(operator, "NotIn") == 0)
        return !is_in;
    if (strcmp(operator, "Exists") == 0)
        return label != NULL;
    return strcmp(operator, "DoesNotExist") == 0 && !label;
}

bool policy_match_labels(const cJSON *selector, const cJSON *labels)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, json_get(selector, "matchLabels"))
    {
        const char *label = text_of(json_get(labels, item->string));
        if (!label || !str_equal(text_of(item), label))
            return false;
    }
    cJSON_ArrayForEach(item, json_get(selector, "matchExpressions"))
    {
        if (!match_expression(item, labels))
            return false;
    }
    return true;
}

bool policy_selects(const cJSON *policy, const struct policy_pod *pod)
{
    return str_equal(json_str(policy, "metadata.namespace"), pod->namespace_name) &&
           policy_match_labels(json_at(policy, "spec.podSelector"), pod->labels);
}
