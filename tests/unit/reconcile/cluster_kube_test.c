/* Events for a cluster that does not take them in time: a ceiling, and a count of what was dropped.
 */
#include "reconcile/cluster_kube.h"

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

START_TEST(test_ceiling)
{
    struct peer *peer = peer_start(NULL, serve, NULL);
    struct fetch *fetch = fetch_new();
    struct kube *kube = connect_to(peer_port(peer), fetch);
    struct cluster *cluster =
        cluster_kube_new(&(struct cluster_kube_config){.kube = kube, .on_child = on_child});
    for (int i = 0; i < CEILING; i++)
        cluster->v->emit(cluster, "ns", json_object());
    ck_assert_double_eq(dropped(), 0);
    for (int i = 0; i < 10; i++)
        cluster->v->emit(cluster, "ns", json_object());
    /* at most one is on its way, so one more may have found room */
    ck_assert_double_ge(dropped(), 9);
    peer_stop(peer);
    cluster->v->free(cluster);
    kube_free(kube);
    fetch_free(fetch);
}
END_TEST

SUITE(cluster_kube)
{
    TESTS("events", test_ceiling);
}
