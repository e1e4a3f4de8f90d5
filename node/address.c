#include "node/address.h"

#include <arpa/inet.h>
#include <stdint.h>

#include "apiserver/base/mem.h"
#include "node/ranges.h"

#define FIRST 0x0a800000u /* 10.128.0.0 */
#define COUNT (1u << 23)
#define NODES_FIRST 0xc6120000u /* 198.18.0.0. Source: RFC 2544 */

struct address_space {
    uint32_t next; /* tried first: an address rests as long as possible before it comes again */
    uint8_t taken[COUNT / 8];
};

/* False when it is none of ours. */
static bool place_of(const char *ip, uint32_t *ret)
{
    struct in_addr in;
    if (inet_pton(AF_INET, ip, &in) != 1)
        return false;
    *ret = ntohl(in.s_addr) - FIRST;
    return *ret < COUNT;
}

static bool is_taken(const struct address_space *a, uint32_t i)
{
    return a->taken[i / 8] >> i % 8 & 1;
}

/* 0 and 255 at the end look like networks and broadcasts to people. */
static bool is_plain(uint32_t i)
{
    return (i & 255) != 0 && (i & 255) != 255;
}

struct address_space *address_space_new(void)
{
    return xcalloc(1, sizeof(struct address_space));
}

void address_space_free(struct address_space *a)
{
    free(a);
}

bool address_take(struct address_space *a, char ret[ADDRESS_TEXT_SIZE])
{
    for (uint32_t tries = 0; tries < COUNT; tries++) {
        uint32_t i = a->next;
        a->next = (a->next + 1) % COUNT;
        if (is_taken(a, i) || !is_plain(i))
            continue;
        a->taken[i / 8] |= (uint8_t)(1u << i % 8);
        ranges_print_address(FIRST + i, ret);
        return true;
    }
    return false;
}

void address_take_this(struct address_space *a, const char *ip)
{
    uint32_t i;
    if (place_of(ip, &i))
        a->taken[i / 8] |= (uint8_t)(1u << i % 8);
}

void address_give_back(struct address_space *a, const char *ip)
{
    uint32_t i;
    if (place_of(ip, &i))
        a->taken[i / 8] &= (uint8_t) ~(1u << i % 8);
}

void address_of_node(int i, char ret[ADDRESS_TEXT_SIZE])
{
    ranges_print_address(NODES_FIRST + 1 + (uint32_t)i, ret);
}
