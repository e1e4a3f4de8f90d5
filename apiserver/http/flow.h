/* A stream on its way to a client: pulled on its connection's thread, woken through that thread's
 * mailbox. What HTTP/1.1 and HTTP/2 do alike; chunks and frames are theirs. */
#pragma once

#include "apiserver/http/mailbox.h"
#include "apiserver/http/request.h"

/* Bytes of memory that a thread keeps for the next who has something to send. */
#define FLOW_SPARE ((size_t)256 << 10)

struct flow {         /* starts as {0} */
    struct mail mail; /* first; the stream's wake */
    struct mailbox *box;
    struct stream *stream; /* NULL = none */
    bool is_over;          /* it says no more, or nobody wants to hear it */
};
/* Takes the stream. on_wake is called on the box's thread. */
void flow_start(struct flow *f, struct stream *take, struct mailbox *box,
                void (*on_wake)(struct mail *mail));
/* Appends what is ready. False when there is nothing now; a wake follows then. out fails when an
 * event is larger than anything should be. */
bool flow_pull(struct flow *f, struct buf *out);
void flow_fini(struct flow *f); /* closes the stream, if there is one; nobody is woken any more */
