/* Who may be bound next: the adoptable members of every pool, in the order in which claims take
 * them, and which of them are taken aside for a claim under way. Only names and what counts for the
 * order; objects stay in the cache. It has a lock of its own; any thread. Every call is O(log
 * members), so a large pool serves as quickly as a small one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bind_class {
    BIND_READY,   /* ready: chosen first */
    BIND_ADDRESS, /* has an address, is not ready: when there is no ready one */
    BIND_PENDING, /* has no address yet: never chosen, but worth a short wait */
    BIND_CLASSES
};
struct bind_member {
    const char *pool; /* its name */
    const char *node; /* "" = not known */
    enum bind_class class;
    int64_t created_s; /* the oldest goes first */
};

struct bind_index;
struct bind_index *bind_index_new(void);
void bind_index_free(struct bind_index *x);
void bind_index_clear(struct bind_index *x);
/* A member as it is now; item is NAMESPACE/NAME. One that is reserved stays so, unless it was put
 * aside until a change. Strings are copied. */
void bind_index_put(struct bind_index *x, const char *item, const struct bind_member *m);
void bind_index_remove(struct bind_index *x, const char *item); /* nothing when it is not there */
/* The name of the next member of that pool: of the best class, on the node with most members of
 * that class, the oldest. skip passes over so many of that node (fewer, when it has not that many),
 * for servers that keep meeting each other. The member is reserved until until_ms; with until_ms 0
 * nothing is reserved. now_ms ends older reservations. NULL = there is none; the caller's. */
char *bind_index_take(struct bind_index *x, const char *namespace_name, const char *pool,
                      unsigned skip, int64_t now_ms, int64_t until_ms);
/* That very member; false when it is not there or reserved already. */
bool bind_index_take_item(struct bind_index *x, const char *item, int64_t now_ms, int64_t until_ms);
void bind_index_release(struct bind_index *x, const char *item);
/* Keeps a reserved member away until it changes, at the longest until until_ms. */
void bind_index_put_aside(struct bind_index *x, const char *item, int64_t until_ms);
/* Members of that pool and class that are not reserved. */
size_t bind_index_count(struct bind_index *x, const char *namespace_name, const char *pool,
                        enum bind_class class);
