/* Leads Pods to an API server that listens on this machine's loopback alone. On the bridge, at the
 * node's address there, it takes connections of Pods that may, and carries their bytes to the
 * server and back without looking at them: TLS is between the two. Bounded: connections, those of
 * one Pod, and what is held of each; who is gone without a word is noticed by the kernel. One
 * thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/err.h"

#define RELAY_MAX 512    /* connections */
#define RELAY_POD_MAX 32 /* of one address */

/* Whether a Pod is one that may: it has a volume with a token of its service account, and has not
 * ended. Pure. */
bool relay_is_for(const cJSON *pod);

struct relay_config {      /* strings are borrowed until relay_free */
    const char *interface; /* the bridge */
    const char *address;   /* on it */
    int port;              /* there */
    const char *server;    /* URL */
};
struct relay;
/* Errors: ERR_NOT_FOUND the server is not on this machine's loopback, so Pods need no relay;
 * ERR_INTERNAL descriptors are lacking. */
int relay_new(const struct relay_config *config, struct relay **ret, struct err *err);
/* lets_in is asked for each connection, with the address that it comes from. */
void relay_start(struct relay *r, bool (*lets_in)(void *ctx, const char *ip), void *ctx);
/* The bridge is there, perhaps another one of that name: listens on it. Any thread. */
void relay_listen(struct relay *r);
void relay_stop(struct relay *r); /* asks lets_in no more */
void relay_free(struct relay *r); /* after relay_stop, if started; NULL is fine */
