#include "node/simulate.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "tests/lib/peer.h"
#include "tests/lib/suite.h"

/* The API server here knows Pods p0 ... pN-1 of one namespace: list, one watch, binding, status,
 * delete; and says yes to everything about nodes and leases. It counts calls per Pod. */

#define PODS_MAX 4000

static struct pod_there {
    bool is_there, is_running, is_terminating, is_unschedulable;
    char node[64];
    int bindings, patches, deletes;
} pods[PODS_MAX];
static int n_pods, failures_left; /* failures: so many writes are answered with 500 */
static int nodes_made, leases_made;
static uint64_t rev;
static int changed[20 * PODS_MAX], n_changed; /* for the watch, in order */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

static void print_pod(int i, struct buf *out)
{
    const struct pod_there *p = &pods[i];
    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%d\","
               "\"namespace\":\"x\",\"uid\":\"u%d\",\"resourceVersion\":\"%llu\"%s},\"spec\":{"
               "\"nodeName\":\"%s\",\"containers\":[{\"name\":\"main\",\"image\":\"i\"}]},"
               "\"status\":{\"phase\":\"%s\"%s%s}}",
               i, i, (unsigned long long)rev,
               p->is_terminating ? ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
                                   "\"deletionGracePeriodSeconds\":30"
                                 : "",
               p->node, p->is_running ? "Running" : "Pending",
               p->is_running ? ",\"startTime\":\"2026-01-01T00:00:00Z\",\"containerStatuses\":[{"
                               "\"name\":\"main\",\"ready\":true,\"state\":{\"running\":{}}}]"
                             : "",
               p->is_unschedulable ? ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
                                     "\"False\",\"reason\":\"Unschedulable\"}]"
                                   : "");
}

/* Lock held. */
static void change(int i)
{
    rev++;
    changed[n_changed++] = i;
    pthread_cond_broadcast(&wake);
}

static void serve_list(struct peer_conn *c)
{
    SCOPED(buf_fini) struct buf out = {0};
    pthread_mutex_lock(&lock);
    buf_printf(&out,
               "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
               "\"%llu\"},\"items\":[",
               (unsigned long long)rev);
    for (int i = 0, n = 0; i < n_pods; i++) {
        if (!pods[i].is_there)
            continue;
        buf_puts(&out, n++ ? "," : "");
        print_pod(i, &out);
    }
    buf_puts(&out, "]}");
    n_changed = 0; /* the watch goes on from here */
    pthread_mutex_unlock(&lock);
    peer_answer(c, 200, "application/json", buf_cstr(&out));
}

static bool serve_watch(struct peer_conn *c)
{
    peer_begin_chunks(c, 200);
    for (int at = 0;;) {
        SCOPED(buf_fini) struct buf out = {0};
        pthread_mutex_lock(&lock);
        for (; at < n_changed; at++) {
            int i = changed[at];
            buf_printf(&out,
                       "{\"type\":\"%s\",\"object\":", pods[i].is_there ? "MODIFIED" : "DELETED");
            print_pod(i, &out);
            buf_puts(&out, "}\n");
        }
        pthread_mutex_unlock(&lock);
        if (out.len)
            peer_chunk(c, buf_cstr(&out));
        if (peer_wait_hangup(c, 10))
            return false;
    }
}

/* Lock held; the HTTP status. */
static int write_pod(int i, const struct peer_request *req)
{
    struct pod_there *p = &pods[i];
    SCOPED(json_free_p) cJSON *body = NULL;
    if (failures_left > 0) {
        failures_left--;
        return 500;
    }
    if (!p->is_there)
        return 404;
    ck_assert_int_eq(json_parse(buf_cstr(&req->body), req->body.len, NULL, &body, NULL), 0);
    if (strstr(req->target, "/binding")) {
        p->bindings++;
        if (*p->node)
            return 409;
        snprintf(p->node, sizeof p->node, "%s", json_str_or(body, "target.name", "?"));
    } else if (strcmp(req->method, "DELETE") == 0) {
        p->deletes++;
        ck_assert_int_eq(json_i64_or(body, "gracePeriodSeconds", -1), 0);
        p->is_there = false;
    } else {
        p->patches++;
        p->is_running = strcmp(json_str_or(body, "status.phase", ""), "Running") == 0;
        p->is_unschedulable = !json_str(body, "status.phase");
    }
    change(i);
    return 200;
}

