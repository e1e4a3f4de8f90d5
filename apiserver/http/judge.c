/* What nodes may is asked first. Then bindings are walked, those of the namespace after those of
 * all; each that names the user leads to one role. There are few, and each is parsed when it is
 * looked at. */
#include "apiserver/http/judge.h"

#include "apiserver/auth/rbac.h"
#include "apiserver/auth/user_token.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/node_access.h"
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"

#define DEADLINE_MS 5000

struct walk {
    struct registry *registry;
    const cJSON *spec;
    /* Called with each role that the user has; false = enough. */
    bool (*role)(void *ctx, const cJSON *binding, const cJSON *role, bool is_cluster);
    void *ctx;
};

static int64_t deadline(void)
{
    return clock_monotonic_ms(&clock_system) + DEADLINE_MS;
}

/* NULL when it is not there: a binding may come before its role. */
static cJSON *role_of(const struct walk *w, const cJSON *binding, const char *namespace_name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    bool is_cluster = strcmp(json_str_or(binding, "roleRef.kind", ""), "ClusterRole") == 0;
    const struct kind *kind = is_cluster ? &kind_cluster_role : &kind_role;
    if (registry_get(w->registry, kind, is_cluster ? "" : namespace_name,
                     json_str_or(binding, "roleRef.name", ""), (struct read_version){READ_ANY, 0},
                     deadline(), &o, NULL) < 0)
        return NULL;
    return object_tree(o);
}

/* 0 = go on, 1 = enough. */
static int walk_bindings(const struct walk *w, const struct kind *kind, const char *namespace_name,
                         struct err *err)
{
    SCOPED(list_result_fini) struct list_result found = {0};
    const struct list_request list = {.kind = kind,
                                      .namespace_name = namespace_name,
                                      .version = {READ_ANY, 0},
                                      .deadline_ms = deadline()};
    bool is_cluster = kind->is_cluster_scoped;
    int rc = registry_list(w->registry, &list, &found, err);
    for (size_t i = 0; rc == 0 && i < found.n; i++) {
        SCOPED(json_free_p) cJSON *binding = object_tree(found.objects[i]);
        if (!rbac_names(json_get(binding, "subjects"), found.objects[i]->namespace_name, w->spec))
            continue;
        SCOPED(json_free_p) cJSON *role = role_of(w, binding, found.objects[i]->namespace_name);
        if (role && !w->role(w->ctx, binding, role, is_cluster))
            rc = 1;
    }
    return rc;
}

static int walk_roles(const struct walk *w, const char *namespace_name, struct err *err)
{
    int rc = walk_bindings(w, &kind_cluster_role_binding, "", err);
    if (rc == 0 && *namespace_name)
        rc = walk_bindings(w, &kind_role_binding, namespace_name, err);
    return rc < 0 ? rc : 0;
}

/* ---- may they? ---- */

struct question {
    const cJSON *spec;
    char *reason; /* of the answer yes */
};

static bool ask_role(void *ctx, const cJSON *binding, const cJSON *role, bool is_cluster)
{
    struct question *q = ctx;
    if (!rbac_allows(json_get(role, "rules"), is_cluster, q->spec))
        return true;
    q->reason =
        xasprintf("RBAC: allowed by %s \"%s\" of %s \"%s\"", json_str_or(binding, "kind", ""),
                  json_str_or(binding, "metadata.name", ""), json_str_or(role, "kind", ""),
                  json_str_or(role, "metadata.name", ""));
    return false;
}

static cJSON *make_status(bool is_allowed, const char *reason)
{
    cJSON *status = json_object();
    json_set_bool(status, "allowed", is_allowed);
    if (reason)
        json_set_str(status, "reason", reason);
    return status;
}

int judge_access(void *judge, const cJSON *spec, cJSON **ret_status, struct err *err)
{
    const struct judge *j = judge;
    SCOPED_FREE char *why_not = NULL;
    if (j->nodes && node_access_allows(j->nodes, spec, &why_not)) {
        *ret_status = make_status(true, NULL);
        return 0;
    }
    struct question q = {.spec = spec};
    struct walk w = {.registry = j->registry, .spec = spec, .role = ask_role, .ctx = &q};
    int rc = walk_roles(&w, json_str_or(spec, "resourceAttributes.namespace", ""), err);
    if (rc == 0)
        *ret_status = make_status(q.reason != NULL, q.reason ? q.reason : why_not);
    free(q.reason);
    return rc;
}

/* ---- what may they? ---- */

static void push_rule(cJSON *list, const cJSON *rule, const char *const *members)
{
    cJSON *out = json_object();
    for (; *members; members++) {
        const cJSON *m = json_get(rule, *members);
        if (m)
            json_set(out, *members, json_copy(m));
    }
    json_push(list, out);
}

static bool add_rules(void *ctx, const cJSON *binding, const cJSON *role, bool is_cluster)
{
    static const char *const of_resources[] = {"verbs", "apiGroups", "resources", "resourceNames",
                                               NULL};
    static const char *const of_paths[] = {"verbs", "nonResourceURLs", NULL};
    cJSON *status = ctx;
    const cJSON *rule;
    (void)binding;
    cJSON_ArrayForEach(rule, json_get(role, "rules"))
    {
        if (json_len(json_get(rule, "resources")) > 0)
            push_rule(json_get(status, "resourceRules"), rule, of_resources);
        if (is_cluster && json_len(json_get(rule, "nonResourceURLs")) > 0)
            push_rule(json_get(status, "nonResourceRules"), rule, of_paths);
    }
    return true;
}

