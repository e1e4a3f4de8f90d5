/* Who uses a session in fuzz targets: it takes streams, sends and ends them as its manners are, and
 * holds the session to its rules: each stream is gone once, and nothing is told of it before or
 * after. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "node/session.h"

#define PLAYER_FOR_PORTS 0x08
#define PLAYER_ECHOES 0x10 /* what comes is sent back */
/* A stream is ended when the peer has ended it, and when another is gone. */
#define PLAYER_ANSWERS 0x20
#define PLAYER_REFUSES 0x40 /* every other stream */
#define PLAYER_CLOSES 0x80  /* at the end */

struct player {
    struct session *s;
    uint8_t manners;
    struct stream *open[SESSION_STREAMS_MAX];
    size_t n_open, n_asked;
};

static inline void require(bool holds)
{
    if (!holds)
        abort();
}

static inline bool player_open(void *ctx, struct stream *s)
{
    struct player *p = ctx;
    bool is_for_ports = p->manners & PLAYER_FOR_PORTS;
    require(!s->has_heard_end && s->user == NULL);
    require((s->port > 0) == is_for_ports && (s->request != NULL) == is_for_ports);
    if (p->manners & PLAYER_ECHOES)
        session_send(p->s, s, "hello", 5);
    if (p->manners & PLAYER_REFUSES && p->n_asked++ % 2 == 1)
        return false;
    require(p->n_open < SESSION_STREAMS_MAX);
    p->open[p->n_open++] = s;
    s->user = p;
    return true;
}

static inline void player_data(void *ctx, struct stream *s, const char *data, size_t n)
{
    struct player *p = ctx;
    require(n > 0 && !s->has_heard_end && s->user == p);
    if (p->manners & PLAYER_ECHOES)
        session_send(p->s, s, data, n);
    require(session_room(p->s, s) <= SESSION_OUT_MAX);
}

static inline void player_end(void *ctx, struct stream *s)
{
    struct player *p = ctx;
    require(s->has_heard_end && s->user == p);
    if (p->manners & PLAYER_ANSWERS)
        session_end(p->s, s);
}

static inline void player_gone(void *ctx, struct stream *s)
{
    struct player *p = ctx;
    size_t i = 0;
    while (i < p->n_open && p->open[i] != s)
        i++;
    require(i < p->n_open && s->user == p);
    p->open[i] = p->open[--p->n_open];
    if (p->manners & PLAYER_ANSWERS && p->n_open > 0)
        session_end(p->s, p->open[0]);
}

static const struct session_user player_user = {player_open, player_data, player_end, player_gone};

static inline struct session_wish player_wish(uint8_t manners)
{
    bool is_for_ports = manners & PLAYER_FOR_PORTS;
    struct session_wish wish = {.kinds = {[STREAM_ERROR] = true}};
    for (int kind = STREAM_STDIN; kind < STREAM_DATA; kind++)
        wish.kinds[kind] = !is_for_ports;
    wish.kinds[STREAM_DATA] = is_for_ports;
    return wish;
}

/* A whole session, p->s, which is freed; the peer's bytes come in pieces. What it says is checked
 * and taken after each. */
static inline void play(struct player *p, const char *bytes, size_t n, size_t piece,
                        void (*check_said)(void *ctx, struct buf *out), void *ctx)
{
    session_start(p->s);
    for (size_t i = 0; i < n; i += piece) {
        session_feed(p->s, bytes + i, n - i < piece ? n - i : piece);
        check_said(ctx, &p->s->out);
    }
    if (p->manners & PLAYER_CLOSES)
        session_close(p->s);
    check_said(ctx, &p->s->out);
    session_free(p->s);
    require(p->n_open == 0);
}
