/* Roles and bindings that every server has, made when they are missing and left alone otherwise;
 * but the one of nodes, which once had more, never has other rules than these. Names and meaning of
 * the first ones are those of every cluster. Source: the Kubernetes reference, default roles. */
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
#define NODE "system:node"
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

    /* What every node may. What one may do with its own Node, Pods and what they refer to is for
     * the server to judge (http/node_access). */
    {NODE, "authorization.k8s.io", "subjectaccessreviews", "create"}, /* of its clients */
    {NODE, "", "namespaces,pods", READ},                              /* for network policies */
    {NODE, "networking.k8s.io", "networkpolicies", READ},
    {NODE, "discovery.k8s.io", "endpointslices", READ}, /* for names of Services */
    {NODE, "", "persistentvolumes", "get,list"},        /* whose folders it has */
    {NODE, "", "events", "create"},
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
    {NODE, "system:nodes"},
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

/* ctx is a whole role. */
static bool take_rules(void *ctx, cJSON *role)
{
    const cJSON *rules_of_ours = json_get(ctx, "rules");
    if (json_equal(json_get(role, "rules"), rules_of_ours))
        return false;
    json_set(role, "rules", json_copy(rules_of_ours));
    return true;
}

static int hold_role(const struct pass_env *env, cJSON *role, struct err *err)
{
    SCOPED(object_unref_p) struct object *present = NULL;
    int rc = pass_get(env, &kind_cluster_role, "", json_str_or(role, "metadata.name", ""), &present,
                      err);
    return rc < 0 || !present
               ? rc
               : house_forgive(house_change(env, present, take_rules, role, err), err);
}

static int ensure_role(const struct pass_env *env, cJSON *take_role, bool is_held, struct err *err)
{
    SCOPED(json_free_p) cJSON *role = take_role;
    int rc = pass_ensure(env, &kind_cluster_role, "", json_copy(role), HOUSE_MANAGER, err);
    return rc < 0 || !is_held ? rc : hold_role(env, role, err);
}

int house_roles_pass(const struct pass_env *env, struct err *err)
{
    int rc = 0;
    for (size_t i = 0, next; rc == 0 && i < ARRAY_LEN(rules); i = next)
        rc = ensure_role(env, make_role(i, &next), strcmp(rules[i].role, NODE) == 0, err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(bindings); i++)
        rc = pass_ensure(env, &kind_cluster_role_binding, "",
                         make_binding(bindings[i].role, bindings[i].groups), HOUSE_MANAGER, err);
    return rc;
}
