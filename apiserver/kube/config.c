/* Reading a kubeconfig: current-context names a context, that one a cluster and a user.
 * Certificates and keys given inline are written to files, because TLS libraries want files. Which
 * fields exist: client-go clientcmd api/v1. */
#include "apiserver/kube/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/base/yaml.h"

#define POD_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
#define KUBECONFIG_MAX_BYTES ((size_t)4 << 20)

/* ---- inline data ---- */

static const char *temp_root(void)
{
    const char *dir = getenv("TMPDIR");
    return dir != NULL && dir[0] == '/' ? dir : "/tmp";
}

static int ensure_temp_dir(struct kube_config *c, struct err *err)
{
    if (c->temp_dir != NULL)
        return 0;
    SCOPED_FREE char *dir = xasprintf("%s/kube-XXXXXX", temp_root());
    if (mkdtemp(dir) == NULL) /* mode 0700 */
        return err_set(err, ERR_INVALID, "cannot make a private folder in %s: %m", temp_root());
    c->temp_dir = steal(&dir);
    return 0;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int write_private(const char *path, const struct buf *data, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, ERR_INVALID, "%s: %m", path);
    int failed = write_all(fd, buf_cstr(data), data->len);
    int saved_errno = errno;
    failed |= close(fd);
    if (failed != 0) {
        errno = saved_errno;
        return err_set(err, ERR_INVALID, "%s: %m", path);
    }
    return 0;
}

static int save_data(struct kube_config *c, const char *field, const char *base64, char **ret_path,
                     struct err *err)
{
    SCOPED(buf_fini) struct buf data = {0};
    if (!buf_unbase64(&data, base64, strlen(base64)))
        return err_set(err, ERR_INVALID, "%s-data is no base64", field);
    if (ensure_temp_dir(c, err) < 0)
        return -(int)ERR_INVALID;
    SCOPED_FREE char *path = xasprintf("%s/%s", c->temp_dir, field);
    if (write_private(path, &data, err) < 0)
        return -(int)ERR_INVALID;
    *ret_path = steal(&path);
    return 0;
}

/* What may be inline, by the names of its files. */
static const char *const inline_files[] = {"certificate-authority", "client-certificate",
                                           "client-key"};

static void remove_temp_dir(const char *dir)
{
    for (size_t i = 0; i < ARRAY_LEN(inline_files); i++) {
        SCOPED_FREE char *path = xasprintf("%s/%s", dir, inline_files[i]);
        unlink(path);
    }
    rmdir(dir);
}

void kube_config_fini(struct kube_config *c)
{
    if (c->temp_dir != NULL)
        remove_temp_dir(c->temp_dir);
    free(c->server);
    free(c->ca_file);
    free(c->cert_file);
    free(c->key_file);
    free(c->token);
    free(c->token_file);
    free(c->temp_dir);
    free(c->path);
    *c = (struct kube_config){0};
}

/* ---- the kubeconfig's tree ---- */

/* Entry `name` of the list: [{name: ..., <kind>: {...}}]; NULL when absent. */
static const cJSON *find_named(const cJSON *tree, const char *list, const char *name,
                               const char *kind)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, json_get(tree, list))
    {
        const char *its = json_str(entry, "name");
        if (its != NULL && strcmp(its, name) == 0)
            return json_get(entry, kind);
    }
    return NULL;
}

/* Relative names count from the kubeconfig's folder. */
static char *resolve(const char *config_path, const char *name)
{
    const char *slash = strrchr(config_path, '/');
    if (name[0] == '/' || slash == NULL)
        return xstrdup(name);
    return xasprintf("%.*s/%s", (int)(slash - config_path), config_path, name);
}

