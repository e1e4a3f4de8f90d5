#include "apiserver/registry/scheduled.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"

static cJSON *make_condition(const char *node, const char *why, int64_t now_unix_s)
{
    char now[CLOCK_TEXT_SIZE];
    cJSON *c = json_object();
    clock_print_rfc3339(now_unix_s, now);
    json_set_str(c, "lastTransitionTime", now);
    if (!node) {
        json_set_str(c, "message", why);
        json_set_str(c, "reason", "Unschedulable");
    }
    json_set_str(c, "status", node ? "True" : "False");
    json_set_str(c, "type", "PodScheduled");
    return c;
}

bool pod_set_scheduled(cJSON *pod, const char *node, const char *why, int64_t now_unix_s)
{
    cJSON *list = json_at(pod, "status.conditions");
    if (json_str_or(pod, "spec.nodeName", "")[0])
        return false;
    if (!cJSON_IsArray(list)) {
        list = json_array();
        json_set_at(pod, "status.conditions", list);
    }
    for (cJSON *c = list->child, *next; c; c = next) {
        next = c->next;
        if (!str_equal(json_str(c, "type"), "PodScheduled"))
            continue;
        if (!node && str_equal(json_str(c, "message"), why))
            return false;
        json_remove_node(list, c);
    }
    json_push(list, make_condition(node, why, now_unix_s));
    if (node)
        json_set_at(pod, "spec.nodeName", json_string(node));
    return true;
}
