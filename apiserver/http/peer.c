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

bool peer_hand_over(struct peer *p, const struct handover *h)
{
    pthread_mutex_lock(&p->lock);
    bool is_taken = !p->is_gone;
    if (is_taken) {
        h->suspend(h->sleeper);
        p->handover = *h;
        mailbox_post(p->box, p->mail);
    }
    pthread_mutex_unlock(&p->lock);
    return is_taken;
}

bool peer_take_over(struct peer *p, struct handover *ret)
{
    pthread_mutex_lock(&p->lock);
    *ret = steal(&p->handover);
    pthread_mutex_unlock(&p->lock);
    return ret->stream != NULL;
}

void peer_hang_up(struct peer *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_gone = true;
    pthread_mutex_unlock(&p->lock);
}