int judge_rules(const struct judge *j, const cJSON *spec, const char *namespace_name,
                cJSON **ret_status, struct err *err)
{
    SCOPED(json_free_p) cJSON *status = json_object();
    bool is_node = j->nodes && node_access_is_node(spec);
    json_set_bool(status, "incomplete", is_node);
    if (is_node)
        json_set_str(status, "evaluationError",
                     "node authorizer does not support user rule resolution");
    json_set(status, "nonResourceRules", json_array());
    json_set(status, "resourceRules", json_array());
    struct walk w = {.registry = j->registry, .spec = spec, .role = add_rules, .ctx = status};
    int rc = walk_roles(&w, namespace_name, err);
    if (rc == 0)
        *ret_status = steal(&status);
    return rc;
}

/* ---- tokens ---- */

#define AUDIENCE "https://kubernetes.default.svc"
#define OWN "kubernetes.io" /* the claim that says whose it is */

static cJSON *reference(const struct object *o)
{
    cJSON *r = json_object();
    json_set_str(r, "name", o->name);
    json_set_str(r, "uid", o->uid);
    return r;
}

char *judge_token(const struct judge *j, const struct object *account, const struct object *pod,
                  const cJSON *audiences, int64_t now_unix_s, int64_t life_s)
{
    SCOPED(json_free_p) cJSON *claims = json_object();
    SCOPED_FREE char *subject =
        xasprintf("system:serviceaccount:%s:%s", account->namespace_name, account->name);
    cJSON *own = json_object(), *aud = audiences ? json_copy(audiences) : json_array();
    if (!audiences)
        json_push(aud, json_string(AUDIENCE));
    json_set(claims, "aud", aud);
    json_set_int(claims, "exp", now_unix_s + life_s);
    json_set_int(claims, "iat", now_unix_s);
    json_set_str(claims, "iss", AUDIENCE);
    json_set_int(claims, "nbf", now_unix_s);
    json_set_str(claims, "sub", subject);
    json_set_str(own, "namespace", account->namespace_name);
    json_set(own, "serviceaccount", reference(account));
    if (pod)
        json_set(own, "pod", reference(pod));
    json_set(claims, OWN, own);
    return jwt_sign(j->token_key, claims);
}

/* The object that a claim names is there, the very same. */
static bool is_there(const struct judge *j, const struct kind *kind, const char *namespace_name,
                     const cJSON *ref)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    return registry_get(j->registry, kind, namespace_name, json_str_or(ref, "name", ""),
                        (struct read_version){READ_ANY, 0}, deadline(), &o, NULL) == 0 &&
           strcmp(o->uid, json_str_or(ref, "uid", "")) == 0;
}

static void push_group(cJSON *user, const char *group)
{
    cJSON *list = json_get(user, "groups");
    if (!list) {
        list = json_array();
        json_set(user, "groups", list);
    }
    json_push(list, json_string(group));
}

static cJSON *user_of(const cJSON *claims, const cJSON *own)
{
    cJSON *user = json_object();
    SCOPED_FREE char *group =
        xasprintf("system:serviceaccounts:%s", json_str_or(own, "namespace", ""));
    json_set_str(user, "username", json_str_or(claims, "sub", ""));
    json_set_str(user, "uid", json_str_or(own, "serviceaccount.uid", ""));
    push_group(user, "system:serviceaccounts");
    push_group(user, group);
    return user;
}

/* NULL and an error when it is not, or no longer, to be believed. */
static cJSON *account_user(const struct judge *j, const cJSON *claims, struct err *err)
{
    const cJSON *own = json_get(claims, OWN), *pod = json_get(own, "pod");
    const char *namespace_name = json_str_or(own, "namespace", "");
    if (!json_has_str(json_get(claims, "aud"), AUDIENCE))
        err_set(err, ERR_UNAUTHORIZED, "token: for others");
    else if (!is_there(j, &kind_service_account, namespace_name, json_get(own, "serviceaccount")) ||
             (pod && !is_there(j, &kind_pod, namespace_name, pod)))
        err_set(err, ERR_UNAUTHORIZED, "token: its account or Pod is gone");
    else
        return user_of(claims, own);
    return NULL;
}

int judge_token_review(void *judge, const char *token, cJSON **ret_status, struct err *err)
{
    const struct judge *j = judge;
    SCOPED(json_free_p) cJSON *claims = NULL;
    int rc = jwt_check(j->token_key, token, clock_unix_s(j->clock), &claims, err);
    if (rc < 0)
        return rc;
    cJSON *user = user_token_user(claims);
    if (!user)
        user = account_user(j, claims, err);
    if (!user)
        return -ERR_UNAUTHORIZED;
    *ret_status = json_object();
    json_set_bool(*ret_status, "authenticated", true);
    json_set(*ret_status, "user", user);
    return 0;
}
