/* The stops on the way of a request, in order: when it came, its id, its URL, its deadline, who
 * sends it, whether there is room for it, whether it is allowed, and the verb. Source:
 * docs/kubernetes-api.md 11. Worker threads. */
#pragma once

#include "apiserver/http/handler.h"

enum { FILTER_GO_ON = 0, FILTER_ANSWERED = 1 };
struct filter {
    const char *name;
    /* FILTER_GO_ON; FILTER_ANSWERED when resp is complete; or the negative of the code in err. */
    int (*enter)(struct pipeline *p, struct request *req, struct response *resp, struct err *err);
    /* Called in reverse order once the request is answered, for filters that let it pass; may be
     * NULL. */
    void (*leave)(struct pipeline *p, struct request *req, struct response *resp);
};
extern const struct filter filters[]; /* ended by a row without name */
