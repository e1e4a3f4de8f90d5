/* A ruleset has two tables. The one of family bridge sees every frame that comes from a Pod and
 * lets pass only what carries the Pod's own addresses; so the one of family ip can tell Pods by
 * their address. That one judges what is forwarded, between Pods (the bridge hands their packets
 * over, see link.h) and to and from elsewhere, and what is meant for the machine itself. What the
 * machine sends to its Pods is in no chain: that is always allowed, and so are the answers. */
#include "node/policy.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "node/ranges.h"

enum direction { INGRESS, EGRESS };

/* What differs between the directions: words of a policy, and where a connection has the peer. */
static const struct {
    const char *type, *rules, *peers, *peer;
} directions[] = {
    [INGRESS] = {"Ingress", "ingress", "from", "ct original ip saddr"},
    [EGRESS] = {"Egress", "egress", "to", "ct reply ip saddr"},
};

/* Who is meant is the sender of the answers: that is known after any translation of addresses. */
#define PORT_OF_CONNECTION "ct reply proto-src"

#define PEERS_SETTLE 65536 /* so that many peers that are the same Pods take no room */

/* Protocols of a policy; any other word allows nothing. */
static const struct {
    const char *name, *word;
} protocols[] = {{"TCP", "tcp"}, {"UDP", "udp"}, {"SCTP", "sctp"}};

/* Texts that stand once, under a name: sets or chains. */
struct pool {
    char letter;
    struct map *names; /* text to name */
    char **all;        /* names, for their end */
    size_t n;
};

struct compiler {
    const struct policy_world *world;
    struct pool sets, chains;
    struct buf definitions; /* sets and chains, in order */
    struct buf maps[2];     /* elements, by direction */
    bool is_too_large;
};

/* ---- texts that stand once ---- */

static struct pool pool_new(char letter)
{
    return (struct pool){.letter = letter, .names = map_new()};
}

static void pool_fini(struct pool *p)
{
    map_free(p->names);
    strv_free(p->all);
}

/* The text's name; *ret_is_new when it has none yet and is to be defined. */
static const char *pool_name(struct pool *p, const char *text, bool *ret_is_new)
{
    char *name = map_get(p->names, text);
    *ret_is_new = !name;
    if (!name) {
        name = xasprintf("%c%zu", p->letter, ++p->n);
        map_put(p->names, text, name);
        strv_add(&p->all, name);
    }
    return name;
}

static void print_range(struct buf *out, struct range r, bool is_address)
{
    char first[RANGES_ADDRESS_SIZE], last[RANGES_ADDRESS_SIZE];
    if (!is_address) {
        buf_printf(out, r.first == r.last ? "%u" : "%u-%u", r.first, r.last);
        return;
    }
    ranges_print_address(r.first, first);
    ranges_print_address(r.last, last);
    buf_printf(out, r.first == r.last ? "%s" : "%s-%s", first, last);
}

static void print_ranges(struct buf *out, const struct ranges *r, bool are_addresses)
{
    for (size_t i = 0; i < r->n; i++) {
        buf_puts(out, i ? ", " : "");
        print_range(out, r->v[i], are_addresses);
    }
}

static const char *set_of(struct compiler *c, const struct ranges *addresses)
{
    SCOPED(buf_fini) struct buf text = {0};
    bool is_new;
    print_ranges(&text, addresses, true);
    const char *name = pool_name(&c->sets, buf_cstr(&text), &is_new);
    if (is_new)
        buf_printf(&c->definitions,
                   "set %s { type ipv4_addr; flags interval; elements = { %s }; }\n", name,
                   buf_cstr(&text));
    return name;
}

static const char *chain_of(struct compiler *c, const char *body)
{
    bool is_new;
    const char *name = pool_name(&c->chains, body, &is_new);
    if (is_new) {
        buf_printf(&c->definitions, "chain %s {\n", name);
        buf_puts(&c->definitions, body);
        buf_puts(&c->definitions, "}\n");
    }
    return name;
}

/* ---- peers ---- */

static void add_block(const cJSON *block, struct ranges *out)
{
    SCOPED(ranges_fini) struct ranges own = {0};
    struct range r;
    const cJSON *except;
    if (!ranges_read_cidr(json_str_or(block, "cidr", ""), &r))
        return; /* of IPv6: Pods here have no such address */
    ranges_add(&own, r.first, r.last);
    cJSON_ArrayForEach(except, json_get(block, "except"))
    {
        if (cJSON_IsString(except) && ranges_read_cidr(except->valuestring, &r))
            ranges_remove(&own, r.first, r.last);
    }
    ranges_add_all(out, &own);
}

