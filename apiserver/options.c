/* The flags, and what they must say together. */
#include "apiserver/options.h"

#include <stddef.h>
#include <stdio.h>

#include "apiserver/base/flags.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/template.h"

#define AT(member) offsetof(struct options, member)

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
    {"sandbox-concurrent-workers", FLAG_INT, AT(sandbox_workers), NULL, 1, 1000,
     "Sandboxes reconciled at once; absent = 20, standalone 8"},
    {"sandbox-claim-concurrent-workers", FLAG_INT, AT(claim_workers), NULL, 1, 1000,
     "SandboxClaims reconciled at once; absent = 50, standalone 8"},
    {"sandbox-template-concurrent-workers", FLAG_INT, AT(template_workers), "1", 1, 1000,
     "SandboxTemplates reconciled at once"},
    {"sandbox-warm-pool-concurrent-workers", FLAG_INT, AT(warm_pool_workers), "1", 1, 1000,
     "SandboxWarmPools reconciled at once"},
    {"sandbox-warm-pool-max-batch-size", FLAG_INT, AT(warm_pool_batch), "300", 1, 100000,
     "Sandboxes that a pool makes or deletes in one go"},
    {"sandbox-warm-pool-replenish-delay", FLAG_DURATION, AT(warm_pool_delay_ms), "0s", 0, 0,
     "how long a pool waits, after Sandboxes left it, before it makes new ones"},
    {"sandbox-warm-pool-refill-lull", FLAG_DURATION, AT(warm_pool_lull_ms), "150ms", 0, 0,
     "how long there must be no claim before a pool makes new ones, while a quarter of it is ready "
     "and for a second at most; 0 = at once"},
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
    {"http-workers", FLAG_INT, AT(workers), "32", 1, 1024,
     "threads that run requests; a quarter of them while there is little to do, more while many "
     "wait"},
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
     "seconds to go on serving, not ready any more, after SIGTERM, and until no client comes anew"},
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

/* NULL, or what is wrong with what the flags say together. */
static const char *mistake(const struct options *o)
{
    if (o->standalone && (o->cert_file || o->client_ca_file || o->kubeconfig || o->without_cluster))
        return "--standalone makes its certificates itself, and has no cluster";
    if (!o->standalone && (!o->cert_file || !o->key_file))
        return "--tls-cert-file and --tls-private-key-file are required";
    if (o->store && !str_equal(o->store, "etcd") && !str_equal(o->store, "memory"))
        return "--store is etcd or memory";
    if (o->etcd_servers && !o->etcd_servers[0])
        return "--etcd-servers is empty";
    if (!o->etcd_cert_file != !o->etcd_key_file)
        return "--etcd-certfile and --etcd-keyfile go together";
    if (o->without_cluster && (o->kubeconfig || !o->client_ca_file))
        return "--without-cluster needs --client-ca-file and takes no --kubeconfig";
    if (!o->client_ca_file != !o->requestheader_ca_file && !o->without_cluster)
        return "--client-ca-file and --requestheader-client-ca-file go together";
    for (char **resolver = o->policy_resolvers; resolver && *resolver; resolver++) {
        SCOPED_FREE char *block = template_host_block(*resolver);
        if (!block)
            return "--sandbox-policy-resolvers are addresses, as 169.254.20.10";
    }
    return NULL;
}

/* Where the server is its own cluster, whoever works takes memory at both ends of a connection, and
 * does not wait for a distant answer. */
#define STANDALONE_WORKERS 8

/* What flags that were not given mean depends on others. */
static void set_defaults(struct options *o)
{
    if (o->standalone && !o->sandbox_workers)
        o->sandbox_workers = STANDALONE_WORKERS;
    if (o->standalone && !o->claim_workers)
        o->claim_workers = STANDALONE_WORKERS;
    if (!o->bind_address)
        o->bind_address = o->standalone ? "127.0.0.1" : "0.0.0.0";
    if (!o->standalone && !o->etcd_servers)
        strv_add(&o->etcd_servers, xstrdup("http://127.0.0.1:2379"));
}

int options_parse(int argc, char **argv, struct options *ret, int *ret_status)
{
    int rc = flags_parse(&flag_table, argc, argv, ret, ret_status);
    if (rc < 0)
        return rc;
    *ret_status = 2;
    if (log_parse_level(ret->log_level, &ret->level) < 0) {
        fprintf(stderr, "sandbox-apiserver: --log-level is debug, info, warn or error\n");
        return -1;
    }
    const char *wrong = mistake(ret);
    if (wrong) {
        fprintf(stderr, "sandbox-apiserver: %s (--help lists the flags)\n", wrong);
        return -1;
    }
    set_defaults(ret);
    return 0;
}

void options_fini(struct options *o)
{
    strv_free(o->etcd_servers);
    strv_free(o->policy_resolvers);
    strv_free(o->requestheader_allowed_names);
}
