/* One client's connection to the node: TLS with a certificate of ours, bytes in and out that never
 * wait, and who the client is. Of the thread of that connection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "apiserver/base/err.h"
#include "apiserver/base/subject.h"

/* What all connections share. */
struct tls_server;
/* ca_file: the authorities of clients. Files that change are read again for the next connection;
 * while they cannot be used the old ones stay. Errors: ERR_INVALID files that cannot be used. */
int tls_server_new(const char *cert_file, const char *key_file, const char *ca_file,
                   struct tls_server **ret, struct err *err);
void tls_server_free(struct tls_server *s); /* NULL is fine */

struct tls_conn;
/* Takes fd, whatever happens, and makes the handshake, until deadline_ms (monotonic) or stop_fd can
 * be read. A client may come without a certificate. Errors: ERR_UNAVAILABLE it went, or took too
 * long. */
int tls_conn_accept(struct tls_server *s, int fd, int stop_fd, int64_t deadline_ms,
                    struct tls_conn **ret, struct err *err);
void tls_conn_free(struct tls_conn *c); /* NULL is fine */
/* Whom its certificate names. Errors: ERR_UNAUTHORIZED none came, or not of our authorities. */
int tls_conn_client(const struct tls_conn *c, struct subject *ret, struct err *err);

/* > 0 that many bytes, 0 = nothing for now, -1 = the connection is over. */
ssize_t tls_conn_read(struct tls_conn *c, void *p, size_t n);
ssize_t tls_conn_write(struct tls_conn *c, const void *p, size_t n);
/* What to wait for by poll, before it is tried again. */
int tls_conn_fd(const struct tls_conn *c);
short tls_conn_events(const struct tls_conn *c, bool is_reading, bool is_writing);
bool tls_conn_has_more(const struct tls_conn *c); /* poll does not tell of what is here already */
/* Waits for some bytes: how many, 0 = the client ends; until deadline_ms or stop_fd can be read.
 * Errors: ERR_UNAVAILABLE. */
ssize_t tls_conn_receive(struct tls_conn *c, void *p, size_t n, int stop_fd, int64_t deadline_ms,
                         struct err *err);
/* Sends all of it, until deadline_ms or stop_fd can be read. Errors: ERR_UNAVAILABLE. */
int tls_conn_send(struct tls_conn *c, const void *p, size_t n, int stop_fd, int64_t deadline_ms,
                  struct err *err);
/* We send no more; what the client still sends is read and dropped, until it ends as well. */
void tls_conn_end(struct tls_conn *c, int stop_fd, int64_t deadline_ms);
