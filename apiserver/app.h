/* The parts of the server, and their order at start and stop. This header is for main.c and its
 * neighbours, the only files that know everybody. Main thread. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "admission/admit.h"
#include "apiserver/auth/auth.h"
#include "apiserver/auth/local.h"
#include "apiserver/base/err.h"
#include "apiserver/http/judge.h"
#include "apiserver/http/pipeline.h"
#include "apiserver/options.h"
#include "reconcile/claim_bind.h"
#include "reconcile/idle.h"

struct app {                /* starts as {0} */
    struct options options; /* of the caller, as identity */
    char *identity;         /* under which this process leads */
    size_t begun;           /* so many parts, the last one of them perhaps in vain */

    struct fetch *fetch;
    struct kube *kube;             /* NULL without a cluster, unless standalone */
    struct namespaces *namespaces; /* of the cluster; NULL without one */
    struct store *store;
    struct store_compactor *compactor;
    struct admit_env admit;
    char **label_domains;
    struct claim_binder binder;
    struct registry *registry;
    struct gauges *gauges;
    struct auth *auth;
    struct idle_activity activity;
    struct health_check checks[5];     /* ended by a row without name */
    _Atomic int64_t store_answered_ms; /* when it was last found well */
    struct pipeline *pipeline;
    struct server *server;
    atomic_bool is_started; /* every part */
    struct reconcile *reconcile;
    struct store_leader *_Atomic leader;

    /* Standalone only. */
    struct local_identity local;
    struct etcd_child *etcd;
    struct node_access *nodes; /* NULL = Nodes are no kind of this server */
    struct judge judge_state;
    struct auth_judge judge;
    struct dialer *dialer;
    struct tunnels *tunnels;
    struct house *house;
    char *authority; /* PEM, what Pods trust this server by; of the house */
};

/* app_stop follows, whatever comes out. */
int app_start(struct app *a, struct err *err);
void app_stop(struct app *a);
