/* Files: ca, serving, those of etcd, and one certificate a user; NAME.crt and NAME.key each. Users'
 * certificates also stand in NAME.kubeconfig, whole, so that one file is all that a user has to be
 * given. The admin has a token as well, in a context of its own and in the address of the page. */
#include "apiserver/auth/local.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "apiserver/auth/issue.h"
#include "apiserver/auth/user_token.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/file.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/str.h"

#define PEM_MAX ((size_t)64 << 10)
#define CA_DAYS 3650
#define LEAF_DAYS 365
#define RENEW_DAYS 30 /* left, at a start */
#define DAY_S ((int64_t)86400)

/* Who gets a kubeconfig. With the same certificate a node serves its containers' logs, commands and
 * ports: its name is all that the server looks at. */
static const struct user_row {
    const char *file, *common_name, *organization;
    bool is_server, has_token;
} users[] = {
    {"admin", "admin", "system:masters", .has_token = true},
    {"server", "system:apiserver", "system:masters"},
    {"node", LOCAL_NODE_USER, "system:nodes", .is_server = true},
};

void local_identity_fini(struct local_identity *l)
{
    free(l->ca_cert);
    free(l->serving_cert);
    free(l->serving_key);
    free(l->server_cert);
    free(l->server_key);
    free(l->server_config);
    free(l->admin_config);
    free(l->page_address);
    free(l->etcd_ca);
    free(l->etcd_cert);
    free(l->etcd_key);
    free(l->etcd_client_cert);
    free(l->etcd_client_key);
    free(l->dir);
}

static char *path_of(const char *dir, const char *name, const char *suffix)
{
    return xasprintf("%s/%s.%s", dir, name, suffix);
}

/* ---- pairs ---- */

static int read_pair(const char *dir, const char *name, struct pair_pem *ret)
{
    SCOPED_FREE char *cert = path_of(dir, name, "crt");
    SCOPED_FREE char *key = path_of(dir, name, "key");
    int rc = file_read(cert, PEM_MAX, &ret->cert, NULL);
    return rc < 0 ? rc : file_read(key, PEM_MAX, &ret->key, NULL);
}

/* The key first: a certificate without its key is worth nothing, and is made anew. */
static int write_pair(const char *dir, const char *name, const struct pair_pem *p, struct err *err)
{
    SCOPED_FREE char *cert = path_of(dir, name, "crt");
    SCOPED_FREE char *key = path_of(dir, name, "key");
    int rc = file_write_private(key, buf_cstr(&p->key), p->key.len, err);
    return rc < 0 ? rc : file_write_private(cert, buf_cstr(&p->cert), p->cert.len, err);
}

/* The pair of that name as it is, when it is good for a while; else a new one. */
static int ensure(const char *dir, const char *name, const struct issue_request *req,
                  struct pair_pem *ret, struct err *err)
{
    SCOPED(pair_pem_fini) struct pair_pem present = {0}, made = {0};
    if (read_pair(dir, name, &present) == 0 && issue_is_good(&present, req, RENEW_DAYS)) {
        *ret = steal(&present);
        return 0;
    }
    if (issue(req, &made, err) < 0 || write_pair(dir, name, &made, err) < 0)
        return -(int)err->code;
    *ret = steal(&made);
    return 0;
}

/* ---- the folder ---- */

static int make_dir(const char *dir, struct err *err)
{
    SCOPED_FREE char *path = xstrdup(dir);
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755); /* what matters is whether the last one is there */
        *slash = '/';
    }
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, ERR_INVALID, "%s: %m", dir);
    return 0;
}

/* Every name that the server answers to on its own machine. */
static char *alternatives(const char *host)
{
    bool is_address = host && strspn(host, "0123456789abcdefABCDEF:.") == strlen(host);
    bool is_any = host && (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0);
    return xasprintf("DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,"
                     "DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0."
                     "0.1,IP:::1%s%s",
                     !host || is_any ? ""
                     : is_address    ? ",IP:"
                                     : ",DNS:",
                     !host || is_any ? "" : host);
}

/* etcd's own gateway connects to itself with its certificate, hence it is a client's as well. */
static int ensure_etcd(const char *dir, struct err *err)
{
    SCOPED(pair_pem_fini) struct pair_pem ca = {0}, member = {0}, client = {0};
    const struct issue_request authority = {
        .common_name = "agent-sandbox-etcd", .is_authority = true, .days = CA_DAYS};
    struct issue_request leaf = {.common_name = "etcd",
                                 .alternatives = "DNS:localhost,IP:127.0.0.1",
                                 .is_server = true,
                                 .is_client = true,
                                 .from = &ca,
                                 .days = LEAF_DAYS};
    if (ensure(dir, "etcd-ca", &authority, &ca, err) < 0 ||
        ensure(dir, "etcd", &leaf, &member, err) < 0)
        return -(int)err->code;
    leaf = (struct issue_request){
        .common_name = "sandbox-apiserver", .is_client = true, .from = &ca, .days = LEAF_DAYS};
    return ensure(dir, "etcd-client", &leaf, &client, err);
}

/* A new key makes every token that was given out worthless. */
static int ensure_token_key(const char *dir, unsigned char *ret, size_t n, struct err *err)
{
    SCOPED_FREE char *path = path_of(dir, "token", "key");
    SCOPED(buf_fini) struct buf present = {0};
    if (file_read(path, n, &present, NULL) == 0 && present.len == n) {
        memcpy(ret, present.data, n);
        return 0;
    }
    rand_system.fill(&rand_system, ret, n);
    return file_write_private(path, (const char *)ret, n, err);
}

