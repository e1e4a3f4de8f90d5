/* What is ready is pulled in one go: the more events in a record, the less each of them costs. */
#include "apiserver/http/flow.h"

#define BYTES_MAX ((size_t)64 << 20) /* of what is pulled in one go */

static void wake(void *ctx)
{
    struct flow *f = ctx;
    mailbox_post(f->box, &f->mail);
}

void flow_start(struct flow *f, struct stream *take, struct mailbox *box,
                void (*on_wake)(struct mail *mail))
{
    *f = (struct flow){.mail.open = on_wake, .box = box, .stream = take};
    take->wake_ctx = f;
    take->wake = wake;
}

bool flow_pull(struct flow *f, struct buf *out)
{
    size_t before = out->len;
    int r = f->is_over ? -1 : 1;
    out->max = BYTES_MAX;
    while (r == 1 && out->len - before < STREAM_BYTES && !buf_failed(out))
        r = f->stream->pull(f->stream, out);
    f->is_over = r < 0;
    return out->len > before || f->is_over;
}

/* After the stream is closed nobody wakes it. */
void flow_fini(struct flow *f)
{
    if (!f->stream)
        return;
    f->stream->close(f->stream);
    f->stream = NULL;
    mailbox_cancel(f->box, &f->mail);
}
