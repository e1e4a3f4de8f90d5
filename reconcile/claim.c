#include "reconcile/claim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"
#include "openapi/semantic.h"
#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"

/* ---- errors ---- */

int claim_fail(struct claim_error *e, enum claim_failure failure, const char *fmt, ...)
{
    va_list args;
    claim_error_fini(e);
    va_start(args, fmt);
    if (vasprintf(&e->text, fmt, args) < 0)
        abort();
    va_end(args);
    e->failure = failure;
    return -1;
}

void claim_error_fini(struct claim_error *e)
{
    free(e->text);
    *e = (struct claim_error){0};
}

bool claim_error_is_final(const struct claim_error *e)
{
    return e->failure == CLAIM_BAD_METADATA || e->failure == CLAIM_ENV_REFUSED ||
           e->failure == CLAIM_NOT_OWNED || e->failure == CLAIM_BAD_VOLUMES;
}

/* ---- the claim alone ---- */

const char *claim_pool_name(const cJSON *claim)
{
    return json_str_or(claim, "spec.warmPoolRef.name", "");
}

static const cJSON *claim_condition(const cJSON *claim, const char *type)
{
    return condition_find(json_at(claim, "status.conditions"), type);
}

static bool is_true(const cJSON *condition)
{
    return str_equal(json_str(condition, "status"), "True");
}

/* When the time to live after the pod's end is over; INT64_MAX = it does not run. */
static int64_t ttl_end_ms(const cJSON *claim)
{
    int64_t ttl_s, finished_ms;
    const cJSON *finished = claim_condition(claim, "Finished");
    const char *at = json_str(finished, "lastTransitionTime");
    if (json_node_i64(json_at(claim, "spec.lifecycle.ttlSecondsAfterFinished"), &ttl_s) < 0 ||
        !is_true(finished) || !at || clock_parse_rfc3339(at, &finished_ms) < 0)
        return INT64_MAX;
    return finished_ms + ttl_s * 1000;
}

int64_t claim_time_left_ms(const cJSON *claim, int64_t now_unix_ms)
{
    const char *at = json_str(claim, "spec.lifecycle.shutdownTime");
    int64_t end_ms = ttl_end_ms(claim), shutdown_ms;
    if (at && clock_parse_rfc3339(at, &shutdown_ms) == 0 && shutdown_ms < end_ms)
        end_ms = shutdown_ms;
    return end_ms == INT64_MAX ? INT64_MAX : end_ms - now_unix_ms;
}

bool claim_shows_expired(const cJSON *claim)
{
    return str_equal(json_str(claim_condition(claim, "Ready"), "reason"), "ClaimExpired");
}

bool claim_is_ready(const cJSON *status)
{
    return is_true(condition_find(json_get(status, "conditions"), "Ready"));
}

bool claim_metadata_is_applied(const cJSON *claim, const cJSON *sandbox)
{
    static const char *const maps[] = {"labels", "annotations"};
    const cJSON *wanted = json_at(claim, "spec.additionalPodMetadata");
    const cJSON *is = json_at(sandbox, "spec.podTemplate.metadata");
    const cJSON *entry;
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        cJSON_ArrayForEach(entry, json_get(wanted, maps[i]))
        {
            if (!json_equal(entry, json_get(json_get(is, maps[i]), entry->string)))
                return false;
        }
    }
    return true;
}

bool claim_is_cold_only(const cJSON *claim)
{
    return json_len(json_at(claim, "spec.env")) > 0 ||
           json_len(json_at(claim, "spec.volumeClaimTemplates")) > 0;
}

const char *claim_assignment(const cJSON *claim, bool *ret_from_label)
{
    const char *by_annotation = meta_annotation(claim, ANNOTATION_SANDBOX_NAME);
    const char *by_label = meta_label(claim, ANNOTATION_SANDBOX_NAME);
    *ret_from_label = !by_annotation || !*by_annotation;
    if (!*ret_from_label)
        return by_annotation;
    return by_label && *by_label ? by_label : NULL;
}

/* ---- maps of metadata ---- */

static cJSON *ensure_map(cJSON *metadata, const char *map)
{
    return json_ensure_object(metadata, map);
}

/* An empty map is no map. */
static void drop_entry(cJSON *metadata, const char *map, const char *key)
{
    cJSON *entries = json_get(metadata, map);
    json_remove(entries, key);
    if (entries && !entries->child)
        json_remove(metadata, map);
}

static void set_entry(cJSON *metadata, const char *map, const char *key, const char *value)
{
    if (value)
        json_set_str(ensure_map(metadata, map), key, value);
    else
        drop_entry(metadata, map, key);
}

void claim_set_assignment(cJSON *claim, const char *sandbox_name)
{
    cJSON *metadata = json_ensure_object(claim, "metadata");
    set_entry(metadata, "annotations", ANNOTATION_SANDBOX_NAME, sandbox_name);
    drop_entry(metadata, "labels", ANNOTATION_SANDBOX_NAME);
}

