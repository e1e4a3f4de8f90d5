/* Bytes that clients may have us hold at once, all connections together: a ceiling that is shared.
 * Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
    atomic_size_t used;
    size_t max;
};

/* Takes all of n or nothing. */
static inline bool budget_take(struct budget *b, size_t n)
{
    size_t used = atomic_load(&b->used);
    do {
        if (n > b->max - used)
            return false;
    } while (!atomic_compare_exchange_weak(&b->used, &used, used + n));
    return true;
}

static inline void budget_give(struct budget *b, size_t n)
{
    atomic_fetch_sub(&b->used, n);
}
