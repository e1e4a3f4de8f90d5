/* Continue tokens of lists: base64url of {"v":"meta.k8s.io/v1","rv":N,"start":"NAMESPACE/NAME\0"},
 * or NAME\0 when one namespace was asked for; opaque to clients, the same on every replica. Source
 * of form and texts: docs/kubernetes-api.md 23.3. Pure; any thread. */
#pragma once

#include <stdint.h>

#include "apiserver/base/err.h"

struct continue_point {
    int64_t rev; /* of the first page; -1 = go on at the newest */
    char *start; /* the first item that may come, counted from the namespace asked for: the last one
                    with \001 appended, as stores count; owned */
};
void continue_point_fini(struct continue_point *p);
int continue_parse(const char *token, struct continue_point *ret,
                   struct err *err);                  /* ERR_BAD_REQUEST */
char *continue_print(int64_t rev, const char *start); /* owned by the caller */