static void serve_write(struct peer_conn *c, const struct peer_request *req)
{
    SCOPED(buf_fini) struct buf out = {0};
    long long i = -1;
    const char *name = strstr(req->target, "/pods/p");
    ck_assert_msg(name && sscanf(name, "/pods/p%lld", &i) == 1, "%s", req->target);
    pthread_mutex_lock(&lock);
    int status = write_pod((int)i, req);
    if (status == 200 && !strstr(req->target, "/binding"))
        print_pod((int)i, &out);
    else
        buf_printf(&out, "{\"kind\":\"Status\",\"status\":\"%s\",\"reason\":\"%s\"}",
                   status == 200 ? "Success" : "Failure",
                   status == 404   ? "NotFound"
                   : status == 409 ? "Conflict"
                                   : "InternalError");
    pthread_mutex_unlock(&lock);
    peer_answer(c, status, "application/json", buf_cstr(&out));
}

static bool serve(void *ctx, struct peer_conn *c, const struct peer_request *req)
{
    (void)ctx;
    bool is_pod = strstr(req->target, "/pods") != NULL;
    if (is_pod && strcmp(req->method, "GET") == 0) {
        if (strstr(req->target, "watch="))
            return serve_watch(c);
        serve_list(c);
    } else if (is_pod) {
        serve_write(c, req);
    } else {
        pthread_mutex_lock(&lock);
        nodes_made += strcmp(req->target, "/api/v1/nodes") == 0;
        bool is_lease = strstr(req->target, "/leases") != NULL;
        bool is_unknown = is_lease && strcmp(req->method, "PATCH") == 0 && leases_made == 0;
        leases_made += is_lease && strcmp(req->method, "POST") == 0;
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&lock);
        peer_answer(c, is_unknown ? 404 : 200, "application/json",
                    is_unknown ? "{\"kind\":\"Status\",\"reason\":\"NotFound\"}" : "{}");
    }
    return true;
}

static struct peer *peer;
static struct fetch *fetch;
static struct kube *kube;
static struct simulation *simulation;

static void begin(int n, struct simulation_config config)
{
    log_set_level(LOG_ERROR);
    n_pods = n;
    rev = 1;
    for (int i = 0; i < n; i++)
        pods[i].is_there = true;
    peer = peer_start(NULL, serve, NULL);
    char path[] = "/tmp/simulate-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    dprintf(fd,
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: "
            "{cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: "
            "\"http://127.0.0.1:%d\"}}]\nusers: [{name: u, user: {token: t}}]\n",
            peer_port(peer));
    close(fd);
    fetch = fetch_new();
    ck_assert_int_eq(kube_new(path, fetch, &kube, NULL), 0);
    unlink(path);
    config.kube = kube;
    config.clock = &clock_system;
    config.name = "n";
    config.workers = 16;
    config.lease_ms = 60000;
    simulation = simulation_start(&config);
}

static void end(void)
{
    simulation_stop(simulation);
    peer_stop(peer);
    kube_free(kube);
    fetch_free(fetch);
}

/* Waits until fn holds. */
static void wait_until(bool (*fn)(void))
{
    pthread_mutex_lock(&lock);
    while (!fn())
        pthread_cond_wait(&wake, &lock);
    pthread_mutex_unlock(&lock);
}

static bool all_run(void)
{
    for (int i = 0; i < n_pods; i++) {
        if (!pods[i].is_running)
            return false;
    }
    return true;
}

static bool all_gone(void)
{
    for (int i = 0; i < n_pods; i++) {
        if (pods[i].is_there)
            return false;
    }
    return true;
}

