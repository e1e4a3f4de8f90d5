/* Names of Services in Pods: the addresses of their endpoints, served to Pods by a dnsmasq that
 * runs as long as the node does and asks the machine's name servers for everything else. */
#pragma once

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "apiserver/kube/kube.h"

/* Lines of a hosts file for one EndpointSlice: the Service's name for each endpoint that is ready,
 * and HOSTNAME.SERVICE for those with a hostname. Pure. */
void dns_print_slice(const cJSON *slice, const char *domain, struct buf *out);
/* Whether the slice is that of the API server itself: the Service kubernetes in default. Pure. */
bool dns_is_api(const cJSON *slice);
/* The first address of an IPv4 range like 10.90.0.0/16, where the engine puts its bridge. Owned;
 * NULL when that is no range. */
char *dns_address(const char *subnet);

struct dns_config {
    const char *program;   /* dnsmasq, path */
    const char *interface; /* the bridge of Pods; one of these per bridge */
    const char *address;   /* on it, dns_address */
    const char *domain;    /* cluster.local */
    const char *api;       /* what the API server's name leads to, NULL = its endpoints if any */
    const char *log_file;
    struct kube *kube;
    const struct clock *clock;
};
struct dns;
/* Borrows kube and clock; copies the rest. Errors: ERR_INVALID its folder in /run cannot be
 * written. */
int dns_start(const struct dns_config *config, struct dns **ret, struct err *err);
void dns_stop(struct dns *d); /* frees; NULL is fine */
