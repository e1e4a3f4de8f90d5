/* Fuzz target for HTTP/2 behind TLS: the first byte says in which pieces the rest comes and what
 * happens at the end, the rest is what a client sends. Handlers answer at once. Checks that what is
 * sent back is whole frames, that every stream is closed once, and that all of the budget is given
 * back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/h2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FRAME_HEAD 9
#define FRAME_MAX 16384
#define PIECE_BITS 0x0f /* of the first byte: pieces of so many powers of two */
#define WITH_PREFACE 0x10
#define WITH_END 0x20   /* the client half-closes */
#define WITH_DRAIN 0x40 /* the server stops */
#define WITH_TICK 0x80  /* an hour passes */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
static size_t n_open;

static void require(bool holds)
{
    if (!holds)
        abort();
}

struct lines {
    struct stream s; /* first */
    int n;
};

static int pull(struct stream *s, struct buf *out)
{
    struct lines *l = (struct lines *)s;
    if (l->n == 0)
        return -1;
    buf_puts(out, "{\"type\":\"BOOKMARK\"}\n");
    s->wake(s->wake_ctx);
    return l->n-- % 3 > 0;
}

static void close_lines(struct stream *s)
{
    n_open--;
    free(s);
}

static void handle(void *ctx, struct request *req, struct response *resp)
{
    (void)ctx;
    require(req->method && req->path && req->query && req->body.len <= 1000);
    require(!req->body_too_large || req->body.len == 0);
    resp->status = strlen(req->path) > 20 ? 204 : 200;
    for (size_t i = 0; i < req->headers.n; i++)
        pairs_add(&resp->headers, req->headers.v[i].name, req->headers.v[i].value);
    if (strcmp(req->method, "GET") == 0) {
        struct lines *l = xcalloc(1, sizeof *l);
        *l = (struct lines){.s = {.pull = pull, .close = close_lines}, .n = 5};
        resp->stream = &l->s;
        n_open++;
    } else {
        buf_append(&resp->body, req->body.data, req->body.len);
    }
}

static void notify(void *ctx)
{
    (void)ctx;
}

/* All there is to send now: whole frames. */
static void read_all(struct h2 *h, size_t piece)
{
    SCOPED(buf_fini) struct buf out = {0};
    char part[FRAME_MAX];
    for (size_t n; (n = h2_read(h, part, piece < sizeof part ? piece : sizeof part)) > 0;)
        buf_append(&out, part, n);
    size_t at = 0;
    while (at + FRAME_HEAD <= out.len) {
        const uint8_t *p = (const uint8_t *)out.data + at;
        size_t n = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        require(n <= FRAME_MAX);
        at += FRAME_HEAD + n;
    }
    require(at == out.len);
}

static bool feed(struct h2 *h, struct mailbox *box, const char *p, size_t n, size_t piece)
{
    bool goes_on = true;
    for (size_t at = 0; goes_on && at < n; at += piece) {
        goes_on = h2_feed(h, p + at, n - at < piece ? n - at : piece);
        mailbox_open(box);
        read_all(h, piece);
    }
    return goes_on;
}

static void finish(struct h2 *h, struct mailbox *box, unsigned how, size_t piece)
{
    if (how & WITH_END)
        h2_end_input(h);
    for (int i = 0; i < 2 && (how & WITH_DRAIN); i++)
        h2_drain(h);
    if (how & WITH_TICK)
        h2_tick(h, INT64_MAX / 2);
    for (int i = 0; i < 10 && !h2_is_over(h); i++) {
        mailbox_open(box);
        read_all(h, piece);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct budget bodies = {.max = 20000};
    struct h2_config config = {.handler = handle,
                               .bodies = &bodies,
                               .max_body = 1000,
                               .header_timeout_ms = 1000,
                               .idle_timeout_ms = 1000};
    struct mailbox box;
    SCOPED(buf_fini) struct buf spare = {0};
    if (size == 0)
        return 0;
    log_set_level(LOG_ERROR);
    size_t piece = (size_t)1 << (data[0] & PIECE_BITS);
    struct peer *peer = peer_new(NULL, 0, "fuzz");
    mailbox_init(&box, notify, NULL);
    struct h2 *h = h2_new(&config, peer, &box, &spare, notify, NULL);
    bool goes_on = !(data[0] & WITH_PREFACE) || feed(h, &box, preface, sizeof preface - 1, piece);
    if (goes_on)
        feed(h, &box, (const char *)data + 1, size - 1, piece);
    finish(h, &box, data[0], piece);
    h2_free(h);
    mailbox_open(&box);
    mailbox_fini(&box);
    peer_unref(peer);
    require(n_open == 0 && atomic_load(&bodies.used) == 0);
    return 0;
}
