/* The inside of admission, shared by its files only: what is carried from step to step. One
 * thread. */
#pragma once

#include "admission/admit.h"

struct admission {
    const struct admit_env *env;
    const struct admit_request *req;
    cJSON *object;           /* borrowed, changed in place */
    struct pairs *warnings;  /* may be NULL */
    bool is_update, is_main; /* not the /status endpoint */
    /* metadata.managedFields after this write, as JSON; NULL = none. And what is stored, when it
     * differs from it in times alone. */
    char *managers, *managers_as_stored;
    bool keeps_managers;       /* the stored list, as it is */
    struct err manager_causes; /* against the list that a client gave */
};

void admission_fini(struct admission *a);

/* A step: 0, or -code. The order is admit.c's. */
typedef int (*admit_step)(struct admission *a, struct err *err);

cJSON *metadata_of(const struct admission *a); /* an object once it was decoded */
void warn(const struct admission *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* decode.c: is it, as text, such an object? */
int step_type_meta(struct admission *a, struct err *err);
int step_metadata_types(struct admission *a, struct err *err);
int step_unknown_fields(struct admission *a, struct err *err);
int step_version(struct admission *a, struct err *err);

/* identity.c: does it belong where it was sent? */
int step_identity(struct admission *a, struct err *err);
int step_namespace_state(struct admission *a, struct err *err);
int step_preconditions(struct admission *a, struct err *err);

/* managed.c: who owns which field */
int step_managed_fields(struct admission *a, struct err *err);
int step_write_managers(struct admission *a, struct err *err);

/* metadata.c: what is not the client's to set */
int step_tidy(struct admission *a, struct err *err);
int step_created(struct admission *a, struct err *err);
int step_stored(struct admission *a, struct err *err);
int step_generate_name(struct admission *a, struct err *err);
int step_status(struct admission *a, struct err *err);
int step_owners(struct admission *a, struct err *err);
int step_generation(struct admission *a, struct err *err);
int step_finalizer_warnings(struct admission *a, struct err *err);

/* native.c: what the tables of Kubernetes' own kinds say besides */
int step_encode(struct admission *a, struct err *err);
int step_path_defaults(struct admission *a, struct err *err);

/* account.c: what a Pod gets from its ServiceAccount */
int step_account(struct admission *a, struct err *err);

/* hints.c */
int step_hints(struct admission *a, struct err *err);

/* validate_meta.c, rules.c: causes */
void metadata_validate(const struct admission *a, struct err *causes);
/* The rules of the kind's table; or, when others failed, that they were not looked at. */
void rules_validate(const struct admission *a, bool is_blocked, struct err *causes);
