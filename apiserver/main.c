/* sandbox-apiserver: flags, wiring, ordered start and stop. The only file that knows everybody. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "admission/admit.h"
#include "admission/rules.h"
#include "apiserver/auth/auth.h"
#include "apiserver/auth/local.h"
#include "apiserver/base/daemon.h"
#include "apiserver/base/fetch.h"
#include "apiserver/base/file.h"
#include "apiserver/base/flags.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/process_metric.h"
#include "apiserver/http/dial.h"
#include "apiserver/http/judge.h"
#include "apiserver/http/pipeline.h"
#include "apiserver/http/server.h"
#include "apiserver/http/tunnel.h"
#include "apiserver/kube/kube.h"
#include "apiserver/kube/namespaces.h"
#include "apiserver/registry/registry.h"
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"
#include "reconcile/claim_bind.h"
#include "reconcile/gauges.h"
#include "reconcile/house.h"
#include "reconcile/idle.h"
#include "reconcile/reconcile.h"
#include "storage/compactor.h"
#include "storage/etcd.h"
#include "storage/etcd_child.h"
#include "storage/lease.h"
#include "storage/memstore.h"

/* ---- flags ---- */

struct flags {
    const char *bind_address, *cert_file, *key_file;
    int64_t port;
    const char *client_ca_file, *requestheader_ca_file;
    char **requestheader_allowed_names;
    const char *kubeconfig;
    bool without_cluster, standalone;
    const char *data_dir, *etcd_program;
    const char *store;
    char **etcd_servers;
    const char *etcd_ca_file, *etcd_cert_file, *etcd_key_file;
    int64_t compaction_interval_s;
    bool reconcile;
    const char *identity, *cluster_domain;
    int64_t leader_lease_ms;
    int64_t sandbox_workers, claim_workers, template_workers, warm_pool_workers;
    int64_t warm_pool_batch, warm_pool_delay_ms, warm_pool_grace_ms, warm_pool_recheck_ms;
    double warm_pool_rate;
    bool warm_pool_eviction;
    bool detailed_ready_reasons;
    bool disable_http2;
    bool disable_sandbox_events, disable_claim_events, disable_claim_stamps;
    const char *label_domains_file;
    char **policy_resolvers;
    int64_t max_pod_streams, streaming_idle_ms;
    int64_t workers, max_connections, max_reads, max_writes, max_body, history_events;
    int64_t request_timeout_s, idle_timeout_s, shutdown_delay_s, shutdown_grace_s;
    const char *log_level;
};

#define AT(member) offsetof(struct flags, member)

