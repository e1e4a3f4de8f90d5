/* Who is who on a server without a cluster: an authority and certificates in a folder that only its
 * owner may read, and kubeconfigs made of them. What is there and good is kept. Start-up only. */
#pragma once

#include "apiserver/base/err.h"

/* Who the node of node.kubeconfig is, by whatever name it registers itself. */
#define LOCAL_NODE_USER "system:node:local"

struct local_identity { /* starts as {0}; local_identity_fini. Paths of files in the folder */
    char *ca_cert;
    char *serving_cert, *serving_key;
    char *server_cert, *server_key; /* of the server as a client: of itself, and of nodes */
    char *server_config;            /* kubeconfig of the server itself, for its own reconciler */
    char *admin_config;
    char *page_address;                       /* of /ui/, with the admin's token */
    char *etcd_ca, *etcd_cert, *etcd_key;     /* of an etcd of one's own, under an authority that */
    char *etcd_client_cert, *etcd_client_key; /* signs nobody else */
    unsigned char token_key[32];              /* signs tokens of ServiceAccounts and users */
    char *dir;
};
void local_identity_fini(struct local_identity *l);
/* Makes the folder and what is missing in it. host: a further name or address that the server is
 * reached by; NULL = none. Errors: ERR_INVALID what cannot be read or written. */
int local_identity_prepare(const char *dir, const char *host, struct local_identity *ret,
                           struct err *err);
/* Writes the kubeconfigs and the page's address, once it is known where the server is. */
int local_identity_publish(const struct local_identity *l, const char *url, struct err *err);