static bool has_lease(void)
{
    return leases_made > 0;
}

static void terminate_all(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_pods; i++) {
        pods[i].is_terminating = true;
        change(i);
    }
    pthread_mutex_unlock(&lock);
}

/* Bound, running, ended: one call each, spread over the nodes, also when calls fail at first. */
START_TEST(test_once_each)
{
    static const char *const names[] = {"n-0", "n-1", "n-2"};
    int on[3] = {0};
    failures_left = _i;
    begin(300, (struct simulation_config){
                   .nodes = 3, .pods_per_node = 1000, .pods = {.schedules = true}});
    wait_until(all_run);
    wait_until(has_lease);
    terminate_all();
    wait_until(all_gone);
    end();
    for (int i = 0; i < n_pods; i++) {
        ck_assert_int_eq(pods[i].bindings, 1);
        ck_assert_int_eq(pods[i].patches, 1);
        ck_assert_int_eq(pods[i].deletes, 1);
        for (int n = 0; n < 3; n++)
            on[n] += strcmp(pods[i].node, names[n]) == 0;
    }
    for (int n = 0; n < 3; n++)
        ck_assert_int_eq(on[n], 100);
    ck_assert_int_eq(nodes_made, 3);
}
END_TEST

static bool ten_run_and_five_wait(void)
{
    int running = 0, waiting = 0;
    for (int i = 0; i < n_pods; i++) {
        running += pods[i].is_running;
        waiting += pods[i].is_unschedulable;
    }
    return running == 10 && waiting == 5;
}

static int ended; /* the Pod that makes room */

static bool its_place_is_taken(void)
{
    int running = 0;
    for (int i = 0; i < n_pods; i++)
        running += pods[i].is_there && pods[i].is_running;
    return !pods[ended].is_there && running == 10;
}

/* A full node takes no more; when one goes, one of those that wait comes in. */
START_TEST(test_full)
{
    begin(15,
          (struct simulation_config){.nodes = 1, .pods_per_node = 10, .pods = {.schedules = true}});
    wait_until(ten_run_and_five_wait);
    pthread_mutex_lock(&lock);
    while (!pods[ended].is_running)
        ended++;
    pods[ended].is_terminating = true;
    change(ended);
    pthread_mutex_unlock(&lock);
    wait_until(its_place_is_taken);
    end();
}
END_TEST

/* Pods of other nodes are left alone, and those that nobody has bound. */
START_TEST(test_others)
{
    snprintf(pods[0].node, sizeof pods[0].node, "n");
    snprintf(pods[1].node, sizeof pods[1].node, "elsewhere");
    begin(3, (struct simulation_config){.nodes = 1, .pods_per_node = 10});
    pthread_mutex_lock(&lock);
    while (!pods[0].is_running)
        pthread_cond_wait(&wake, &lock);
    pthread_mutex_unlock(&lock);
    end();
    ck_assert_int_eq(pods[1].patches + pods[2].patches + pods[2].bindings, 0);
}
END_TEST

/* How fast, against an API server that does nothing. Its figure is printed, not judged. */
START_TEST(test_many)
{
    int64_t began = clock_monotonic_ms(&clock_system);
    begin(PODS_MAX, (struct simulation_config){
                        .nodes = 10, .pods_per_node = 1000, .pods = {.schedules = true}});
    wait_until(all_run);
    int64_t took = clock_monotonic_ms(&clock_system) - began;
    end();
    struct buf line = {0};
    buf_printf(&line, "# %d pods bound and running in %d ms\n", n_pods, (int)took);
    fputs(buf_cstr(&line), stderr);
    buf_fini(&line);
    for (int i = 0; i < n_pods; i++)
        ck_assert_int_eq(pods[i].bindings + pods[i].patches, 2);
}
END_TEST

SUITE(node_simulate)
{
    LOOP("once each", test_once_each, 0, 3);
    TESTS("nodes", test_full, test_others, test_many);
}
