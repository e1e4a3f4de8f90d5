/* One decision about one child in the cluster, made by the pure files and carried out by
 * pass_carry_out. */
#pragma once

#include <cjson/cJSON.h>

enum step_verb { STEP_KEEP, STEP_CREATE, STEP_PATCH, STEP_UPDATE, STEP_DELETE, STEP_REFUSE };
/* One decision about one child. Starts as {0}; step_fini. */
struct step {
    enum step_verb verb;
    const cJSON *on;            /* the child it is about; NULL for CREATE and when there is none */
    cJSON *body;                /* of CREATE, PATCH (merge patch), UPDATE; owned */
    char *error;                /* REFUSE: the verdict; owned */
    const char *failure_prefix; /* put before the text of a failed call; "" = none */
};
void step_fini(struct step *s);
