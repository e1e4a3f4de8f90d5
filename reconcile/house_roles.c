/* Roles and bindings that every server has, made when they are missing and left alone otherwise.
 * Names and meaning of the first ones are those of every cluster. Source: the Kubernetes reference,
 * default roles. */
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds/builtin.h"
#include "reconcile/house_pass.h"

#define EVERY "*"
#define OURS "agents.x-k8s.io,extensions.agents.x-k8s.io"
#define NAMED_GROUPS "networking.k8s.io,discovery.k8s.io,events.k8s.io,coordination.k8s.io"
#define PLAIN                                                                                      \
    "pods,pods/status,pods/log,services,configmaps,events,serviceaccounts,persistentvolumeclaims"
#define READ "get,list,watch"
#define WRITE "create,patch,update"
#define PATHS                                                                                      \
    "/api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/"

/* A rule a row, those of a role together. Lists are divided by commas; the core group's name is
 * empty. groups NULL: resources are paths. */
static const struct row {
    const char *role, *groups, *resources, *verbs;
} rules[] = {
    {"cluster-admin", EVERY, EVERY, EVERY},
    {"cluster-admin", NULL, EVERY, EVERY},

    {"system:discovery", NULL, PATHS, "get"},

    {"agent-sandbox:page", NULL, "/ui,/ui/*", "get,head"},

    {"system:basic-user", "authorization.k8s.io",
     "selfsubjectaccessreviews,selfsubjectrulesreviews", "create"},
    {"system:basic-user", "authentication.k8s.io", "selfsubjectreviews", "create"},

    {"view", "", PLAIN, READ},
    {"view", OURS, EVERY, READ},
    {"view", NAMED_GROUPS, EVERY, READ},

    {"edit", "", PLAIN ",secrets", EVERY},
    {"edit", "", "pods/exec,pods/attach,pods/portforward", "create,get"},
    {"edit", OURS, EVERY, EVERY},
    {"edit", NAMED_GROUPS, EVERY, EVERY},

    {"system:node", "", "nodes,nodes/status", "create,get,list,watch,patch,update"},
    {"system:node", "authorization.k8s.io", "subjectaccessreviews", "create"}, /* of its clients */
    {"system:node", "", "pods", READ ",delete"},
    {"system:node", "", "pods/status,pods/binding", "create,get,patch,update"},
    {"system:node", "", "configmaps,secrets,services,serviceaccounts,namespaces", READ},
    {"system:node", "", "serviceaccounts/token", "create"}, /* of its Pods' volumes */
    {"system:node", "",
     "persistentvolumeclaims,persistentvolumeclaims/status,persistentvolumes,"
     "persistentvolumes/status",
     "create,get,list,watch,patch,update,delete"},
    {"system:node", "networking.k8s.io", "networkpolicies", READ},
    {"system:node", "discovery.k8s.io", "endpointslices", READ},
    {"system:node", "coordination.k8s.io", "leases", "create,get,patch,update"},
    {"system:node", ",events.k8s.io", "events", WRITE},
};

/* Each gives the role of its name to groups, divided by commas. The page's files hold nothing of
 * anybody, and a browser fetches them before it has anything to say who it is for. */
static const struct {
    const char *role, *groups;
} bindings[] = {
    {"cluster-admin", "system:masters"},
    {"system:discovery", "system:authenticated"},
    {"system:basic-user", "system:authenticated"},
    {"agent-sandbox:page", "system:authenticated,system:unauthenticated"},
    {"system:node", "system:nodes"},
};

#define RBAC_GROUP "rbac.authorization.k8s.io"

static void set_list(cJSON *rule, const char *name, const char *words)
{
    cJSON *list = json_array();
    SCOPED_FREE char *copy = xstrdup(words);
    for (char *rest = copy, *word; (word = strsep(&rest, ",")) != NULL;)
        json_push(list, json_string(word));
    json_set(rule, name, list);
}

static cJSON *make_rule(const struct row *row)
{
    cJSON *rule = json_object();
    if (row->groups)
        set_list(rule, "apiGroups", row->groups);
    set_list(rule, row->groups ? "resources" : "nonResourceURLs", row->resources);
    set_list(rule, "verbs", row->verbs);
    return rule;
}

/* The role of the rows from one on; *ret_next is the first row of the next. */
static cJSON *make_role(size_t from, size_t *ret_next)
{
    cJSON *o = house_named(RBAC_GROUP "/v1", "ClusterRole", rules[from].role), *list = json_array();
    size_t i = from;
    for (; i < ARRAY_LEN(rules) && strcmp(rules[i].role, rules[from].role) == 0; i++)
        json_push(list, make_rule(&rules[i]));
    json_set(o, "rules", list);
    *ret_next = i;
    return o;
}

static cJSON *make_subject(const char *group)
{
    cJSON *s = json_object();
    json_set_str(s, "apiGroup", RBAC_GROUP);
    json_set_str(s, "kind", "Group");
    json_set_str(s, "name", group);
    return s;
}

static cJSON *make_binding(const char *role, const char *groups)
{
    cJSON *o = house_named(RBAC_GROUP "/v1", "ClusterRoleBinding", role), *subjects = json_array();
    SCOPED_FREE char *copy = xstrdup(groups);
    for (char *rest = copy, *group; (group = strsep(&rest, ",")) != NULL;)
        json_push(subjects, make_subject(group));
    json_set(o, "subjects", subjects);
    json_set_at(o, "roleRef.apiGroup", json_string(RBAC_GROUP));
    json_set_at(o, "roleRef.kind", json_string("ClusterRole"));
    json_set_at(o, "roleRef.name", json_string(role));
    return o;
}

int house_roles_pass(const struct pass_env *env, struct err *err)
{
    int rc = 0;
    for (size_t i = 0, next; rc == 0 && i < ARRAY_LEN(rules); i = next)
        rc = pass_ensure(env, &kind_cluster_role, "", make_role(i, &next), HOUSE_MANAGER, err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(bindings); i++)
        rc = pass_ensure(env, &kind_cluster_role_binding, "",
                         make_binding(bindings[i].role, bindings[i].groups), HOUSE_MANAGER, err);
    return rc;
}
