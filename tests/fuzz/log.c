/* Fuzz target for what answers of a container's log: the first byte says what is asked for, the
 * rest is the engine's file. Checks that reading it in pieces and at once gives the same, that
 * limits hold, and that less is never more. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "node/logs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PIECE_BITS 0x07 /* of the first byte: pieces of so many powers of two */
#define WITH_TIMES 0x08
#define WITH_LIMIT 0x10
#define WITH_SINCE 0x20
#define WITH_SKIP 0x40
#define ONLY_STDERR 0x80
#define LIMIT 20

static void require(bool holds)
{
    if (!holds)
        abort();
}

static struct log_reader reader_of(uint8_t wish)
{
    return (struct log_reader){
        .options = {.timestamps = wish & WITH_TIMES,
                    .streams = {!(wish & ONLY_STDERR), true},
                    .limit = wish & WITH_LIMIT ? LIMIT : -1,
                    .since_ns = wish & WITH_SINCE ? INT64_C(1767323042500000000) : INT64_MIN},
        .skip = wish & WITH_SKIP ? 2 : 0,
    };
}

static void run(uint8_t wish, const char *p, size_t n, size_t piece, struct buf *out)
{
    SCOPED(log_reader_fini) struct log_reader r = reader_of(wish);
    for (size_t at = 0; at < n; at += piece)
        log_read(&r, p + at, n - at < piece ? n - at : piece, out);
    require(!(wish & WITH_LIMIT) || out->len <= LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    SCOPED_FREE char *bytes = xmemdup(data + 1, size - 1);
    SCOPED(buf_fini) struct buf whole = {0}, cut = {0}, all = {0};
    run(data[0], bytes, size - 1, size, &whole);
    run(data[0], bytes, size - 1, (size_t)1 << (data[0] & PIECE_BITS), &cut);
    run(data[0] & WITH_TIMES, bytes, size - 1, size, &all);
    require(whole.len == cut.len && memcmp(buf_cstr(&whole), buf_cstr(&cut), cut.len) == 0);
    require(data[0] & WITH_TIMES || whole.len <= all.len);
    return 0;
}
