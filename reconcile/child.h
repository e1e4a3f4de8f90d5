/* What the children of a Sandbox have in common, and each child as it should be: pure functions
 * from a Sandbox and what is there to the object, patch or verdict. Trees that come back are the
 * caller's (json_free); others are borrowed. Rule numbers (S5 ...) are those of the published
 * behaviour of Agent Sandbox, listed in docs/reconcile.md. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/rand.h"

/* ---- metadata ---- */

const char *meta_name(const cJSON *o); /* "" when absent; likewise below */
const char *meta_namespace(const cJSON *o);
const char *meta_uid(const cJSON *o);
const char *meta_label(const cJSON *o, const char *key);      /* NULL when absent */
const char *meta_annotation(const cJSON *o, const char *key); /* NULL when absent */
bool meta_is_terminating(const cJSON *o);
bool meta_key_is_reserved(const char *key); /* S10 */

/* One of the few makers that are told apart, else "unknown": the label's value is anybody's. value
 * may be NULL. O7 */
const char *created_by_known(const char *value);

/* ---- ownership (G5) ---- */

enum ownership { OWNED, UNOWNED, FOREIGN };
const cJSON *owner_controller(const cJSON *child); /* its controller reference, or NULL */
/* the same from metadata.ownerReferences */
const cJSON *owner_reference_that_controls(const cJSON *references);
/* The reference names that kind; its version does not matter. ref may be NULL. */
bool owner_is_kind(const cJSON *ref, const char *group, const char *kind);
/* What metrics call it: SandboxClaim, SandboxWarmPool, None. ref may be NULL. O6 */
const char *owner_label(const cJSON *ref);
enum ownership owner_class(const cJSON *child, const cJSON *sandbox);
/* The label adoptable=true, or the tracking label with this Sandbox's hash. */
bool owner_may_adopt(const cJSON *child, const cJSON *sandbox);
/* The controller reference to any object of ours. */
cJSON *owner_reference(const cJSON *owner);
/* child's ownerReferences with the owner's controller reference, in place of one that names it
 * already, else at the end. */
cJSON *owner_references_with(const cJSON *child, const cJSON *owner);
/* `pod "P" is owned by K/NAME (UID: U), not by sandbox "S"` */
char *owner_foreign_text(const char *what, const cJSON *child, const cJSON *sandbox);
/* `cannot adopt unowned pod "P": missing required pool authorization label (...) or sandbox
 * tracking label (...)` */
char *owner_refusal_text(const char *what, const cJSON *child);

/* Go's form of a tracking selector: agents.x-k8s.io/sandbox-name-hash=HASH, in out. */
void tracking_selector(const cJSON *sandbox, struct buf *out);
void tracking_hash(const cJSON *sandbox, char out[NAME_HASH_SIZE]);

/* ---- Pod ---- */

cJSON *pod_desired(const cJSON *sandbox); /* S9 */
/* Merge patch that brings an existing Pod's metadata in line (S11), with the controller reference
 * when adopt is set; NULL when nothing differs. */
cJSON *pod_patch(const cJSON *sandbox, const cJSON *pod, bool adopt);
const char *pod_phase(const cJSON *pod); /* "" when absent */

/* ---- Service ---- */

cJSON *service_ports(const cJSON *pod_spec);  /* S12: array, sorted */
cJSON *service_desired(const cJSON *sandbox); /* to create */
/* drift repair, NULL when none */
cJSON *service_patch(const cJSON *sandbox, const cJSON *service, bool with_ports);
/* the whole object for an update */
cJSON *service_adopted(const cJSON *sandbox, const cJSON *service);

/* ---- PersistentVolumeClaim ---- */

/* TEMPLATE-SANDBOX; owned by the caller */
char *pvc_name(const cJSON *sandbox, const cJSON *template);
cJSON *pvc_desired(const cJSON *sandbox, const cJSON *template);
cJSON *pvc_adopt_patch(const cJSON *sandbox, const cJSON *pvc);
