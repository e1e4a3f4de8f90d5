/* Keys of the store: PREFIX GROUP / PLURAL / NAMESPACE / NAME, without the namespace for what has
 * none. Names reach here checked (admission/names.c) or are only looked up, so nothing in them can
 * break a key into another shape: no object's key contains a further slash, and a look-up that does
 * finds nothing. */
#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/registry/cache.h"

struct table *registry_table(const struct registry *r, const struct kind *kind)
{
    for (size_t i = 0; i < r->n_tables; i++)
        if (r->tables[i].kind == kind)
            return &r->tables[i];
    abort(); /* our own mistake: the kind is not among registry_config.kinds */
}

char *key_of_item(const char *namespace_name, const char *name)
{
    if (!namespace_name || namespace_name[0] == '\0')
        return xstrdup(name);
    return xasprintf("%s/%s", namespace_name, name);
}

char *key_of_object(const struct table *t, const char *namespace_name, const char *name)
{
    SCOPED_FREE char *item = key_of_item(namespace_name, name);
    return xasprintf("%s%s", t->prefix, item);
}

struct table *key_table(const struct registry *r, const char *key, size_t *index,
                        const char **ret_item)
{
    while (*index < r->n_tables) {
        struct table *t = &r->tables[(*index)++];
        if (!str_has_prefix(key, t->prefix))
            continue;
        *ret_item = key + strlen(t->prefix);
        return t;
    }
    return NULL;
}

void deadline_default(int64_t *deadline_ms)
{
    if (*deadline_ms == 0)
        *deadline_ms = clock_monotonic_ms(&clock_system) + 30000;
}
