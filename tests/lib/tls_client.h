/* A blocking TLS client that sends and reads raw text, for what a well-behaved HTTP library would
 * not do. Verifies nothing. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "apiserver/base/buf.h"

struct tls_client {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
    struct buf got; /* all that was read */
};
struct tls_client_opts {
    const char *cert_file, *key_file; /* PEM with the chain, or NULL */
    const char *alpn;                 /* as on the wire: "\x08http/1.1"; NULL = none */
    int max_version;                  /* TLS1_2_VERSION; 0 = the newest */
    SSL_CTX *ctx;                     /* borrowed; NULL = an own one */
    SSL_SESSION *session;             /* to resume, or NULL */
};
int tcp_connect(int port); /* to 127.0.0.1; -1 when refused */
/* False when the connection or the handshake fails. opts may be NULL. */
bool tls_client_open(struct tls_client *c, int port, const struct tls_client_opts *opts);
bool tls_client_send(struct tls_client *c, const char *text);
bool tls_client_send_bytes(struct tls_client *c, const void *bytes, size_t n);
/* Reads until text was seen in what came since the last clear. False at the end of the connection
 * or after 10 s. */
bool tls_client_read_until(struct tls_client *c, const char *text);
/* Reads to the end of the connection: true when it ended in order, false at a break or after 10 s
 * of silence. */
bool tls_client_read_all(struct tls_client *c);
void tls_client_clear(struct tls_client *c);
void tls_client_close(struct tls_client *c);
