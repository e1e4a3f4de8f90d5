#include "reconcile/blueprint.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"
#include "openapi/semantic.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"

/* Resolvers for pods that cannot reach the cluster's. Source: C19. */
static const char *const public_resolvers[] = {"8.8.8.8", "1.1.1.1"};

static const char *const blueprint_members[] = {"podTemplate", "volumeClaimTemplates", "service"};

void template_ref_hash(const char *template_name, char out[NAME_HASH_SIZE])
{
    digest_name_hash(template_name, out);
}

bool template_is_managed(const cJSON *template)
{
    return !str_equal(json_str(template, "spec.networkPolicyManagement"), "Unmanaged");
}

/* ---- the spec of a new Sandbox ---- */

static bool takes_public_resolvers(const cJSON *template, const cJSON *pod_spec)
{
    return template_is_managed(template) && !json_at(template, "spec.networkPolicy") &&
           !*json_str_or(pod_spec, "dnsPolicy", "");
}

/* C19: no token of a service account unless asked for; public resolvers where the built-in policy
 * cuts cluster DNS off and the template names no dnsPolicy (a dnsConfig without one is replaced, as
 * in the original). */
static void secure_pod(const cJSON *template, cJSON *pod_spec)
{
    if (!cJSON_IsBool(json_get(pod_spec, "automountServiceAccountToken")))
        json_set_bool(pod_spec, "automountServiceAccountToken", false);
    if (!takes_public_resolvers(template, pod_spec))
        return;
    json_set_str(pod_spec, "dnsPolicy", "None");
    cJSON *config = json_ensure_object(pod_spec, "dnsConfig"); /* the template's own stays */
    if (json_len(json_get(config, "nameservers")) > 0)
        return;
    cJSON *servers = json_array();
    for (size_t i = 0; i < ARRAY_LEN(public_resolvers); i++)
        json_push(servers, json_string(public_resolvers[i]));
    json_set(config, "nameservers", servers);
}

/* The members that make the blueprint, as the template has them. */
static cJSON *copy_members(const cJSON *template)
{
    const cJSON *spec = json_get(template, "spec");
    cJSON *out = json_object();
    for (size_t i = 0; i < ARRAY_LEN(blueprint_members); i++) {
        const cJSON *v = json_get(spec, blueprint_members[i]);
        if (v)
            json_set(out, blueprint_members[i], json_copy(v));
    }
    return out;
}

/* Members that Kubernetes' own types always write, so that what is made looks the same whoever made
 * it; they mean the same as absent ones. */
static void spell_out(cJSON *spec, cJSON *pod_spec)
{
    static const char *const lists[] = {"containers", "initContainers", "ephemeralContainers"};
    cJSON *item;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        cJSON_ArrayForEach(item, json_get(pod_spec, lists[i]))
        {
            json_ensure_object(item, "resources");
        }
    }
    cJSON_ArrayForEach(item, json_get(spec, "volumeClaimTemplates"))
    {
        json_ensure_object(item, "metadata");
        json_ensure_object(json_ensure_object(item, "spec"), "resources");
    }
}

cJSON *blueprint_spec(const cJSON *template)
{
    cJSON *spec = copy_members(template);
    cJSON *pod_spec = json_ensure_object(json_ensure_object(spec, "podTemplate"), "spec");
    spell_out(spec, pod_spec);
    secure_pod(template, pod_spec);
    return spec;
}

/* ---- hashes ---- */

static void hash_tree(const cJSON *tree, char out[NAME_HASH_SIZE])
{
    SCOPED_FREE char *text = json_to_str(tree);
    digest_name_hash(text, out);
}

/* The row of a Sandbox's spec describes all three members. */
static const struct shape *spec_shape(void)
{
    return shape_field(kind_sandbox.shape, "spec")->of;
}

void blueprint_init(struct blueprint *ret, const cJSON *template)
{
    SCOPED(json_free_p) cJSON *form = copy_members(template);
    semantic_normalize(spec_shape(), form);
    ret->template = template;
    template_ref_hash(meta_name(template), ret->ref_hash);
    hash_tree(form, ret->hash);
    const cJSON *pod_template = json_get(form, "podTemplate");
    hash_tree(pod_template, ret->pod_template_hash);
}

/* ---- comparison ---- */

static bool same_pod_spec(const cJSON *template, const cJSON *sandbox_spec)
{
    SCOPED(json_free_p) cJSON *wanted = json_copy(json_at(template, "spec.podTemplate.spec"));
    if (!wanted)
        wanted = json_object();
    secure_pod(template, wanted);
    return semantic_equal(&shape_pod_spec, wanted, json_at(sandbox_spec, "podTemplate.spec"));
}

static bool same_volume_claims(const cJSON *a, const cJSON *b)
{
    const cJSON *x = a ? a->child : NULL, *y = b ? b->child : NULL;
    for (; x && y; x = x->next, y = y->next) {
        if (!str_equal(json_str_or(x, "metadata.name", ""), json_str_or(y, "metadata.name", "")) ||
            !semantic_equal(&shape_pvc_spec, json_get(x, "spec"), json_get(y, "spec")))
            return false;
    }
    return !x && !y;
}

bool blueprint_equals(const cJSON *template, const cJSON *sandbox_spec)
{
    const cJSON *spec = json_get(template, "spec");
    return json_equal(json_get(spec, "service"), json_get(sandbox_spec, "service")) &&
           same_volume_claims(json_get(spec, "volumeClaimTemplates"),
                              json_get(sandbox_spec, "volumeClaimTemplates")) &&
           same_pod_spec(template, sandbox_spec);
}

static bool is_current(const struct blueprint *b, const cJSON *sandbox, bool trust_label)
{
    if (trust_label && str_equal(meta_label(sandbox, LABEL_BLUEPRINT_HASH), b->hash))
        return true;
    return blueprint_equals(b->template, json_get(sandbox, "spec"));
}

bool blueprint_is_stale(const struct blueprint *b, const cJSON *sandbox, bool trust_labels)
{
    return !str_equal(meta_label(sandbox, LABEL_TEMPLATE_REF_HASH), b->ref_hash) ||
           !is_current(b, sandbox, trust_labels);
}
