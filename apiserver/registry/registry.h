/* The generic store of objects: every verb for every kind, as table + admission + storage. Holds a
 * cache of all objects (the stored bytes), fed by one watch over the whole key space; reads and
 * watches are served from it. A write is acknowledged when this cache has it. Any thread; reads
 * never block on storage except where said; writes block up to the deadline. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "admission/admit.h"
#include "apiserver/base/err.h"
#include "apiserver/registry/object.h"
#include "apiserver/registry/select.h"
#include "openapi/shape.h"
#include "storage/store.h"

struct registry;
struct bind_ops; /* bind.h */
struct registry_config {
    struct store *store;             /* borrowed */
    const struct kind *const *kinds; /* ended by NULL */
    const struct admit_env *admit;   /* borrowed */
    const char *prefix;              /* of keys; NULL = "/registry/" */
    size_t history_events;           /* kept for resuming watches, per kind; 0 = 10,000 */
    size_t history_bytes;            /* and at most so many bytes; 0 = 16 MiB */
    int64_t bookmark_period_ms;      /* 0 = 60,000 */
    const struct bind_ops *bind;     /* borrowed; NULL = claims are stored as they come */
    /* The fence of a write did not hold: who wrote leads no more. On the writer's thread. May be
     * NULL. */
    void (*on_fenced)(void *ctx);
    void *fence_ctx;
};
struct registry *registry_new(const struct registry_config *config);
/* Loads the cache on threads of its own; returns at once. */
void registry_start(struct registry *r);
/* Ends every watch cleanly, then the threads. */
void registry_stop(struct registry *r);
void registry_free(struct registry *r);
/* The cache is loaded and its link to the store works; for readyz. */
bool registry_is_synced(struct registry *r);
int64_t
registry_revision(const struct registry *r); /* newest revision in the cache; 0 = none yet */

/* ---- reads: ERR_UNAVAILABLE while the cache is not loaded, never 404 or an empty list then ----
 */

/* How fresh a read must be. */
enum read_match {
    READ_LATEST /* linearizable */,
    READ_ANY /* resourceVersion=0 */,
    READ_AT_LEAST,
    READ_EXACT
};
struct read_version {
    enum read_match match;
    int64_t rev; /* for AT_LEAST and EXACT */
};
/* ret is a new reference. ERR_NOT_FOUND with details; ERR_TIMEOUT (ResourceVersionTooLarge) when
 * rev does not come in 3 s. */
int registry_get(struct registry *r, const struct kind *kind, const char *namespace_name,
                 const char *name, struct read_version version, int64_t deadline_ms,
                 struct object **ret, struct err *err);

struct list_request {
    const struct kind *kind;
    const char *namespace_name;      /* NULL or "" = all namespaces */
    const struct selector *selector; /* NULL = everything */
    struct read_version version;
    int64_t limit;              /* 0 = all */
    const char *continue_token; /* NULL or "" = from the start */
    int64_t deadline_ms;
};
struct list_result {         /* starts as {0} */
    struct object **objects; /* references */
    size_t n;
    int64_t rev;          /* metadata.resourceVersion */
    char *continue_token; /* NULL on the last page */
    int64_t remaining;    /* remainingItemCount; -1 = unknown (there is a selector) */
};
int registry_list(struct registry *r, const struct list_request *req, struct list_result *ret,
                  struct err *err);
void list_result_fini(struct list_result *l);

/* ---- watch ---- */

enum watch_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };
struct watch_event { /* starts as {0}; watch_event_fini */
    enum watch_type type;
    struct object *object; /* reference; NULL for BOOKMARK and ERROR */
    int64_t rev;           /* of a bookmark */
    bool is_initial_end;   /* bookmark that ends the initial events */
    struct err err;        /* of an ERROR event; the watch ends after it */
};
void watch_event_fini(struct watch_event *e);
struct watch_request {
    const struct kind *kind;
    const char *namespace_name; /* NULL or "" = all */
    struct selector *
        take_selector; /* NULL = everything; owned by the watch from the call on, also on failure */
    bool send_initial; /* the present objects as ADDED first */
    bool send_initial_end;       /* then the marker bookmark */
    struct read_version version; /* with send_initial: how fresh; without: AT_LEAST rev = events
                                    after rev; LATEST/ANY = from now */
    bool bookmarks;
    bool is_prompt;      /* told of every change at once, however many others watch */
    int64_t timeout_ms;  /* the watch ends by itself; 0 = never (in-process use) */
    int64_t deadline_ms; /* of the call itself */
};
struct watch;
/* wake is called (on a registry thread, must not block or call back) whenever watch_next may have
 * something new: once after watch_next said 0, and when the watch is over. It may be NULL. Do not
 * hold a lock that wake takes while calling watch_close, which waits for a wake that runs. Close
 * every watch before registry_free. */
int registry_watch(struct registry *r, const struct watch_request *req, void (*wake)(void *ctx),
                   void *ctx, struct watch **ret, struct err *err);
/* 1 = *ret filled, 0 = nothing now, -1 = the watch is over (time-out, cut off as too slow,
 * shutdown). Never blocks. */
