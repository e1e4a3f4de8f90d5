/* The list of kinds and look-ups in it. There are four, so every look-up is a short walk. */
#include "openapi/kinds.h"

#include <string.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

const struct kind *const kinds_all[] = {
    &kind_sandbox, &kind_sandbox_claim, &kind_sandbox_template, &kind_sandbox_warm_pool, NULL,
};

const struct kind *kind_find(const char *group, const char *version, const char *plural)
{
    for (const struct kind *const *k = kinds_all; *k; k++)
        if (str_equal((*k)->group, group) && str_equal((*k)->version, version) &&
            str_equal((*k)->plural, plural))
            return *k;
    return NULL;
}

const struct kind *kind_find_by_kind(const char *group, const char *kind)
{
    for (const struct kind *const *k = kinds_all; *k; k++)
        if (str_equal((*k)->group, group) && str_equal((*k)->kind, kind))
            return *k;
    return NULL;
}

bool kind_group_version_served(const char *group, const char *version)
{
    for (const struct kind *const *k = kinds_all; *k; k++)
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

const struct field *shape_field(const struct shape *s, const char *name)
{
    if (!s || !s->fields)
        return NULL;
    for (const struct field *f = s->fields; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}
