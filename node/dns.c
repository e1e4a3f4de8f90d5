/* The records are in a file, which dnsmasq reads again at SIGHUP. They are not with the node's
 * other files, for it reads them as a user without rights. */
#include "node/dns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/daemon.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/loop.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "node/disk.h"
#include "node/env.h"

#define WRITE_AFTER_MS 100 /* changes that come together are written once */

struct dns {
    char *folder, *hosts, *domain;
    struct daemon *daemon;
    struct loop *writer;
    struct reflector *reflector;

    pthread_mutex_t lock;
    struct omap *slices; /* NAMESPACE/NAME to lines; lock */
    bool leads_to_api;   /* by an address of ours, which Pods reach, so not by its endpoints */
};

/* ---- what is printed ---- */

/* A line of the file is whatever its writer says, of any name, and slices come from users. */
static bool is_address(const char *text)
{
    unsigned char ignored[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, text, ignored) == 1 || inet_pton(AF_INET6, text, ignored) == 1;
}

static bool is_part_of_name(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return text[strspn(text, letters)] == '\0';
}

static void print_line(const char *address, const char *host, const char *service,
                       const char *namespace_name, const char *domain, struct buf *out)
{
    buf_printf(out, "%s %s%s%s.%s.svc.%s\n", address, host, *host ? "." : "", service,
               namespace_name, domain);
}

void dns_print_slice(const cJSON *slice, const char *domain, struct buf *out)
{
    const char *service = cJSON_GetStringValue(
        json_get(json_at(slice, "metadata.labels"), "kubernetes.io/service-name"));
    const char *namespace_name = json_str_or(slice, "metadata.namespace", "");
    const cJSON *endpoint, *address;
    if (!service || !is_part_of_name(service) || !is_part_of_name(namespace_name))
        return;
    cJSON_ArrayForEach(endpoint, json_get(slice, "endpoints"))
    {
        const char *host = json_str_or(endpoint, "hostname", "");
        if (!json_bool_or(endpoint, "conditions.ready", true))
            continue;
        cJSON_ArrayForEach(address, json_get(endpoint, "addresses"))
        {
            if (!cJSON_IsString(address) || !is_address(address->valuestring))
                continue;
            print_line(address->valuestring, "", service, namespace_name, domain, out);
            if (*host && is_part_of_name(host))
                print_line(address->valuestring, host, service, namespace_name, domain, out);
        }
    }
}

bool dns_is_api(const cJSON *slice)
{
    const cJSON *service =
        json_get(json_at(slice, "metadata.labels"), "kubernetes.io/service-name");
    return cJSON_IsString(service) && strcmp(service->valuestring, "kubernetes") == 0 &&
           strcmp(json_str_or(slice, "metadata.namespace", ""), "default") == 0;
}

char *dns_address(const char *subnet)
{
    SCOPED_FREE char *base = xstrndup(subnet, strcspn(subnet, "/"));
    char text[INET_ADDRSTRLEN];
    struct in_addr a;
    if (!strchr(subnet, '/') || inet_pton(AF_INET, base, &a) != 1)
        return NULL;
    a.s_addr = htonl(ntohl(a.s_addr) + 1);
    return xstrdup(inet_ntop(AF_INET, &a, text, sizeof text));
}

/* ---- the file ---- */

static bool append_lines(void *out, const char *key, void *lines)
{
    (void)key;
    buf_puts(out, lines);
    return true;
}

static int write_hosts(void *ctx, const char *key, struct loop_result *ret)
{
    struct dns *d = ctx;
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(err_fini) struct err err = {0};
    (void)key;
    (void)ret;
    pthread_mutex_lock(&d->lock);
    omap_each(d->slices, NULL, append_lines, &text);
    pthread_mutex_unlock(&d->lock);
    if (disk_write(AT_FDCWD, d->hosts, buf_cstr(&text), text.len, 0644, &err) < 0) {
        log_warn("names of Services: %s", err_text(&err));
        return -(int)err.code;
    }
    daemon_signal(d->daemon, SIGHUP);
    return 0;
}

/* ---- what the cluster says ---- */

/* Lock held. */
static void take_slice(struct dns *d, const cJSON *slice, bool is_delete)
{
    SCOPED(buf_fini) struct buf lines = {0};
    SCOPED_FREE char *key = xasprintf("%s/%s", json_str_or(slice, "metadata.namespace", ""),
                                      json_str_or(slice, "metadata.name", ""));
    if (!is_delete && !(d->leads_to_api && dns_is_api(slice)))
        dns_print_slice(slice, d->domain, &lines);
    free(lines.len > 0 ? omap_put(d->slices, key, buf_take(&lines, NULL))
                       : omap_del(d->slices, key));
}