static const struct flag flag_rows[] = {
    {"bind-address", FLAG_STRING, AT(bind_address), NULL, 0, 0,
     "numeric address to listen on; absent = 0.0.0.0, standalone 127.0.0.1"},
    {"secure-port", FLAG_INT, AT(port), "6443", 0, 65535,
     "port to listen on; 0 = any, the log tells which"},
    {"tls-cert-file", FLAG_STRING, AT(cert_file), NULL, 0, 0,
     "PEM file of the serving certificate and its chain (required unless standalone)"},
    {"tls-private-key-file", FLAG_STRING, AT(key_file), NULL, 0, 0,
     "PEM file of its key; SIGHUP reads both again"},
    {"client-ca-file", FLAG_STRING, AT(client_ca_file), NULL, 0, 0,
     "PEM bundle for client certificates, instead of the cluster's own"},
    {"requestheader-client-ca-file", FLAG_STRING, AT(requestheader_ca_file), NULL, 0, 0,
     "PEM bundle for the front proxy's certificate, instead of the cluster's own"},
    {"requestheader-allowed-names", FLAG_LIST, AT(requestheader_allowed_names), NULL, 0, 0,
     "common names the front proxy may have, with the flag above"},
    {"kubeconfig", FLAG_STRING, AT(kubeconfig), NULL, 0, 0,
     "how to reach the cluster; absent = from inside a pod"},
    {"without-cluster", FLAG_BOOL, AT(without_cluster), "false", 0, 0,
     "no cluster at all, for tests: client certificates of system:masters only, every namespace "
     "exists, nothing is reconciled"},
    {"standalone", FLAG_BOOL, AT(standalone), "false", 0, 0,
     "one machine, no cluster: serve the kinds of Kubernetes that sandboxes need as well, and "
     "make certificates and kubeconfigs"},
    {"data-dir", FLAG_STRING, AT(data_dir), NULL, 0, 0,
     "standalone: folder of certificates and kubeconfigs; absent = /var/lib/agent-sandbox for "
     "root, else ~/.local/share/agent-sandbox"},
    {"store", FLAG_STRING, AT(store), NULL, 0, 0,
     "etcd, or memory (everything is lost at the end); absent = etcd, standalone without the "
     "program memory"},
    {"etcd-servers", FLAG_LIST, AT(etcd_servers), NULL, 0, 0,
     "URLs of etcd, tried in order; absent = http://127.0.0.1:2379, standalone an etcd of the "
     "server's own, with its data in the folder"},
    {"etcd-program", FLAG_STRING, AT(etcd_program), "etcd", 0, 0,
     "standalone: the program of that etcd, found in PATH unless it has a slash"},
    {"etcd-cafile", FLAG_STRING, AT(etcd_ca_file), NULL, 0, 0,
     "PEM bundle that etcd's certificate is checked against"},
    {"etcd-certfile", FLAG_STRING, AT(etcd_cert_file), NULL, 0, 0, "client certificate for etcd"},
    {"etcd-keyfile", FLAG_STRING, AT(etcd_key_file), NULL, 0, 0, "its key"},
    {"etcd-compaction-interval", FLAG_INT, AT(compaction_interval_s), "300", 1, 86400,
     "seconds of history that etcd keeps at least"},
    {"reconcile", FLAG_BOOL, AT(reconcile), "true", 0, 0,
     "make pods, services and volumes; false = serve the API only"},
    {"leader-elect-identity", FLAG_STRING, AT(identity), NULL, 0, 0,
     "name under which this process leads; absent = host name and process id; one that is started "
     "again under its name leads again at once"},
    {"leader-elect-lease-duration", FLAG_DURATION, AT(leader_lease_ms), "15s", 2000, 0,
     "how long a leader that died without a word keeps others from leading; in whole seconds"},
    {"cluster-domain", FLAG_STRING, AT(cluster_domain), "cluster.local", 0, 0,
     "last part of Service names in status.serviceFQDN"},
    {"sandbox-concurrent-workers", FLAG_INT, AT(sandbox_workers), "20", 1, 1000,
     "Sandboxes reconciled at once"},
    {"sandbox-claim-concurrent-workers", FLAG_INT, AT(claim_workers), "50", 1, 1000,
     "SandboxClaims reconciled at once"},
    {"sandbox-template-concurrent-workers", FLAG_INT, AT(template_workers), "1", 1, 1000,
     "SandboxTemplates reconciled at once"},
    {"sandbox-warm-pool-concurrent-workers", FLAG_INT, AT(warm_pool_workers), "1", 1, 1000,
     "SandboxWarmPools reconciled at once"},
    {"sandbox-warm-pool-max-batch-size", FLAG_INT, AT(warm_pool_batch), "300", 1, 100000,
     "Sandboxes that a pool makes or deletes in one go"},
    {"sandbox-warm-pool-replenish-delay", FLAG_DURATION, AT(warm_pool_delay_ms), "0s", 0, 0,
     "how long a pool waits, after Sandboxes left it, before it makes new ones"},
    {"sandbox-warm-pool-max-refill-rate", FLAG_NUMBER, AT(warm_pool_rate), "0", 0, 0,
     "Sandboxes that a pool makes per second; 0 = no limit"},
    {"sandbox-warm-pool-readiness-grace-period", FLAG_DURATION, AT(warm_pool_grace_ms), "5m", 1, 0,
     "how long a Sandbox of a pool may be not Ready before it is replaced"},
    {"sandbox-warm-pool-unschedulable-recheck-interval", FLAG_DURATION, AT(warm_pool_recheck_ms),
     "1m", 1, 0, "how often a pool looks at Sandboxes that find no node"},
    {"enable-warm-pool-eviction", FLAG_BOOL, AT(warm_pool_eviction), "true", 0, 0,
     "mark pods of pools as safe to evict, where their template does not say"},
    {"detailed-ready-reasons", FLAG_BOOL, AT(detailed_ready_reasons), "false", 0, 0,
     "name in Ready's reason what keeps a Sandbox from being ready: QuotaExceeded, "
     "AdmissionRefused, Unschedulable, SchedulingGated, ImagePullFailed, CrashLoop, "
     "ContainerFailed; otherwise it is ReconcilerError or DependenciesNotReady"},
    {"disable-sandbox-events", FLAG_BOOL, AT(disable_sandbox_events), "false", 0, 0,
     "write no Events about Sandboxes"},
    {"disable-claim-events", FLAG_BOOL, AT(disable_claim_events), "false", 0, 0,
     "write no Events about SandboxClaims"},
    {"disable-claim-observability-annotations", FLAG_BOOL, AT(disable_claim_stamps), "false", 0, 0,
     "do not annotate claims with the time when they were seen first"},
    {"sandbox-policy-resolvers", FLAG_LIST, AT(policy_resolvers), NULL, 0, 0,
     "addresses that the built-in network policy opens for port 53, as that of a node-local DNS"},
    {"allowed-label-domains-file", FLAG_STRING, AT(label_domains_file),
     "/etc/sandbox-config/allowed-label-domains", 0, 0,
     "domains that labels of additionalPodMetadata may have, instead of sandbox.users.io; read at "
     "start, need not exist"},
    {"http-workers", FLAG_INT, AT(workers), "32", 1, 1024, "threads that run requests"},
    {"max-connections", FLAG_INT, AT(max_connections), "4096", 1, 1000000, "connections at once"},
    {"max-pod-streams", FLAG_INT, AT(max_pod_streams), "1000", 1, 100000,
     "standalone: logs that are read and connections into Pods (exec, attach, port-forward) at "
     "once"},
    {"streaming-connection-idle-timeout", FLAG_DURATION, AT(streaming_idle_ms), "4h", 1, 0,
     "standalone: how long nothing may move on a connection into a Pod"},
    {"disable-http2-serving", FLAG_BOOL, AT(disable_http2), "false", 0, 0,
     "serve over HTTP/1.1 only"},
    {"max-requests-inflight", FLAG_INT, AT(max_reads), "400", 1, 100000,
     "reads at once, watches left out"},
    {"max-mutating-requests-inflight", FLAG_INT, AT(max_writes), "200", 1, 100000,
     "writes at once"},
    {"max-request-bytes", FLAG_INT, AT(max_body), "3145728", 1024, 64 << 20,
     "size of a request body, bytes"},
    {"watch-history", FLAG_INT, AT(history_events), "10000", 100, 10000000,
     "changes kept per kind for watches to resume from"},
    {"request-timeout", FLAG_INT, AT(request_timeout_s), "60", 1, 3600,
     "seconds a request may take, watches left out"},
    {"idle-timeout", FLAG_INT, AT(idle_timeout_s), "120", 1, 3600,
     "seconds a connection may go unused, and an answer or a watch unread"},
    {"shutdown-delay-duration", FLAG_INT, AT(shutdown_delay_s), "0", 0, 3600,
     "seconds to go on serving, not ready any more, after SIGTERM"},
    {"shutdown-grace", FLAG_INT, AT(shutdown_grace_s), "10", 0, 3600,
     "seconds that requests under way may still take then"},
    {"log-level", FLAG_STRING, AT(log_level), "info", 0, 0, "debug, info, warn or error"},
    {0},
};

