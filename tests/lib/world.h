/* A registry over the store in memory, for tests: its clock stands still, its randomness is fixed,
 * and every call has 10 s. Helpers fail the test when a call fails that must not. */
#pragma once

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/registry.h"
#include "openapi/kinds.h"
#include "storage/memstore.h"
#include "tests/lib/suite.h"

#define WORLD_NOW_MS ((int64_t)1767323045000) /* 2026-01-02T03:04:05Z */

struct world {
    struct clock_fake clock;
    struct rand_fixed fixed;
    struct randomness randomness; /* fixed behind a lock */
    struct admit_env env;
    enum namespace_state namespace_state; /* of every namespace */
    struct store *store;
    struct registry *registry;
    struct registry_config config;
};
/* config may be NULL; its store, kinds and admit are filled in. Waits until the registry is
 * synced. */
void world_start(struct world *w, const struct registry_config *config);
void world_start_registry(
    struct world *w); /* another one on the same store, after world_stop_registry */
void world_stop_registry(struct world *w);
void world_stop(struct world *w);

int64_t world_deadline(void);
struct write_options world_opts(void);
/* A minimal Sandbox as tree; metadata is JSON text of further members, like "labels":{"a":"b"}, or
 * "". */
cJSON *world_sandbox(const char *name, const char *metadata);
cJSON *world_tree(const char *json); /* fails the test when it does not parse */
/* These fail the test unless they work; references are the caller's. world_make: of any kind,
 * members is JSON text of what stands beside apiVersion and kind, opts NULL = as world_opts. */
struct object *world_make(struct world *w, const struct kind *kind, const char *namespace_name,
                          const char *members, const struct write_options *opts);
struct object *world_create(struct world *w, const char *namespace_name, const char *name,
                            const char *metadata);
struct object *world_get(struct world *w, const char *namespace_name,
                         const char *name); /* NULL when absent */
void world_delete(struct world *w, const char *namespace_name, const char *name);
/* A merge of one level: sets the member at a dotted path below the object to that JSON ("null"
 * removes it). */
struct object *world_set(struct world *w, const char *namespace_name, const char *name,
                         const char *path, const char *json);
/* The same, with errors handed out. */
int world_try_set(struct world *w, const char *namespace_name, const char *name, const char *path,
                  const char *json, const struct write_options *opts, bool is_status,
                  struct object **ret, struct err *err);
void world_wait_rev(struct world *w, int64_t rev); /* until the cache has it */
void sleep_ms(int64_t ms);
