#include "reconcile/links.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/base/thread.h"

struct links {
    pthread_mutex_t lock;
    struct map *keys;  /* name -> omap of the keys that name it */
    struct map *names; /* key -> NULL-terminated names */
};

struct links *links_new(void)
{
    struct links *l = xcalloc(1, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    l->keys = map_new();
    l->names = map_new();
    return l;
}

static bool free_keys(void *ctx, const char *name, void *value)
{
    (void)ctx, (void)name;
    omap_free(value);
    return true;
}

static bool free_names(void *ctx, const char *key, void *value)
{
    (void)ctx, (void)key;
    strv_free(value);
    return true;
}

void links_free(struct links *l)
{
    if (!l)
        return;
    map_each(l->keys, free_keys, NULL);
    map_each(l->names, free_names, NULL);
    map_free(l->keys);
    map_free(l->names);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static bool are_same(char *const *a, char *const *b)
{
    if (!a || !b)
        return a == b;
    for (; *a && *b; a++, b++)
        if (strcmp(*a, *b) != 0)
            return false;
    return !*a && !*b;
}

/* Lock held, in the next two. */
static void unlink_one(struct links *l, const char *name, const char *key)
{
    struct omap *keys = map_get(l->keys, name);
    if (!keys)
        return;
    (void)omap_del(keys, key);
    if (omap_len(keys) > 0)
        return;
    map_del(l->keys, name);
    omap_free(keys);
}

static void link_one(struct links *l, const char *name, const char *key)
{
    struct omap *keys = map_get(l->keys, name);
    if (!keys) {
        keys = omap_new();
        map_put(l->keys, name, keys);
    }
    omap_put(keys, key, l);
}

bool links_set(struct links *l, const char *key, char **take_names)
{
    pthread_mutex_lock(&l->lock);
    char **before = map_get(l->names, key);
    bool is_same = are_same(before, take_names);
    for (size_t i = 0; !is_same && before && before[i]; i++)
        unlink_one(l, before[i], key);
    for (size_t i = 0; !is_same && take_names && take_names[i]; i++)
        link_one(l, take_names[i], key);
    if (!is_same && take_names)
        map_put(l->names, key, take_names);
    else if (!is_same)
        map_del(l->names, key);
    pthread_mutex_unlock(&l->lock);
    strv_free(is_same ? take_names : before);
    return !is_same;
}

static bool copy_key(void *ctx, const char *key, void *value)
{
    (void)value;
    strv_add(ctx, xstrdup(key));
    return true;
}

char **links_to(struct links *l, const char *name)
{
    char **keys = NULL;
    pthread_mutex_lock(&l->lock);
    struct omap *of = map_get(l->keys, name);
    if (of)
        omap_each(of, NULL, copy_key, &keys);
    pthread_mutex_unlock(&l->lock);
    return keys;
}