void claim_clear_assignment(cJSON *claim)
{
    bool from_label;
    claim_assignment(claim, &from_label);
    drop_entry(json_get(claim, "metadata"), from_label ? "labels" : "annotations",
               ANNOTATION_SANDBOX_NAME);
}

/* ---- candidates ---- */

bool claim_controls(const cJSON *claim, const cJSON *sandbox)
{
    return owner_class(sandbox, claim) == OWNED;
}

static bool is_pool_owned(const cJSON *sandbox)
{
    return owner_is_kind(owner_controller(sandbox), GROUP_EXTENSIONS, KIND_POOL);
}

static char *static_error(const cJSON *sandbox)
{
    const cJSON *controller = owner_controller(sandbox);
    if (meta_is_terminating(sandbox))
        return xstrdup("sandbox is deleted");
    if (!meta_label(sandbox, LABEL_WARM_POOL))
        return xstrdup("sandbox is missing the warm pool sandbox label");
    if (!meta_label(sandbox, LABEL_TEMPLATE_REF_HASH))
        return xstrdup("sandbox is missing the sandbox template ref hash label");
    if (!controller)
        return xasprintf("sandbox %s/%s is unowned and cannot be safely adopted",
                         meta_namespace(sandbox), meta_name(sandbox));
    if (!is_pool_owned(sandbox))
        return xasprintf("sandbox %s/%s is not managed by warm pool. Controller: %s/%s",
                         meta_namespace(sandbox), meta_name(sandbox),
                         json_str_or(controller, "kind", ""), json_str_or(controller, "name", ""));
    return NULL;
}

const char *claim_member_pool(const cJSON *sandbox)
{
    SCOPED_FREE char *error = static_error(sandbox);
    return error ? NULL : json_str(owner_controller(sandbox), "name");
}

char *claim_candidate_error(const cJSON *claim, const cJSON *sandbox)
{
    if (!str_equal(meta_namespace(sandbox), meta_namespace(claim)))
        return xasprintf("cross-namespace adoption forbidden: sandbox is in \"%s\", claim is in "
                         "\"%s\"",
                         meta_namespace(sandbox), meta_namespace(claim));
    char *error = static_error(sandbox);
    if (error)
        return error;
    if (!str_equal(json_str(owner_controller(sandbox), "name"), claim_pool_name(claim)))
        return xasprintf("incorrect warm pool, expected %s", claim_pool_name(claim));
    return NULL;
}

/* ---- pod metadata ---- */

/* Who made the claim, as its Sandbox tells: NULL = says nothing. */
static const char *created_by(const cJSON *claim)
{
    const char *by = meta_label(claim, LABEL_CREATED_BY);
    return by && *by ? by : NULL;
}

static int merge_map(const cJSON *claim, const char *map, const char *what, cJSON *metadata,
                     struct claim_error *e)
{
    const cJSON *entry, *wanted = json_get(json_at(claim, "spec.additionalPodMetadata"), map);
    cJSON_ArrayForEach(entry, wanted)
    {
        const cJSON *is = json_get(json_get(metadata, map), entry->string);
        if (cJSON_IsString(is) && !str_equal(is->valuestring, entry->valuestring))
            return claim_fail(e, CLAIM_OTHER,
                              "metadata override conflict: %s \"%s\" is defined in template with "
                              "value \"%s\", but claim requests \"%s\"",
                              what, entry->string, is->valuestring, entry->valuestring);
        json_set_str(ensure_map(metadata, map), entry->string, entry->valuestring);
    }
    return 0;
}

/* Puts what a claim adds onto pod metadata. hash NULL = leave as it is. */
static int add_claim(const cJSON *claim, const char *hash, cJSON *metadata, struct claim_error *e)
{
    set_entry(metadata, "labels", LABEL_CLAIM_UID, meta_uid(claim));
    set_entry(metadata, "labels", LABEL_CREATED_BY, created_by(claim));
    if (hash)
        set_entry(metadata, "labels", LABEL_TEMPLATE_REF_HASH, hash);
    if (merge_map(claim, "labels", "label", metadata, e) < 0)
        return -1;
    return merge_map(claim, "annotations", "annotation", metadata, e);
}

int claim_pod_metadata(const cJSON *claim, const cJSON *template, const char *hash, cJSON **ret,
                       struct claim_error *e)
{
    static const char *const maps[] = {"labels", "annotations"};
    const cJSON *from = json_at(template, "spec.podTemplate.metadata");
    SCOPED(json_free_p) cJSON *metadata = json_object();
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        const cJSON *map = json_get(from, maps[i]);
        if (map && map->child)
            json_set(metadata, maps[i], json_copy(map));
    }
    if (add_claim(claim, hash, metadata, e) < 0)
        return -1;
    *ret = steal(&metadata);
    return 0;
}

static cJSON *pod_template_of(cJSON *sandbox)
{
    return json_ensure_object(json_ensure_object(sandbox, "spec"), "podTemplate");
}

static void set_label_if_other(cJSON *sandbox, const char *key, const char *value, bool *changes)
{
    if (str_equal(meta_label(sandbox, key), value))
        return;
    set_entry(json_ensure_object(sandbox, "metadata"), "labels", key, value);
    *changes = true;
}

