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
struct link_gate;
/* ca_file: the authorities of clients. Errors: ERR_INVALID files that cannot be used. */
int link_gate_new(const char *cert_file, const char *key_file, const char *ca_file,
                  struct link_gate **ret, struct err *err);
void link_gate_free(struct link_gate *g); /* NULL is fine */

struct link;
/* Takes fd, whatever happens, and makes the handshake, until deadline_ms (monotonic) or stop_fd can
 * be read. A client may come without a certificate. Errors: ERR_UNAVAILABLE it went, or took too
 * long. */
int link_accept(struct link_gate *g, int fd, int stop_fd, int64_t deadline_ms, struct link **ret,
                struct err *err);
void link_free(struct link *l); /* NULL is fine */
/* Whom its certificate names. Errors: ERR_UNAUTHORIZED none came, or not of our authorities. */
int link_client(const struct link *l, struct subject *ret, struct err *err);

/* > 0 that many bytes, 0 = nothing for now, -1 = the connection is over. */
ssize_t link_read(struct link *l, void *p, size_t n);
ssize_t link_write(struct link *l, const void *p, size_t n);
/* What to wait for by poll, before it is tried again. */
int link_fd(const struct link *l);
short link_events(const struct link *l, bool is_reading, bool is_writing);
bool link_has_more(const struct link *l); /* poll does not tell of what is here already */
/* Sends all of it, until deadline_ms or stop_fd can be read. Errors: ERR_UNAVAILABLE. */
int link_send(struct link *l, const void *p, size_t n, int stop_fd, int64_t deadline_ms,
              struct err *err);
