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
struct wire_gate;
/* ca_file: the authorities of clients. Errors: ERR_INVALID files that cannot be used. */
int wire_gate_new(const char *cert_file, const char *key_file, const char *ca_file,
                  struct wire_gate **ret, struct err *err);
void wire_gate_free(struct wire_gate *g); /* NULL is fine */

struct wire;
/* Takes fd, whatever happens, and makes the handshake, until deadline_ms (monotonic) or stop_fd can
 * be read. A client may come without a certificate. Errors: ERR_UNAVAILABLE it went, or took too
 * long. */
int wire_accept(struct wire_gate *g, int fd, int stop_fd, int64_t deadline_ms, struct wire **ret,
                struct err *err);
void wire_free(struct wire *w); /* NULL is fine */
/* Whom its certificate names. Errors: ERR_UNAUTHORIZED none came, or not of our authorities. */
int wire_client(const struct wire *w, struct subject *ret, struct err *err);

/* > 0 that many bytes, 0 = nothing for now, -1 = the connection is over. */
ssize_t wire_read(struct wire *w, void *p, size_t n);
ssize_t wire_write(struct wire *w, const void *p, size_t n);
/* What to wait for by poll, before it is tried again. */
int wire_fd(const struct wire *w);
short wire_events(const struct wire *w, bool is_reading, bool is_writing);
bool wire_has_more(const struct wire *w); /* poll does not tell of what is here already */
/* Waits for some bytes: how many, 0 = the client ends; until deadline_ms or stop_fd can be read.
 * Errors: ERR_UNAVAILABLE. */
ssize_t wire_receive(struct wire *w, void *p, size_t n, int stop_fd, int64_t deadline_ms,
                     struct err *err);
/* Sends all of it, until deadline_ms or stop_fd can be read. Errors: ERR_UNAVAILABLE. */
int wire_send(struct wire *w, const void *p, size_t n, int stop_fd, int64_t deadline_ms,
              struct err *err);
/* We send no more; what the client still sends is read and dropped, until it ends as well. */
void wire_end(struct wire *w, int stop_fd, int64_t deadline_ms);
