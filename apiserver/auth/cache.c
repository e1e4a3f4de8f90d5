/* A map for the look-up, a list for the age. An entry that is being asked for is in the map only;
 * one that was dropped while somebody waits for it is in neither and freed by the last who
 * waits. */
#include "apiserver/auth/cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"

struct entry {
    struct entry *prev, *next; /* newer, older */
    char key[CACHE_KEY_SIZE];
    cJSON *value; /* NULL while pending and after a failure */
    int64_t until_ms;
    bool is_pending, is_listed, is_dropped;
    int waiting;
    enum err_code code; /* of the failure */
    char *message;
};

struct cache {
    size_t max;
    int64_t ttl_ms;
    const struct clock *clock;
    pthread_mutex_t lock; /* guards what follows and all entries */
    pthread_cond_t done;  /* some entry is no longer pending */
    struct map *entries;
    struct entry *newest, *oldest;
    size_t n_listed;
};

struct cache *cache_new(size_t max, int64_t ttl_ms, const struct clock *clock)
{
    struct cache *c = xcalloc(1, sizeof *c);
    c->max = max;
    c->ttl_ms = ttl_ms;
    c->clock = clock;
    c->entries = map_new();
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->done, NULL);
    return c;
}

static void entry_free(struct entry *e)
{
    json_free(e->value);
    free(e->message);
    free(e);
}

static void unlist(struct cache *c, struct entry *e)
{
    if (!e->is_listed)
        return;
    *(e->prev ? &e->prev->next : &c->newest) = e->next;
    *(e->next ? &e->next->prev : &c->oldest) = e->prev;
    e->prev = e->next = NULL;
    e->is_listed = false;
    c->n_listed--;
}

static void list_as_newest(struct cache *c, struct entry *e)
{
    unlist(c, e);
    e->next = c->newest;
    *(c->newest ? &c->newest->prev : &c->oldest) = e;
    c->newest = e;
    e->is_listed = true;
    c->n_listed++;
}

static void drop(struct cache *c, struct entry *e)
{
    map_del(c->entries, e->key);
    unlist(c, e);
    e->is_dropped = true;
    if (e->waiting == 0)
        entry_free(e);
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    for (struct entry *e = c->newest, *next; e; e = next) {
        next = e->next;
        entry_free(e);
    }
    map_free(c->entries);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static int answer(const struct entry *e, cJSON **ret, struct err *err)
{
    if (!e->value)
        return err_set(err, e->code, "%s", e->message);
    *ret = json_copy(e->value);
    return 0;
}

static int wait_for(struct cache *c, struct entry *e, cJSON **ret, struct err *err)
{
    e->waiting++;
    while (e->is_pending)
        pthread_cond_wait(&c->done, &c->lock);
    e->waiting--;
    int r = answer(e, ret, err);
    if (e->is_dropped && e->waiting == 0)
        entry_free(e);
    return r;
}

static struct entry *add_pending(struct cache *c, const char *key)
{
    struct entry *e = xcalloc(1, sizeof *e);
    memcpy(e->key, key, CACHE_KEY_SIZE);
    e->is_pending = true;
    map_put(c->entries, key, e);
    return e;
}

static void keep(struct cache *c, struct entry *e, cJSON *take_value)
{
    e->value = take_value;
    e->until_ms = clock_monotonic_ms(c->clock) + c->ttl_ms;
    list_as_newest(c, e);
    if (c->n_listed > c->max)
        drop(c, c->oldest);
}

static void keep_failure(struct cache *c, struct entry *e, const struct err *failure)
{
    e->code = failure->code ? failure->code : ERR_UNKNOWN;
    e->message = xstrdup(err_text(failure));
    drop(c, e);
}

/* The lock is held at the call and at the return, not while asking. */
static int ask_and_keep(struct cache *c, const char *key,
                        int (*ask)(void *, cJSON **, struct err *), void *ctx, cJSON **ret,
                        struct err *err)
{
    struct entry *e = add_pending(c, key);
    struct err failure = {0};
    cJSON *value = NULL;
    pthread_mutex_unlock(&c->lock);
    int r = ask(ctx, &value, &failure);
    pthread_mutex_lock(&c->lock);
    e->is_pending = false;
    pthread_cond_broadcast(&c->done);
    if (r < 0) {
        keep_failure(c, e, &failure);
        return err_move(err, &failure);
    }
    *ret = json_copy(value);
    keep(c, e, value);
    return 0;
}

int cache_get(struct cache *c, const char key[CACHE_KEY_SIZE],
              int (*ask)(void *, cJSON **, struct err *), void *ctx, cJSON **ret, struct err *err)
{
    int r;
    pthread_mutex_lock(&c->lock);
    struct entry *e = map_get(c->entries, key);
    if (e && !e->is_pending && clock_monotonic_ms(c->clock) >= e->until_ms) {
        drop(c, e);
        e = NULL;
    }
    if (!e) {
        r = ask_and_keep(c, key, ask, ctx, ret, err);
    } else if (e->is_pending) {
        r = wait_for(c, e, ret, err);
    } else {
        list_as_newest(c, e);
        r = answer(e, ret, err);
    }
    pthread_mutex_unlock(&c->lock);
    return r;
}

size_t cache_len(struct cache *c)
{
    pthread_mutex_lock(&c->lock);
    size_t n = c->n_listed;
    pthread_mutex_unlock(&c->lock);
    return n;
}
