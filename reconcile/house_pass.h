/* The passes of house.c, one a kind of key. Each returns 0 or a negative code with *err set, and
 * may ask for its next time. Only reconcile/house*.c include it. */
#pragma once

#include "apiserver/base/loop.h"
#include "reconcile/house.h"
#include "reconcile/links.h"
#include "reconcile/pass.h"

#define HOUSE_MANAGER "sandbox-apiserver" /* in managedFields */

/* An object with nothing but its name; the caller's. */
cJSON *house_named(const char *api_version, const char *kind, const char *name);
int64_t house_deadline(const struct pass_env *env); /* of a read that begins now */
/* Has how change the object; false of it leaves the object as it is. ERR_NOT_FOUND: it is gone, or
 * another one by now. */
int house_change(const struct pass_env *env, const struct object *o,
                 bool (*how)(void *ctx, cJSON *object), void *ctx, struct err *err);
/* What was to be changed or deleted and is gone, or another one, meanwhile: as good. */
int house_forgive(int rc, struct err *err);
/* The namespace that something was to be made in is gone, or on its way out, by now: as good. Takes
 * e over. */
int house_forgive_ending(int rc, struct err *e, struct err *err);

/* Namespaces: default ServiceAccount and authority (PEM, NULL = none is told), or, on its way out,
 * its content (house_namespaces.c). */
int house_namespace_pass(const struct pass_env *env, char *authority, const char *name,
                         struct loop_result *ret, struct err *err);
/* A Pod without a node. */
int house_bind_pass(const struct pass_env *env, const char *namespace_name, const char *name,
                    struct loop_result *ret, struct err *err);
/* Events that nobody asks for any more. */
int house_events_pass(const struct pass_env *env, struct loop_result *ret, struct err *err);

/* ---- volumes (house_volumes.c); users: keys of Pods, which name the keys of their claims ---- */

/* NULL-terminated keys of the claims that a Pod uses, the caller's; NULL = none. */
char **house_claims_of(const struct object *pod);
/* *ret, the caller's, says what a Pod waits for when one of its claims has no volume. */
int house_missing_claim(const struct pass_env *env, const struct object *pod, char **ret,
                        struct err *err);
int house_claim_pass(const struct pass_env *env, struct links *users, const char *key,
                     struct err *err);
int house_volume_pass(const struct pass_env *env, const char *name, struct err *err);
/* The class of volumes that every server has. */
int house_class_pass(const struct pass_env *env, struct err *err);

/* ---- EndpointSlices (house_slices.c); selected: keys of Services, which name the keys of Pods
 * ---- */

/* What a Pod's label is called below, and the one label, of those that a Service asks for, by which
 * it is found. The caller's. */
char *house_label_key(const char *namespace_name, const char *name, const char *value);
char **house_selected_by(const struct object *service);
int house_slices_pass(const struct pass_env *env, struct links *selected, const char *key,
                      struct err *err);

/* The server's own Service and EndpointSlice (house_api.c). */
#define HOUSE_API_NAMESPACE "default"
#define HOUSE_API_NAME "kubernetes"
int house_api_pass(const struct pass_env *env, const struct house_api *api, struct err *err);
bool house_is_api(const struct object *o); /* one of them, or their namespace */

/* Roles that every server has (house_roles.c). */
int house_roles_pass(const struct pass_env *env, struct err *err);
/* Definitions of our own kinds (house_crds.c). */
int house_crds_pass(const struct pass_env *env, struct err *err);

/* ---- owners (house_owners.c) ---- */

/* owners: keys of objects, which name the uids of their owners, as the feed told; enough to know
 * whom to look at. The object as it is now, or went: look is called with the key of every object
 * that has to be looked at because of it; not under a lock. */
void owners_note(struct links *owners, const struct object *object, bool is_delete,
                 void (*look)(void *ctx, const char *key), void *ctx);
/* KIND-INDEX/NAMESPACE/NAME of an object; the caller's. */
char *owners_key(const struct object *object);
/* Does what the owners of that object, or its own finalizers orphan and foregroundDeletion, ask
 * for. */
int house_owners_pass(const struct pass_env *env, struct links *owners, const char *key,
                      struct loop_result *ret, struct err *err);
