/* TLS connections of the server's own to the nodes of Pods. Who answers must hold the certificate
 * of the node's user (system:node:NAME of system:nodes) of the server's authority, or that of the
 * one who may answer for any node that is not to be asked alone: an address says nothing about who
 * is there. Any thread; blocks up to the deadline. */
#pragma once

#include <openssl/ssl.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "apiserver/http/reply.h"

struct dialer;
struct dialer_config {
    const char *ca_file;              /* PEM; of the nodes' certificates */
    const char *cert_file, *key_file; /* what the server shows to nodes */
    const char *any_node;             /* common name; borrowed; NULL = nobody */
};
/* Errors: ERR_INVALID for files that cannot be read or do not belong together. */
int dialer_new(const struct dialer_config *config, struct dialer **ret, struct err *err);
void dialer_end(struct dialer *d);  /* nobody waits for a node any more, now or later */
void dialer_free(struct dialer *d); /* NULL is fine; lines that are open keep what they need */

struct line { /* starts as {0}; line_fini. The socket does not block */
    SSL *ssl; /* NULL = none */
    int fd;
    int end_fd; /* of its dialer, while that is there: readable once nobody is to wait */
};
void line_fini(struct line *l); /* closes */

struct dial_node {
    const char *name;
    bool is_alone; /* nobody may answer for it but itself */
};
/* Connects to a numeric address. Errors: ERR_UNKNOWN with "error dialing backend", as
 * kube-apiserver; ERR_TOO_MANY. */
int dial(struct dialer *d, const struct dial_node *node, const char *address, int port,
         int64_t until_ms, struct line *ret, struct err *err);
enum line_io {
    LINE_SOME,
    LINE_WAIT_IN,  /* for something to come */
    LINE_WAIT_OUT, /* for room to send */
    LINE_END,      /* the node sends no more */
    LINE_BROKEN,
};
/* Neither waits; *ret_n is set with LINE_SOME. What was not sent is to be sent again first. */
enum line_io line_read(struct line *l, char *into, size_t max, size_t *ret_n);
enum line_io line_write(struct line *l, const char *p, size_t n, size_t *ret_n);
void line_end(struct line *l); /* we send no more */

/* Sends a whole request and reads the answer's head. What came behind it is appended to ahead: of
 * the body without its framing, or as it came after 101. Errors as above. */
int line_ask(struct line *l, const struct buf *request, int64_t until_ms, struct reply *ret,
             struct buf *ahead, struct err *err);
/* Reads the rest of the body, at most max bytes of it; that the rest is lost is no error. */
void line_read_body(struct line *l, struct reply *r, size_t max, int64_t until_ms,
                    struct buf *body);
