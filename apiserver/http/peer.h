/* What the two halves of a connection share: the thread that moves its bytes (pump) and the one
 * that speaks HTTP on it (mhd). Counted; chain and addr are constant, the rest is atomic or under
 * the lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "apiserver/auth/auth.h"

/* Where the HTTP side is with the connection. */
enum peer_phase {
    PEER_IDLE, /* between requests, or in the middle of a request's headers */
    PEER_BODY, /* headers are complete, the body is not */
    PEER_BUSY, /* being handled or answered */
};

struct peer {
    atomic_int refs;
    struct cert_der *chain;
    size_t n_chain;
    char *addr;           /* 127.0.0.1:40000, for logs */
    atomic_uint progress; /* changes with every phase; the phase is in the two lowest bits */
    atomic_bool is_gone;  /* the client sends no more: for a stream it is away */
    pthread_mutex_t lock; /* guards what follows */
    void *sleeper;        /* a suspended connection with a stream, or NULL */
    void (*resume)(void *sleeper);
    bool is_woken; /* a wake came while nobody slept */
};

struct peer *peer_new(struct cert_der *take_chain, size_t n_chain, const char *addr);
struct peer *peer_ref(struct peer *p);
void peer_unref(struct peer *p);

void peer_set_phase(struct peer *p, enum peer_phase phase); /* the HTTP side's thread only */
unsigned peer_progress(struct peer *p);
enum peer_phase peer_phase_of(unsigned progress);

/* Puts the connection to sleep by suspend(sleeper) unless a wake came since the last call; then
 * false, and there is something to do. A later wake calls resume(sleeper) once. HTTP side's thread
 * only. */
bool peer_sleep(struct peer *p, void *sleeper, void (*suspend)(void *sleeper),
                void (*resume)(void *sleeper));
void peer_wake(void *peer);        /* any thread */
void peer_hang_up(struct peer *p); /* is_gone, and wake */
