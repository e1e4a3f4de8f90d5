/* Memory that lives as long as a request: many small allocations, released together. One thread. */
#pragma once

#include <stddef.h>

struct arena_chunk;
struct arena { /* starts as {0} */
    struct arena_chunk *chunks;
    size_t used, size; /* of the newest chunk, bytes */
};

void *arena_alloc(struct arena *a, size_t n); /* zeroed, aligned for any type; never NULL */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena_fini(struct arena *a); /* frees all, leaves {0} */