static const struct flag_table flag_table = {
    .program = "sandbox-apiserver",
    .version = VERSION,
    .about = "Serves agents.x-k8s.io and extensions.agents.x-k8s.io to a Kubernetes cluster and "
             "makes what\n"
             "the objects ask for.\n\n"
             "usage: sandbox-apiserver --tls-cert-file F --tls-private-key-file F [flags]\n"
             "       sandbox-apiserver --standalone [flags]\n",
    .flags = flag_rows,
};

/* What the flags say together. */
static bool flags_check(const struct flags *f)
{
    const char *wrong = NULL;
    if (f->standalone && (f->cert_file || f->client_ca_file || f->kubeconfig || f->without_cluster))
        wrong = "--standalone makes its certificates itself, and has no cluster";
    else if (!f->standalone && (!f->cert_file || !f->key_file))
        wrong = "--tls-cert-file and --tls-private-key-file are required";
    else if (f->store && !str_equal(f->store, "etcd") && !str_equal(f->store, "memory"))
        wrong = "--store is etcd or memory";
    else if (f->etcd_servers && !f->etcd_servers[0])
        wrong = "--etcd-servers is empty";
    else if (!f->etcd_cert_file != !f->etcd_key_file)
        wrong = "--etcd-certfile and --etcd-keyfile go together";
    else if (f->without_cluster && (f->kubeconfig || !f->client_ca_file))
        wrong = "--without-cluster needs --client-ca-file and takes no --kubeconfig";
    else if (!f->client_ca_file != !f->requestheader_ca_file && !f->without_cluster)
        wrong = "--client-ca-file and --requestheader-client-ca-file go together";
    for (size_t i = 0; f->policy_resolvers && f->policy_resolvers[i]; i++) {
        SCOPED_FREE char *block = template_host_block(f->policy_resolvers[i]);
        if (!block)
            wrong = "--sandbox-policy-resolvers are addresses, as 169.254.20.10";
    }
    if (wrong)
        fprintf(stderr, "sandbox-apiserver: %s (--help lists the flags)\n", wrong);
    return !wrong;
}

