/* Arena: a chain of chunks that are handed out from the front and freed together. An allocation
 * that does not fit gets a new chunk; one too large for a chunk gets its own behind the newest, so
 * that the rest of the newest stays in use. */
#include "apiserver/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "apiserver/base/mem.h"

#define CHUNK_MIN ((size_t)4 << 10)  /* bytes of the first chunk */
#define CHUNK_MAX ((size_t)64 << 10) /* later ones double up to this */
#define ALIGN _Alignof(max_align_t)

struct arena_chunk {
    struct arena_chunk *next;
    _Alignas(max_align_t) unsigned char bytes[];
};

static struct arena_chunk *chunk_new(size_t n)
{
    size_t bytes;
    if (__builtin_add_overflow(n, sizeof(struct arena_chunk), &bytes))
        bytes = SIZE_MAX; /* xcalloc ends the process */
    return xcalloc(1, bytes);
}

static void *alloc_own_chunk(struct arena *a, size_t n)
{
    struct arena_chunk *c = chunk_new(n);
    if (a->chunks) {
        c->next = a->chunks->next;
        a->chunks->next = c;
    } else {
        a->chunks = c;
        a->used = a->size = n;
    }
    return c->bytes;
}

static void grow(struct arena *a)
{
    size_t size = a->size ? a->size * 2 : CHUNK_MIN;
    if (size < CHUNK_MIN)
        size = CHUNK_MIN;
    if (size > CHUNK_MAX)
        size = CHUNK_MAX;
    struct arena_chunk *c = chunk_new(size);
    c->next = a->chunks;
    *a = (struct arena){.chunks = c, .size = size};
}

void *arena_alloc(struct arena *a, size_t n)
{
    if (n > CHUNK_MIN / 2 && n > a->size - a->used)
        return alloc_own_chunk(a, n);
    size_t rounded = (n + (n == 0) + ALIGN - 1) & ~(ALIGN - 1);
    if (rounded > a->size - a->used)
        grow(a);
    void *p = a->chunks->bytes + a->used;
    a->used += rounded;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t len = n ? strnlen(s, n) : 0;
    char *q = arena_alloc(a, len + 1);
    if (len)
        memcpy(q, s, len);
    return q;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *s = arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
    if (n > 0)
        vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

void arena_fini(struct arena *a)
{
    if (!a)
        return;
    for (struct arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *a = (struct arena){0};
}
