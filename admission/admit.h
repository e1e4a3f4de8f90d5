/* May this object become that one? The ordered steps between decoding and storing: system fields,
 * prune, default, mutate, validate metadata and table, rules, transitions, warnings. Knows kinds
 * only by their tables. Pure but for the look-ups given in admit_env; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/err.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/str.h"
#include "openapi/shape.h"

enum namespace_state { NAMESPACE_ACTIVE, NAMESPACE_TERMINATING, NAMESPACE_ABSENT };

/* What an upper layer gives: time, randomness, the state of namespaces, and what it foresees. */
struct admit_env {
    const struct clock *clock;
    const struct randomness *randomness;
    /* Errors (ERR_UNAVAILABLE ...) mean that it is not known; then the create fails. NULL = every
     * namespace is active. */
    int (*namespace_state)(void *ctx, const char *name, enum namespace_state *ret, struct err *err);
    /* The ServiceAccount of a Pod, the caller's. ERR_NOT_FOUND, or others that mean that it is not
     * known. NULL = Pods are made as they come. */
    int (*service_account)(void *ctx, const char *namespace_name, const char *name, cJSON **ret,
                           struct err *err);
    /* A warning about an object that is allowed, the caller's; NULL = none. May be NULL. */
    char *(*foresee)(void *ctx, const struct kind *kind, const cJSON *object);
    void *ctx;
};

enum admit_operation { ADMIT_CREATE, ADMIT_UPDATE };
enum field_validation { FIELD_VALIDATION_WARN, FIELD_VALIDATION_STRICT, FIELD_VALIDATION_IGNORE };
struct admit_request {
    const struct kind *kind;
    enum admit_operation operation;
    bool is_status;  /* the /status endpoint */
    bool is_scale;   /* the /scale endpoint: object is the parent, with the replicas asked for */
    bool is_applied; /* made by apply_run: its managedFields are ours, nulls are for validation */
    bool is_patch;   /* texts of strict failures differ (docs/kubernetes-api.md 22.2) */
    bool is_system;  /* written by our own reconciler: the main endpoint takes status too */
    const char *namespace_name; /* from the URL */
    const char *name;           /* from the URL; NULL on create by POST */
    const char *manager;        /* who writes, for managedFields; NULL = unknown */
    const cJSON *old;           /* with resourceVersion; NULL on create */
    enum field_validation field_validation;
    bool is_decoded; /* admit_decode() has seen the object already */
    /* Decoder findings (repeated fields), already as texts: duplicate field "spec.a"; may be
     * NULL. */
    const struct pairs *decode_findings;
};

/* The first part of admit(), for who must say so before it is known whether there is such an
 * object: is it one of that kind? Unknown members are removed, and told of as admit() does. */
int admit_decode(const struct admit_env *env, const struct admit_request *req, cJSON *object,
                 struct pairs *warnings, struct err *err);

/* Whether the object is the one that the URL names. admit() asks as well; before it, who must say
 * so before it is known whether there is one. */
int admit_check_name(const cJSON *object, const char *url_name, struct err *err);

/* Turns the tree that a client sent (or a patch produced) into the tree to store: object is changed
 * in place; its metadata.resourceVersion is left as the client sent it (the registry compares and
 * removes it). Warnings are added as names. On create uid, creationTimestamp, generation 1 and a
 * name from generateName are set. On update name, namespace, uid, creation and deletion times and
 * generation are forced to the stored ones, generation + 1 when spec changed. Errors: as
 * docs/kubernetes-api.md 13-22 says; nothing of object may be used after a failure except freeing
 * it. */
int admit(const struct admit_env *env, const struct admit_request *req, cJSON *object,
          struct pairs *warnings, struct err *err);

/* Who owns which field of a state that goes another way than through admit: the manager owns what
 * differs from before, of every endpoint. Writes object's metadata.managedFields, and nothing
 * else. */
void admit_record(const struct admit_env *env, const struct kind *kind, const char *manager,
                  const cJSON *before, cJSON *object);

/* Writes the failures of a label key (qualified name) / value as causes on field. Returns their
 * number. */
size_t name_check_label_key(const char *s, const char *field, struct err *causes);
size_t name_check_label_value(const char *s, const char *field, struct err *causes);
/* Go's unicode.IsPrint of the rune, whose bytes are s[0..n). */
bool name_is_printable(const char *s, size_t n, uint32_t rune);
/* The same of a field manager's name: at most 128 bytes, printable. */
size_t name_check_manager(const char *s, const char *field, struct err *causes);