/* ---- wiring ---- */

struct app {
    struct flags flags;
    struct fetch *fetch;
    struct kube *kube;
    struct namespaces *namespaces;
    struct store *store;
    struct store_compactor *compactor;
    struct admit_env admit;
    char **label_domains;
    struct claim_binder binder;
    struct registry *registry;
    struct auth *auth;
    struct dialer *dialer;   /* standalone */
    struct tunnels *tunnels; /* standalone */
    struct pipeline *pipeline;
    struct server *server;
    struct reconcile *reconcile;
    struct house *house; /* standalone */
    struct gauges *gauges;
    struct idle_activity activity;
    struct store_leader *_Atomic leader;
    struct health_check checks[4];
    _Atomic int64_t store_answered_ms; /* when it was last found well */
    char *identity;
    struct local_identity local; /* standalone */
    struct auth_judge judge;     /* standalone */
    struct judge judge_state;    /* standalone */
    struct etcd_child *etcd;     /* standalone */
};

static int namespace_state(void *ctx, const char *name, enum namespace_state *ret, struct err *err)
{
    struct app *a = ctx;
    bool exists, is_terminating;
    int rc = namespaces_find(a->namespaces, name, &exists, &is_terminating, err);
    if (rc == 0)
        *ret = !exists          ? NAMESPACE_ABSENT
               : is_terminating ? NAMESPACE_TERMINATING
                                : NAMESPACE_ACTIVE;
    return rc;
}

static char *foresee(void *ctx, const struct kind *kind, const cJSON *object)
{
    return kind == &kind_sandbox_claim
               ? claim_foresee(object, &((struct app *)ctx)->binder.settings)
               : NULL;
}

/* The same where namespaces are kinds of this server. The cache may be a little behind a client
 * that has just made one. */
static int own_namespace_state(void *ctx, const char *name, enum namespace_state *ret,
                               struct err *err)
{
    struct app *a = ctx;
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err e = {0};
    int rc = registry_get(a->registry, &kind_namespace, "", name,
                          (struct read_version){READ_ANY, 0}, 0, &o, &e);
    if (rc == -ERR_NOT_FOUND) {
        err_fini(&e);
        rc = registry_get(a->registry, &kind_namespace, "", name,
                          (struct read_version){READ_LATEST, 0}, 0, &o, &e);
    }
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        return err_move(err, &e);
    *ret = !o ? NAMESPACE_ABSENT : o->is_terminating ? NAMESPACE_TERMINATING : NAMESPACE_ACTIVE;
    return 0;
}

/* A store that hangs keeps its connections open, so it is asked; at most once a second, whoever
 * asks us, and in less time than the probe of manifests/server.yaml has. */
static bool check_store(void *ctx)
{
    enum { REMEMBERED_MS = 1000, ANSWER_MS = 1500 };
    struct app *a = ctx;
    SCOPED(err_fini) struct err err = {0};
    int64_t now_ms = clock_monotonic_ms(&clock_system), size_bytes;
    if (!registry_is_synced(a->registry))
        return false;
    if (now_ms - atomic_load(&a->store_answered_ms) < REMEMBERED_MS)
        return true;
    if (store_status(a->store, now_ms + ANSWER_MS, &size_bytes, &err) < 0)
        return false;
    atomic_store(&a->store_answered_ms, now_ms);
    return true;
}

