/* Header blocks of SPDY/3: names and values, packed by zlib with a dictionary that both sides know;
 * each block goes on where the one before it ended. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "apiserver/base/str.h"

/* 32 bits as SPDY has them everywhere: the most significant byte first. */
void spdy_put_u32(struct buf *b, uint32_t v);
uint32_t spdy_get_u32(const char *p);

struct spdy_packer;
struct spdy_packer *spdy_packer_new(void);
void spdy_packer_free(struct spdy_packer *p);
void spdy_pack(struct spdy_packer *p, const struct pairs *headers, struct buf *out);

struct spdy_unpacker;
struct spdy_unpacker *spdy_unpacker_new(void);
void spdy_unpacker_free(struct spdy_unpacker *u);
/* Unpacks a whole block. *ret_is_good says whether its text follows the rules (names in lower case,
 * each once, no control characters; nothing missing, nothing left over); *ret has its headers then.
 * Errors: -ERR_BAD_REQUEST, -ERR_TOO_LARGE; no further block can be unpacked then. */
int spdy_unpack(struct spdy_unpacker *u, struct str packed, struct pairs *ret, bool *ret_is_good,
                struct err *err);
