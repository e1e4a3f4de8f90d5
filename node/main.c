/* sandbox-node: flags, start and stop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "apiserver/base/daemon.h"
#include "apiserver/base/flags.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/spare.h"
#include "apiserver/base/str.h"
#include "apiserver/kube/config.h"
#include "node/command.h"
#include "node/dns.h"
#include "node/engine.h"
#include "node/relay.h"
#include "node/runner.h"
#include "node/serve.h"
#include "node/simulate.h"

struct options {
    bool simulate, schedule, allows_unenforced;
    const char *kubeconfig, *name, *log_level;
    struct engine_config engine;
    const char *socket, *address, *network, *interface, *subnet, *pause, *domain;
    const char *dns_program;
    const char *cert_file, *key_file, *ca_file;
    int64_t port, pod_api_port;
    char **dns, **host_paths, **capabilities, **runtimes;
    int64_t nodes, pods, workers, lease_ms, follow_ms;
    int64_t start_ms, slow_ms, run_ms, restart_ms, stop_ms;
    char **faults;
};
#define AT(member) offsetof(struct options, member)

static const struct flag flag_rows[] = {
    {"simulate", FLAG_BOOL, AT(simulate), "false", 0, 0,
     "only say of Pods that they run, in place of running them"},
    {"kubeconfig", FLAG_STRING, AT(kubeconfig), NULL, 0, 0,
     "how to reach the cluster; absent = from inside a pod"},
    {"name", FLAG_STRING, AT(name), NULL, 0, 0,
     "name of the node; absent = simulated, or the machine's host name; of several simulated ones, "
     "followed by -0, -1, ..."},
    {"pods", FLAG_INT, AT(pods), "10000", 1, 1000000, "room of each node; more Pods are refused"},
    {"workers", FLAG_INT, AT(workers), "16", 1, 256, "Pods worked on at once"},
    {"lease-renewal", FLAG_DURATION, AT(lease_ms), "10s", 100, 0, "between renewals of a lease"},
    {"sync-frequency", FLAG_DURATION, AT(follow_ms), "1m", 100, 0,
     "between looks at the objects and tokens that volumes of running Pods are filled from"},
    {"log-level", FLAG_STRING, AT(log_level), "info", 0, 0, "debug, info, warn or error"},
    {"data", FLAG_STRING, AT(engine.folder), "/var/lib/agent-sandbox/node", 0, 0,
     "folder of the engine, of volumes and claims; absolute"},
    {"podman-socket", FLAG_STRING, AT(socket), NULL, 0, 0,
     "of an engine that runs already; absent = one of our own is started, with all it keeps in "
     "--data"},
    {"podman", FLAG_STRING, AT(engine.program), "podman", 0, 0, "the engine's program"},
    {"runtime", FLAG_STRING, AT(engine.runtime), "runc", 0, 0,
     "what the engine runs containers by"},
    {"storage-driver", FLAG_STRING, AT(engine.storage), "overlay", 0, 0, "of the engine"},
    {"runtime-classes", FLAG_LIST, AT(runtimes), "", 0, 0,
     "CLASS=RUNTIME,...: the engine's runtime for each runtimeClassName; others are refused"},
    {"address", FLAG_STRING, AT(address), "127.0.0.1", 0, 0,
     "of the node, as Pods are told; its server listens there"},
    {"port", FLAG_INT, AT(port), "10250", 0, 65535,
     "of its server, for logs, exec, attach and port-forward; 0 = any that is free"},
    {"tls-cert-file", FLAG_STRING, AT(cert_file), NULL, 0, 0,
     "the server's certificate; absent = that of --kubeconfig"},
    {"tls-private-key-file", FLAG_STRING, AT(key_file), NULL, 0, 0, "its key"},
    {"client-ca-file", FLAG_STRING, AT(ca_file), NULL, 0, 0,
     "authorities of the server's clients; absent = that of --kubeconfig"},
    {"network", FLAG_STRING, AT(network), "agent-sandbox", 0, 0,
     "the engine's network of Pods; made when it is not there"},
    {"network-interface", FLAG_STRING, AT(interface), "sandbox0", 0, 0, "its bridge"},
    {"pod-cidr", FLAG_STRING, AT(subnet), "10.90.0.0/16", 0, 0, "its range of addresses"},
    {"pod-api-port", FLAG_INT, AT(pod_api_port), "443", 0, 65535,
     "at the first address of --pod-cidr, where Pods with a token of their service account reach "
     "an "
     "API server that listens on this machine's loopback alone; 0 = nowhere"},
    {"cluster-dns", FLAG_LIST, AT(dns), "", 0, 0,
     "name servers of Pods with dnsPolicy ClusterFirst; none = one of our own, where there is the "
     "program for it, else the machine's"},
    {"dns-program", FLAG_STRING, AT(dns_program), "dnsmasq", 0, 0,
     "what serves the names of Services to Pods, at the first address of --pod-cidr"},
    {"cluster-domain", FLAG_STRING, AT(domain), "cluster.local", 0, 0, "for names of Pods"},
    {"allowed-host-paths", FLAG_LIST, AT(host_paths), "", 0, 0,
     "folders that hostPath volumes may name, with what is below"},
    {"allowed-capabilities", FLAG_LIST, AT(capabilities), "", 0, 0,
     "that containers may add, like NET_BIND_SERVICE"},
    {"allow-unenforced-policies", FLAG_BOOL, AT(allows_unenforced), "false", 0, 0,
     "do not enforce NetworkPolicies, for machines where that is not possible, and say so of each "
     "Pod that one selects"},
    {"pause", FLAG_STRING, AT(pause), NULL, 0, 0,
     "the program that holds a Pod's namespaces; absent = sandbox-pause beside this one"},
    {"nodes", FLAG_INT, AT(nodes), "1", 1, 1000, "how many nodes are simulated"},
    {"schedule", FLAG_BOOL, AT(schedule), "false", 0, 0,
     "bind every Pod without a node to one of ours, for clusters without a scheduler; looks at "
     "their number only, not at selectors or resources"},
    {"start-delay", FLAG_DURATION, AT(start_ms), "0s", 0, 0, "from a Pod's binding to Ready"},
    {"stop-delay", FLAG_DURATION, AT(stop_ms), "0s", 0, 0,
     "from a Pod's deletion to its end, at most its grace period"},
    {"fault", FLAG_LIST, AT(faults), "", 0, 0,
     "FAULT=PERCENT,...: so many Pods are slow, never-ready, crash, exit, image-pull or "
     "unschedulable; a Pod's annotation " POD_ANNOTATION_FAULT " wins"},
    {"slow-delay", FLAG_DURATION, AT(slow_ms), "30s", 0, 0, "start delay of the fault slow"},
    {"run-time", FLAG_DURATION, AT(run_ms), "1s", 0, 0,
     "from Ready to the end, for the faults crash and exit"},
    {"restart-delay", FLAG_DURATION, AT(restart_ms), "10s", 1, 0,
     "before the first restart of a container; doubles up to 5m"},
    {0},
};
static const struct flag_table flag_table = {
    .program = "sandbox-node",
    .version = VERSION,
    .about = "A node of a Kubernetes cluster that runs the Pods bound to it by Podman; or, with "
             "--simulate,\nnodes for tests and load whose Pods are only said to run.\n\n"
             "usage: sandbox-node --kubeconfig F [flags]\n"
             "       sandbox-node --simulate --kubeconfig F [flags]\n"
             "       sandbox-node image build [flags]\n",
    .flags = flag_rows,
};

static bool set_fault(const char *text, unsigned percent[POD_FAULTS])
{
    const char *equals = strchr(text, '=');
    int64_t n;
    for (int f = POD_FAULT_NONE + 1; equals && f < POD_FAULTS; f++) {
        size_t len = strlen(pod_fault_names[f]);
        if (len == (size_t)(equals - text) && strncmp(text, pod_fault_names[f], len) == 0 &&
            str_to_i64(equals + 1, &n) == 0 && n >= 0 && n <= 100) {
            percent[f] = (unsigned)n;
            return true;
        }
    }
    fprintf(stderr, "sandbox-node: --fault: \"%s\" is no FAULT=PERCENT (--help lists them)\n",
            text);
    return false;
}

static bool options_check(const struct options *o, unsigned percent[POD_FAULTS])
{
    enum log_level level;
    if (!o->simulate && o->engine.folder[0] != '/') {
        fprintf(stderr, "sandbox-node: --data must be absolute\n");
        return false;
    }
    if (log_parse_level(o->log_level, &level) < 0) {
        fprintf(stderr, "sandbox-node: --log-level is debug, info, warn or error\n");
        return false;
    }
    log_set_level(level);
    for (char **fault = o->faults; *fault; fault++) {
        if (!set_fault(*fault, percent))
            return false;
    }
    return true;
}

static void wait_for_end(const sigset_t *signals)
{
    struct spare spare = {0};
    log_info("ending signal=%d", spare_wait_signal(&spare, signals));
}

static int run_simulation(const struct options *o, const struct pod_settings *pods,
                          struct kube *kube, const sigset_t *signals)
{
    struct simulation *s = simulation_start(&(struct simulation_config){
        .kube = kube,
        .clock = &clock_system,
        .name = o->name ? o->name : "simulated",
        .nodes = (int)o->nodes,
        .workers = (int)o->workers,
        .pods_per_node = (int)o->pods,
        .lease_ms = o->lease_ms,
        .pods = *pods,
    });
    wait_for_end(signals);
    simulation_stop(s);
    return EXIT_SUCCESS;
}

struct parts {         /* of a node that runs containers; NULL = not there */
    struct kube *kube; /* borrowed, as the next two */
    struct fetch *fetch;
    const char *name;
    const struct kube_config *files; /* kube's */
    char *gateway;  /* the node's address on the bridge, NULL = --pod-cidr is none */
    char **servers; /* name servers of Pods */
    struct engine *engine;
    struct podman *podman;
    struct relay *relay;
    struct dns *dns;
    struct serve *serve;
    struct runner *runner;
};

