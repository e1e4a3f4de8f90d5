/* An authority of one's own, for a server without a cluster: makes keys and certificates. Knows no
 * files but by their texts (PEM). Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

struct pair_pem { /* starts as {0}; pair_pem_fini */
    struct buf cert, key;
};
void pair_pem_fini(struct pair_pem *p);

struct issue_request {
    const char *common_name;
    const char *organization;    /* NULL = none */
    const char *alternatives;    /* DNS:a,IP:127.0.0.1; NULL = none */
    bool is_authority;           /* signs itself, and others; else the two below */
    bool is_server, is_client;   /* what it is good for */
    const struct pair_pem *from; /* the authority; NULL = itself */
    int64_t days;
};
/* A new key (P-256) and its certificate, valid from an hour ago. Errors: ERR_INTERNAL when OpenSSL
 * fails; ERR_INVALID when from is no authority. */
int issue(const struct issue_request *req, struct pair_pem *ret, struct err *err);
/* Whether the pair's certificate is of that authority (by its key), is good for what it was asked
 * for, names the alternatives, and stays good for another so many days. */
bool issue_is_good(const struct pair_pem *p, const struct issue_request *req, int64_t days_left);
