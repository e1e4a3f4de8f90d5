/* A locked list. Whatever is opened is out of the box before, so that who posts it meanwhile puts
 * it in again: nothing is missed. */
#include "apiserver/http/mailbox.h"

void mailbox_init(struct mailbox *b, void (*notify)(void *ctx), void *ctx)
{
    *b = (struct mailbox){.notify = notify, .ctx = ctx};
    pthread_mutex_init(&b->lock, NULL);
}

void mailbox_fini(struct mailbox *b)
{
    pthread_mutex_destroy(&b->lock);
}

/* The lock is held. */
static void append(struct mailbox *b, struct mail *m)
{
    m->is_posted = true;
    m->next = NULL;
    m->prev = b->last;
    if (b->last)
        b->last->next = m;
    else
        b->first = m;
    b->last = m;
}

/* The lock is held. */
static void take_out(struct mailbox *b, struct mail *m)
{
    if (m->prev)
        m->prev->next = m->next;
    else
        b->first = m->next;
    if (m->next)
        m->next->prev = m->prev;
    else
        b->last = m->prev;
    m->is_posted = false;
    atomic_fetch_sub(&b->n, 1);
}

void mailbox_post(struct mailbox *b, struct mail *m)
{
    bool was_empty = false;
    pthread_mutex_lock(&b->lock);
    if (!m->is_posted) {
        append(b, m);
        was_empty = atomic_fetch_add(&b->n, 1) == 0;
    }
    pthread_mutex_unlock(&b->lock);
    if (was_empty)
        b->notify(b->ctx);
}

void mailbox_open(struct mailbox *b)
{
    for (size_t n = atomic_load(&b->n); n > 0; n--) {
        pthread_mutex_lock(&b->lock);
        struct mail *m = b->first;
        if (m)
            take_out(b, m);
        pthread_mutex_unlock(&b->lock);
        if (!m)
            break; /* cancelled by what was opened */
        m->open(m);
    }
}

bool mailbox_is_empty(struct mailbox *b)
{
    return atomic_load(&b->n) == 0;
}

void mailbox_cancel(struct mailbox *b, struct mail *m)
{
    pthread_mutex_lock(&b->lock);
    if (m->is_posted)
        take_out(b, m);
    pthread_mutex_unlock(&b->lock);
}
