/* An etcd of one's own: a child process on loopback, started again when it ends by itself, ended
 * with its parent however that ends. Knows nothing of what is stored. */
#pragma once

#include "apiserver/base/err.h"

struct etcd_child_config {
    const char *program; /* path, see daemon_find */
    const char
        *data_dir; /* made if it is not there; two programs never share one: the second waits */
    const char *log_file; /* what it prints since it was started last */
    /* TLS for clients and peers, both with certificates of that authority only. */
    const char *ca_file, *cert_file, *key_file;
};
struct etcd_child;
/* Starts it on free ports of 127.0.0.1; it is not waited for until it answers. Errors:
 * ERR_INTERNAL. */
int etcd_child_start(const struct etcd_child_config *config, struct etcd_child **ret,
                     struct err *err);
const char *etcd_child_url(const struct etcd_child *c); /* for clients; the child's */
void etcd_child_stop(struct etcd_child *c);             /* frees; NULL is fine */
