/* sandbox-node: flags, start and stop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/base/flags.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "node/simulate.h"

struct options {
    bool simulate, schedule;
    const char *kubeconfig, *name, *log_level;
    int64_t nodes, pods, workers, lease_ms;
    int64_t start_ms, slow_ms, run_ms, restart_ms, stop_ms;
    char **faults;
};
#define AT(member) offsetof(struct options, member)

static const struct flag flag_rows[] = {
    {"simulate", FLAG_BOOL, AT(simulate), "false", 0, 0,
     "only say of Pods that they run; the one mode there is so far"},
    {"kubeconfig", FLAG_STRING, AT(kubeconfig), NULL, 0, 0,
     "how to reach the cluster; absent = from inside a pod"},
    {"name", FLAG_STRING, AT(name), "simulated", 0, 0,
     "name of the node; of several, followed by -0, -1, ..."},
    {"nodes", FLAG_INT, AT(nodes), "1", 1, 1000, "how many nodes"},
    {"pods", FLAG_INT, AT(pods), "10000", 1, 1000000, "room of each node; more Pods are refused"},
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
    {"workers", FLAG_INT, AT(workers), "16", 1, 256, "calls to the cluster at once"},
    {"lease-renewal", FLAG_DURATION, AT(lease_ms), "10s", 100, 0, "between renewals of a lease"},
    {"log-level", FLAG_STRING, AT(log_level), "info", 0, 0, "debug, info, warn or error"},
    {0},
};
static const struct flag_table flag_table = {
    .program = "sandbox-node",
    .version = VERSION,
    .about =
        "Plays nodes of a Kubernetes cluster for tests and load: Pods bound to them are said to "
        "run.\nRunning containers is not there yet, so --simulate is needed.\n\n"
        "usage: sandbox-node --simulate --kubeconfig F [flags]\n",
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
    if (!o->simulate) {
        fprintf(stderr, "sandbox-node: running containers is not there yet; with --simulate Pods "
                        "are only said to run\n");
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
    int sig;
    while (sigwait(signals, &sig) != 0)
        ;
    log_info("ending signal=%d", sig);
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
    int status = EXIT_SUCCESS;
    if (kube_new(o->kubeconfig, fetch, &kube, &err) < 0) {
        log_error("cannot start: %s: %s",
                  o->kubeconfig ? o->kubeconfig : "in-cluster configuration", err_text(&err));
        status = EXIT_FAILURE;
    } else {
        struct simulation *s = simulation_start(&(struct simulation_config){
            .kube = kube,
            .clock = &clock_system,
            .name = o->name,
            .nodes = (int)o->nodes,
            .workers = (int)o->workers,
            .pods_per_node = (int)o->pods,
            .lease_ms = o->lease_ms,
            .pods = *pods,
        });
        wait_for_end(&signals);
        simulation_stop(s);
    }
    kube_free(kube);
    fetch_free(fetch);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {0};
    struct pod_settings pods = {0};
    int status;
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
    return status;
}
