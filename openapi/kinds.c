/* The lists of kinds and look-ups in them. There are few, so every look-up is a short walk. */
#include "openapi/kinds.h"

#include <string.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/kinds/builtin.h"

const struct kind *const kinds_all[] = {
    &kind_sandbox, &kind_sandbox_claim, &kind_sandbox_template, &kind_sandbox_warm_pool, NULL,
};

const struct kind *const kinds_standalone[] = {
    &kind_config_map,
    &kind_core_event,
    &kind_namespace,
    &kind_node,
    &kind_persistent_volume_claim,
    &kind_persistent_volume,
    &kind_pod,
    &kind_secret,
    &kind_service_account,
    &kind_service,
    &kind_sandbox,
    &kind_custom_resource_definition,
    &kind_self_subject_review,
    &kind_token_review,
    &kind_local_subject_access_review,
    &kind_self_subject_access_review,
    &kind_self_subject_rules_review,
    &kind_subject_access_review,
    &kind_lease,
    &kind_endpoint_slice,
    &kind_event,
    &kind_sandbox_claim,
    &kind_sandbox_template,
    &kind_sandbox_warm_pool,
    &kind_network_policy,
    &kind_cluster_role_binding,
    &kind_cluster_role,
    &kind_role_binding,
    &kind_role,
    &kind_storage_class,
    NULL,
};

const struct kind *const *kinds_served = kinds_all;

const struct kind *kind_find(const char *group, const char *version, const char *plural)
{
    for (const struct kind *const *k = kinds_served; *k; k++)
        if (str_equal((*k)->group, group) && str_equal((*k)->version, version) &&
            str_equal((*k)->plural, plural))
            return *k;
    return NULL;
}

const struct kind *kind_find_by_kind(const char *group, const char *kind)
{
    for (const struct kind *const *k = kinds_served; *k; k++)
        if (str_equal((*k)->group, group) && str_equal((*k)->kind, kind))
            return *k;
    return NULL;
}

bool kind_group_version_served(const char *group, const char *version)
{
    for (const struct kind *const *k = kinds_served; *k; k++)
        if (str_equal((*k)->group, group) && str_equal((*k)->version, version))
            return true;
    return false;
}

char *kind_resource_name(const struct kind *k)
{
    return xasprintf("%s%s%s", k->plural, k->group[0] ? "." : "", k->group);
}

char *kind_api_version(const struct kind *k)
{
    return xasprintf("%s%s%s", k->group, k->group[0] ? "/" : "", k->version);
}

char *kind_api_path(const struct kind *k)
{
    return xasprintf("/api%s%s/%s", k->group[0] ? "s/" : "", k->group, k->version);
}

const struct subresource *kind_subresource(const struct kind *k, const char *name)
{
    for (const struct subresource *s = k->subresources; s && s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

const struct field *shape_field(const struct shape *s, const char *name)
{
    if (!s || !s->fields)
        return NULL;
    for (const struct field *f = s->fields; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}
