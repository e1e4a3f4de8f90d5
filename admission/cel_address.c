/* IP addresses and CIDR blocks of Kubernetes's libraries. Only canonical forms of both families, as
 * Go's netip reads them: no zones, no leading zeros, no IPv4 in IPv6 with dots. Source: Kubernetes,
 * "CEL in Kubernetes", IP and CIDR libraries. */
#include <arpa/inet.h>

#include "admission/cel_tree.h"
#include "apiserver/base/mem.h"

#define ADDRESS_TEXT_MAX 64 /* bytes; longer than any address */

static struct cel_value made(struct cel_ctx *c, enum cel_type type, const struct cel_address *a)
{
    struct cel_address *copy = cel_alloc(c, 1, sizeof *copy);
    if (!copy)
        return cel_spent();
    *copy = *a;
    return (struct cel_value){.type = type, .address = copy};
}

/* ---- from texts ---- */

static bool parse_ip(struct str s, struct cel_address *ret)
{
    char text[ADDRESS_TEXT_MAX];
    if (s.n == 0 || s.n >= sizeof text || memchr(s.p, 0, s.n))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    bool is_v6 = strchr(text, ':') != NULL;
    if (is_v6 && strchr(text, '.'))
        return false;
    *ret = (struct cel_address){.size = is_v6 ? 16 : 4, .prefix = CEL_NO_PREFIX};
    return inet_pton(is_v6 ? AF_INET6 : AF_INET, text, ret->bytes) == 1;
}