static bool is_peer(const struct compiler *c, const cJSON *policy, const cJSON *peer,
                    const struct policy_pod *pod)
{
    const cJSON *spaces = json_get(peer, "namespaceSelector");
    const cJSON *labels = map_get(c->world->namespaces, pod->namespace_name);
    bool is_space = spaces ? labels && policy_match_labels(spaces, labels)
                           : str_equal(json_str(policy, "metadata.namespace"), pod->namespace_name);
    return is_space && policy_match_labels(json_get(peer, "podSelector"), pod->labels);
}

static void add_peer(const struct compiler *c, const cJSON *policy, const cJSON *peer,
                     struct ranges *out)
{
    const cJSON *block = json_get(peer, "ipBlock");
    if (block)
        add_block(block, out);
    if (block || !(json_get(peer, "namespaceSelector") || json_get(peer, "podSelector")))
        return;
    for (size_t i = 0; i < c->world->n_pods; i++) {
        const struct policy_pod *pod = c->world->pods[i];
        if (is_peer(c, policy, peer, pod))
            ranges_add(out, pod->ip, pod->ip);
    }
}

/* ---- ports ---- */

/* The number that a Pod has under a name, 0 = none. */
static uint32_t port_of(const struct policy_pod *pod, const char *protocol, const char *name)
{
    const cJSON *port;
    cJSON_ArrayForEach(port, pod->ports)
    {
        int64_t number = json_i64_or(port, "containerPort", 0);
        if (str_equal(json_str(port, "name"), name) && number > 0 && number <= UINT16_MAX &&
            strcmp(json_str_or(port, "protocol", "TCP"), protocol) == 0)
            return (uint32_t)number;
    }
    return 0;
}

/* A rule of a policy on its way to lines of a chain. */
struct line {
    struct compiler *c;
    enum direction direction;
    const struct policy_pod *pod; /* whose chain it is; NULL = of any, it has no named ports */
    struct ranges peers;          /* settled */
    bool is_anyone;
    struct buf *out;
};

static void print_peers(const struct line *l, const struct ranges *peers)
{
    buf_printf(l->out, " %s @%s", directions[l->direction].peer, set_of(l->c, peers));
}

/* One protocol; no ports: all of them. */
static void print_ports(const struct line *l, const char *word, const struct ranges *ports)
{
    buf_printf(l->out, "meta l4proto %s", word);
    if (ports) {
        buf_puts(l->out, " " PORT_OF_CONNECTION " { ");
        print_ranges(l->out, ports, false);
        buf_puts(l->out, " }");
    }
    if (!l->is_anyone)
        print_peers(l, &l->peers);
    buf_puts(l->out, " return\n");
}

struct named {
    uint32_t number, ip;
};