/* None where Pods reach the API server without it, or shall not. */
static int make_relay(const struct options *o, struct parts *p, struct err *err)
{
    if (!p->gateway || !o->pod_api_port)
        return 0;
    int rc = relay_new(&(struct relay_config){.interface = o->interface,
                                              .address = p->gateway,
                                              .port = (int)o->pod_api_port,
                                              .server = p->files->server},
                       &p->relay, err);
    return rc == -ERR_NOT_FOUND ? 0 : rc;
}

/* Name servers of Pods: those of the flag, or one of our own. */
static int start_dns(const struct options *o, struct parts *p, struct err *err)
{
    SCOPED_FREE char *program = daemon_find(o->dns_program);
    SCOPED_FREE char *log_file = xasprintf("%s/dns.log", o->engine.folder);
    for (char **server = o->dns; *server; server++)
        strv_add(&p->servers, xstrdup(*server));
    if (*o->dns)
        return 0;
    if (!program || !p->gateway) {
        log_warn("names of Services are not known in Pods: there is no %s", o->dns_program);
        return 0;
    }
    strv_add(&p->servers, xstrdup(p->gateway));
    return dns_start(&(struct dns_config){.program = program,
                                          .interface = o->interface,
                                          .address = p->gateway,
                                          .domain = o->domain,
                                          .api = p->relay ? p->gateway : NULL,
                                          .log_file = log_file,
                                          .kube = p->kube,
                                          .clock = &clock_system},
                     &p->dns, err);
}