static bool check_auth(void *ctx)
{
    return auth_is_ready(((struct app *)ctx)->auth);
}

static bool check_namespaces(void *ctx)
{
    const struct app *a = ctx;
    return !a->namespaces || namespaces_are_known(a->namespaces);
}

static void on_lead(void *ctx)
{
    struct app *a = ctx;
    log_info("leading identity=%s", a->identity);
    if (a->house)
        house_start(a->house);
    reconcile_start(a->reconcile);
}

static void on_follow(void *ctx, const char *why)
{
    struct app *a = ctx;
    log_info("not leading any more identity=%s why=\"%s\"", a->identity, why);
    reconcile_stop(a->reconcile);
    if (a->house)
        house_stop(a->house);
}

static const struct store_leader_ops leader_ops = {.on_started = on_lead, .on_stopped = on_follow};

/* The first passes may come before store_leader_start has returned: then nothing is written yet. */
static bool fence(void *ctx, struct store_compare *ret)
{
    struct app *a = ctx;
    struct store_leader *leader = atomic_load(&a->leader);
    return leader && store_leader_fence(leader, ret);
}

static int start_cluster(struct app *a, struct err *err)
{
    if (a->flags.without_cluster || a->flags.standalone)
        return 0;
    if (kube_new(a->flags.kubeconfig, a->fetch, &a->kube, err) < 0)
        return err_wrap(err, "%s",
                        a->flags.kubeconfig ? a->flags.kubeconfig : "in-cluster configuration");
    a->namespaces = namespaces_start(a->kube);
    return 0;
}

static void start_store(struct app *a)
{
    if (str_equal(a->flags.store, "memory")) {
        log_warn("store=memory, every object is lost when this process ends");
        a->store = memstore_new();
        return;
    }
    a->store = etcd_new(a->fetch, &(struct etcd_config){
                                      .endpoints = (const char *const *)a->flags.etcd_servers,
                                      .ca_file = a->flags.etcd_ca_file,
                                      .cert_file = a->flags.etcd_cert_file,
                                      .key_file = a->flags.etcd_key_file,
                                  });
}

static struct claim_settings claim_settings(const struct app *a)
{
    return (struct claim_settings){
        .label_domains = (const char *const *)a->label_domains,
        .no_observed_stamp = a->flags.disable_claim_stamps,
    };
}

#define LABEL_DOMAINS_MAX ((size_t)1 << 20) /* bytes of the file */

static int start_claims(struct app *a, struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(err_fini) struct err e = {0};
    int rc = file_read(a->flags.label_domains_file, LABEL_DOMAINS_MAX, &text, &e);
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        return err_move(err, &e);
    a->label_domains = claim_domains_parse(buf_cstr(&text));
    struct claim_settings settings = claim_settings(a);
    claim_binder_init(&a->binder, &settings, &clock_system);
    return 0;
}

static void start_registry(struct app *a)
{
    a->admit = (struct admit_env){
        .clock = &clock_system,
        .randomness = &rand_system,
        .namespace_state = a->namespaces                        ? namespace_state
                           : kind_find_by_kind("", "Namespace") ? own_namespace_state
                                                                : NULL,
        .foresee = foresee,
        .ctx = a,
    };
    a->registry = registry_new(&(struct registry_config){
        .store = a->store,
        .kinds = kinds_served,
        .admit = &a->admit,
        .history_events = (size_t)a->flags.history_events,
        .bind = &a->binder.ops,
    });
    registry_start(a->registry);
    a->gauges = gauges_start(a->registry);
    process_metric_on();
}

static int start_auth(struct app *a, struct err *err)
{
    const struct flags *f = &a->flags;
    a->judge_state = (struct judge){.registry = a->registry, .clock = &clock_system};
    memcpy(a->judge_state.token_key, a->local.token_key, sizeof a->local.token_key);
    a->judge = (struct auth_judge){
        .access = judge_access, .token = judge_token_review, .ctx = &a->judge_state};
    struct auth_config config = {
        .kube = a->kube,
        .judge = kind_find_by_kind("rbac.authorization.k8s.io", "Role") ? &a->judge : NULL,
        .clock = &clock_system,
        .client_ca_file = f->client_ca_file,
        .requestheader_ca_file = f->requestheader_ca_file,
        .requestheader_allowed_names = (const char *const *)f->requestheader_allowed_names,
    };
    if (auth_new(&config, &a->auth, err) < 0)
        return -(int)err->code;
    auth_start(a->auth);
    return 0;
}

