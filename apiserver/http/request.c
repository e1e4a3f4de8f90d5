/* Ends of the plain request and response. */
#include "apiserver/http/request.h"

#include <stdlib.h>

#include "apiserver/base/mem.h"

void request_fini(struct request *r)
{
    if (!r)
        return;
    free(r->method);
    free(r->path);
    free(r->query);
    free(r->remote_addr);
    pairs_fini(&r->headers);
    pairs_fini(&r->params);
    pairs_fini(&r->warnings);
    buf_fini(&r->body);
    user_fini(&r->user);
    arena_fini(&r->arena);
    *r = (struct request){0};
}

void response_fini(struct response *r)
{
    if (!r)
        return;
    if (r->stream)
        r->stream->close(r->stream);
    if (r->upgrade)
        r->upgrade->close(r->upgrade);
    pairs_fini(&r->headers);
    buf_fini(&r->body);
    *r = (struct response){0};
}
