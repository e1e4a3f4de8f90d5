/* String map (hash table) and ordered string map (by bytes). Keys are copied, values are pointers
 * that the map does not own. Not locked: the owner's lock guards it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct map;
struct map *map_new(void);
void map_free(struct map *m);                        /* NULL is fine; values are left alone */
void *map_get(const struct map *m, const char *key); /* NULL when absent */
/* returns the old value or NULL; value must not be NULL */
void *map_put(struct map *m, const char *key, void *value);
void *map_del(struct map *m, const char *key); /* returns the removed value or NULL */
size_t map_len(const struct map *m);
/* Calls fn for each entry in no order until it returns false. The map must not change meanwhile. */
void map_each(const struct map *m, bool (*fn)(void *ctx, const char *key, void *value), void *ctx);

/* Ordered: O(log n) look-up, insert and delete, iteration in key order from any key. */
struct omap;
struct omap *omap_new(void);
void omap_free(struct omap *m);
void *omap_get(const struct omap *m, const char *key);
void *omap_put(struct omap *m, const char *key, void *value);
void *omap_del(struct omap *m, const char *key);
size_t omap_len(const struct omap *m);
/* Entries with key >= from (NULL = first) in order, until fn returns false. */
void omap_each(const struct omap *m, const char *from,
               bool (*fn)(void *ctx, const char *key, void *value), void *ctx);
