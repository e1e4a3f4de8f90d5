/* One accepted connection: TLS on one side, a socket pair to the HTTP side on the other, and at
 * most one buffer of bytes under way in each direction. Belongs to one pump's thread. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/http/peer.h"

struct pump;
struct conn;

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
    struct peer *peer;         /* from CONN_OPEN on */
    struct backlog in, out;    /* towards the HTTP side, towards the client */
    bool is_in_over;           /* the client sends no more */
    bool is_pair_shut;         /* and the HTTP side was told, or does not listen */
    bool is_out_over;          /* the HTTP side sends no more */
    int64_t deadline_ms;       /* of the state; 0 = none */
    unsigned fed_progress;     /* peer's progress when bytes were last passed in; 0 = never */
    unsigned watched_progress; /* peer's progress that is watched since watched_ms */
    int64_t watched_ms;
    char addr[64];
};

/* What a connection does once its handshake is done, by ALPN name. HTTP/2 joins here as a second
 * row. */
struct conn_protocol {
    const char *name;
    bool (*start)(struct conn *c); /* false = give up */
};
extern const char *const conn_protocol_names[]; /* as tls_new wants them */

/* Takes the accepted socket. NULL when there is no memory or descriptor for it; the socket is
 * closed then. */
struct conn *conn_new(struct pump *pump, int fd, const char *addr);
void conn_on_event(struct end *end, uint32_t events);
void conn_run(struct conn *c);                  /* moves what can be moved */
bool conn_tick(struct conn *c, int64_t now_ms); /* deadlines; false = needs no more ticks */
void conn_end_if_idle(struct conn *c);          /* the server stops */
void conn_kill(struct conn *c);                 /* at once */
void conn_free(struct conn *c);                 /* of a dead one */
