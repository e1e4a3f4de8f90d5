/* The record that two threads share about one connection, with the one sleep and wake that must not
 * race. */
#include "apiserver/http/peer.h"

#include "apiserver/base/mem.h"
#include "apiserver/http/tls.h"

#define PHASE_BITS 3U
#define STEP 4U

struct peer *peer_new(struct cert_der *take_chain, size_t n_chain, const char *addr)
{
    struct peer *p = xcalloc(1, sizeof *p);
    atomic_init(&p->refs, 1);
    atomic_init(&p->progress, STEP | PEER_IDLE);
    p->chain = take_chain;
    p->n_chain = n_chain;
    p->addr = xstrdup(addr);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

struct peer *peer_ref(struct peer *p)
{
    atomic_fetch_add(&p->refs, 1);
    return p;
}

void peer_unref(struct peer *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    tls_chain_free(p->chain, p->n_chain);
    pthread_mutex_destroy(&p->lock);
    free(p->addr);
    free(p);
}

void peer_set_phase(struct peer *p, enum peer_phase phase)
{
    unsigned now = atomic_load(&p->progress);
    atomic_store(&p->progress, ((now & ~PHASE_BITS) + STEP) | phase);
}

unsigned peer_progress(struct peer *p)
{
    return atomic_load(&p->progress);
}

enum peer_phase peer_phase_of(unsigned progress)
{
    return (enum peer_phase)(progress & PHASE_BITS);
}

bool peer_sleep(struct peer *p, void *sleeper, void (*suspend)(void *sleeper),
                void (*resume)(void *sleeper))
{
    pthread_mutex_lock(&p->lock);
    bool may_sleep = !p->is_woken && !atomic_load(&p->is_gone);
    p->is_woken = false;
    if (may_sleep) {
        p->sleeper = sleeper;
        p->resume = resume;
        suspend(sleeper);
    }
    pthread_mutex_unlock(&p->lock);
    return may_sleep;
}

/* resume runs under the lock: the connection cannot end meanwhile, because ending it takes its own
 * thread, which first has to be woken by this. */
void peer_wake(void *peer)
{
    struct peer *p = peer;
    pthread_mutex_lock(&p->lock);
    if (p->sleeper) {
        p->resume(p->sleeper);
        p->sleeper = NULL;
    } else {
        p->is_woken = true;
    }
    pthread_mutex_unlock(&p->lock);
}

void peer_hang_up(struct peer *p)
{
    atomic_store(&p->is_gone, true);
    peer_wake(p);
}
