/* The whole server above the transport, for tests without a socket: pipeline, auth over
 * certificates made for the test program, registry over the store in memory. The clock stands still
 * at HTTP_NOW_S unless moved, randomness is a fixed sequence. */
#pragma once

#include "apiserver/base/clock.h"
#include "apiserver/base/rand.h"
#include "apiserver/http/pipeline.h"
#include "apiserver/registry/registry.h"
#include "reconcile/claim_bind.h"
#include "reconcile/idle.h"
#include "storage/store.h"

#define HTTP_NOW_S ((int64_t)1767323045) /* 2026-01-02T03:04:05Z */

struct http_fixture {
    struct store *store;
    struct registry *registry;
    struct auth *auth;
    struct pipeline *pipeline;
    struct clock_fake clock;
    struct rand_fixed random;
    struct admit_env admit;
    struct claim_binder binder;
    struct idle_activity activity;
    size_t max_body;
    bool is_ready; /* the check "store" of readyz */
};
/* Once, before the suite runs: certificates of an admin (system:masters), of jane, and of an
 * unknown authority's eve. */
void http_fixture_init(void);
/* opts may be NULL; of it max_reads, max_writes, request_timeout_ms and max_body count. */
void http_fixture_open(struct http_fixture *f, const struct pipeline_config *opts);
void http_fixture_close(struct http_fixture *f);

/* One request: a first line "METHOD URL", header lines, an empty line, the body. user names a
 * certificate, NULL = none. */
void http_fixture_send(struct http_fixture *f, const char *user, const char *request, size_t n,
                       struct response *ret);
/* Pulls from the answer's stream until it ends or nothing came for wait_ms, at most max_lines
 * lines, into the body. */
void http_fixture_pull(struct response *resp, size_t max_lines, int64_t wait_ms);
/* The answer as text: status, headers by name (Audit-Id, and Content-Type and Cache-Control with
 * their usual values left out), an empty line, the body. Of JSON the members are sorted,
 * managedFields left out and uids numbered as they are met; uids is kept between calls. */
char *http_fixture_text(const struct response *resp, struct pairs *uids);