int local_identity_prepare(const char *dir, const char *host, struct local_identity *ret,
                           struct err *err)
{
    SCOPED(pair_pem_fini) struct pair_pem ca = {0}, serving = {0};
    SCOPED_FREE char *names = alternatives(host);
    const struct issue_request authority = {
        .common_name = "agent-sandbox", .is_authority = true, .days = CA_DAYS};
    const struct issue_request server = {.common_name = "sandbox-apiserver",
                                         .alternatives = names,
                                         .is_server = true,
                                         .from = &ca,
                                         .days = LEAF_DAYS};
    if (make_dir(dir, err) < 0 || ensure(dir, "ca", &authority, &ca, err) < 0 ||
        ensure(dir, "serving", &server, &serving, err) < 0 || ensure_etcd(dir, err) < 0)
        return -(int)err->code;
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        SCOPED(pair_pem_fini) struct pair_pem user = {0};
        const struct issue_request client = {.common_name = users[i].common_name,
                                             .organization = users[i].organization,
                                             .is_client = true,
                                             .is_server = users[i].is_server,
                                             .from = &ca,
                                             .days = LEAF_DAYS};
        if (ensure(dir, users[i].file, &client, &user, err) < 0)
            return -(int)err->code;
    }
    *ret = (struct local_identity){.ca_cert = path_of(dir, "ca", "crt"),
                                   .serving_cert = path_of(dir, "serving", "crt"),
                                   .serving_key = path_of(dir, "serving", "key"),
                                   .server_cert = path_of(dir, "server", "crt"),
                                   .server_key = path_of(dir, "server", "key"),
                                   .server_config = path_of(dir, "server", "kubeconfig"),
                                   .admin_config = path_of(dir, "admin", "kubeconfig"),
                                   .page_address = path_of(dir, "ui", "url"),
                                   .etcd_ca = path_of(dir, "etcd-ca", "crt"),
                                   .etcd_cert = path_of(dir, "etcd", "crt"),
                                   .etcd_key = path_of(dir, "etcd", "key"),
                                   .etcd_client_cert = path_of(dir, "etcd-client", "crt"),
                                   .etcd_client_key = path_of(dir, "etcd-client", "key"),
                                   .dir = xstrdup(dir)};
    return ensure_token_key(dir, ret->token_key, sizeof ret->token_key, err);
}

/* ---- kubeconfigs ---- */

static void put_base64(struct buf *out, const char *key, const struct buf *bytes)
{
    buf_printf(out, "    %s: ", key);
    buf_base64(out, buf_cstr(bytes), bytes->len);
    buf_putc(out, '\n');
}

static void put_user(struct buf *out, const char *name)
{
    buf_printf(out, "- name: %s\n  user:\n", name);
}

static void put_context(struct buf *out, const char *name, const char *user)
{
    buf_printf(out, "- name: %s\n  context:\n    cluster: agent-sandbox\n    user: %s\n", name,
               user);
}

/* token: NULL = the user has none. */
static void print_config(struct buf *out, const char *url, const char *user, const struct buf *ca,
                         const struct pair_pem *p, const char *token)
{
    buf_printf(out,
               "apiVersion: v1\nkind: Config\ncurrent-context: agent-sandbox\n"
               "clusters:\n- name: agent-sandbox\n  cluster:\n    server: %s\n",
               url);
    put_base64(out, "certificate-authority-data", ca);
    buf_puts(out, "contexts:\n");
    put_context(out, "agent-sandbox", user);
    if (token)
        put_context(out, "agent-sandbox-token", "token");
    buf_puts(out, "users:\n");
    put_user(out, user);
    put_base64(out, "client-certificate-data", &p->cert);
    put_base64(out, "client-key-data", &p->key);
    if (!token)
        return;
    put_user(out, "token");
    buf_printf(out, "    token: %s\n", token);
}

static int publish_user(const struct local_identity *l, const struct user_row *user,
                        const char *url, const char *token, struct err *err)
{
    SCOPED(pair_pem_fini) struct pair_pem p = {0};
    SCOPED(buf_fini) struct buf text = {0}, ca = {0};
    SCOPED_FREE char *path = path_of(l->dir, user->file, "kubeconfig");
    if (file_read(l->ca_cert, PEM_MAX, &ca, err) < 0)
        return -(int)err->code;
    if (read_pair(l->dir, user->file, &p) < 0)
        return err_set(err, ERR_INVALID, "%s/%s.crt or .key cannot be read", l->dir, user->file);
    print_config(&text, url, user->file, &ca, &p, token);
    return file_write_private(path, buf_cstr(&text), text.len, err);
}

/* The token stands behind #, the part of an address that browsers keep to themselves. */
static int publish_page(const struct local_identity *l, const char *url, const char *token,
                        struct err *err)
{
    SCOPED_FREE char *text = xasprintf("%s/ui/#token=%s\n", url, token);
    return file_write_private(l->page_address, text, strlen(text), err);
}

int local_identity_publish(const struct local_identity *l, const char *url, struct err *err)
{
    int64_t now_s = clock_unix_s(&clock_system);
    for (const struct user_row *u = users; u < users + ARRAY_LEN(users); u++) {
        SCOPED_FREE char *token = u->has_token
                                      ? user_token_sign(l->token_key, u->common_name,
                                                        u->organization, now_s, LEAF_DAYS * DAY_S)
                                      : NULL;
        if (publish_user(l, u, url, token, err) < 0 ||
            (token && publish_page(l, url, token, err) < 0))
            return -(int)err->code;
    }
    return 0;
}
