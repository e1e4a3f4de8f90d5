#include "storage/etcd_child.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/daemon.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

struct etcd_child {
    char *url;
    struct daemon *daemon;
};

/* A port that was free a moment ago; 0 = none. */
static int free_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof any;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0 &&
        getsockname(fd, (struct sockaddr *)&any, &len) == 0)
        port = ntohs(any.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

static void add(char ***argv, const char *flag, const char *value)
{
    strv_add(argv, xasprintf("--%s=%s", flag, value));
}

static char **arguments(const struct etcd_child_config *c, const char *url, const char *peer_url)
{
    char **argv = NULL;
    SCOPED_FREE char *cluster = xasprintf("default=%s", peer_url);
    strv_add(&argv, xstrdup(c->program));
    add(&argv, "name", "default");
    add(&argv, "data-dir", c->data_dir);
    add(&argv, "listen-client-urls", url);
    add(&argv, "advertise-client-urls", url);
    add(&argv, "listen-peer-urls", peer_url);
    add(&argv, "initial-advertise-peer-urls", peer_url);
    add(&argv, "initial-cluster", cluster);
    add(&argv, "logger", "zap");
    add(&argv, "log-level", "error"); /* its gateway warns of our certificate at every request */
    add(&argv, "client-cert-auth", "true");
    add(&argv, "trusted-ca-file", c->ca_file);
    add(&argv, "cert-file", c->cert_file);
    add(&argv, "key-file", c->key_file);
    add(&argv, "peer-client-cert-auth", "true");
    add(&argv, "peer-trusted-ca-file", c->ca_file);
    add(&argv, "peer-cert-file", c->cert_file);
    add(&argv, "peer-key-file", c->key_file);
    return argv;
}

int etcd_child_start(const struct etcd_child_config *config, struct etcd_child **ret,
                     struct err *err)
{
    int port = free_port(), peer_port = free_port();
    if (port == 0 || peer_port == 0)
        return err_set(err, ERR_INTERNAL, "no free port for etcd: %m");
    struct etcd_child *c = xcalloc(1, sizeof *c);
    SCOPED_FREE char *peer_url = xasprintf("https://127.0.0.1:%d", peer_port);
    c->url = xasprintf("https://127.0.0.1:%d", port);
    char **argv = arguments(config, c->url, peer_url);
    log_info("etcd starting program=%s data=%s url=%s", config->program, config->data_dir, c->url);
    c->daemon = daemon_start(
        &(struct daemon_config){.name = "etcd", .argv = argv, .log_file = config->log_file});
    strv_free(argv);
    *ret = c;
    return 0;
}

const char *etcd_child_url(const struct etcd_child *c)
{
    return c->url;
}

void etcd_child_stop(struct etcd_child *c)
{
    if (!c)
        return;
    daemon_stop(c->daemon);
    free(c->url);
    free(c);
}
