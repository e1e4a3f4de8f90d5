/* The hash table holds pointers to nodes with open addressing: linear probing, and deletion that
 * moves later entries back, so there are no tombstones. The ordered map is a skip list: next
 * pointers of a node and its key lie in one allocation, 1.33 pointers a node. */
#include "apiserver/base/map.h"

#include <stdint.h>
#include <string.h>

#include "apiserver/base/hash.h"
#include "apiserver/base/mem.h"

/* ---- hash table ---- */

#define MAP_FIRST_SIZE ((size_t)16)

struct node {
    uint64_t hash;
    void *value;
    char key[];
};

struct map {
    struct node **slots; /* size of them, a power of two; NULL = free */
    size_t size, len;
};

struct map *map_new(void)
{
    return xcalloc(1, sizeof(struct map));
}

void map_free(struct map *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->size; i++)
        free(m->slots[i]);
    free(m->slots);
    free(m);
}

/* The slot of key, or the free one where it belongs. There is always a free slot. */
static size_t find_slot(const struct map *m, const char *key, uint64_t hash)
{
    size_t i = hash & (m->size - 1);
    while (m->slots[i] != NULL && (m->slots[i]->hash != hash || strcmp(m->slots[i]->key, key) != 0))
        i = (i + 1) & (m->size - 1);
    return i;
}

static void resize(struct map *m, size_t size)
{
    struct node **old = m->slots;
    size_t old_size = m->size;
    m->slots = xcalloc(size, sizeof(struct node *));
    m->size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i] != NULL)
            m->slots[find_slot(m, old[i]->key, old[i]->hash)] = old[i];
    free(old);
}

void *map_get(const struct map *m, const char *key)
{
    if (m->len == 0)
        return NULL;
    const struct node *n = m->slots[find_slot(m, key, hash_bytes(key, strlen(key)))];
    return n != NULL ? n->value : NULL;
}

static struct node *new_node(const char *key, size_t n, uint64_t hash, void *value)
{
    struct node *node = xmalloc(sizeof *node + n + 1);
    node->hash = hash;
    node->value = value;
    memcpy(node->key, key, n + 1);
    return node;
}

void *map_put(struct map *m, const char *key, void *value)
{
    if (4 * (m->len + 1) > 3 * m->size)
        resize(m, m->size == 0 ? MAP_FIRST_SIZE : 2 * m->size);
    size_t n = strlen(key);
    uint64_t hash = hash_bytes(key, n);
    struct node **slot = &m->slots[find_slot(m, key, hash)];
    if (*slot != NULL) {
        void *old = (*slot)->value;
        (*slot)->value = value;
        return old;
    }
    *slot = new_node(key, n, hash, value);
    m->len++;
    return NULL;
}

/* Fills the hole at slot i by moving back every entry of the run that may not lie behind a free
 * slot. */
static void close_hole(struct map *m, size_t hole)
{
    size_t mask = m->size - 1;
    for (size_t i = (hole + 1) & mask; m->slots[i] != NULL; i = (i + 1) & mask) {
        size_t home = m->slots[i]->hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* its home lies after the hole */
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole] = NULL;
}

void *map_del(struct map *m, const char *key)
{
    if (m->len == 0)
        return NULL;
    size_t i = find_slot(m, key, hash_bytes(key, strlen(key)));
    struct node *n = m->slots[i];
    if (n == NULL)
        return NULL;
    void *value = n->value;
    free(n);
    close_hole(m, i);
    m->len--;
    if (m->size > MAP_FIRST_SIZE && 8 * m->len < m->size)
        resize(m, m->size / 2);
    return value;
}

size_t map_len(const struct map *m)
{
    return m->len;
}

void map_each(const struct map *m, bool (*fn)(void *ctx, const char *key, void *value), void *ctx)
{
    for (size_t i = 0; i < m->size; i++)
        if (m->slots[i] != NULL && !fn(ctx, m->slots[i]->key, m->slots[i]->value))
            return;
}

/* ---- ordered map ---- */

/* A quarter of the nodes reach each next level: enough for 4^16 keys. */
#define OMAP_HEIGHT_MAX 16

struct onode {
    void *value;
    unsigned height;
    struct onode *next[]; /* height of them, then the key's bytes */
};