static bool free_lines(void *ctx, const char *key, void *lines)
{
    (void)ctx;
    (void)key;
    free(lines);
    return true;
}

static void drop_slices(struct dns *d)
{
    omap_each(d->slices, NULL, free_lines, NULL);
    omap_free(d->slices);
    d->slices = omap_new();
}

static void on_replace(void *ctx, const cJSON *const *objects, size_t n, const char *version)
{
    struct dns *d = ctx;
    (void)version;
    pthread_mutex_lock(&d->lock);
    drop_slices(d);
    for (size_t i = 0; i < n; i++)
        take_slice(d, objects[i], false);
    pthread_mutex_unlock(&d->lock);
    loop_add(d->writer, "hosts");
}

static void on_event(void *ctx, const cJSON *slice, bool is_delete)
{
    struct dns *d = ctx;
    pthread_mutex_lock(&d->lock);
    take_slice(d, slice, is_delete);
    pthread_mutex_unlock(&d->lock);
    loop_add_after(d->writer, "hosts", WRITE_AFTER_MS);
}

/* ---- life ---- */

/* dnsmasq gives up its rights itself, too, but the kernel forgets then whose end it shall be told
 * of. */
static const char *const without_rights[] = {
    "setpriv",
    "--reuid=nobody",
    "--regid=nogroup",
    "--clear-groups",
    "--bounding-set=-all,+net_bind_service",
    "--inh-caps=-all,+net_bind_service",
    "--ambient-caps=-all,+net_bind_service",
    "--no-new-privs",
    "--pdeathsig=TERM",
};

static struct daemon *start_program(const struct dns *d, const struct dns_config *c)
{
    char **argv = NULL;
    for (size_t i = 0; i < ARRAY_LEN(without_rights); i++)
        strv_add(&argv, xstrdup(without_rights[i]));
    strv_add(&argv, xstrdup(c->program));
    strv_add(&argv, xstrdup("--keep-in-foreground"));
    strv_add(&argv, xstrdup("--conf-file=")); /* none of the machine's */
    strv_add(&argv, xstrdup("--pid-file="));
    strv_add(&argv, xstrdup("--log-facility=-"));
    strv_add(&argv, xstrdup("--no-hosts"));
    strv_add(&argv, xasprintf("--addn-hosts=%s", d->hosts));
    strv_add(&argv, xasprintf("--local=/%s/", c->domain));
    if (c->api)
        strv_add(&argv, xasprintf("--host-record=" ENV_API_HOST "," ENV_API_HOST ".%s,%s",
                                  c->domain, c->api));
    /* On that address alone, which is not there before the first Pod. */
    strv_add(&argv, xstrdup("--bind-dynamic"));
    strv_add(&argv, xasprintf("--listen-address=%s", c->address));
    struct daemon *ret =
        daemon_start(&(struct daemon_config){.name = "dns", .argv = argv, .log_file = c->log_file});
    strv_free(argv);
    return ret;
}

int dns_start(const struct dns_config *config, struct dns **ret, struct err *err)
{
    static const struct reflector_ops ops = {.on_replace = on_replace, .on_event = on_event};
    struct dns *d = xcalloc(1, sizeof *d);
    d->folder = xasprintf("/run/sandbox-node/%s", config->interface);
    d->hosts = xasprintf("%s/hosts", d->folder);
    d->domain = xstrdup(config->domain);
    d->slices = omap_new();
    d->leads_to_api = config->api != NULL;
    pthread_mutex_init(&d->lock, NULL);
    int rc = disk_make_folder(d->folder, 0755, err);
    rc = rc < 0 ? rc : disk_write(AT_FDCWD, d->hosts, "", 0, 0644, err);
    if (rc < 0) {
        dns_stop(d);
        return rc;
    }
    d->daemon = start_program(d, config);
    d->writer = loop_new(&(struct loop_config){
        .name = "dns", .workers = 1, .clock = config->clock, .work = write_hosts, .ctx = d});
    loop_start(d->writer);
    d->reflector = reflector_start(config->kube, "/apis/discovery.k8s.io/v1/endpointslices",
                                   "kubernetes.io/service-name", NULL, &ops, d);
    *ret = d;
    return 0;
}

void dns_stop(struct dns *d)
{
    if (!d)
        return;
    reflector_stop(d->reflector);
    if (d->writer) {
        loop_stop(d->writer);
        loop_free(d->writer);
    }
    daemon_stop(d->daemon);
    disk_remove_tree(d->folder, NULL);
    drop_slices(d);
    omap_free(d->slices);
    pthread_mutex_destroy(&d->lock);
    free(d->folder);
    free(d->hosts);
    free(d->domain);
    free(d);
}
