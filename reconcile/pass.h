/* What the passes of every controller share: where they read and write, the leader's fence on each
 * write, events, and errors that add up. Knows no kind. Any thread. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/rand.h"
#include "apiserver/registry/registry.h"
#include "reconcile/cluster.h"
#include "reconcile/event.h"
#include "reconcile/step.h"

#define PASS_TIMEOUT_MS 10000 /* for one read or write of the registry */

struct pass_env { /* all borrowed */
    struct registry *registry;
    struct cluster *cluster;
    const struct clock *clock;
    const struct randomness *randomness;
    /* The compare that every write carries; false when this process does not lead (then nothing is
     * written). NULL = no leader needed. */
    bool (*fence)(void *ctx, struct store_compare *ret);
    void *ctx;
};
bool pass_leads(const struct pass_env *env); /* writes have a chance now */

/* ---- keys: NAMESPACE/NAME ---- */

char *pass_key(const char *namespace_name, const char *name); /* the caller's */
/* The name's place in key; *ret_namespace is the caller's. */
const char *pass_key_split(const char *key, char **ret_namespace);

/* ---- objects of ours ---- */

/* From the cache. 0 with *ret NULL when there is none; else a new reference. */
int pass_get(const struct pass_env *env, const struct kind *kind, const char *namespace_name,
             const char *name, struct object **ret, struct err *err);
/* Writes as the system, with the fence. -ERR_CANCELLED when this process does not lead. ret may be
 * NULL, else a new reference. */
int pass_create(const struct pass_env *env, const struct kind *kind, const char *namespace_name,
                cJSON *take_object, const char *field_manager, struct object **ret,
                struct err *err);
/* The same unless it is there already; nothing is read back. */
int pass_ensure(const struct pass_env *env, const struct kind *kind, const char *namespace_name,
                cJSON *take_object, const char *field_manager, struct err *err);
struct pass_update {
    const struct kind *kind;
    const char *namespace_name, *name;
    const char *uid; /* another one is -ERR_NOT_FOUND; NULL = any */
    /* Changes the tree in place; false = leave it as it is. */
    bool (*change)(void *ctx, cJSON *object);
    void *ctx;
    /* The present object must be at this resourceVersion, else -ERR_CONFLICT; NULL = whatever is
     * there now is changed. */
    const char *resource_version;
    const char *field_manager;
};
int pass_update(const struct pass_env *env, const struct pass_update *update, struct object **ret,
                struct err *err);
struct pass_delete {
    const struct kind *kind;
    const char *namespace_name, *name;
    const char *uid, *resource_version; /* preconditions (-ERR_CONFLICT); NULL = none */
    const char *propagation;            /* NULL = default */
    const struct delete_reason *reason; /* whose change is -ERR_CONFLICT; NULL = none */
};
int pass_delete(const struct pass_env *env, const struct pass_delete *del, struct err *err);

/* ---- children in the cluster ---- */

/* 0 with *ret the child as it is now (NULL after a delete), or a negative code with *err set;
 * -ERR_CONFLICT for a refusal. */
int pass_carry_out(const struct pass_env *env, enum child child, const char *namespace_name,
                   const struct step *s, cJSON **ret, struct err *err);

/* ---- events ---- */

/* controller: reportingController. */
void pass_tell(const struct pass_env *env, const cJSON *regarding, const struct event_text *text,
               const char *controller);

/* ---- errors (G7) ---- */

struct pass_errors { /* starts as {0}; pass_errors_fini */
    struct buf text; /* joined by newlines */
    unsigned n;
};
void pass_errors_add(struct pass_errors *e, const char *prefix, const char *text);
void pass_errors_fini(struct pass_errors *e);
/* The cluster or the store did not answer, or not certainly: nothing may be concluded from it. */
bool pass_is_link_error(enum err_code code);
