/* Memory that cannot fail: exhaustion ends the process with one line (all truth is in etcd, and
 * every size is bounded before it is allocated). SCOPED releases at the end of the scope, steal
 * hands on. Any thread. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
/* Room for n elements of size bytes; aborts on overflow. */
void *xreallocarray(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
char *xvasprintf(const char *fmt, va_list args)
    __attribute__((format(printf, 1, 0), returns_nonnull));
/* Frees an object whose last reference was dropped. A function of its own because static analysers
 * cannot count references, and would see the object used after each drop. */
void free_counted(void *p);

/* Before the first thread: threads share a pool of memory a processor, two at least. The C library
 * would make eight a processor, and every pool keeps what bursts left free in it. */
void mem_share_pools(void);

/* SCOPED(buf_fini) struct buf b = {0}; calls buf_fini(&b) when b goes out of scope. */
#define SCOPED(fini) __attribute__((cleanup(fini), unused)) /* to be ended is use enough */
/* SCOPED_FREE char *s = ...; */
#define SCOPED_FREE SCOPED(mem_free_p)
static inline void mem_free_p(void *pp)
{
    void *p;
    memcpy(&p, pp, sizeof p);
    free(p);
}
/* The value of x; x becomes zero, so that its destructor has nothing to do. */
#define steal(x)                                                                                   \
    __extension__({                                                                                \
        __typeof__(*(x)) stolen_ = *(x);                                                           \
        memset((x), 0, sizeof(__typeof__(*(x))));                                                  \
        stolen_;                                                                                   \
    })
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
