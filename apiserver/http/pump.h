/* The threads that accept connections, move bytes between TLS and the HTTP side, and are the HTTP/2
 * side. Each has its own connections and sleeps in epoll unless a socket is ready or a deadline
 * runs. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/err.h"
#include "apiserver/http/conn.h"
#include "apiserver/http/h2.h"
#include "apiserver/http/mailbox.h"
#include "apiserver/http/mhd.h"
#include "apiserver/http/tls.h"

/* What the pumps of a server share. Borrowed, constant but for the count. */
struct pump_shared {
    struct tls *tls;
    struct mhd *mhd;
    const struct h2_config *h2;
    int listen_fd;
    size_t max_connections;
    int64_t handshake_timeout_ms, header_timeout_ms;
    int64_t idle_timeout_ms; /* for a client to take what was sent to it, as long as it takes
                                nothing at all */
    atomic_size_t n_connections;
};

#define PUMP_SCRATCH ((size_t)16 << 10) /* bytes moved at once: one TLS record */

/* The members are for conn.c and pump.c. */
struct pump {
    struct pump_shared *shared;
    pthread_t thread;
    int epoll_fd, wake_fd;
    struct mailbox box; /* answers of HTTP/2, streams that HTTP/1.1 hands over, wakes of both */
    struct conn *conns, *timed, *again;
    bool is_accepting;
    atomic_bool is_leaving, is_draining, is_cut;
    int64_t accept_again_ms; /* descriptors ran out: not before */
    char scratch[PUMP_SCRATCH];
    /* Memory for those who have something to send: as it is said, and as it is encrypted. */
    struct buf plain, sealed;
};

int pump_start(struct pump_shared *shared, struct pump **ret, struct err *err);
void pump_send_away(struct pump *p); /* connections that were used end, new ones are taken; any
                                        thread */
void pump_drain(struct pump *p);     /* no new connections, idle ones end; any thread */
void pump_cut(struct pump *p);       /* ends all connections and the thread, joins it */
void pump_free(struct pump *p);      /* cuts first, the workers must have stopped; NULL is fine */

/* For conn.c, on the pump's thread. */
int64_t pump_now_ms(void);
bool pump_watch(struct pump *p, struct end *end);
void pump_need_ticks(struct conn *c);
void pump_run_again(struct conn *c); /* after other connections had their turn */
