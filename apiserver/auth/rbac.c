#include "apiserver/auth/rbac.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

#define ACCOUNT_PREFIX "system:serviceaccount:"

/* ---- who ---- */

static bool is_account(const cJSON *subject, const char *binding_namespace, const char *user)
{
    const char *of = json_str_or(subject, "namespace", ""),
               *name = json_str_or(subject, "name", "");
    const char *namespace_name = *of ? of : binding_namespace;
    SCOPED_FREE char *full = xasprintf(ACCOUNT_PREFIX "%s:%s", namespace_name, name);
    return *namespace_name && *name && strcmp(full, user) == 0;
}

static bool is_subject(const cJSON *subject, const char *binding_namespace, const cJSON *spec)
{
    const char *kind = json_str_or(subject, "kind", ""), *name = json_str_or(subject, "name", ""),
               *user = json_str_or(spec, "user", "");
    if (strcmp(kind, "User") == 0)
        return *name && strcmp(name, user) == 0;
    if (strcmp(kind, "Group") == 0)
        return *name && json_has_str(json_get(spec, "groups"), name);
    return strcmp(kind, "ServiceAccount") == 0 && is_account(subject, binding_namespace, user);
}

bool rbac_names(const cJSON *subjects, const char *binding_namespace, const cJSON *spec)
{
    const cJSON *s;
    cJSON_ArrayForEach(s, subjects)
    {
        if (is_subject(s, binding_namespace, spec))
            return true;
    }
    return false;
}

/* ---- what ---- */

static bool has(const cJSON *list, const char *value)
{
    return json_has_str(list, "*") || json_has_str(list, value);
}

/* pods, pods/log, and also *, or * followed by the subresource. */
static bool has_resource(const cJSON *list, const char *resource, const char *subresource)
{
    SCOPED_FREE char *full = xasprintf("%s%s%s", resource, *subresource ? "/" : "", subresource);
    SCOPED_FREE char *any = xasprintf("*/%s", subresource);
    return has(list, full) || (*subresource && json_has_str(list, any));
}

static bool rule_allows_resource(const cJSON *rule, const cJSON *asked)
{
    const cJSON *names = json_get(rule, "resourceNames");
    return has(json_get(rule, "verbs"), json_str_or(asked, "verb", "")) &&
           has(json_get(rule, "apiGroups"), json_str_or(asked, "group", "")) &&
           has_resource(json_get(rule, "resources"), json_str_or(asked, "resource", ""),
                        json_str_or(asked, "subresource", "")) &&
           (json_len(names) == 0 || json_has_str(names, json_str_or(asked, "name", "")));
}

/* A path, or one that ends in * and means all below. */
static bool has_path(const cJSON *list, const char *path)
{
    const cJSON *p;
    cJSON_ArrayForEach(p, list)
    {
        size_t n = cJSON_IsString(p) ? strlen(p->valuestring) : 0;
        if (n > 0 && (p->valuestring[n - 1] == '*' ? strncmp(p->valuestring, path, n - 1) == 0
                                                   : strcmp(p->valuestring, path) == 0))
            return true;
    }
    return false;
}

bool rbac_allows(const cJSON *rules, bool is_cluster, const cJSON *spec)
{
    const cJSON *rule, *resource = json_get(spec, "resourceAttributes"),
                       *path = json_get(spec, "nonResourceAttributes");
    cJSON_ArrayForEach(rule, rules)
    {
        if (resource && rule_allows_resource(rule, resource))
            return true;
        if (!resource && path && is_cluster &&
            has(json_get(rule, "verbs"), json_str_or(path, "verb", "")) &&
            has_path(json_get(rule, "nonResourceURLs"), json_str_or(path, "path", "")))
            return true;
    }
    return false;
}