static const char *name_of(const struct options *o, char *host, size_t n)
{
    gethostname(host, n - 1);
    return o->name ? o->name : host;
}

/* None without a certificate to show; then the cluster is not told of a server either. */
static int make_server(const struct options *o, struct parts *p, struct err *err)
{
    struct serve_config config = {
        .kube = p->kube,
        .podman = p->podman,
        .name = p->name,
        .address = o->address,
        .port = (int)o->port,
        .cert_file = o->cert_file ? o->cert_file : p->files->cert_file,
        .key_file = o->key_file ? o->key_file : p->files->key_file,
        .ca_file = o->ca_file ? o->ca_file : p->files->ca_file,
    };
    if (config.cert_file && config.key_file && config.ca_file)
        return serve_new(&config, &p->serve, err);
    log_warn("no server: --kubeconfig has no certificate, and neither --tls-cert-file nor "
             "--client-ca-file are given; logs, exec, attach and port-forward do not work");
    return 0;
}

static int start_runner(const struct options *o, struct parts *p, struct err *err)
{
    SCOPED_FREE char *pause = o->pause ? xstrdup(o->pause) : command_find_pause();
    if (!pause)
        return err_set(err, ERR_NOT_FOUND, "there is no sandbox-pause; --pause says where it is");
    return runner_start(
        &(struct runner_config){
            .kube = p->kube,
            .podman = p->podman,
            .clock = &clock_system,
            .name = p->name,
            .address = o->address,
            .port = p->serve ? serve_port(p->serve) : 0,
            .folder = o->engine.folder,
            .network = o->network,
            .interface = o->interface,
            .subnet = o->subnet,
            .pause_program = pause,
            .dns = p->servers,
            .domain = o->domain,
            .relay = p->relay,
            .api = {.address = p->relay ? p->gateway : NULL, .port = (int)o->pod_api_port},
            .policy = {.host_paths = o->host_paths,
                       .capabilities = o->capabilities,
                       .runtimes = o->runtimes},
            .enforces_policies = !o->allows_unenforced,
            .workers = (int)o->workers,
            .pods = (int)o->pods,
            .lease_ms = o->lease_ms,
            .follow_ms = o->follow_ms,
        },
        &p->runner, err);
}

