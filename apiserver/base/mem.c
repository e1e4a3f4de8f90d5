/* Memory that cannot fail. On exhaustion the process ends with one line on stderr, written without
 * allocating. */
#include "apiserver/base/mem.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static void __attribute__((noreturn)) die(void)
{
    static const char text[] = "out of memory, giving up\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written; /* nothing is left to do about it */
    abort();
}

void *xmalloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        die();
    return p;
}

/* Up to this many bytes malloc gives what the thread itself freed before, without a lock. */
#define OWN_MAX ((size_t)1032) /* source: glibc's tcache */

/* glibc's calloc asks the pool that threads share, even for the smallest (2.36). */
void *xcalloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        die();
    if (bytes <= OWN_MAX)
        return memset(xmalloc(bytes), 0, bytes);
    void *p = calloc(1, bytes);
    if (!p)
        die();
    return p;
}

void *xrealloc(void *p, size_t n)
{
    void *q = realloc(p, n ? n : 1);
    if (!q)
        die();
    return q;
}

void *xreallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        die();
    return xrealloc(p, bytes);
}

void *xmemdup(const void *p, size_t n)
{
    void *q = xmalloc(n);
    if (n)
        memcpy(q, p, n);
    return q;
}

char *xstrdup(const char *s)
{
    return xmemdup(s, strlen(s) + 1);
}

/* At most n bytes of s, which need not be terminated. */
char *xstrndup(const char *s, size_t n)
{
    size_t len = n ? strnlen(s, n) : 0;
    char *q = xmalloc(len + 1);
    if (len)
        memcpy(q, s, len);
    q[len] = '\0';
    return q;
}

char *xvasprintf(const char *fmt, va_list args)
{
    char *s = NULL;
    if (vasprintf(&s, fmt, args) < 0)
        die();
    return s;
}

char *xasprintf(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *s = xvasprintf(fmt, args);
    va_end(args);
    return s;
}

void free_counted(void *p)
{
    free(p);
}

/* What is larger than this many bytes, as the text of a list, has pages of its own: it grows
 * without being copied, and is the system's again the moment it is freed. The C library begins with
 * half of it, but takes the largest that was ever freed, up to 32 MiB. */
#define LARGE_MIN (256 << 10)

void mem_share_pools(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int pools = processors < 2 ? 2 : processors > 64 ? 64 : (int)processors;
    mallopt(M_ARENA_MAX, pools);
    mallopt(M_MMAP_THRESHOLD, LARGE_MIN);
}
