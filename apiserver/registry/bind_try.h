/* One claim's way through the candidates, shared by create.c and bind.c. One thread. */
#pragma once

#include "apiserver/registry/bind.h"
#include "apiserver/registry/cache.h"

struct bind_try { /* bind_try_fini, which gives back what is still reserved */
    struct registry *registry;
    struct bind *bind;
    struct bind_plan *plan;
    const char *namespace_name; /* borrowed */
    const char *only;           /* borrowed; the only member that will do, or NULL */
    bool is_dry;                /* nothing is reserved */
    bool was_tried, is_reserved;
    unsigned n_lost, n_skipped;
    /* The candidate of the present try. */
    char *item; /* NAMESPACE/NAME */
    struct object *member;
    cJSON *member_tree;
    char *claim_json, *member_json; /* as they would be stored */
    size_t claim_len;
    struct commit_beside beside; /* the member, for the transaction */
};
/* False when claims of that kind are not bound, or this one is not to be. t needs bind_try_fini in
 * any case. */
bool bind_try_begin(struct bind_try *t, struct registry *r, const struct kind *kind,
                    const char *namespace_name, const cJSON *claim, const char *only, bool is_dry);
/* The next candidate: claim_json and beside say what to write. False when there is none. */
bool bind_try_next(struct bind_try *t, const cJSON *claim);
void bind_try_lost(struct bind_try *t); /* the member was not as it was seen */
void bind_try_won(struct bind_try *t);  /* both were written */
void bind_try_count(const struct bind_try *t, const char *by, bool is_bound);
void bind_try_fini(struct bind_try *t);
