/* One function starts a part and one stops it; a table has their order. */
#include "apiserver/app.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/fetch.h"
#include "apiserver/base/file.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/process_metric.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/str.h"
#include "apiserver/hooks.h"
#include "apiserver/http/dial.h"
#include "apiserver/http/node_access.h"
#include "apiserver/http/server.h"
#include "apiserver/http/tunnel.h"
#include "apiserver/kube/kube.h"
#include "apiserver/kube/namespaces.h"
#include "apiserver/leading.h"
#include "apiserver/registry/registry.h"
#include "apiserver/standalone.h"
#include "openapi/kinds.h"
#include "reconcile/gauges.h"
#include "storage/compactor.h"
#include "storage/etcd.h"
#include "storage/memstore.h"

/* Bytes of old states a kind, without a cluster: few watch there, and Pods, which change often, are
 * among the kinds. */
#define STANDALONE_HISTORY ((size_t)3 << 20)
#define LABEL_DOMAINS_MAX ((size_t)1 << 20) /* bytes of the file */
#define AWAY_POLL_MS 100                    /* between looks whether clients still come */
#define LAST_CALLS_MS 1000                  /* beyond the grace: the lease is given back */

/* ---- what goes out ---- */

static int start_fetch(struct app *a, struct err *err)
{
    (void)err;
    a->fetch = fetch_new();
    return 0;
}

static void stop_fetch(struct app *a)
{
    kube_free(a->kube); /* whoever made it */
    fetch_free(a->fetch);
}

static int start_cluster(struct app *a, struct err *err)
{
    if (a->options.without_cluster || a->options.standalone)
        return 0;
    if (kube_new(a->options.kubeconfig, a->fetch, &a->kube, err) < 0)
        return err_wrap(err, "%s",
                        a->options.kubeconfig ? a->options.kubeconfig : "in-cluster configuration");
    a->namespaces = namespaces_start(a->kube);
    return 0;
}

static void stop_cluster(struct app *a)
{
    namespaces_stop(a->namespaces);
}

/* ---- objects ---- */

static struct store *make_store(const struct app *a)
{
    const struct options *o = &a->options;
    if (str_equal(o->store, "memory")) {
        log_warn("store=memory, every object is lost when this process ends");
        return memstore_new();
    }
    return etcd_new(a->fetch,
                    &(struct etcd_config){.endpoints = (const char *const *)o->etcd_servers,
                                          .ca_file = o->etcd_ca_file,
                                          .cert_file = o->etcd_cert_file,
                                          .key_file = o->etcd_key_file});
}

static int start_store(struct app *a, struct err *err)
{
    (void)err;
    a->store = make_store(a);
    a->compactor = store_compactor_start(a->store, a->options.compaction_interval_s * 1000);
    return 0;
}

static void stop_store(struct app *a)
{
    store_compactor_stop(a->compactor);
    store_free(a->store);
}

static int start_claims(struct app *a, struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(err_fini) struct err e = {0};
    int rc = file_read(a->options.label_domains_file, LABEL_DOMAINS_MAX, &text, &e);
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        return err_move(err, &e);
    a->label_domains = claim_domains_parse(buf_cstr(&text));
    const struct claim_settings settings = {
        .label_domains = (const char *const *)a->label_domains,
        .no_observed_stamp = a->options.disable_claim_stamps,
    };
    claim_binder_init(&a->binder, &settings, &clock_system);
    return 0;
}

static void stop_claims(struct app *a)
{
    strv_free(a->label_domains);
}

static int start_registry(struct app *a, struct err *err)
{
    (void)err;
    a->admit = hooks_admit_env(a);
    a->registry = registry_new(&(struct registry_config){
        .store = a->store,
        .kinds = kinds_served,
        .admit = &a->admit,
        .history_events = (size_t)a->options.history_events,
        .history_bytes = a->options.standalone ? STANDALONE_HISTORY : 0,
        .bind = &a->binder.ops,
        .on_fenced = leading_suspect,
        .fence_ctx = a,
    });
    registry_start(a->registry);
    a->gauges = gauges_start(a->registry);
    process_metric_on();
    return 0;
}

static void stop_registry(struct app *a)
{
    gauges_stop(a->gauges);
    process_metric_off();
    registry_stop(a->registry);
    registry_free(a->registry);
}

/* ---- who comes in ---- */

static int start_auth(struct app *a, struct err *err)
{
    const struct options *o = &a->options;
    if (kind_find_by_kind("", "Node"))
        a->nodes = node_access_new(a->registry);
    a->judge_state =
        (struct judge){.registry = a->registry, .clock = &clock_system, .nodes = a->nodes};
    memcpy(a->judge_state.token_key, a->local.token_key, sizeof a->local.token_key);
    a->judge = (struct auth_judge){
        .access = judge_access, .token = judge_token_review, .ctx = &a->judge_state};
    const struct auth_config config = {
        .kube = a->kube,
        .judge = kind_find_by_kind("rbac.authorization.k8s.io", "Role") ? &a->judge : NULL,
        .clock = &clock_system,
        .client_ca_file = o->client_ca_file,
        .requestheader_ca_file = o->requestheader_ca_file,
        .requestheader_allowed_names = (const char *const *)o->requestheader_allowed_names,
    };
    if (auth_new(&config, &a->auth, err) < 0)
        return -(int)err->code;
    auth_start(a->auth);
    return 0;
}