int watch_next(struct watch *w, struct watch_event *ret);
/* Changes that are there, one after the other and without a reference to each, until put says
 * false or something else is next; then watch_next goes on. put runs with a lock held: it must be
 * quick, and call nothing of the registry but object_write. */
void watch_each_change(struct watch *w,
                       bool (*put)(void *ctx, enum watch_type type, const struct object *o),
                       void *ctx);
void watch_close(struct watch *w); /* after it returns wake is not called any more; frees */

/* ---- writes ---- */

/* What a writer may not, although he may write the object. Asked of every state on its way to the
 * store, perhaps more than once: old is what is there (NULL = the object is made), object what it
 * becomes (NULL = it is deleted), which check may add to. 0, or the negative of the code in err. */
struct write_guard {
    int (*check)(void *ctx, const struct kind *kind, const cJSON *old, cJSON *object,
                 struct err *err);
    void *ctx;
};

struct write_options {
    bool dry_run;
    const char *field_manager; /* may be NULL; kept for managedFields */
    enum field_validation field_validation;
    const struct pairs *decode_findings; /* see admit_request */
    bool is_system;                      /* our own reconciler writes */
    const struct store_compare
        *fence; /* extra compare of every transaction (the leader's lease); NULL = none */
    const struct write_guard *guard; /* borrowed; NULL = none */
    struct pairs *warnings;          /* out, may be NULL */
    int64_t deadline_ms;
};
/* ERR_FORBIDDEN/ERR_NOT_FOUND namespace, ERR_ALREADY_EXISTS, ERR_INVALID, ... Takes object over.
 * ret is a new reference; with dry_run it has no revision (rev 0). */
int registry_create(struct registry *r, const struct kind *kind, const char *namespace_name,
                    cJSON *take_object, const struct write_options *opts, struct object **ret,
                    struct err *err);

/* Read, change, write, again from the start when somebody else wrote in between. change gets the
 * stored tree (with resourceVersion) and returns the new one (owned by the registry). */
struct update_request {
    const struct kind *kind;
    const char *namespace_name, *name;
    bool is_status;  /* the /status endpoint: only status is taken */
    bool is_scale;   /* the /scale endpoint, for managedFields: only replicas were changed */
    bool is_patch;   /* the result comes from a patch */
    bool is_applied; /* by apply: see admit_request */
    cJSON *sent; /* a whole object: decoded, and refused under another name, before anything is read
                  */
    int (*change)(void *ctx, const cJSON *old, cJSON **ret, struct err *err);
    /* Of what is not there change gets NULL and makes the object; asked whether it may, once it is
     * known to be right. NULL = what is not there is ERR_NOT_FOUND. */
    int (*may_create)(void *ctx, struct err *err);
    void *ctx;
    bool *ret_created; /* out; needed with may_create */
};
/* ret: the stored (or would-be) object, a new reference. An update that leaves a terminating object
 * without finalizers deletes it. A result equal to the stored object writes nothing. ERR_CONFLICT
 * when the new tree names another resourceVersion. */
int registry_update(struct registry *r, const struct update_request *req,
                    const struct write_options *opts, struct object **ret, struct err *err);

/* Server-side apply. */
struct apply_request {
    const struct kind *kind;
    const char *namespace_name, *name;
    const char *subresource;      /* "", "status" or "scale" */
    const cJSON *patch;           /* any tree */
    const struct pairs *repeated; /* keys that came twice, as texts: line 1: key "a" ... */
    bool force;
    int (*may_create)(void *ctx, struct err *err); /* as in update_request; not for subresources */
    void *ctx;
};
/* ret: the object (of a scale, its parent) as it is now. ERR_CONFLICT with a cause per field that
 * others own. */
int registry_apply(struct registry *r, const struct apply_request *req,
                   const struct write_options *opts, struct object **ret, bool *ret_created,
                   struct err *err);

/* The object on whose account another one is deleted, at the version that said so. */
struct delete_reason {
    const struct kind *kind;
    const char *namespace_name, *name;
    int64_t rev;
};
struct delete_options {
    const char *uid, *resource_version; /* preconditions, NULL = none */
    const char *propagation;            /* Background, Foreground, Orphan; NULL = default */
    int orphan_dependents;              /* -1 = not given, else 0/1 */
    bool has_grace;  /* grace_s was given; counts for kinds that end with grace only */
    int64_t grace_s; /* seconds, not negative */
    bool dry_run;
    const struct delete_reason *reason; /* ERR_CONFLICT when it changed; NULL = none */
    const struct write_guard *guard;    /* borrowed; NULL = none */
    const struct store_compare *fence;
    int64_t deadline_ms;
};
/* *ret_deleted tells whether the object is gone (Status Success) or now terminating; ret is its
 * last state, a new reference. */
int registry_delete(struct registry *r, const struct kind *kind, const char *namespace_name,
                    const char *name, const struct delete_options *opts, struct object **ret,
                    bool *ret_deleted, struct err *err);
/* Each item by registry_delete; gone ones are skipped. ret holds what was found before. */
int registry_delete_collection(struct registry *r, const struct list_request *list,
                               const struct delete_options *opts, struct list_result *ret,
                               struct err *err);
