/* Roles and bindings that every server has, made when they are missing and left alone otherwise.
 * Names and meaning of the first ones are those of every cluster. Source: the Kubernetes reference,
 * default roles. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds/builtin.h"
#include "reconcile/house_pass.h"

#define READ "[\"get\",\"list\",\"watch\"]"
#define ALL "[\"*\"]"
#define RULE(groups, resources, verbs)                                                             \
    "{\"apiGroups\":[" groups "],\"resources\":[" resources "],\"verbs\":" verbs "}"
#define OURS "\"agents.x-k8s.io\",\"extensions.agents.x-k8s.io\""
#define NAMED_GROUPS                                                                               \
    "\"networking.k8s.io\",\"discovery.k8s.io\",\"events.k8s.io\",\"coordination.k8s.io\""
#define PLAIN_RESOURCES                                                                            \
    "\"pods\",\"pods/status\",\"services\",\"configmaps\",\"events\",\"serviceaccounts\","         \
    "\"persistentvolumeclaims\""

static const struct {
    const char *name, *rules;
} roles[] = {
    {"cluster-admin",
     "[" RULE("\"*\"", "\"*\"", ALL) ",{\"nonResourceURLs\":[\"*\"],\"verbs\":[\"*\"]}]"},
    {"system:discovery",
     "[{\"nonResourceURLs\":[\"/api\",\"/api/*\",\"/apis\",\"/apis/*\",\"/healthz\",\"/livez\","
     "\"/openapi\",\"/openapi/*\",\"/readyz\",\"/version\",\"/version/"
     "\"],\"verbs\":[\"get\"]}]"},
    {"system:basic-user",
     "[" RULE("\"authorization.k8s.io\"",
              "\"selfsubjectaccessreviews\",\"selfsubjectrulesreviews\"",
              "[\"create\"]") "," RULE("\"authentication.k8s.io\"", "\"selfsubjectreviews\"",
                                       "[\"create\"]") "]"},
    {"view", "[" RULE("\"\"", PLAIN_RESOURCES, READ) "," RULE(OURS, "\"*\"", READ) "," RULE(
                 NAMED_GROUPS, "\"*\"", READ) "]"},
    {"edit", "[" RULE("\"\"", PLAIN_RESOURCES ",\"secrets\"",
                      ALL) "," RULE(OURS, "\"*\"", ALL) "," RULE(NAMED_GROUPS, "\"*\"", ALL) "]"},
    {"system:node",
     "[" RULE("\"\"", "\"nodes\",\"nodes/status\"", "[\"create\",\"get\",\"list\",\"watch\",\"patch\",\"update\"]") "," RULE("\"\"", "\"pods\"", "[\"get\",\"list\",\"watch\",\"delete\"]") "," RULE(
         "\"\"", "\"pods/status\",\"pods/binding\"",
         "[\"create\",\"get\",\"patch\",\"update\"]") "," RULE("\"\"",
                                                               "\"configmaps\",\"secrets\","
                                                               "\"services\",\"serviceaccounts\","
                                                               "\"namespaces\"",
                                                               READ) "," RULE("\"\"",
                                                                              "\"persistentvolumecl"
                                                                              "aims\","
                                                                              "\"persistentvolumecl"
                                                                              "aims/"
                                                                              "status\","
                                                                              "\"persistentvolumes"
                                                                              "\","
                                                                              "\"persistentvolumes/"
                                                                              "status\"",
                                                                              "[\"create\",\"get\","
                                                                              "\"list\",\"watch\","
                                                                              "\"patch\","
                                                                              "\"update\","
                                                                              "\"delete\"]") "," RULE("\"networking.k8s.io\",\"discovery.k8s.io\"",
                                                                                                      "\"*\"",
                                                                                                      READ) "," RULE("\"coordination.k8s.io\"",
                                                                                                                     "\"leases\"",
                                                                                                                     "[\"create\",\"get\",\"patch\","
                                                                                                                     "\"update\"]") "," RULE("\"\","
                                                                                                                                             "\"event"
                                                                                                                                             "s.k8s."
                                                                                                                                             "io\"",
                                                                                                                                             "\"event"
                                                                                                                                             "s\"",
                                                                                                                                             "[\"crea"
                                                                                                                                             "te\","
                                                                                                                                             "\"patch"
                                                                                                                                             "\","
                                                                                                                                             "\"updat"
                                                                                                                                             "e\"]") "]"},
};

/* Each gives the role of its name to a group. */
static const struct {
    const char *role, *group;
} bindings[] = {
    {"cluster-admin", "system:masters"},
    {"system:discovery", "system:authenticated"},
    {"system:basic-user", "system:authenticated"},
    {"system:node", "system:nodes"},
};

static cJSON *named(const char *kind, const char *name)
{
    cJSON *o = json_object();
    json_set_str(o, "apiVersion", "rbac.authorization.k8s.io/v1");
    json_set_str(o, "kind", kind);
    json_set_str(json_ensure_object(o, "metadata"), "name", name);
    return o;
}

static int ensure(const struct pass_env *env, const struct kind *kind, cJSON *take_object,
                  struct err *err)
{
    SCOPED(json_free_p) cJSON *object = take_object;
    SCOPED(object_unref_p) struct object *present = NULL;
    struct err e = {0};
    int rc = pass_get(env, kind, "", json_str(object, "metadata.name"), &present, err);
    if (rc < 0 || present)
        return rc;
    rc = pass_create(env, kind, "", steal(&object), HOUSE_MANAGER, NULL, &e);
    if (rc != -ERR_ALREADY_EXISTS)
        return rc < 0 ? err_move(err, &e) : 0;
    err_fini(&e);
    return 0;
}

static cJSON *make_binding(const char *role, const char *group)
{
    cJSON *o = named("ClusterRoleBinding", role), *subjects = json_array(), *s = json_object();
    json_set_str(s, "apiGroup", "rbac.authorization.k8s.io");
    json_set_str(s, "kind", "Group");
    json_set_str(s, "name", group);
    json_push(subjects, s);
    json_set(o, "subjects", subjects);
    json_set_at(o, "roleRef.apiGroup", json_string("rbac.authorization.k8s.io"));
    json_set_at(o, "roleRef.kind", json_string("ClusterRole"));
    json_set_at(o, "roleRef.name", json_string(role));
    return o;
}

int house_roles_pass(const struct pass_env *env, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(roles); i++) {
        cJSON *o = named("ClusterRole", roles[i].name), *rules = NULL;
        rc = json_parse_str(roles[i].rules, &rules, err);
        json_set(o, "rules", rules ? rules : json_array());
        if (rc == 0)
            rc = ensure(env, &kind_cluster_role, o, err);
        else
            json_free(o);
    }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(bindings); i++)
        rc = ensure(env, &kind_cluster_role_binding,
                    make_binding(bindings[i].role, bindings[i].group), err);
    return rc;
}
