/* Somebody uses an object: noted with it, at most now and then, and one that sleeps is woken, each
 * in one transaction that an opposite decision made meanwhile cannot slip past. What activity means
 * to a kind is a table of functions. Any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/registry/registry.h"

enum activity {
    ACTIVITY_NONE, /* nothing to write: known already, or of no consequence */
    ACTIVITY_NOTED,
    ACTIVITY_WOKEN,
};
struct activity_ops {
    /* Changes object for it; called again on a newer one when somebody else wrote meanwhile. Errors
     * are the caller's answer. */
    int (*note)(void *ctx, cJSON *object, enum activity *ret, struct err *err);
    bool (*is_ready)(void *ctx, const cJSON *object); /* of use now: what a wait is for */
    const char *manager;                              /* in managedFields */
    void *ctx;
};
struct activity_request {
    const struct kind *kind;
    const char *namespace_name, *name;
    const struct activity_ops *ops;
    bool dry_run;
    int64_t deadline_ms;
};
/* Errors: ERR_NOT_FOUND, what note says, those of a write. */
int registry_activity(struct registry *r, const struct activity_request *req, enum activity *ret,
                      struct err *err);
/* Until the object is ready, at most to the request's deadline: then -ERR_TIMEOUT. */
int registry_await_ready(struct registry *r, const struct activity_request *req, struct err *err);