/* Digits without a leading zero, up to max. */
static bool parse_prefix(struct str s, uint8_t max, uint8_t *ret)
{
    unsigned v = 0;
    if (s.n == 0 || s.n > 3 || (s.n > 1 && s.p[0] == '0'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        v = v * 10 + (unsigned)(s.p[i] - '0');
    }
    *ret = (uint8_t)v;
    return v <= max;
}

static bool parse_cidr(struct str s, struct cel_address *ret)
{
    const char *slash = memchr(s.p, '/', s.n);
    if (!slash || !parse_ip((struct str){s.p, (size_t)(slash - s.p)}, ret))
        return false;
    struct str prefix = {slash + 1, s.n - (size_t)(slash + 1 - s.p)};
    return parse_prefix(prefix, (uint8_t)(ret->size * 8), &ret->prefix);
}

static struct cel_value ip(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_address a;
    return parse_ip(v->s, &a) ? made(c, CEL_IP, &a) : cel_error("no IP address");
}

static struct cel_value cidr(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_address a;
    return parse_cidr(v->s, &a) ? made(c, CEL_CIDR, &a) : cel_error("no CIDR block");
}

static struct cel_value is_ip(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    struct cel_address a;
    return cel_bool(parse_ip(v->s, &a));
}

static struct cel_value is_cidr(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    struct cel_address a;
    return cel_bool(parse_cidr(v->s, &a));
}

static struct cel_value is_canonical(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    struct cel_address a;
    char text[INET6_ADDRSTRLEN] = "";
    if (!parse_ip(v->s, &a))
        return cel_error("no IP address");
    inet_ntop(a.size == 4 ? AF_INET : AF_INET6, a.bytes, text, sizeof text);
    return cel_bool(str_eq(v->s, text));
}

/* ---- what an address is ---- */

static const uint8_t zeros[16];

static bool is_unspecified(const struct cel_address *a)
{
    return memcmp(a->bytes, zeros, a->size) == 0;
}

static bool is_loopback(const struct cel_address *a)
{
    if (a->size == 4)
        return a->bytes[0] == 127;
    return memcmp(a->bytes, zeros, 15) == 0 && a->bytes[15] == 1;
}

static bool is_multicast(const struct cel_address *a)
{
    return a->size == 4 ? (a->bytes[0] & 0xf0) == 0xe0 : a->bytes[0] == 0xff;
}

static bool is_link_local_multicast(const struct cel_address *a)
{
    if (a->size == 4)
        return a->bytes[0] == 224 && a->bytes[1] == 0 && a->bytes[2] == 0;
    return a->bytes[0] == 0xff && (a->bytes[1] & 0x0f) == 2;
}

static bool is_link_local_unicast(const struct cel_address *a)
{
    if (a->size == 4)
        return a->bytes[0] == 169 && a->bytes[1] == 254;
    return a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

/* Private addresses are global here, as in Go. */
static bool is_global_unicast(const struct cel_address *a)
{
    static const uint8_t broadcast[] = {255, 255, 255, 255};
    bool is_broadcast = a->size == 4 && memcmp(a->bytes, broadcast, 4) == 0;
    return !is_unspecified(a) && !is_loopback(a) && !is_multicast(a) && !is_link_local_unicast(a) &&
           !is_broadcast;
}

/* A function that asks one of these. */
#define QUESTION(name, test)                                                                       \
    static struct cel_value name(struct cel_ctx *c, const struct cel_value *v, size_t n)           \
    {                                                                                              \
        (void)c, (void)n;                                                                          \
        return cel_bool(test(v->address));                                                         \
    }
QUESTION(unspecified, is_unspecified)
QUESTION(loopback, is_loopback)
QUESTION(link_local_multicast, is_link_local_multicast)
QUESTION(link_local_unicast, is_link_local_unicast)
QUESTION(global_unicast, is_global_unicast)

static struct cel_value family(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_int(v->address->size == 4 ? 4 : 6);
}

/* ---- blocks ---- */

/* The address with all bits behind the prefix zero. */
static struct cel_address masked_of(const struct cel_address *a, unsigned prefix)
{
    struct cel_address m = *a;
    for (unsigned i = 0; i < m.size; i++) {
        unsigned bits = prefix > 8 * i ? prefix - 8 * i : 0;
        m.bytes[i] &= (uint8_t)(bits >= 8 ? 0xff : 0xff << (8 - bits));
    }
    return m;
}

/* Whether an address, whole or the first of a block, is in a block. */
static bool contains(const struct cel_address *block, const struct cel_address *a)
{
    struct cel_address x = masked_of(block, block->prefix), y = masked_of(a, block->prefix);
    return block->size == a->size && memcmp(x.bytes, y.bytes, x.size) == 0;
}

static struct cel_value contains_ip(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    struct cel_address a;
    if (v[1].type == CEL_IP)
        a = *v[1].address;
    else if (!parse_ip(v[1].s, &a))
        return cel_error("no IP address");
    return cel_bool(contains(v->address, &a));
}

static struct cel_value contains_cidr(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    struct cel_address a;
    if (v[1].type == CEL_CIDR)
        a = *v[1].address;
    else if (!parse_cidr(v[1].s, &a))
        return cel_error("no CIDR block");
    return cel_bool(contains(v->address, &a) && a.prefix >= v->address->prefix);
}

static struct cel_value ip_of(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_address a = *v->address;
    a.prefix = CEL_NO_PREFIX;
    return made(c, CEL_IP, &a);
}

static struct cel_value masked(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_address a = masked_of(v->address, v->address->prefix);
    return made(c, CEL_CIDR, &a);
}

static struct cel_value prefix_length(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_int(v->address->prefix);
}

const struct cel_function cel_address_functions[] = {
    {"cidr", "s:c", cidr},
    {"containsCIDR", "c.c:b", contains_cidr},
    {"containsCIDR", "c.s:b", contains_cidr},
    {"containsIP", "c.p:b", contains_ip},
    {"containsIP", "c.s:b", contains_ip},
    {"family", "p.:i", family},
    {"ip", "c.:p", ip_of},
    {"ip", "s:p", ip},
    {"ip.isCanonical", "s:b", is_canonical},
    {"isCIDR", "s:b", is_cidr},
    {"isGlobalUnicast", "p.:b", global_unicast},
    {"isIP", "s:b", is_ip},
    {"isLinkLocalMulticast", "p.:b", link_local_multicast},
    {"isLinkLocalUnicast", "p.:b", link_local_unicast},
    {"isLoopback", "p.:b", loopback},
    {"isUnspecified", "p.:b", unspecified},
    {"masked", "c.:c", masked},
    {"prefixLength", "c.:i", prefix_length},
    {0},
};