/* An etcd for this server alone; without the program everything is kept in memory, unless that was
 * not meant. */
static int start_own_etcd(struct app *a, struct err *err)
{
    struct flags *f = &a->flags;
    const struct local_identity *l = &a->local;
    SCOPED_FREE char *program = daemon_find(f->etcd_program);
    SCOPED_FREE char *data = xasprintf("%s/etcd", l->dir);
    SCOPED_FREE char *log = xasprintf("%s/etcd.log", l->dir);
    if (!program && f->store)
        return err_set(err, ERR_INVALID, "--store=etcd, but there is no program %s",
                       f->etcd_program);
    if (!program) {
        log_warn("there is no program %s to keep objects with", f->etcd_program);
        f->store = "memory";
        return 0;
    }
    const struct etcd_child_config config = {.program = program,
                                             .data_dir = data,
                                             .log_file = log,
                                             .ca_file = l->etcd_ca,
                                             .cert_file = l->etcd_cert,
                                             .key_file = l->etcd_key};
    if (etcd_child_start(&config, &a->etcd, err) < 0)
        return -(int)err->code;
    strv_add(&f->etcd_servers, xstrdup(etcd_child_url(a->etcd)));
    f->etcd_ca_file = l->etcd_ca;
    f->etcd_cert_file = l->etcd_client_cert;
    f->etcd_key_file = l->etcd_client_key;
    return 0;
}

/* Certificates of the server's own, before anything that reads them. */
static int prepare_standalone(struct app *a, struct err *err)
{
    struct flags *f = &a->flags;
    SCOPED_FREE char *usual = geteuid() == 0 ? xstrdup("/var/lib/agent-sandbox")
                                             : xasprintf("%s/.local/share/agent-sandbox",
                                                         getenv("HOME") ? getenv("HOME") : ".");
    const char *dir = f->data_dir ? f->data_dir : usual;
    if (local_identity_prepare(dir, f->bind_address, &a->local, err) < 0)
        return -(int)err->code;
    f->cert_file = a->local.serving_cert;
    f->key_file = a->local.serving_key;
    f->client_ca_file = a->local.ca_cert;
    return str_equal(f->store, "memory") || f->etcd_servers ? 0 : start_own_etcd(a, err);
}

/* The reconciler's client points at this very server. */
static int start_own_client(struct app *a, struct err *err)
{
    const char *host = a->flags.bind_address;
    bool is_any = str_equal(host, "0.0.0.0") || str_equal(host, "::");
    bool is_v6 = strchr(host, ':') != NULL;
    SCOPED_FREE char *url = xasprintf("https://%s%s%s:%d", is_v6 ? "[" : "",
                                      is_any ? is_v6 ? "::1" : "127.0.0.1" : host, is_v6 ? "]" : "",
                                      server_port(a->server));
    if (local_identity_publish(&a->local, url, err) < 0 ||
        kube_new(a->local.server_config, a->fetch, &a->kube, err) < 0)
        return -(int)err->code;
    log_info("kubeconfig file=%s", a->local.admin_config);
    log_info("page at=/ui/ address-file=%s", a->local.page_address);
    return 0;
}

