#include "reconcile/template.h"

#include <arpa/inet.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/semantic.h"
#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"

/* The only pods that may connect to sandboxes under the built-in policy. Source: T3. */
#define ROUTER_NAMESPACE "agent-sandbox-system"
#define ROUTER_APP "sandbox-router"
#define DNS_PORT 53

/* ---- label ---- */

bool template_lacks_label(const cJSON *template)
{
    char hash[NAME_HASH_SIZE];
    template_ref_hash(meta_name(template), hash);
    return !str_equal(meta_label(template, LABEL_TEMPLATE_REF_HASH), hash);
}

void template_put_label(cJSON *template)
{
    char hash[NAME_HASH_SIZE];
    template_ref_hash(meta_name(template), hash);
    json_set_str(json_ensure_object(json_ensure_object(template, "metadata"), "labels"),
                 LABEL_TEMPLATE_REF_HASH, hash);
}

/* ---- the policy ---- */

char *template_policy_name(const cJSON *template)
{
    return xasprintf("%s" POLICY_SUFFIX, meta_name(template));
}

static cJSON *match_labels(const char *key, const char *value)
{
    cJSON *selector = json_object();
    json_set_str(json_ensure_object(selector, "matchLabels"), key, value);
    return selector;
}

static cJSON *list_of(cJSON *take_item)
{
    cJSON *list = json_array();
    json_push(list, take_item);
    return list;
}

/* One rule of one peer: pods of the router in its namespace, any port. */
static cJSON *strict_ingress(void)
{
    cJSON *peer = json_object(), *rule = json_object();
    json_set(peer, "namespaceSelector",
             match_labels("kubernetes.io/metadata.name", ROUTER_NAMESPACE));
    json_set(peer, "podSelector", match_labels("app", ROUTER_APP));
    json_set(rule, "from", list_of(peer));
    return list_of(rule);
}

static cJSON *block_peer(const char *cidr, const char *const *except, size_t n)
{
    cJSON *peer = json_object(), *block = json_object(), *holes = json_array();
    json_set_str(block, "cidr", cidr);
    for (size_t i = 0; i < n; i++)
        json_push(holes, json_string(except[i]));
    json_set(block, "except", holes);
    json_set(peer, "ipBlock", block);
    return peer;
}

char *template_host_block(const char *address)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    bool is_v4 = inet_pton(AF_INET, address, bytes) == 1;
    if (!is_v4 && inet_pton(AF_INET6, address, bytes) != 1)
        return NULL;
    return xasprintf("%s/%d", address, is_v4 ? 32 : 128);
}

static cJSON *port_of(const char *protocol, int port)
{
    cJSON *p = json_object();
    json_set_str(p, "protocol", protocol);
    json_set_int(p, "port", port);
    return p;
}

/* Resolvers on the pods' own machines have link-local addresses, which nothing else opens. */
static cJSON *resolver_rule(const char *const *resolvers)
{
    cJSON *peers = json_array(), *ports = json_array(), *rule = json_object();
    for (size_t i = 0; resolvers[i]; i++) {
        SCOPED_FREE char *block = template_host_block(resolvers[i]);
        cJSON *peer = json_object();
        json_set_str(json_ensure_object(peer, "ipBlock"), "cidr", block ? block : "");
        json_push(peers, peer);
    }
    json_push(ports, port_of("UDP", DNS_PORT));
    json_push(ports, port_of("TCP", DNS_PORT));
    json_set(rule, "ports", ports);
    json_set(rule, "to", peers);
    return rule;
}

/* The Internet without private and link-local addresses, so without the cluster and its machines'
 * metadata services. */
static cJSON *strict_egress(const char *const *resolvers)
{
    static const char *const private_v4[] = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
                                             "169.254.0.0/16"};
    static const char *const private_v6[] = {"fc00::/7", "fe80::/10"};
    cJSON *peers = json_array(), *rule = json_object();
    json_push(peers, block_peer("0.0.0.0/0", private_v4, ARRAY_LEN(private_v4)));
    json_push(peers, block_peer("::/0", private_v6, ARRAY_LEN(private_v6)));
    json_set(rule, "to", peers);
    cJSON *rules = list_of(rule);
    if (resolvers && resolvers[0])
        json_push(rules, resolver_rule(resolvers));
    return rules;
}

static void set_given(cJSON *spec, const char *direction, const cJSON *rules)
{
    const cJSON *given = json_get(rules, direction);
    if (json_len(given) > 0)
        json_set(spec, direction, json_copy(given));
}

