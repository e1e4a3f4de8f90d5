/* What the two halves of a connection share: the thread that moves its bytes (pump) and the one
 * that speaks HTTP on it (mhd). Counted; chain and addr are constant, the rest is atomic or under
 * the lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "apiserver/auth/auth.h"
#include "apiserver/http/mailbox.h"

/* Where the HTTP side is with the connection. */
enum peer_phase {
    PEER_IDLE, /* between requests, or in the middle of a request's headers */
    PEER_BODY, /* headers are complete, the body is not */
    PEER_BUSY, /* being handled or answered */
    PEER_RAW,  /* no HTTP any more */
};

/* A stream that answers a request, for the thread that moves the bytes: the HTTP side has sent the
 * head, and sleeps until it is resumed to send what follows the stream. */
struct handover {
    struct stream *stream;
    bool is_chunked;                /* each piece of it is a chunk of RFC 9112, 7.1 */
    int fd;                         /* where its take finds what the client sends */
    void (*suspend)(void *sleeper); /* before anybody can resume it */
    void (*resume)(void *sleeper);
    void *sleeper;
};

struct peer {
    atomic_int refs;
    struct cert_der *chain;
    size_t n_chain;
    char *addr;               /* 127.0.0.1:40000, for logs */
    atomic_uint progress;     /* changes with every phase; the phase is in the two lowest bits */
    struct mailbox *box;      /* of the thread that moves the bytes, and */
    struct mail *mail;        /* what tells it of a handover; both valid until is_gone */
    pthread_mutex_t lock;     /* guards what follows */
    struct handover handover; /* not yet taken; without stream = none */
    bool is_gone;             /* the client sends no more: for a stream it is away */
};

struct peer *peer_new(struct cert_der *take_chain, size_t n_chain, const char *addr);
struct peer *peer_ref(struct peer *p);
void peer_unref(struct peer *p);

void peer_set_phase(struct peer *p, enum peer_phase phase); /* the HTTP side's thread only */
unsigned peer_progress(struct peer *p);
enum peer_phase peer_phase_of(unsigned progress);

/* The HTTP side hands a stream over and goes to sleep. False when the client is away; then the
 * stream stays with the caller, who stays awake. */
bool peer_hand_over(struct peer *p, const struct handover *h);
/* The other thread: takes what was handed over; false when there is nothing. */
bool peer_take_over(struct peer *p, struct handover *ret);
void peer_hang_up(struct peer *p); /* from now on nothing is handed over */