static int by_number(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Of those that a rule of egress allows, who has a port of that name, by its number. */
static struct named *find_named(const struct line *l, const char *protocol, const char *name,
                                size_t *ret_n)
{
    const struct policy_world *w = l->c->world;
    struct named *found = xcalloc(w->n_pods + 1, sizeof *found);
    size_t n = 0;
    for (size_t i = 0; i < w->n_pods; i++) {
        uint32_t number = port_of(w->pods[i], protocol, name);
        if (number && (l->is_anyone || ranges_have(&l->peers, w->pods[i]->ip)))
            found[n++] = (struct named){number, w->pods[i]->ip};
    }
    qsort(found, n, sizeof *found, by_number);
    *ret_n = n;
    return found;
}

static void print_named(const struct line *l, size_t protocol, const char *name)
{
    size_t n;
    SCOPED_FREE struct named *found = find_named(l, protocols[protocol].name, name, &n);
    for (size_t i = 0; i < n;) {
        SCOPED(ranges_fini) struct ranges pods = {0};
        uint32_t number = found[i].number;
        for (; i < n && found[i].number == number; i++)
            ranges_add(&pods, found[i].ip, found[i].ip);
        ranges_settle(&pods);
        buf_printf(l->out, "meta l4proto %s " PORT_OF_CONNECTION " %u", protocols[protocol].word,
                   number);
        print_peers(l, &pods);
        buf_puts(l->out, " return\n");
    }
}

static void add_number(const cJSON *entry, int64_t first, struct ranges *out)
{
    int64_t last = json_i64_or(entry, "endPort", first);
    if (first > 0 && last >= first && last <= UINT16_MAX)
        ranges_add(out, (uint32_t)first, (uint32_t)last);
}

/* One entry of a rule's ports: into numbers, or at once. True: all of the protocol. */
static bool take_port(const struct line *l, size_t protocol, const cJSON *entry,
                      struct ranges *numbers)
{
    const cJSON *port = json_get(entry, "port");
    int64_t number;
    if (!port)
        return true;
    if (json_node_i64(port, &number) == 0) {
        add_number(entry, number, numbers);
    } else if (cJSON_IsString(port) && l->direction == EGRESS) {
        print_named(l, protocol, port->valuestring);
    } else if (cJSON_IsString(port)) {
        uint32_t named = port_of(l->pod, protocols[protocol].name, port->valuestring);
        if (named)
            ranges_add(numbers, named, named);
    }
    return false;
}

static void print_protocol(const struct line *l, size_t protocol, const cJSON *ports)
{
    SCOPED(ranges_fini) struct ranges numbers = {0};
    bool is_whole = false;
    const cJSON *entry;
    cJSON_ArrayForEach(entry, ports)
    {
        if (strcmp(json_str_or(entry, "protocol", "TCP"), protocols[protocol].name) == 0)
            is_whole = take_port(l, protocol, entry, &numbers) || is_whole;
    }
    ranges_settle(&numbers);
    if (is_whole || numbers.n)
        print_ports(l, protocols[protocol].word, is_whole ? NULL : &numbers);
}

/* ---- policies ---- */

static bool has_entries(const cJSON *list)
{
    return list && list->child;
}

static bool is_everything(const struct ranges *r)
{
    return r->n == 1 && r->v[0].first == 0 && r->v[0].last == UINT32_MAX;
}

static void print_rule(struct compiler *c, enum direction d, const cJSON *policy, const cJSON *rule,
                       const struct policy_pod *pod, struct buf *out)
{
    struct line l = {.c = c, .direction = d, .pod = pod, .out = out};
    const cJSON *peers = json_get(rule, directions[d].peers), *ports = json_get(rule, "ports");
    const cJSON *peer;
    cJSON_ArrayForEach(peer, peers)
    {
        add_peer(c, policy, peer, &l.peers);
        if (l.peers.n > PEERS_SETTLE)
            ranges_settle(&l.peers);
    }
    ranges_settle(&l.peers);
    l.is_anyone = !has_entries(peers) || is_everything(&l.peers);
    bool is_nobody = !l.is_anyone && l.peers.n == 0;
    if (!is_nobody && has_entries(ports)) {
        for (size_t p = 0; p < ARRAY_LEN(protocols); p++)
            print_protocol(&l, p, ports);
    } else if (l.is_anyone) {
        buf_puts(out, "return\n");
    } else if (!is_nobody) {
        buf_printf(out, "%s @%s return\n", directions[d].peer, set_of(c, &l.peers));
    }
    ranges_fini(&l.peers);
}

/* Without policyTypes a policy is about ingress, and about egress when it has rules of it. */
static bool is_about(const cJSON *policy, enum direction d)
{
    const cJSON *types = json_at(policy, "spec.policyTypes");
    if (has_entries(types))
        return json_has_str(types, directions[d].type);
    return d == INGRESS || has_entries(json_at(policy, "spec.egress"));
}

/* What a policy allows does not depend on the Pod, unless a rule of ingress names a port. */
static bool names_ports(const cJSON *policy)
{
    const cJSON *rule, *entry;
    cJSON_ArrayForEach(rule, json_at(policy, "spec.ingress"))
    {
        cJSON_ArrayForEach(entry, json_get(rule, "ports"))
        {
            if (cJSON_IsString(json_get(entry, "port")))
                return true;
        }
    }
    return false;
}

static size_t entries_of(const cJSON *policy, enum direction d)
{
    size_t n = 0;
    const cJSON *rule;
    cJSON_ArrayForEach(rule, json_get(json_get(policy, "spec"), directions[d].rules)) n +=
        1 + json_len(json_get(rule, directions[d].peers)) + json_len(json_get(rule, "ports"));
    return n;
}

bool policy_is_too_large(const cJSON *policy)
{
    return entries_of(policy, INGRESS) + entries_of(policy, EGRESS) > POLICY_ENTRIES_MAX;
}

/* The lines of a policy; none when they would be too many. */
static char *print_policy(struct compiler *c, enum direction d, const cJSON *policy,
                          const struct policy_pod *pod)
{
    SCOPED(buf_fini) struct buf out = {.max = POLICY_TEXT_MAX};
    const cJSON *rule;
    if (!policy_is_too_large(policy)) {
        cJSON_ArrayForEach(rule, json_get(json_get(policy, "spec"), directions[d].rules))
            print_rule(c, d, policy, rule, pod, &out);
    }
    return buf_failed(&out) ? xstrdup("") : buf_take(&out, NULL);
}

/* Appends what a policy allows a Pod. known: texts of those that are the same for every Pod. */
static void add_policy(struct compiler *c, enum direction d, const cJSON *policy,
                       const struct policy_pod *pod, char **known, struct buf *body)
{
    bool is_own = d == INGRESS && names_ports(policy);
    SCOPED_FREE char *own = is_own ? print_policy(c, d, policy, pod) : NULL;
    if (!is_own && !*known)
        *known = print_policy(c, d, policy, NULL);
    buf_puts(body, is_own ? own : *known);
}

/* The chain of a Pod: what any policy allows returns, anything else is dropped. */
static void add_pod(struct compiler *c, enum direction d, const struct policy_pod *pod,
                    char **known)
{
    SCOPED(buf_fini) struct buf body = {.max = POLICY_RULES_MAX};
    char ip[RANGES_ADDRESS_SIZE];
    bool is_isolated = false;
    for (size_t i = 0; i < c->world->n_policies; i++) {
        const cJSON *policy = c->world->policies[i];
        if (!is_about(policy, d) || !policy_selects(policy, pod))
            continue;
        is_isolated = true;
        add_policy(c, d, policy, pod, &known[i], &body);
    }
    if (!is_isolated)
        return;
    buf_puts(&body, "drop\n");
    c->is_too_large = c->is_too_large || buf_failed(&body);
    ranges_print_address(pod->ip, ip);
    buf_printf(&c->maps[d], "%s%s : jump %s", c->maps[d].len ? ", " : "", ip,
               chain_of(c, buf_cstr(&body)));
}

static void add_direction(struct compiler *c, enum direction d)
{
    char **known = xcalloc(c->world->n_policies + 1, sizeof *known);
    for (size_t i = 0; i < c->world->n_pods; i++) {
        if (c->world->pods[i]->port)
            add_pod(c, d, c->world->pods[i], known);
    }
    for (size_t i = 0; i < c->world->n_policies; i++)
        free(known[i]);
    free(known);
}

/* ---- the whole ---- */

/* Elements, one a Pod of this node. */
static void print_elements(const struct policy_world *w, const char *set, const char *type,
                           void (*print)(const struct policy_pod *pod, struct buf *out),
                           struct buf *out)
{
    bool is_first = true;
    buf_printf(out, "set %s { type %s; elements = { ", set, type);
    for (size_t i = 0; i < w->n_pods; i++) {
        if (!w->pods[i]->port)
            continue;
        buf_puts(out, is_first ? "" : ", ");
        print(w->pods[i], out);
        is_first = false;
    }
    buf_puts(out, " }; }\n");
}

static void print_port(const struct policy_pod *pod, struct buf *out)
{
    buf_printf(out, "\"%s\"", pod->port);
}

static void print_address(const struct policy_pod *pod, struct buf *out)
{
    char ip[RANGES_ADDRESS_SIZE];
    ranges_print_address(pod->ip, ip);
    buf_puts(out, ip);
}

static void print_identity(const struct policy_pod *pod, struct buf *out)
{
    buf_printf(out, "\"%s\" . %s . ", pod->port, pod->mac);
    print_address(pod, out);
}

/* Before the bridge learns an address from a frame. What is no IPv4 ends here: Pods have no other
 * address. Nobody but a Pod's own port may use the Pod's address. */
static void print_frames(const struct policy_world *w, struct buf *out)
{
    print_elements(w, "ports", "ifname", print_port, out);
    print_elements(w, "addresses", "ipv4_addr", print_address, out);
    print_elements(w, "pods", "ifname . ether_addr . ipv4_addr", print_identity, out);
    buf_puts(out, "chain from_pods {\n"
                  "type filter hook prerouting priority -300; policy accept;\n"
                  "ether type arp arp saddr ip @addresses "
                  "iifname . arp saddr ether . arp saddr ip != @pods drop\n"
                  "ether type ip ip saddr @addresses iifname . ether saddr . ip saddr != @pods "
                  "drop\n"
                  "iifname != @ports accept\n"
                  "ether type arp iifname . ether saddr . arp saddr ip @pods "
                  "iifname . arp saddr ether . arp saddr ip @pods accept\n"
                  "ether type ip meta pkttype != { broadcast, multicast } "
                  "iifname . ether saddr . ip saddr @pods accept\n"
                  "drop\n}\n");
}

static void print_map(const struct compiler *c, enum direction d, struct buf *out)
{
    buf_printf(out, "map %s { type ipv4_addr : verdict; ", directions[d].rules);
    if (c->maps[d].len) {
        buf_puts(out, "elements = { ");
        buf_append(out, c->maps[d].data, c->maps[d].len);
        buf_puts(out, " }; ");
    }
    buf_puts(out, "}\n");
}

/* Errors that speak of a connection belong to it. */
#define TRACKED                                                                                    \
    "ct state { invalid, untracked } drop\n"                                                       \
    "meta l4proto icmp ct state related accept\n"                                                  \
    "ct original ip saddr vmap @egress\n"

static void print_packets(struct compiler *c, struct buf *out)
{
    const char *bridge = c->world->bridge;
    print_elements(c->world, "pods", "ipv4_addr", print_address, out);
    buf_append(out, c->definitions.data, c->definitions.len);
    print_map(c, EGRESS, out);
    print_map(c, INGRESS, out);
    buf_printf(out,
               "chain forwarded {\ntype filter hook forward priority 0; policy accept;\n"
               "iifname != \"%s\" oifname != \"%s\" accept\n"
               "iifname \"%s\" ip saddr != @pods drop\n"
               "oifname \"%s\" ip daddr != @pods drop\n" TRACKED "ct reply ip saddr vmap @ingress\n"
               "}\n",
               bridge, bridge, bridge, bridge);
    buf_printf(out,
               "chain to_machine {\ntype filter hook input priority 0; policy accept;\n"
               "iifname != \"%s\" accept\n"
               "ip saddr != @pods drop\n" TRACKED "}\n",
               bridge);
}

/* Takes away a table that need not be there. */
static void print_removal(const char *family, const char *bridge, struct buf *out)
{
    buf_printf(out, "table %s sandbox_node_%s\ndelete table %s sandbox_node_%s\n", family, bridge,
               family, bridge);
}

static bool has_own(const struct policy_world *w)
{
    for (size_t i = 0; i < w->n_pods; i++) {
        if (w->pods[i]->port)
            return true;
    }
    return false;
}

bool policy_compile(const struct policy_world *world, struct buf *out)
{
    struct compiler c = {.world = world, .sets = pool_new('s'), .chains = pool_new('c')};
    c.definitions.max = c.maps[INGRESS].max = c.maps[EGRESS].max = POLICY_RULES_MAX;
    out->max = POLICY_RULES_MAX;
    print_removal("bridge", world->bridge, out);
    print_removal("ip", world->bridge, out);
    if (has_own(world)) {
        add_direction(&c, EGRESS);
        add_direction(&c, INGRESS);
        buf_printf(out, "table bridge sandbox_node_%s {\n", world->bridge);
        print_frames(world, out);
        buf_printf(out, "}\ntable ip sandbox_node_%s {\n", world->bridge);
        print_packets(&c, out);
        buf_puts(out, "}\n");
    }
    bool is_good = !c.is_too_large && !buf_failed(out) && !buf_failed(&c.definitions) &&
                   !buf_failed(&c.maps[INGRESS]) && !buf_failed(&c.maps[EGRESS]);
    buf_fini(&c.definitions);
    buf_fini(&c.maps[INGRESS]);
    buf_fini(&c.maps[EGRESS]);
    pool_fini(&c.sets);
    pool_fini(&c.chains);
    return is_good;
}

bool policy_can_name(const char *interface)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return *interface && interface[strspn(interface, letters)] == '\0';
}