static void stop_auth(struct app *a)
{
    auth_free(a->auth);
    node_access_free(a->nodes);
}

/* So many of the workers may wait for a Sandbox to wake at once. */
static int max_waits(int64_t workers)
{
    if (workers == 0)
        return 0;
    return workers < 4 ? -1 : (int)workers / 4;
}

static int start_pipeline(struct app *a, struct err *err)
{
    (void)err;
    const struct options *o = &a->options;
    hooks_checks(a);
    idle_activity_init(&a->activity, &clock_system);
    a->pipeline = pipeline_new(&(struct pipeline_config){
        .registry = a->registry,
        .auth = a->auth,
        .clock = &clock_system,
        .randomness = &rand_system,
        .checks = a->checks,
        .max_reads = (int)o->max_reads,
        .max_writes = (int)o->max_writes,
        .request_timeout_ms = o->request_timeout_s * 1000,
        .max_body = (size_t)o->max_body,
        .activity = &a->activity.ops,
        .judge = &a->judge_state,
        .dialer = a->dialer,
        .tunnels = a->tunnels,
        .max_waits = max_waits(o->workers),
    });
    return 0;
}

static void stop_pipeline(struct app *a)
{
    pipeline_free(a->pipeline);
}

static int start_server(struct app *a, struct err *err)
{
    const struct options *o = &a->options;
    const struct server_config config = {
        .bind_address = o->bind_address,
        .port = (int)o->port,
        .cert_file = o->cert_file,
        .key_file = o->key_file,
        .workers = (int)o->workers,
        .max_body = (size_t)o->max_body,
        .max_connections = (size_t)o->max_connections,
        .other_fds = a->tunnels ? (size_t)o->max_pod_streams : 0,
        .disable_http2 = o->disable_http2,
        .idle_timeout_ms = o->idle_timeout_s * 1000,
        .handler = pipeline_handle,
        .ctx = a->pipeline,
    };
    if (server_start(&config, &a->server, err) < 0)
        return -(int)err->code;
    log_info("serving address=%s port=%d", o->bind_address, server_port(a->server));
    return 0;
}

static void stop_server(struct app *a)
{
    if (a->tunnels)
        tunnels_stop(a->tunnels);
    if (a->server)
        server_stop(a->server, a->options.shutdown_grace_s * 1000);
    if (a->dialer)
        dialer_end(a->dialer);
    server_free(a->server);
}

/* Whoever spreads requests may be slow to hear that this server ends, and who is sent here then
 * finds nobody. So clients are made to come anew until none has come for as long as it may take to
 * be heard, or grace is over. */
static void send_away(struct app *a, int64_t quiet_ms)
{
    int64_t now = clock_monotonic_ms(&clock_system), last = now;
    int64_t until = now + a->options.shutdown_grace_s * 1000;
    unsigned long asked = pipeline_asked(a->pipeline);
    struct timespec pause = {.tv_nsec = AWAY_POLL_MS * 1000000L};
    server_send_away(a->server);
    while (now < until && now - last < quiet_ms) {
        nanosleep(&pause, NULL);
        now = clock_monotonic_ms(&clock_system);
        if (pipeline_asked(a->pipeline) == asked)
            continue;
        asked = pipeline_asked(a->pipeline);
        last = now;
    }
    if (now >= until)
        log_warn("clients still come here, ending all the same grace=%ds",
                 (int)a->options.shutdown_grace_s);
}

/* Nobody waits longer than that for a store or a cluster that does not answer. */
static void end_calls(struct app *a)
{
    int64_t grace_ms = a->options.shutdown_grace_s * 1000;
    fetch_end_at(a->fetch, clock_monotonic_ms(&clock_system) + grace_ms + LAST_CALLS_MS);
}

/* From now on it may be said to be ready. */
static int end_start(struct app *a, struct err *err)
{
    (void)err;
    atomic_store(&a->is_started, true);
    return 0;
}

/* Not ready any more, so that whoever spreads requests sends no more of them. */
static void drain(struct app *a)
{
    pipeline_drain(a->pipeline);
    sleep((unsigned)a->options.shutdown_delay_s);
    if (a->options.shutdown_delay_s > 0)
        send_away(a, a->options.shutdown_delay_s * 1000);
    end_calls(a);
}

/* ---- the order ---- */

/* start: NULL = nothing to start; stop: NULL = nothing to stop. */
static const struct part {
    int (*start)(struct app *a, struct err *err);
    void (*stop)(struct app *a);
} parts[] = {
    {start_fetch, stop_fetch},
    {standalone_prepare, standalone_end}, /* certificates and etcd, before anything uses them */
    {start_cluster, stop_cluster},
    {start_store, stop_store},
    {start_claims, stop_claims},
    {start_registry, stop_registry},
    {start_auth, stop_auth},
    {standalone_start_tunnels, standalone_free_tunnels},
    {start_pipeline, stop_pipeline},
    {start_server, stop_server},
    {standalone_connect, NULL}, /* to the server, now that it has a port */
    {leading_start, leading_stop},
    {end_start, drain},
};

int app_start(struct app *a, struct err *err)
{
    while (a->begun < ARRAY_LEN(parts)) {
        const struct part *part = &parts[a->begun++];
        int rc = part->start ? part->start(a, err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

void app_stop(struct app *a)
{
    while (a->begun > 0) {
        const struct part *part = &parts[--a->begun];
        if (part->stop)
            part->stop(a);
    }
}
