/* The inside of the registry, shared by its files only: a table of objects per kind with the
 * history of its latest changes, and the revision that all tables have reached.
 *
 * Who writes: the store's watch thread (changes), the sync thread (loading). Everybody reads. Each
 * table has one lock; the registry's mutex guards revision and flags. Order: a table's lock and the
 * mutex are never held together, and no callback runs under either. */
#pragma once

#include <pthread.h>

#include "apiserver/base/map.h"
#include "apiserver/registry/alias.h"
#include "apiserver/registry/registry.h"

/* One change of one object. Every object that is no longer live is the before of a change. */
struct change {
    int64_t rev;
    struct object
        *now; /* a put: the new state; a delete: the last state at the deletion's revision */
    struct object *before; /* NULL = there was none */
    bool is_delete;
};

struct table {
    struct registry *registry;
    const struct kind *kind;
    char *prefix; /* of its keys: /registry/GROUP/PLURAL/ */

    pthread_rwlock_t lock;   /* guards all below */
    struct omap *objects;    /* NAMESPACE/NAME → struct object; holds references */
    size_t object_bytes;     /* JSON of those */
    struct omap *unreadable; /* NAMESPACE/NAME → "" for stored bytes that are no object: never told
                                as absent */
    struct change *ring;     /* the newest changes in order of revision */
    size_t ring_first, ring_n, ring_cap;
    uint64_t first_seq; /* number of the oldest change in the ring; the newest is first_seq + ring_n
                           - 1 */
    size_t ring_bytes;
    int64_t history_since; /* every change with a greater revision is in the ring */
    int64_t last_change;   /* revision of the newest change; at loading, of the load */
    struct omap *
        replay; /* while history before the load arrives: NAMESPACE/NAME → state there; else NULL */
    int64_t replay_since;  /* then: the newest revision that the ring could not keep */
    struct watch *watches; /* list, newest first */
    size_t n_watches;
    uint64_t n_told; /* atomic: events that watches took and table_measure has not counted yet */
    /* The wave that tells many watches in turns (watch.c). */
    struct watch *wave;   /* who is next; NULL = the first of the list */
    size_t wave_left;     /* who has not been told of the newest change; 0 = no wave runs */
    int64_t wave_at_ms;   /* when it has come as far as it is */
    int64_t told_till_ms; /* before that, not everybody is told at once again */
};

struct fresh { /* shared asking for the store's revision; see fresh.c */
    uint64_t n_started, n_finished;
    bool is_in_flight;
    bool is_cut; /* the one that ended last had less time than any may take */
    int64_t rev;
    struct err err;
};

/* What the timer thread does for watches. */
enum watch_timer {
    WATCH_WAVES, /* changes that are told in turns */
    WATCH_TICKS, /* bookmarks and time-outs */
    WATCH_TIMERS
};

struct bind; /* bind.c: the index of candidates for claims */

struct registry {
    struct store *store;
    struct bind *bind; /* NULL = claims are stored as they come */
    const struct admit_env *admit;
    void (*on_fenced)(void *ctx); /* see registry_config */
    void *fence_ctx;
    char *prefix;
    size_t history_events, history_bytes;
    int64_t bookmark_period_ms;
    struct table *tables;
    size_t n_tables;

    pthread_mutex_t mutex;          /* guards all below but rev, which is also read without it */
    pthread_cond_t moved;           /* a flag changed, or the asking of fresh ended */
    pthread_cond_t timer;           /* of the timer thread: timer_at_ms or is_stopping changed */
    int64_t rev;                    /* atomic: every change up to it is in the tables */
    struct rev_waiter *rev_waiters; /* those who wait for a greater one */
    int64_t
        loaded_rev;   /* the load's; written by the sync thread, which reads it without the mutex */
    bool is_loaded;   /* the tables hold something */
    bool has_history; /* changes before the load have arrived */
    bool is_link_up, is_lost, is_stopping;
    int64_t lost_compact_rev;
    struct fresh fresh;
    int64_t timer_at_ms[WATCH_TIMERS]; /* when the timer thread looks again */

    /* Of the sync thread, and of the store's watch thread while it follows. */
    int64_t watch_loaded_rev, watch_since; /* changes up to the first fill the history; the watch
                                              began behind the second */
    bool is_replaying;

    pthread_t sync_thread, timer_thread;
    bool is_started;
};

