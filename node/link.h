/* The door to the kernel's network interfaces (rtnetlink): a bridge whose packets the rules of
 * family ip see, and which port of it belongs to a Pod. Any thread. */
#pragma once

#include <net/if.h>

#include "apiserver/base/err.h"

/* The kernel can hand bridged packets to those rules: its part for that (br_netfilter) is there, or
 * was loaded, in which case other bridges stay as they were. Errors: ERR_NOT_FOUND. */
int link_need_filter(struct err *err);
/* Has the bridge hand over its packets. Errors: ERR_FORBIDDEN. */
int link_filter_bridge(const char *bridge, struct err *err);

#define LINK_MAC_SIZE 18
struct link_port {
    char name[IF_NAMESIZE]; /* of the bridge's port */
    char mac[LINK_MAC_SIZE];
};
/* Where the interface inside of a network namespace, given as a file, comes out here. Errors: it is
 * no port of that bridge. */
int link_find_port(const char *netns, const char *interface, const char *bridge,
                   struct link_port *ret, struct err *err);