static int start_server(struct app *a, struct err *err)
{
    const struct flags *f = &a->flags;
    struct health_check checks[] = {
        {.name = "etcd", .ok = check_store, .ctx = a, .is_ready_only = true},
        {.name = "informer-sync", .ok = check_namespaces, .ctx = a, .is_ready_only = true},
        {.name = "authentication", .ok = check_auth, .ctx = a, .is_ready_only = true},
        {0},
    };
    memcpy(a->checks, checks, sizeof checks);
    idle_activity_init(&a->activity, &clock_system);
    a->pipeline = pipeline_new(&(struct pipeline_config){
        .registry = a->registry,
        .auth = a->auth,
        .clock = &clock_system,
        .randomness = &rand_system,
        .checks = a->checks,
        .max_reads = (int)f->max_reads,
        .max_writes = (int)f->max_writes,
        .request_timeout_ms = f->request_timeout_s * 1000,
        .max_body = (size_t)f->max_body,
        .activity = &a->activity.ops,
        .judge = &a->judge_state,
        .dialer = a->dialer,
        .tunnels = a->tunnels,
        .max_waits = f->workers == 0  ? 0
                     : f->workers / 4 ? (int)f->workers / 4
                                      : -1,
    });
    struct server_config config = {
        .bind_address = f->bind_address,
        .port = (int)f->port,
        .cert_file = f->cert_file,
        .key_file = f->key_file,
        .workers = (int)f->workers,
        .max_body = (size_t)f->max_body,
        .max_connections = (size_t)f->max_connections,
        .other_fds = a->tunnels ? (size_t)f->max_pod_streams : 0,
        .disable_http2 = f->disable_http2,
        .idle_timeout_ms = f->idle_timeout_s * 1000,
        .handler = pipeline_handle,
        .ctx = a->pipeline,
    };
    if (server_start(&config, &a->server, err) < 0)
        return -(int)err->code;
    log_info("serving address=%s port=%d", f->bind_address, server_port(a->server));
    return a->local.dir ? start_own_client(a, err) : 0;
}

static int start_tunnels(struct app *a, struct err *err)
{
    if (!a->local.dir)
        return 0;
    const struct dialer_config dialer = {.ca_file = a->local.ca_cert,
                                         .cert_file = a->local.server_cert,
                                         .key_file = a->local.server_key,
                                         .any_node = LOCAL_NODE_USER};
    const struct tunnels_config tunnels = {.max = (size_t)a->flags.max_pod_streams,
                                           .idle_timeout_ms = a->flags.streaming_idle_ms};
    int rc = dialer_new(&dialer, &a->dialer, err);
    return rc < 0 ? rc : tunnels_new(&tunnels, &a->tunnels, err);
}

static void start_reconciler(struct app *a)
{
    if (!a->flags.reconcile || !a->kube)
        return;
    a->reconcile = reconcile_new(&(struct reconcile_config){
        .registry = a->registry,
        .kube = a->kube,
        .clock = &clock_system,
        .randomness = &rand_system,
        .cluster_domain = a->flags.cluster_domain,
        .no_sandbox_events = a->flags.disable_sandbox_events,
        .detailed_reasons = a->flags.detailed_ready_reasons,
        .no_claim_events = a->flags.disable_claim_events,
        .claim = claim_settings(a),
        .template.resolvers = (const char *const *)a->flags.policy_resolvers,
        .sandbox_workers = (int)a->flags.sandbox_workers,
        .claim_workers = (int)a->flags.claim_workers,
        .template_workers = (int)a->flags.template_workers,
        .warm_pool_workers = (int)a->flags.warm_pool_workers,
        .warm_pool = {.max_batch = a->flags.warm_pool_batch,
                      .replenish_delay_ms = a->flags.warm_pool_delay_ms,
                      .max_refill_rate = a->flags.warm_pool_rate,
                      .readiness_grace_ms = a->flags.warm_pool_grace_ms,
                      .recheck_ms = a->flags.warm_pool_recheck_ms,
                      .no_eviction = !a->flags.warm_pool_eviction},
        .fence = fence,
        .ctx = a,
    });
    if (a->flags.standalone)
        a->house = house_new(&(struct house_config){
            .registry = a->registry, .clock = &clock_system, .fence = fence, .ctx = a});
    atomic_store(&a->leader, store_leader_start(a->store,
                                                &(struct store_leader_config){
                                                    .holder = a->identity,
                                                    .ttl_s = a->flags.leader_lease_ms / 1000},
                                                &leader_ops, a));
}

static int app_start(struct app *a, struct err *err)
{
    a->fetch = fetch_new();
    if (a->flags.standalone && prepare_standalone(a, err) < 0)
        return -(int)err->code;
    if (start_claims(a, err) < 0 || start_cluster(a, err) < 0)
        return -(int)err->code;
    start_store(a);
    a->compactor = store_compactor_start(a->store, a->flags.compaction_interval_s * 1000);
    start_registry(a);
    if (start_auth(a, err) < 0 || start_tunnels(a, err) < 0 || start_server(a, err) < 0)
        return -(int)err->code;
    start_reconciler(a);
    return 0;
}

