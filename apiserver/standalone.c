/* Certificates, etcd and the client of a server without a cluster. */
#include "apiserver/standalone.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/base/daemon.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/http/dial.h"
#include "apiserver/http/server.h"
#include "apiserver/http/tunnel.h"
#include "apiserver/kube/kube.h"
#include "storage/etcd_child.h"

/* An etcd for this server alone; without the program everything is kept in memory, unless that was
 * not meant. */
static int start_own_etcd(struct app *a, struct err *err)
{
    struct options *o = &a->options;
    const struct local_identity *l = &a->local;
    SCOPED_FREE char *program = daemon_find(o->etcd_program);
    SCOPED_FREE char *data = xasprintf("%s/etcd", l->dir);
    SCOPED_FREE char *log = xasprintf("%s/etcd.log", l->dir);
    if (!program && o->store)
        return err_set(err, ERR_INVALID, "--store=etcd, but there is no program %s",
                       o->etcd_program);
    if (!program) {
        log_warn("there is no program %s to keep objects with", o->etcd_program);
        o->store = "memory";
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
    strv_add(&o->etcd_servers, xstrdup(etcd_child_url(a->etcd)));
    o->etcd_ca_file = l->etcd_ca;
    o->etcd_cert_file = l->etcd_client_cert;
    o->etcd_key_file = l->etcd_client_key;
    return 0;
}

static char *usual_folder(void)
{
    const char *home = getenv("HOME");
    return geteuid() == 0 ? xstrdup("/var/lib/agent-sandbox")
                          : xasprintf("%s/.local/share/agent-sandbox", home ? home : ".");
}

int standalone_prepare(struct app *a, struct err *err)
{
    struct options *o = &a->options;
    if (!o->standalone)
        return 0;
    SCOPED_FREE char *folder = o->data_dir ? xstrdup(o->data_dir) : usual_folder();
    if (local_identity_prepare(folder, o->bind_address, &a->local, err) < 0)
        return -(int)err->code;
    o->cert_file = a->local.serving_cert;
    o->key_file = a->local.serving_key;
    o->client_ca_file = a->local.ca_cert;
    return str_equal(o->store, "memory") || o->etcd_servers ? 0 : start_own_etcd(a, err);
}

const char *standalone_address(const struct app *a)
{
    const char *host = a->options.bind_address;
    return str_equal(host, "0.0.0.0") ? "127.0.0.1" : str_equal(host, "::") ? "::1" : host;
}

int standalone_connect(struct app *a, struct err *err)
{
    if (!a->options.standalone)
        return 0;
    const char *host = standalone_address(a);
    bool is_v6 = strchr(host, ':') != NULL;
    SCOPED_FREE char *url = xasprintf("https://%s%s%s:%d", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
                                      server_port(a->server));
    if (local_identity_publish(&a->local, url, err) < 0 ||
        kube_new(a->local.server_config, a->fetch, &a->kube, err) < 0)
        return -(int)err->code;
    log_info("kubeconfig file=%s", a->local.admin_config);
    log_info("page at=/ui/ address-file=%s", a->local.page_address);
    return 0;
}

int standalone_start_tunnels(struct app *a, struct err *err)
{
    if (!a->options.standalone)
        return 0;
    const struct dialer_config dialer = {.ca_file = a->local.ca_cert,
                                         .cert_file = a->local.server_cert,
                                         .key_file = a->local.server_key,
                                         .any_node = LOCAL_NODE_USER};
    const struct tunnels_config tunnels = {.max = (size_t)a->options.max_pod_streams,
                                           .idle_timeout_ms = a->options.streaming_idle_ms};
    int rc = dialer_new(&dialer, &a->dialer, err);
    return rc < 0 ? rc : tunnels_new(&tunnels, &a->tunnels, err);
}

void standalone_free_tunnels(struct app *a)
{
    tunnels_free(a->tunnels);
    dialer_free(a->dialer);
}

void standalone_end(struct app *a)
{
    etcd_child_stop(a->etcd);
    local_identity_fini(&a->local);
}
