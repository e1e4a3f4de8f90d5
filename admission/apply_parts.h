/* The parts of apply, shared by its files only: conflicts, the annotation of kubectl's client-side
 * apply, scales. One thread at a time. */
#pragma once

#include "admission/apply.h"
#include "admission/managers.h"

/* ---- apply.c ---- */
int apply_check_type(const cJSON *patch, const char *version, const char *kind, struct err *err);
int apply_check_managers(const cJSON *patch, struct err *err); /* a patch names no managers */
/* what is "patch" or "live", for the text. */
int apply_check_fits(const cJSON *tree, const struct shape *shape, const char *what,
                     bool may_repeat, struct err *err);
void apply_set_managers(struct managers *m, cJSON *object);

/* ---- conflicts.c: fields that others own and that change ---- */
struct conflict {
    const struct manager *manager;
    const struct fieldset *fields;
};
struct conflicts { /* starts with its arena */
    struct arena *arena;
    struct conflict *v;
    size_t n, cap;
};
void conflicts_add(struct conflicts *c, const struct manager *manager,
                   const struct fieldset *fields);
void conflicts_allow(struct conflicts *c, const struct fieldset *allowed); /* these are none */
/* 0 when there is none, else -ERR_CONFLICT with a cause per field. version is shown for
 * updaters. */
int conflicts_refuse(struct conflicts *c, const char *version, struct err *err);

/* ---- last_applied.c ---- */
/* Who renews the annotation, and may overwrite what it shows as applied. Source:
 * docs/kubernetes-api.md 28.6. */
#define LAST_APPLIED_MANAGER "kubectl"
/* Fields that the live object has as its annotation shows them are no conflicts. */
void last_applied_allow(struct conflicts *conflicts, const cJSON *live, const struct shape *shape);
/* Where the object has the annotation, it becomes the patch. */
void last_applied_renew(cJSON *object, const cJSON *patch);

/* ---- scale_managers.c ---- */
int apply_run_scale(const struct apply *a, const cJSON *patch, const cJSON *parent, cJSON **ret,
                    struct err *err);
/* A scale was written to the parent: replicas change owner. The writer's entry has no time. Source:
 * apimachinery's ScaleHandler; recorded. */
void scale_record(struct managers *m, const struct kind *kind, const char *writer,
                  const char *version, int64_t before, int64_t after);