/* A file that is named or given inline (<field>-data, which wins). */
static int take_file(struct kube_config *c, const char *config_path, const cJSON *from,
                     const char *field, char **ret, struct err *err)
{
    SCOPED_FREE char *data_field = xasprintf("%s-data", field);
    const char *data = json_str(from, data_field);
    const char *name = json_str(from, field);
    if (data != NULL && data[0] != '\0')
        return save_data(c, field, data, ret, err);
    if (name != NULL && name[0] != '\0')
        *ret = resolve(config_path, name);
    return 0;
}

/* A field we cannot honour must not be ignored: we would be somebody else, or talk to somebody
 * else. */
static int refuse_fields(const cJSON *from, const char *what, const char *const *fields,
                         struct err *err)
{
    for (; *fields != NULL; fields++)
        if (json_get(from, *fields) != NULL)
            return err_set(err, ERR_INVALID, "%s: %s is not supported", what, *fields);
    return 0;
}

static int take_cluster(struct kube_config *c, const char *config_path, const cJSON *cluster,
                        struct err *err)
{
    static const char *const refused[] = {"proxy-url", "tls-server-name", NULL};
    const char *server = json_str(cluster, "server");
    if (server == NULL ||
        !(str_has_prefix(server, "https://") || str_has_prefix(server, "http://")))
        return err_set(err, ERR_INVALID, "cluster: server is no http or https URL");
    if (refuse_fields(cluster, "cluster", refused, err) < 0)
        return -(int)ERR_INVALID;
    size_t n = strlen(server);
    while (server[n - 1] == '/')
        n--;
    c->server = xstrndup(server, n);
    c->insecure = json_bool_or(cluster, "insecure-skip-tls-verify", false);
    return take_file(c, config_path, cluster, "certificate-authority", &c->ca_file, err);
}

static int take_user(struct kube_config *c, const char *config_path, const cJSON *user,
                     struct err *err)
{
    static const char *const refused[] = {"exec", "auth-provider", "username",  "password",
                                          "as",   "as-uid",        "as-groups", "as-user-extra",
                                          NULL};
    if (refuse_fields(user, "user", refused, err) < 0 ||
        take_file(c, config_path, user, "client-certificate", &c->cert_file, err) < 0 ||
        take_file(c, config_path, user, "client-key", &c->key_file, err) < 0)
        return -(int)ERR_INVALID;
    if ((c->cert_file == NULL) != (c->key_file == NULL))
        return err_set(err, ERR_INVALID, "user: client-certificate and client-key go together");
    const char *token = json_str(user, "token");
    const char *token_file = json_str(user, "tokenFile");
    if (token != NULL && token[0] != '\0')
        c->token = xstrdup(token);
    if (token_file != NULL && token_file[0] != '\0')
        c->token_file = resolve(config_path, token_file);
    return 0;
}

static int take_context(struct kube_config *c, const char *config_path, const cJSON *tree,
                        struct err *err)
{
    const char *current = json_str_or(tree, "current-context", "");
    const cJSON *context = find_named(tree, "contexts", current, "context");
    if (context == NULL)
        return err_set(err, ERR_INVALID, "no context \"%s\"", current);
    const char *cluster_name = json_str_or(context, "cluster", "");
    const cJSON *cluster = find_named(tree, "clusters", cluster_name, "cluster");
    if (cluster == NULL)
        return err_set(err, ERR_INVALID, "no cluster \"%s\"", cluster_name);
    const char *user_name = json_str_or(context, "user", "");
    const cJSON *user = find_named(tree, "users", user_name, "user");
    if (user == NULL && user_name[0] != '\0')
        return err_set(err, ERR_INVALID, "no user \"%s\"", user_name);
    if (take_cluster(c, config_path, cluster, err) < 0)
        return -(int)ERR_INVALID;
    return take_user(c, config_path, user, err);
}

