/* What other threads leave for one thread that sleeps: things to be looked at, each in the box at
 * most once however often it is posted. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A member of what is posted; starts with only open set. */
struct mail {
    struct mail *prev, *next;
    bool is_posted;
    void (*open)(struct mail *m); /* on the box's thread */
};

struct mailbox {
    pthread_mutex_t lock;
    struct mail *first, *last;
    atomic_size_t n;
    void (*notify)(void *ctx); /* wakes the box's thread; when something is put into an empty box */
    void *ctx;
};

void mailbox_init(struct mailbox *b, void (*notify)(void *ctx), void *ctx);
void mailbox_fini(struct mailbox *b);
void mailbox_post(struct mailbox *b, struct mail *m); /* any thread */
void mailbox_open(struct mailbox *b); /* what was there when it was called; the box's thread */
bool mailbox_is_empty(struct mailbox *b);
/* Afterwards m is not in the box; nobody may post it again. The box's thread. */
void mailbox_cancel(struct mailbox *b, struct mail *m);