/* Everything in the opposite order; each may be NULL after a failed start. */
static void app_stop(struct app *a)
{
    if (a->pipeline) {
        pipeline_drain(a->pipeline);
        if (a->server)
            sleep((unsigned)a->flags.shutdown_delay_s);
    }
    store_leader_stop(atomic_load(&a->leader));
    reconcile_free(a->reconcile);
    house_free(a->house);
    if (a->tunnels)
        tunnels_stop(a->tunnels);
    if (a->server) {
        server_stop(a->server, a->flags.shutdown_grace_s * 1000);
        server_free(a->server);
    }
    tunnels_free(a->tunnels);
    dialer_free(a->dialer);
    pipeline_free(a->pipeline);
    auth_free(a->auth);
    gauges_stop(a->gauges);
    process_metric_off();
    if (a->registry) {
        registry_stop(a->registry);
        registry_free(a->registry);
    }
    namespaces_stop(a->namespaces);
    store_compactor_stop(a->compactor);
    store_free(a->store);
    etcd_child_stop(a->etcd);
    kube_free(a->kube);
    fetch_free(a->fetch);
}

static void report_table(void *ctx, const char *text)
{
    (void)ctx;
    log_error("kind table: %s", text);
}

/* Until SIGTERM or SIGINT; SIGHUP reads the certificate again. */
static void wait_for_end(struct app *a, const sigset_t *signals)
{
    for (int sig;;) {
        if (sigwait(signals, &sig) != 0)
            continue;
        if (sig != SIGHUP) {
            log_info("ending signal=%d", sig);
            return;
        }
        SCOPED(err_fini) struct err err = {0};
        if (server_reload(a->server, &err) < 0)
            log_warn("certificate not reloaded, the old one stays: %s", err_text(&err));
    }
}

static int run(struct app *a)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* inherited by every thread */
    signal(SIGPIPE, SIG_IGN);
    SCOPED(err_fini) struct err err = {0};
    int status = EXIT_SUCCESS;
    if (app_start(a, &err) < 0) {
        log_error("cannot start: %s", err_text(&err));
        status = EXIT_FAILURE;
    } else {
        wait_for_end(a, &signals);
    }
    app_stop(a);
    return status;
}

static char *make_identity(const struct flags *flags)
{
    char host[256] = "";
    if (flags->identity)
        return xstrdup(flags->identity);
    if (flags->standalone)
        return xstrdup(
            "standalone"); /* nobody else leads, so one that starts again need not wait */
    gethostname(host, sizeof host - 1);
    return xasprintf("%s-%ld", host, (long)getpid());
}

int main(int argc, char **argv)
{
    struct app app = {0};
    int status;
    enum log_level level;
    mem_share_pools();
    int rc = flags_parse(&flag_table, argc, argv, &app.flags, &status);
    if (rc == 0 && !flags_check(&app.flags)) {
        status = 2;
        rc = -1;
    }
    if (rc == 0 && log_parse_level(app.flags.log_level, &level) < 0) {
        fprintf(stderr, "sandbox-apiserver: --log-level is debug, info, warn or error\n");
        rc = -1;
    }
    if (!app.flags.bind_address)
        app.flags.bind_address = app.flags.standalone ? "127.0.0.1" : "0.0.0.0";
    if (!app.flags.standalone && !app.flags.etcd_servers)
        strv_add(&app.flags.etcd_servers, xstrdup("http://127.0.0.1:2379"));
    if (app.flags.standalone)
        kinds_served = kinds_standalone;
    if (rc == 0) {
        log_set_level(level);
        app.identity = make_identity(&app.flags);
        log_info("starting version=%s identity=%s", VERSION, app.identity);
        if (kinds_check(report_table, NULL) + rules_check(report_table, NULL) == 0)
            status = run(&app);
        else
            status = EXIT_FAILURE;
    }
    free(app.identity);
    local_identity_fini(&app.local);
    strv_free(app.label_domains);
    strv_free(app.flags.etcd_servers);
    strv_free(app.flags.policy_resolvers);
    strv_free(app.flags.requestheader_allowed_names);
    return status;
}
