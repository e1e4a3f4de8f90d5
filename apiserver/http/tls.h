/* The listener's side of TLS: certificate and key (replaceable while running), the rules of the
 * handshake, and what a peer presented. Verifies nobody: a client certificate is asked for, never
 * demanded, and handed up as it came (apiserver/auth decides, each time). Any thread; an SSL object
 * belongs to the thread of its connection. */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>

#include "apiserver/auth/auth.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

struct tls;
/* alpn: names we speak, the preferred one first, ended by NULL; borrowed for good.
 * Errors: ERR_INVALID for files that cannot be read or do not belong together. */
int tls_new(const char *cert_file, const char *key_file, const char *const *alpn, struct tls **ret,
            struct err *err);
void tls_free(struct tls *t); /* connections that are open keep what they need */
/* Reads the files again, for connections to come. On failure the old pair stays. */
int tls_reload(struct tls *t, struct err *err);

/* The server's side: reads from fd; what is to be sent is appended to out and never waits. Both
 * stay the caller's. SSL_free; NULL when out of memory. */
SSL *tls_accept(struct tls *t, int fd, struct buf *out);
/* After the handshake: the protocol agreed on; the last of alpn when the client did not ask for
 * any. */
const char *tls_protocol(const struct tls *t, SSL *ssl);
/* After the handshake: the peer's certificates as sent, leaf first; *ret_n = 0 without.
 * tls_chain_free. */
struct cert_der *tls_chain(SSL *ssl, size_t *ret_n);
void tls_chain_free(struct cert_der *chain, size_t n);
