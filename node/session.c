/* What all sessions have in common: nothing reaches one that is over, or a stream that has
 * ended. */
#include "node/session.h"

const char *const stream_kind_names[STREAM_KINDS] = {
    [STREAM_ERROR] = "error",   [STREAM_STDIN] = "stdin",   [STREAM_STDOUT] = "stdout",
    [STREAM_STDERR] = "stderr", [STREAM_RESIZE] = "resize", [STREAM_DATA] = "data",
};

void session_start(struct session *s)
{
    s->ops->start(s);
}

void session_feed(struct session *s, const char *p, size_t n)
{
    if (n > 0 && !s->is_over)
        s->ops->feed(s, p, n);
}

size_t session_room(struct session *s, const struct stream *stream)
{
    bool is_full = s->is_over || stream->has_ended || s->out.len >= SESSION_OUT_MAX;
    return is_full ? 0 : s->ops->room(s, stream);
}

void session_send(struct session *s, struct stream *stream, const char *p, size_t n)
{
    if (n > 0 && !s->is_over && !stream->has_ended)
        s->ops->send(s, stream, p, n);
}

void session_end(struct session *s, struct stream *stream)
{
    if (!s->is_over && !stream->has_ended)
        s->ops->end(s, stream);
}

void session_close(struct session *s)
{
    if (!s->is_over)
        s->ops->close(s);
    s->is_over = true;
}

void session_free(struct session *s)
{
    if (s)
        s->ops->free(s);
}
