/* What a SandboxTemplate needs in the cluster: one NetworkPolicy for the pods of all Sandboxes made
 * from it. Pure decisions; carrying out is template_pass.c. Rules T1 ... are those of
 * docs/reconcile.md. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "reconcile/step.h"

/* T1: LABEL_TEMPLATE_REF_HASH is not the hash of its name */
bool template_lacks_label(const cJSON *template);
void template_put_label(cJSON *template);

char *template_policy_name(const cJSON *template); /* the caller's */
/* ADDRESS/32 or ADDRESS/128; NULL when it is no address. The caller's. */
char *template_host_block(const char *address);
/* What the operator set. Borrowed. */
struct template_settings {
    const char *const *resolvers; /* addresses that the built-in policy lets pods ask for names,
                                     ended by NULL; NULL = none */
};
/* the policy as it is to be made; the caller's */
cJSON *template_policy(const cJSON *template, const struct template_settings *settings);
/* T2-T4. existing may be NULL. */
void template_plan_policy(const cJSON *template, const struct template_settings *settings,
                          const cJSON *existing, struct step *ret);