/* ---- keys (keys.c) ---- */
struct table *registry_table(const struct registry *r,
                             const struct kind *kind); /* never NULL for a configured kind */
char *key_of_item(const char *namespace_name, const char *name); /* NAMESPACE/NAME or NAME; owned */
char *key_of_object(const struct table *t, const char *namespace_name,
                    const char *name); /* of the store; owned */
/* The first table that has the key, from *index on, which is moved behind it; NULL = no more. */
struct table *key_table(const struct registry *r, const char *key, size_t *index,
                        const char **ret_item);
void deadline_default(int64_t *deadline_ms); /* 0 becomes 30 s from now */

/* ---- errors (refuse.c); each returns -code ---- */
int refuse_not_found(const struct kind *kind, const char *name, struct err *err);
int refuse_unreadable(const struct kind *kind, const char *what, struct err *err);
int refuse_not_ready(const struct kind *kind, struct err *err);
int refuse_conflict(const struct kind *kind, const char *name, struct err *err, const char *fmt,
                    ...) __attribute__((format(printf, 4, 5)));
int refuse_modified(const struct kind *kind, const char *name, struct err *err);
int refuse_exists(const struct kind *kind, const char *name, bool is_terminating, bool is_generated,
                  struct err *err);
int refuse_too_large_rev(int64_t rev, int64_t current, struct err *err);
/* What the store said becomes what the client is told: not reached or no answer is a ServerTimeout
 * of op. */
int refuse_store(const struct kind *kind, const char *op, struct err *store_err, struct err *err);

/* ---- tables (cache.c); the caller holds the table's lock for writing, or is alone ---- */
void table_init(struct table *t, struct registry *r, const struct kind *kind);
void table_measure(struct table *t); /* brings its metrics up to date; takes the lock itself */
void table_fini(struct table *t);
/* A state of the load; replaces what is there. */
void table_put_loaded(struct table *t, const char *item, struct object *take_object);
void table_put_unreadable(struct table *t, const char *item);
void table_clear(struct table *t, int64_t rev); /* before a load at rev: no objects, no history */
/* A change after the load; steals the event's value. Returns the change, in the ring, or NULL when
 * it is none. */
const struct change *table_apply(struct table *t, const char *item, struct store_event *e);
/* A change before the load: only fills the ring. end_replay tells that all greater than since came.
 */
void table_replay(struct table *t, const char *item, struct store_event *e);
void table_restart_replay(struct table *t);
void table_end_replay(struct table *t, int64_t since);
const struct change *table_change(const struct table *t,
                                  uint64_t seq); /* first_seq <= seq < first_seq + ring_n */
uint64_t table_seq_after(const struct table *t,
                         int64_t rev); /* of the first change with a greater revision */
/* The change by which an object of that key was written after rev with that uid and, unless json is
 * NULL, those bytes; or, with is_delete, by which it was deleted when it was at rev. 0 = the
 * history knows none. */
int64_t table_find_write(const struct table *t, const char *namespace_name, const char *name,
                         int64_t rev, const char *uid, const char *json, bool is_delete);
/* The revision at which the table is complete and exact now; with the lock held for reading. */
int64_t table_rev(const struct table *t);

/* ---- revision (fresh.c) ---- */
void registry_move(struct registry *r, int64_t rev); /* the tables have reached it */
/* Those who wait for that revision or an earlier one look again; the mutex is held. */
void wake_rev_waiters(struct registry *r, int64_t rev);
/* Waits until the cache has rev: 0; -ERR_TIMEOUT without text at until_ms, -ERR_CANCELLED when
 * stopping. */
int registry_wait_rev(struct registry *r, int64_t rev, int64_t until_ms);
int registry_wait_loaded(struct registry *r, const struct kind *kind,
                         struct err *err); /* does not wait: ERR_UNAVAILABLE */
int registry_wait_history(struct registry *r, const struct kind *kind, int64_t until_ms,
                          struct err *err);
/* Waits until the cache is as fresh as asked; op names the operation in errors. */
int registry_reach(struct registry *r, const struct kind *kind, const char *op,
                   struct read_version version, int64_t deadline_ms, struct err *err);
#define REV_WAIT_MS 3000 /* for a revision of the future. Source: kube-apiserver's watch cache */

/* ---- following the store (sync.c) ---- */
void *sync_run(void *registry);

