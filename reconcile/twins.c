#include "reconcile/twins.h"

#include <pthread.h>
#include <stdlib.h>

#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "reconcile/child.h"

struct twins {
    pthread_mutex_t lock;
    struct map *busy; /* NAMESPACE/HASH -> the twins themselves: a set */
};

struct twins *twins_new(void)
{
    struct twins *t = xcalloc(1, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    t->busy = map_new();
    return t;
}

void twins_free(struct twins *t)
{
    if (!t)
        return;
    map_free(t->busy);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static char *place(const cJSON *sandbox)
{
    char hash[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    return xasprintf("%s/%s", meta_namespace(sandbox), hash);
}

bool twins_enter(struct twins *t, const cJSON *sandbox)
{
    SCOPED_FREE char *key = place(sandbox);
    pthread_mutex_lock(&t->lock);
    bool is_free = !map_get(t->busy, key);
    if (is_free)
        map_put(t->busy, key, t);
    pthread_mutex_unlock(&t->lock);
    return is_free;
}

void twins_leave(struct twins *t, const cJSON *sandbox)
{
    SCOPED_FREE char *key = place(sandbox);
    pthread_mutex_lock(&t->lock);
    map_del(t->busy, key);
    pthread_mutex_unlock(&t->lock);
}
