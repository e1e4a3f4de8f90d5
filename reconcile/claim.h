/* What a SandboxClaim needs: pure decisions about one claim, its Sandbox, pool and template.
 * Carrying out is claim_pass.c (for the leader) and claim_bind.c (inside a POST, on every server).
 * Trees are borrowed unless said otherwise; trees and texts that come back are the caller's. Rule
 * numbers (C5 ...) are those of docs/reconcile.md. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "reconcile/event.h"

#define CLAIM_CONTROLLER "sandboxclaim-controller" /* field manager and reporting controller */

/* What the operator set. Borrowed for as long as it is used. */
struct claim_settings {
    const char *const *label_domains; /* lower case, ended by NULL: who may prefix labels of
                                         additionalPodMetadata */
    bool no_observed_stamp;           /* do not write controller-first-observed-at */
};

/* The domains of the operator's file: separated by commas and line ends, trimmed, lower case;
 * without any, the default. Ended by NULL, the caller's (strv_free). */
char **claim_domains_parse(const char *text);

/* ---- errors (C20) ---- */

enum claim_failure { /* in the order of their rank */
                     CLAIM_FINE,
                     CLAIM_NO_TEMPLATE,
                     CLAIM_NO_POOL,
                     CLAIM_BAD_METADATA,
                     CLAIM_ENV_REFUSED,
                     CLAIM_NOT_OWNED,
                     CLAIM_BAD_VOLUMES,
                     CLAIM_OTHER
};
struct claim_error { /* starts as {0}; claim_error_fini */
    enum claim_failure failure;
    char *text;
};
/* Returns -1. */
int claim_fail(struct claim_error *e, enum claim_failure failure, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void claim_error_fini(struct claim_error *e);
/* Trying again without a change of the claim is of no use. */
bool claim_error_is_final(const struct claim_error *e);

/* ---- the claim alone ---- */

const char *claim_pool_name(const cJSON *claim);
/* ms until it expires (C3): > 0 in the future, <= 0 expired; INT64_MAX = never. */
int64_t claim_time_left_ms(const cJSON *claim, int64_t now_unix_ms);
bool claim_shows_expired(const cJSON *claim);
bool claim_is_ready(const cJSON *status);
/* What its maker should know at once; the caller's; NULL = nothing. */
char *claim_foresee(const cJSON *claim, const struct claim_settings *settings);
int claim_check_metadata(const cJSON *claim, const struct claim_settings *settings,
                         struct claim_error *e); /* C5 */
/* The Sandbox has all that the claim's additionalPodMetadata asks for. */
bool claim_metadata_is_applied(const cJSON *claim, const cJSON *sandbox);
bool claim_is_cold_only(const cJSON *claim); /* C7 */
/* Name of the assigned Sandbox, or NULL; from_label: by the deprecated label. */
const char *claim_assignment(const cJSON *claim, bool *ret_from_label);
void claim_set_assignment(cJSON *claim, const char *sandbox_name); /* removes the label */
void claim_clear_assignment(cJSON *claim); /* only the one that claim_assignment told */

/* ---- its Sandbox ---- */

bool claim_controls(const cJSON *claim, const cJSON *sandbox);
/* C9, C10. NULL = the claim may take that member. */
char *claim_candidate_error(const cJSON *claim, const cJSON *sandbox);
/* Name of the pool that the Sandbox may be taken from; NULL = it is not adoptable (C9). */
const char *claim_member_pool(const cJSON *sandbox);
/* What the Sandbox's pod metadata should be (C15), from the template; hash: value of the
 * template-ref-hash label. */
int claim_pod_metadata(const cJSON *claim, const cJSON *template, const char *hash, cJSON **ret,
                       struct claim_error *e);
/* Brings a bound Sandbox in line (C15), in place; template NULL = it could not be read. changes
 * tells whether anything was to do. The launch type is filled in when it is missing. */
int claim_maintain(const cJSON *claim, const cJSON *template, const char *launch_type,
                   cJSON *sandbox, bool *ret_changes, struct claim_error *e);
/* The member as it is once adopted (C12.3). template NULL = it could not be read. */
int claim_adopt(const cJSON *claim, const cJSON *template, const cJSON *member, cJSON **ret,
                struct claim_error *e);
/* The claim as the only owner. */
void claim_own(const cJSON *claim, cJSON *sandbox);
/* The Sandbox of a cold start (C16-C19); claim_cold.c. */
int claim_sandbox(const cJSON *claim, const cJSON *template, cJSON **ret, struct claim_error *e);

/* ---- status (C20) ---- */

struct claim_outcome {
    const cJSON *sandbox;            /* in hand, or NULL */
    const struct claim_error *error; /* NULL = none */
    bool is_expired;
};
cJSON *claim_status(const cJSON *claim, const struct claim_outcome *outcome, int64_t now_unix_s);
/* Sets status, and with it the stamps that belong to the same write: first observed, first ready.
 * Returns whether the claim became ready for the first time, so that latencies are to be
 * observed. */
bool claim_set_status(cJSON *claim, cJSON *take_status, const struct claim_settings *settings,
                      int64_t observed_unix_ms, int64_t now_unix_ms);
/* The claim as it is once bound to the adopted member: assignment, status, stamps. */
cJSON *claim_bound(const cJSON *claim, const cJSON *adopted, const struct claim_settings *settings,
                   int64_t now_unix_ms);