/* T3. No list of a direction means that nothing is allowed, since both policy types are named. */
static cJSON *policy_spec(const cJSON *template, const struct template_settings *settings)
{
    char hash[NAME_HASH_SIZE];
    template_ref_hash(meta_name(template), hash);
    cJSON *spec = json_object(), *types = json_array();
    json_set(spec, "podSelector", match_labels(LABEL_TEMPLATE_REF_HASH, hash));
    json_push(types, json_string("Ingress"));
    json_push(types, json_string("Egress"));
    json_set(spec, "policyTypes", types);
    const cJSON *rules = json_at(template, "spec.networkPolicy");
    if (cJSON_IsObject(rules)) {
        set_given(spec, "ingress", rules);
        set_given(spec, "egress", rules);
    } else {
        json_set(spec, "ingress", strict_ingress());
        json_set(spec, "egress", strict_egress(settings->resolvers));
    }
    return spec;
}

cJSON *template_policy(const cJSON *template, const struct template_settings *settings)
{
    SCOPED_FREE char *name = template_policy_name(template);
    cJSON *policy = json_object(), *meta = json_object();
    json_set_str(policy, "apiVersion", "networking.k8s.io/v1");
    json_set_str(policy, "kind", "NetworkPolicy");
    json_set_str(meta, "name", name);
    json_set_str(meta, "namespace", meta_namespace(template));
    json_set(meta, "ownerReferences", list_of(owner_reference(template)));
    json_set(policy, "metadata", meta);
    json_set(policy, "spec", policy_spec(template, settings));
    return policy;
}

/* ---- comparison ---- */

/* The cluster's API server fills in the protocol of a port; a template's may lack it. */
static void fill_protocols(cJSON *spec)
{
    static const char *const directions[] = {"ingress", "egress"};
    for (size_t i = 0; i < ARRAY_LEN(directions); i++) {
        cJSON *rule, *port;
        cJSON_ArrayForEach(rule, json_get(spec, directions[i]))
        {
            cJSON_ArrayForEach(port, json_get(rule, "ports"))
            {
                if (!json_get(port, "protocol"))
                    json_set_str(port, "protocol", "TCP");
            }
        }
    }
}

static const struct field policy_spec_fields[] = {
    {.name = "egress", .type = F_LIST, .item = F_OBJECT, .of = &shape_network_policy_egress},
    {.name = "ingress", .type = F_LIST, .item = F_OBJECT, .of = &shape_network_policy_ingress},
    {.name = "policyTypes", .type = F_LIST, .item = F_STRING},
    {0},
};
static const struct shape policy_spec_shape = {.name = "NetworkPolicySpec",
                                               .fields = policy_spec_fields};

static bool same_spec(const cJSON *a, const cJSON *b)
{
    SCOPED(json_free_p) cJSON *x = json_copy(a), *y = json_copy(b);
    fill_protocols(x);
    fill_protocols(y);
    return semantic_equal(&policy_spec_shape, x, y);
}

/* ---- decision ---- */

static void plan_unmanaged(const cJSON *template, const cJSON *existing, struct step *ret)
{
    ret->on = existing;
    ret->failure_prefix = "failed to delete NetworkPolicy: ";
    bool is_ours = existing && owner_class(existing, template) == OWNED;
    ret->verb = is_ours && !meta_is_terminating(existing) ? STEP_DELETE : STEP_KEEP;
}

static void plan_update(const cJSON *existing, const cJSON *wanted, struct step *ret)
{
    ret->on = existing;
    ret->failure_prefix = "failed to update NetworkPolicy: ";
    if (same_spec(json_get(existing, "spec"), json_get(wanted, "spec"))) {
        ret->verb = STEP_KEEP;
        return;
    }
    ret->verb = STEP_UPDATE;
    ret->body = json_copy(existing);
    json_set(ret->body, "spec", json_copy(json_get(wanted, "spec")));
}

void template_plan_policy(const cJSON *template, const struct template_settings *settings,
                          const cJSON *existing, struct step *ret)
{
    if (!template_is_managed(template)) {
        plan_unmanaged(template, existing, ret);
        return;
    }
    SCOPED(json_free_p) cJSON *wanted = template_policy(template, settings);
    if (!existing) {
        ret->verb = STEP_CREATE;
        ret->failure_prefix = "failed to create NetworkPolicy: ";
        ret->body = steal(&wanted);
        return;
    }
    if (owner_class(existing, template) == OWNED) {
        plan_update(existing, wanted, ret);
        return;
    }
    ret->verb = STEP_REFUSE;
    ret->on = existing;
    ret->failure_prefix = "";
    ret->error = xasprintf("refusing to update NetworkPolicy \"%s\" as it is not controlled by "
                           "SandboxTemplate \"%s\"",
                           meta_name(existing), meta_name(template));
}
