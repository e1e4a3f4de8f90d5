#include "node/ranges.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

void ranges_fini(struct ranges *r)
{
    free(r->v);
    *r = (struct ranges){0};
}

void ranges_add(struct ranges *r, uint32_t first, uint32_t last)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 8;
        r->v = xrealloc(r->v, r->cap * sizeof *r->v);
    }
    r->v[r->n++] = (struct range){first, last};
}

void ranges_add_all(struct ranges *r, const struct ranges *other)
{
    for (size_t i = 0; i < other->n; i++)
        ranges_add(r, other->v[i].first, other->v[i].last);
}

void ranges_remove(struct ranges *r, uint32_t first, uint32_t last)
{
    struct ranges left = {0};
    for (size_t i = 0; i < r->n; i++) {
        struct range it = r->v[i];
        if (it.last < first || it.first > last) {
            ranges_add(&left, it.first, it.last);
            continue;
        }
        if (it.first < first)
            ranges_add(&left, it.first, first - 1);
        if (it.last > last)
            ranges_add(&left, last + 1, it.last);
    }
    ranges_fini(r);
    *r = left;
}

static int by_first(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

void ranges_settle(struct ranges *r)
{
    size_t n = 0;
    if (r->n == 0)
        return;
    qsort(r->v, r->n, sizeof *r->v, by_first);
    for (size_t i = 1; i < r->n; i++) {
        struct range *last = &r->v[n], it = r->v[i];
        if (it.first <= last->last || it.first == last->last + 1) {
            if (it.last > last->last)
                last->last = it.last;
        } else {
            r->v[++n] = it;
        }
    }
    r->n = n + 1;
}

bool ranges_have(const struct ranges *r, uint32_t number)
{
    for (size_t i = 0; i < r->n; i++) {
        if (number >= r->v[i].first && number <= r->v[i].last)
            return true;
    }
    return false;
}

bool ranges_read_cidr(const char *text, struct range *ret)
{
    struct in_addr in;
    int64_t prefix = 32;
    size_t n = strcspn(text, "/");
    SCOPED_FREE char *address = xstrndup(text, n);
    if (inet_pton(AF_INET, address, &in) != 1)
        return false;
    if (text[n] == '/' && (str_to_i64(text + n + 1, &prefix) < 0 || prefix < 0 || prefix > 32))
        return false;
    uint32_t mask = prefix == 0 ? 0 : UINT32_MAX << (32 - prefix);
    ret->first = ntohl(in.s_addr) & mask;
    ret->last = ret->first | ~mask;
    return true;
}

void ranges_print_address(uint32_t address, char ret[RANGES_ADDRESS_SIZE])
{
    snprintf(ret, RANGES_ADDRESS_SIZE, "%u.%u.%u.%u", address >> 24, address >> 16 & 255,
             address >> 8 & 255, address & 255);
}
