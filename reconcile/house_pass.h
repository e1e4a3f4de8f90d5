/* The passes of house.c, one a kind of key. Each returns 0 or a negative code with *err set, and
 * may ask for its next time. Only reconcile/house*.c include it. */
#pragma once

#include "apiserver/base/loop.h"
#include "reconcile/pass.h"

#define HOUSE_MANAGER "sandbox-apiserver" /* in managedFields */

/* An object with nothing but its name; the caller's. */
cJSON *house_named(const char *api_version, const char *kind, const char *name);
/* What was to be changed or deleted and is gone, or another one, meanwhile: as good. */
int house_forgive(int rc, struct err *err);

/* Namespaces: default ServiceAccount, or, on its way out, its content. */
int house_namespace_pass(const struct pass_env *env, const char *name, struct loop_result *ret,
                         struct err *err);
/* A Pod without a node. */
int house_bind_pass(const struct pass_env *env, const char *namespace_name, const char *name,
                    struct loop_result *ret, struct err *err);
/* Events that nobody asks for any more. */
int house_events_pass(const struct pass_env *env, struct loop_result *ret, struct err *err);

/* Roles that every server has (house_roles.c). */
int house_roles_pass(const struct pass_env *env, struct err *err);
/* Definitions of our own kinds (house_crds.c). */
int house_crds_pass(const struct pass_env *env, struct err *err);

/* ---- owners (house_owners.c) ---- */

/* Who belongs to whom, as the feed told: enough to know whom to look at. Any thread. */
struct owners;
struct owners *owners_new(void);
void owners_free(struct owners *o);
/* The object as it is now, or went. look is called with the key of every object that has to be
 * looked at because of it; not under a lock. */
void owners_note(struct owners *o, const struct object *object, bool is_delete,
                 void (*look)(void *ctx, const char *key), void *ctx);
/* KIND-INDEX/NAMESPACE/NAME of an object; the caller's. */
char *owners_key(const struct object *object);
/* Does what the owners of that object, or its own finalizers orphan and foregroundDeletion, ask
 * for. */
int house_owners_pass(const struct pass_env *env, struct owners *o, const char *key,
                      struct loop_result *ret, struct err *err);
