/* Which authorities and header names count: from the cluster's ConfigMap, followed while it
 * changes, or given. Any thread. */
#pragma once

#include "apiserver/auth/auth.h"
#include "apiserver/auth/cert.h"

/* One consistent set. Constant, counted. */
struct settings {
    int refs;                                    /* under the lock of whoever hands it out */
    struct bundle *client_ca, *requestheader_ca; /* NULL = none */
    /* NULL-terminated */
    char **allowed_names; /* none = any */
    char **username_headers, **uid_headers, **group_headers, **extra_prefixes;
};

struct config;
/* Errors: ERR_INVALID, ERR_NOT_FOUND for files. */
int config_new(const struct auth_config *from, struct config **ret, struct err *err);
/* Begins to follow the ConfigMap, unless nothing is needed from it. */
void config_start(struct config *c);
void config_free(struct config *c);
bool config_is_ready(struct config *c);
const struct settings *config_get(struct config *c); /* the present set; config_put when done */
void config_put(struct config *c, const struct settings *s);