struct omap {
    size_t len;
    unsigned height; /* of the highest node, at least 1 */
    uint64_t random; /* state of the generator of heights */
    struct onode *first[OMAP_HEIGHT_MAX];
};

static const char *onode_key(const struct onode *n)
{
    return (const char *)&n->next[n->height];
}

struct omap *omap_new(void)
{
    struct omap *m = xcalloc(1, sizeof *m);
    m->height = 1;
    m->random = hash_bytes(&m, sizeof m) | 1; /* any number that outsiders cannot guess */
    return m;
}

void omap_free(struct omap *m)
{
    if (m == NULL)
        return;
    struct onode *next;
    for (struct onode *n = m->first[0]; n != NULL; n = next) {
        next = n->next[0];
        free(n);
    }
    free(m);
}

/* First node with key >= key. If before is not NULL it gets, a level, the pointer that leads there
 * (all OMAP_HEIGHT_MAX of them; levels not in use lead from the head). */
static struct onode *seek(struct omap *m, const char *key, struct onode **before[OMAP_HEIGHT_MAX])
{
    struct onode **row = m->first;
    for (unsigned level = OMAP_HEIGHT_MAX; level > m->height; level--)
        before[level - 1] = &m->first[level - 1];
    for (unsigned level = m->height; level > 0; level--) {
        while (row[level - 1] != NULL && strcmp(onode_key(row[level - 1]), key) < 0)
            row = row[level - 1]->next;
        before[level - 1] = &row[level - 1];
    }
    return row[0];
}

static struct onode *seek_const(const struct omap *m, const char *key)
{
    struct onode *const *row = m->first;
    for (unsigned level = m->height; level > 0; level--)
        while (row[level - 1] != NULL && strcmp(onode_key(row[level - 1]), key) < 0)
            row = row[level - 1]->next;
    return row[0];
}

static struct onode *if_equal(struct onode *n, const char *key)
{
    return n != NULL && strcmp(onode_key(n), key) == 0 ? n : NULL;
}

void *omap_get(const struct omap *m, const char *key)
{
    const struct onode *n = if_equal(seek_const(m, key), key);
    return n != NULL ? n->value : NULL;
}

/* Source of the generator: Marsaglia, "Xorshift RNGs". */
static unsigned random_height(struct omap *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    unsigned height = 1;
    for (uint64_t bits = m->random >> 16; (bits & 3) == 0 && height < OMAP_HEIGHT_MAX; bits >>= 2)
        height++;
    return height;
}

static struct onode *new_onode(const char *key, unsigned height, void *value)
{
    size_t n = strlen(key) + 1;
    struct onode *node = xmalloc(sizeof *node + height * sizeof(struct onode *) + n);
    node->value = value;
    node->height = height;
    memcpy(&node->next[height], key, n);
    return node;
}

void *omap_put(struct omap *m, const char *key, void *value)
{
    struct onode **before[OMAP_HEIGHT_MAX];
    struct onode *found = if_equal(seek(m, key, before), key);
    if (found != NULL) {
        void *old = found->value;
        found->value = value;
        return old;
    }
    struct onode *n = new_onode(key, random_height(m), value);
    for (unsigned level = 0; level < n->height; level++) {
        n->next[level] = *before[level];
        *before[level] = n;
    }
    if (n->height > m->height)
        m->height = n->height;
    m->len++;
    return NULL;
}

void *omap_del(struct omap *m, const char *key)
{
    struct onode **before[OMAP_HEIGHT_MAX];
    struct onode *n = if_equal(seek(m, key, before), key);
    if (n == NULL)
        return NULL;
    for (unsigned level = 0; level < n->height; level++)
        *before[level] = n->next[level];
    while (m->height > 1 && m->first[m->height - 1] == NULL)
        m->height--;
    void *value = n->value;
    free(n);
    m->len--;
    return value;
}

size_t omap_len(const struct omap *m)
{
    return m->len;
}

void omap_each(const struct omap *m, const char *from,
               bool (*fn)(void *ctx, const char *key, void *value), void *ctx)
{
    for (const struct onode *n = from != NULL ? seek_const(m, from) : m->first[0]; n != NULL;
         n = n->next[0])
        if (!fn(ctx, onode_key(n), n->value))
            return;
}
