/* Events for the cluster: repetitions become a series; a cluster that does not take them in time
 * meets a ceiling, and a count of what was dropped. */
#include "reconcile/cluster_kube.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/json.h"
#include "apiserver/base/metric.h"
#include "tests/lib/peer.h"
#include "tests/lib/suite.h"

#define CEILING 1000 /* of events that wait */

/* Never answers: the client waits. */
static bool serve(void *ctx, struct peer_conn *c, const struct peer_request *req)
{
    (void)ctx, (void)req;
    peer_wait_hangup(c, 60000);
    return false;
}

static void on_child(void *ctx, const char *owner_kind, const char *namespace_name,
                     const char *owner_name)
{
    (void)ctx, (void)owner_kind, (void)namespace_name, (void)owner_name;
}

static struct kube *connect_to(int port, struct fetch *fetch)
{
    char path[] = "/tmp/kubeconfig-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    dprintf(fd,
            "{apiVersion: v1, kind: Config, current-context: x,\n"
            "contexts: [{name: x, context: {cluster: c, user: u}}],\n"
            "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}],\n"
            "users: [{name: u, user: {}}]}\n",
            port);
    close(fd);
    struct kube *kube = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(kube_new(path, fetch, &kube, &err) == 0, "%s", err_text(&err));
    unlink(path);
    return kube;
}

static double dropped(void)
{
    static const char head[] = "agent_sandbox_events_total{result=\"dropped\"} ";
    SCOPED(buf_fini) struct buf text = {0};
    metric_print_all(&text);
    const char *at = strstr(buf_cstr(&text), head);
    return at ? strtod(at + strlen(head), NULL) : 0;
}

/* About the object of that number. */
static void emit(struct cluster *cluster, int about)
{
    cJSON *event = json_object();
    SCOPED_FREE char *uid = xasprintf("u-%d", about);
    json_set_str(json_ensure_object(event, "metadata"), "name", uid);
    json_set_str(json_ensure_object(event, "regarding"), "uid", uid);
    json_set_str(event, "eventTime", "2026-01-02T03:04:05.000000Z");
    cluster->v->emit(cluster, "ns", event);
}

START_TEST(test_ceiling)
{
    struct peer *peer = peer_start(NULL, serve, NULL);
    struct fetch *fetch = fetch_new();
    struct kube *kube = connect_to(peer_port(peer), fetch);
    struct cluster *cluster =
        cluster_kube_new(&(struct cluster_kube_config){.kube = kube, .on_child = on_child});
    for (int i = 0; i < CEILING; i++)
        emit(cluster, i);
    ck_assert_double_eq(dropped(), 0);
    for (int i = 0; i < 10; i++)
        emit(cluster, CEILING + i);
    /* at most one is on its way, so one more may have found room */
    ck_assert_double_ge(dropped(), 9);
    peer_stop(peer);
    cluster->v->free(cluster);
    kube_free(kube);
    fetch_free(fetch);
}
END_TEST

#define EVENTS "/apis/events.k8s.io/v1/namespaces/ns/events"

struct diary {
    pthread_mutex_t lock;
    struct buf text; /* METHOD TARGET BODY, a line each */
    int n;
};

/* Takes everything, but knows no event a third time: it is old by then. */
static bool take_events(void *ctx, struct peer_conn *c, const struct peer_request *req)
{
    struct diary *d = ctx;
    if (!strstr(req->target, "/events")) { /* the watches */
        peer_answer(c, 503, NULL, "");
        return false;
    }
    pthread_mutex_lock(&d->lock);
    bool is_post = strcmp(req->method, "POST") == 0;
    buf_printf(&d->text, "%s %s %.*s\n", req->method, req->target, is_post ? 0 : (int)req->body.len,
               buf_cstr(&req->body));
    int n = ++d->n;
    pthread_mutex_unlock(&d->lock);
    peer_answer(c, n == 3 ? 404 : 201, "application/json", "{}");
    return true;
}

/* IL-120: what is said again is counted with what was said; if that is gone, it is said anew. */
START_TEST(test_repeated)
{
    struct diary d = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct peer *peer = peer_start(NULL, take_events, &d);
    struct fetch *fetch = fetch_new();
    struct kube *kube = connect_to(peer_port(peer), fetch);
    struct cluster *cluster =
        cluster_kube_new(&(struct cluster_kube_config){.kube = kube, .on_child = on_child});
    for (int i = 0; i < 3; i++)
        emit(cluster, 1);
    for (int i = 0; i < 10000; i++, usleep(1000)) {
        pthread_mutex_lock(&d.lock);
        bool is_all = d.n == 4;
        pthread_mutex_unlock(&d.lock);
        if (is_all)
            break;
    }
    cluster->v->free(cluster);
    peer_stop(peer);
    ck_assert_str_eq(buf_cstr(&d.text),
                     "POST " EVENTS " \n"
                     "PATCH " EVENTS "/u-1 {\"series\":{\"count\":2,\"lastObservedTime\":"
                     "\"2026-01-02T03:04:05.000000Z\"}}\n"
                     "PATCH " EVENTS "/u-1 {\"series\":{\"count\":3,\"lastObservedTime\":"
                     "\"2026-01-02T03:04:05.000000Z\"}}\n"
                     "POST " EVENTS " \n");
    buf_fini(&d.text);
    kube_free(kube);
    fetch_free(fetch);
}
END_TEST

SUITE(cluster_kube)
{
    TESTS("events", test_ceiling, test_repeated);
}
