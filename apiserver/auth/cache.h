/* Answers of reviews, kept for a short while: bounded, least recently used goes first. Who asks for
 * what somebody else is asking for at this moment waits for that answer. Failures are shared with
 * those who wait and not kept. Any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/err.h"

#define CACHE_KEY_SIZE 65 /* a digest of 32 bytes as hex, and a NUL */

struct cache;
struct cache *cache_new(size_t max, int64_t ttl_ms, const struct clock *clock);
void cache_free(struct cache *c); /* nobody may be asking; NULL is fine */
/* The answer for key: a kept one, or what ask gives (0, its tree taken over; or an error). ret is
 * the caller's. */
int cache_get(struct cache *c, const char key[CACHE_KEY_SIZE],
              int (*ask)(void *ctx, cJSON **ret, struct err *err), void *ctx, cJSON **ret,
              struct err *err);
size_t cache_len(struct cache *c);