/* The claim's wish goes on to its Sandbox; without one the Sandbox's own stays. */
static void follow_idle_timeout(const cJSON *claim, cJSON *sandbox, bool *changes)
{
    const char *wish = meta_annotation(claim, ANNOTATION_IDLE_TIMEOUT);
    if (!wish || str_equal(meta_annotation(sandbox, ANNOTATION_IDLE_TIMEOUT), wish))
        return;
    set_entry(json_ensure_object(sandbox, "metadata"), "annotations", ANNOTATION_IDLE_TIMEOUT,
              wish);
    *changes = true;
}

int claim_maintain(const cJSON *claim, const cJSON *template, const char *launch_type,
                   cJSON *sandbox, bool *ret_changes, struct claim_error *e)
{
    SCOPED(json_free_p) cJSON *wanted = NULL;
    char hash[NAME_HASH_SIZE];
    *ret_changes = false;
    if (!meta_label(sandbox, LABEL_LAUNCH_TYPE))
        set_label_if_other(sandbox, LABEL_LAUNCH_TYPE, launch_type, ret_changes);
    follow_idle_timeout(claim, sandbox, ret_changes);
    if (!template)
        return 0;
    template_ref_hash(meta_name(template), hash);
    if (claim_pod_metadata(claim, template, hash, &wanted, e) < 0)
        return -1;
    set_label_if_other(sandbox, LABEL_TEMPLATE_REF_HASH, hash, ret_changes);
    set_label_if_other(sandbox, LABEL_CREATED_BY, created_by(claim), ret_changes);
    cJSON *pod_template = pod_template_of(sandbox);
    if (semantic_equal(&shape_pod_metadata, json_get(pod_template, "metadata"), wanted))
        return 0;
    json_set(pod_template, "metadata", steal(&wanted));
    *ret_changes = true;
    return 0;
}

/* ---- adoption ---- */

void claim_own(const cJSON *claim, cJSON *sandbox)
{
    cJSON *refs = json_array();
    json_push(refs, owner_reference(claim));
    json_set(json_ensure_object(sandbox, "metadata"), "ownerReferences", refs);
}

static void adopt_metadata(const cJSON *claim, const char *hash, cJSON *member)
{
    static const char *const dropped[] = {LABEL_WARM_POOL, LABEL_POD_TEMPLATE_HASH,
                                          LABEL_BLUEPRINT_HASH};
    cJSON *metadata = json_ensure_object(member, "metadata");
    const char *trace = meta_annotation(claim, ANNOTATION_TRACE_CONTEXT);
    const char *idle = meta_annotation(claim, ANNOTATION_IDLE_TIMEOUT);
    for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
        drop_entry(metadata, "labels", dropped[i]);
    set_entry(metadata, "labels", LABEL_LAUNCH_TYPE, LAUNCH_WARM);
    set_entry(metadata, "labels", LABEL_CLAIM_UID, meta_uid(claim));
    set_entry(metadata, "labels", LABEL_CREATED_BY, created_by(claim));
    if (hash)
        set_entry(metadata, "labels", LABEL_TEMPLATE_REF_HASH, hash);
    set_entry(metadata, "annotations", ANNOTATION_POD_NAME, meta_name(member));
    if (trace)
        set_entry(metadata, "annotations", ANNOTATION_TRACE_CONTEXT, trace);
    if (idle)
        set_entry(metadata, "annotations", ANNOTATION_IDLE_TIMEOUT, idle);
    claim_own(claim, member);
}

/* The template's metadata, or, when that could not be read, what is there. */
static int adopt_pod_metadata(const cJSON *claim, const cJSON *template, const char *hash,
                              cJSON *member, struct claim_error *e)
{
    cJSON *pod_template = pod_template_of(member), *metadata = NULL;
    if (template) {
        if (claim_pod_metadata(claim, template, hash, &metadata, e) < 0)
            return -1;
        json_set(pod_template, "metadata", metadata);
        return 0;
    }
    metadata = json_ensure_object(pod_template, "metadata");
    const cJSON *evict = json_get(json_get(metadata, "annotations"), ANNOTATION_SAFE_TO_EVICT);
    if (cJSON_IsString(evict) && str_equal(evict->valuestring, "true"))
        drop_entry(metadata, "annotations", ANNOTATION_SAFE_TO_EVICT);
    return add_claim(claim, hash, metadata, e);
}

int claim_adopt(const cJSON *claim, const cJSON *template, const cJSON *member, cJSON **ret,
                struct claim_error *e)
{
    char of_template[NAME_HASH_SIZE];
    const char *hash = meta_label(member, LABEL_TEMPLATE_REF_HASH);
    if (!hash && template) {
        template_ref_hash(meta_name(template), of_template);
        hash = of_template;
    }
    SCOPED(json_free_p) cJSON *adopted = json_copy(member);
    adopt_metadata(claim, hash, adopted);
    if (adopt_pod_metadata(claim, template, hash, adopted, e) < 0)
        return -1;
    *ret = steal(&adopted);
    return 0;
}