static int start_parts(const struct options *o, struct parts *p, struct err *err)
{
    int rc = 0;
    if (!o->socket)
        rc = engine_start(&o->engine, p->fetch, &p->engine, err);
    if (rc < 0)
        return rc;
    p->podman = podman_new(p->fetch, o->socket ? o->socket : engine_socket(p->engine));
    p->gateway = dns_address(o->subnet);
    rc = make_relay(o, p, err);
    if (rc == 0)
        rc = start_dns(o, p, err);
    if (rc == 0)
        rc = make_server(o, p, err);
    if (rc == 0)
        rc = start_runner(o, p, err);
    if (rc == 0 && p->serve)
        serve_start(p->serve, p->runner);
    return rc;
}

static void stop_parts(struct parts *p)
{
    serve_stop(p->serve);
    runner_stop(p->runner);
    relay_free(p->relay);
    dns_stop(p->dns);
    strv_free(p->servers);
    free(p->gateway);
    podman_free(p->podman);
    engine_stop(p->engine);
}

static int run_containers(const struct options *o, struct kube *kube, struct fetch *fetch,
                          const sigset_t *signals)
{
    SCOPED(err_fini) struct err err = {0};
    char host[256] = "";
    struct parts parts = {.kube = kube,
                          .fetch = fetch,
                          .name = name_of(o, host, sizeof host),
                          .files = kube_get_config(kube)};
    int rc = start_parts(o, &parts, &err);
    if (rc == 0)
        wait_for_end(signals);
    else
        log_error("cannot start: %s", err_text(&err));
    stop_parts(&parts);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(const struct options *o, const struct pod_settings *pods)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* inherited by every thread */
    signal(SIGPIPE, SIG_IGN);
    SCOPED(err_fini) struct err err = {0};
    struct fetch *fetch = fetch_new();
    struct kube *kube = NULL;
    int status = EXIT_FAILURE;
    if (kube_new(o->kubeconfig, fetch, &kube, &err) < 0)
        log_error("cannot start: %s: %s",
                  o->kubeconfig ? o->kubeconfig : "in-cluster configuration", err_text(&err));
    else if (o->simulate)
        status = run_simulation(o, pods, kube, &signals);
    else
        status = run_containers(o, kube, fetch, &signals);
    kube_free(kube);
    fetch_free(fetch);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {0};
    struct pod_settings pods = {0};
    int status;
    mem_share_pools();
    if (argc > 1 && strcmp(argv[1], "image") == 0)
        return command_image(argc - 1, argv + 1);
    if (flags_parse(&flag_table, argc, argv, &o, &status) == 0) {
        pods.start_ms = o.start_ms;
        pods.slow_ms = o.slow_ms;
        pods.run_ms = o.run_ms;
        pods.restart_ms = o.restart_ms;
        pods.stop_ms = o.stop_ms;
        pods.schedules = o.schedule;
        status = options_check(&o, pods.percent) ? run(&o, &pods) : 2;
    }
    strv_free(o.faults);
    strv_free(o.dns);
    strv_free(o.host_paths);
    strv_free(o.capabilities);
    strv_free(o.runtimes);
    return status;
}