int kube_config_load_file(const char *path, struct kube_config *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(kube_config_fini)
    struct kube_config c = {.path = xstrdup(path), .stamp = file_stamp(path)};
    int code = file_read(path, KUBECONFIG_MAX_BYTES, &text, err);
    if (code < 0)
        return code;
    if (yaml_parse(buf_cstr(&text), text.len, NULL, &tree, err) < 0)
        return err_set(err, ERR_INVALID, "kubeconfig %s is no YAML",
                       path); /* its texts may quote a key */
    if (take_context(&c, path, tree, err) < 0)
        return err_wrap(err, "kubeconfig %s", path);
    *ret = steal(&c);
    return 0;
}

/* ---- following ---- */

/* The name below its own folder of a file that holds what was inline; a file's whole name. */
static const char *place_of(const struct kube_config *c, const char *file)
{
    size_t n = c->temp_dir ? strlen(c->temp_dir) : 0;
    bool is_inline = file && n && strncmp(file, c->temp_dir, n) == 0 && file[n] == '/';
    return is_inline ? file + n + 1 : file;
}

static bool is_same_place(const struct kube_config *a, const char *file_a,
                          const struct kube_config *b, const char *file_b)
{
    return str_equal(place_of(a, file_a), place_of(b, file_b));
}

/* All but the content of what is inline. */
static bool is_same_form(const struct kube_config *a, const struct kube_config *b)
{
    return str_equal(a->server, b->server) && a->insecure == b->insecure &&
           str_equal(a->token_file, b->token_file) && !a->token == !b->token &&
           is_same_place(a, a->ca_file, b, b->ca_file) &&
           is_same_place(a, a->cert_file, b, b->cert_file) &&
           is_same_place(a, a->key_file, b, b->key_file);
}

static int take_inline_files(const struct kube_config *c, const struct kube_config *fresh,
                             struct err *err)
{
    for (size_t i = 0; c->temp_dir && i < ARRAY_LEN(inline_files); i++) {
        SCOPED_FREE char *from = xasprintf("%s/%s", fresh->temp_dir, inline_files[i]);
        SCOPED_FREE char *to = xasprintf("%s/%s", c->temp_dir, inline_files[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return err_set(err, ERR_INVALID, "%s: %m", to);
    }
    return 0;
}

int kube_config_follow(struct kube_config *c, struct err *err)
{
    SCOPED(kube_config_fini) struct kube_config fresh = {0};
    struct file_stamp now = c->path ? file_stamp(c->path) : c->stamp;
    if (file_stamp_equal(&now, &c->stamp))
        return 0;
    c->stamp = now;
    int rc = kube_config_load_file(c->path, &fresh, err);
    if (rc < 0)
        return rc;
    if (!is_same_form(c, &fresh))
        return err_set(err, ERR_INVALID,
                       "kubeconfig %s: more has changed than what is inline, which takes a restart",
                       c->path);
    if (take_inline_files(c, &fresh, err) < 0)
        return -(int)ERR_INVALID;
    free(c->token);
    c->token = steal(&fresh.token);
    return 1;
}

/* ---- in a pod ---- */

int kube_config_load_pod(const char *dir, struct kube_config *ret, struct err *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    SCOPED(kube_config_fini) struct kube_config c = {0};
    c.token_file = xasprintf("%s/token", dir);
    c.ca_file = xasprintf("%s/ca.crt", dir);
    if (host == NULL || host[0] == '\0' || port == NULL || port[0] == '\0' ||
        access(c.token_file, R_OK) != 0 || access(c.ca_file, R_OK) != 0)
        return err_set(err, ERR_NOT_FOUND,
                       "not in a cluster: no KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, "
                       "or no token and ca.crt in %s",
                       dir);
    bool is_ipv6 = strchr(host, ':') != NULL;
    c.server = xasprintf(is_ipv6 ? "https://[%s]:%s" : "https://%s:%s", host, port);
    *ret = steal(&c);
    return 0;
}

int kube_config_load(const char *path, struct kube_config *ret, struct err *err)
{
    return path ? kube_config_load_file(path, ret, err) : kube_config_load_pod(POD_DIR, ret, err);
}
