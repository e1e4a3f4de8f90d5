/* The rules of claims for the registry, which binds a new claim inside its POST: struct bind_ops
 * made of claim.h. The same table serves the reconciler's own bindings, so both judge by one
 * measure. Any thread, on every server. */
#pragma once

#include "apiserver/base/clock.h"
#include "apiserver/registry/bind.h"
#include "reconcile/claim.h"

struct claim_binder {    /* lives as long as the registry */
    struct bind_ops ops; /* for registry_config.bind */
    struct claim_settings settings;
    const struct clock *clock;
};
void claim_binder_init(struct claim_binder *b, const struct claim_settings *settings,
                       const struct clock *clock);
/* Why the claim is not to take that member: NULL = it may. template NULL = it could not be read;
 * then only pools that never recreate give their members. A member that is not what the template
 * says now is never taken. */
const char *claim_staleness(const cJSON *pool, const cJSON *template, const cJSON *member);