/* ---- watches (watch.c) ---- */
struct wake_list { /* starts as {0} */
    struct watch **v;
    size_t n, cap;
    bool has_wave; /* one has begun: the timer thread goes on with it */
};
/* After a change was put into the ring, with the table's lock held for writing: who has to be
 * woken. */
void watches_note(struct table *t, struct wake_list *wake);
/* Wakes them, without any lock, and empties the list. */
void wake_list_run(struct registry *r, struct wake_list *wake);
/* With the table's lock held for writing: its watches end with 410, for their position is lost; rev
 * = the new load's. */
void watches_expire(struct table *t, int64_t rev, struct wake_list *wake);
void watches_end(struct registry *r); /* every watch ends cleanly */
void *watch_timer_run(void *registry);

/* ---- writing (commit.c) ---- */
enum commit_outcome { COMMITTED, COMMIT_RACED, COMMIT_BESIDE_RACED };
/* An object of another kind that is changed in the same transaction, both or neither, or on which
 * the change depends. */
struct commit_beside {
    struct table *table;
    const char *namespace_name, *name;
    const char *json;
    size_t json_len;
    int64_t seen_rev;
    bool is_kept; /* it must be at seen_rev, and is not written */
};
struct commit {
    struct registry *registry;
    struct table *table;
    const char *op; /* create update delete, for errors */
    const char *namespace_name, *name, *uid;
    const char *json; /* NULL = delete */
    size_t json_len;
    const char *stored; /* set by commit_run: the same as the store holds it */
    size_t stored_len;
    int64_t seen_rev;                   /* the key must be at it; 0 = absent */
    const struct commit_beside *beside; /* NULL = none */
    const struct store_compare *fence;
    int64_t deadline_ms;
};
/* One transaction, carried to a certain end: an unknown outcome is read back. Returns the outcome,
 * or the negative of an error's code; that the fence does not hold is an error. COMMITTED: at
 * ret_rev; the cache need not have it yet. COMMIT_RACED: somebody else wrote; ret_current
 * ({0}-started) is what is there, key NULL = nothing. COMMIT_BESIDE_RACED: the object itself is as
 * it was seen, the one beside it is not. */
int commit_run(const struct commit *c, int64_t *ret_rev, struct store_kv *ret_current,
               struct err *err);
/* Waits a while until the cache has that revision; a write that was done stays done when it does
 * not come. 0 = none. */
void commit_wait(struct registry *r, int64_t rev, int64_t deadline_ms);
/* The object as it is: from the cache, or read from the store. ERR_NOT_FOUND with details. */
int current_cached(struct registry *r, struct table *t, const char *namespace_name,
                   const char *name, struct object **ret);
int current_stored(struct registry *r, struct table *t, const char *op, const char *namespace_name,
                   const char *name, int64_t deadline_ms, struct object **ret, struct err *err);
/* What a lost race left behind, as object; ERR_NOT_FOUND when nothing. Takes kv's value. */
int current_of_race(struct table *t, const char *name, struct store_kv *kv, struct object **ret,
                    struct err *err);
/* ---- binding (bind.c); all take NULL for "no binding" ---- */
struct bind_ops;
struct bind *bind_new(const struct bind_ops *ops);
void bind_free(struct bind *b);
/* A change of that table, which the tables have already; the store's watch thread. */
void bind_note(struct bind *b, const struct table *t, const char *item, const struct change *c);
void bind_reload(struct bind *b, const struct registry *r); /* after a load; the sync thread */

/* An update of what is not there (create.c): object, which is used up, is admitted and stored.
 * 0 = stored, 1 = somebody else made it meanwhile. */
struct missing {
    struct registry *registry;
    struct table *table;
    const struct update_request *req;
    const struct write_options *opts;
    int64_t deadline_ms;
    struct pairs *warnings;
};
int create_missing(const struct missing *m, cJSON *object, struct object **ret, struct err *err);
int ask_guard(const struct write_guard *guard, const struct kind *kind, const cJSON *old,
              cJSON *object, struct err *err); /* NULL has nothing against it */
/* Something other than finalizers keeps it although it is deleted. */
bool object_is_held(const struct kind *kind, const cJSON *tree);
char *object_print_stored(cJSON *tree,
                          size_t *ret_len); /* sorts tree and drops its resourceVersion */
