/* One accepted connection: TLS on one side; on the other, for HTTP/1.1, a socket pair to
 * libmicrohttpd and at times a stream that answers a request, for HTTP/2 the session itself; and at
 * most one buffer of bytes under way in each direction. Belongs to one pump's thread. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/http/flow.h"
#include "apiserver/http/peer.h"

struct conn;
struct h2;
struct pump;

/* A socket in the pump's epoll set, edge-triggered: the flags say what is known and are cleared at
 * EAGAIN. */
struct end {
    struct conn *conn;
    int fd; /* -1 = closed */
    bool is_readable, is_writable;
};

/* Bytes that the far side has not taken yet. */
struct backlog {
    char *p;
    size_t n, off;
};
static inline void conn_backlog_fini(struct backlog *b)
{
    free(b->p);
    *b = (struct backlog){0};
}

enum conn_state {
    CONN_HANDSHAKE,
    CONN_OPEN,
    CONN_LINGER, /* all is sent; what the client still sends is thrown away, lest a reset overtakes
                    our answer */
    CONN_DEAD,   /* closed; the pump frees it */
};

struct conn {
    struct pump *pump;
    struct conn *prev, *next;             /* of the pump */
    struct conn *timed_prev, *timed_next; /* those with a deadline */
    struct conn *next_again;
    bool is_timed, is_again;
    enum conn_state state;
    struct end tcp, pair;
    SSL *ssl;
    const struct conn_protocol *protocol; /* from CONN_OPEN on */
    struct peer *peer;
    struct h2 *h2;     /* HTTP/2 */
    struct backlog in; /* towards the HTTP side */
    struct buf out;    /* towards the client, encrypted; up to out_off it is sent */
    size_t out_off;
    int64_t out_since_ms;      /* the client has taken nothing of what waits since; 0 = none does */
    bool is_raw;               /* it may take nothing for as long as it likes */
    bool is_in_over;           /* the client sends no more */
    bool is_pair_shut;         /* and the HTTP side was told, or does not listen */
    bool is_out_over;          /* the HTTP side sends no more */
    int64_t deadline_ms;       /* of the state; 0 = none */
    unsigned fed_progress;     /* peer's progress when bytes were last passed in; 0 = never */
    unsigned watched_progress; /* peer's progress that is watched since watched_ms */
    int64_t watched_ms;
    struct mail handed; /* HTTP/1.1: says that the peer has a stream for us */
    struct handover handover;
    struct flow flow;   /* its stream */
    bool is_flow_ready; /* it may have something to say */
    char addr[64];
};

/* What a connection does once its handshake is done, by ALPN name. */
struct conn_protocol {
    const char *name;
    int unsent_bytes; /* that may wait in the kernel for a client that has no room for them */
    bool (*start)(struct conn *c); /* false = give up */
    void (*run)(struct conn *c);
    bool (*tick)(struct conn *c, int64_t now_ms);
    void (*end_if_idle)(struct conn *c);
    void (*send_away)(struct conn *c);
    void (*hang_up)(struct conn *c); /* the client is away, for streams; or NULL */
};
extern const struct conn_protocol conn_http1, conn_http2;
/* As tls_new wants them, HTTP/2 first; without it from the second on. */
extern const char *const conn_protocol_names[];

/* Takes the accepted socket. NULL when there is no memory or descriptor for it; the socket is
 * closed then. */
struct conn *conn_new(struct pump *pump, int fd, const char *addr);
void conn_on_event(struct end *end, uint32_t events);
void conn_run(struct conn *c);                  /* moves what can be moved */
bool conn_tick(struct conn *c, int64_t now_ms); /* deadlines; false = needs no more ticks */
void conn_send_away(struct conn *c);            /* so that its client comes anew */
void conn_end_if_idle(struct conn *c);          /* the server stops */
void conn_kill(struct conn *c);                 /* at once */
void conn_free(struct conn *c);                 /* of a dead one */

/* For the protocols. */
enum conn_io { IO_DONE, IO_WAIT, IO_END, IO_BROKEN };
/* From the client, at most a scratch buffer; IO_DONE: *ret_n bytes are in the pump's scratch. */
enum conn_io conn_receive(struct conn *c, size_t *ret_n);
/* Encrypts, to be sent by conn_flush. False when the connection is broken (and dead). */
bool conn_send(struct conn *c, const char *p, size_t n);
bool conn_has_room(const struct conn *c); /* to send more: the client takes what it gets */
/* What was encrypted goes out, as far as the client takes it; whether something did. */
bool conn_flush(struct conn *c);
void conn_set_deadline(struct conn *c, int64_t in_ms);
void conn_linger(
    struct conn *c);  /* all is sent: says so, and waits for the client to have noticed */
#define CONN_TURNS 16 /* times that room was filled, before others have their turn */
