/* The ConfigMap kube-system/extension-apiserver-authentication, whose values are PEM or JSON text
 * in strings. A set is parsed whole and then swapped in; a bad one leaves the old. */
#include "apiserver/auth/config.h"

#include <pthread.h>
#include <string.h>

#include "apiserver/base/file.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"

#define NAME "extension-apiserver-authentication"
#define COLLECTION "/api/v1/namespaces/kube-system/configmaps"
#define CA_FILE_MAX ((size_t)4 << 20) /* bytes */
#define LIST_MAX 100                  /* names in one list */
#define DIAGNOSE_INTERVAL_MS 60000

struct config {
    struct kube *kube;
    const struct clock *clock;
    struct settings given; /* what the flags say; its members override */
    bool has_client_ca, has_requestheader_ca, has_names, has_username, has_uid, has_group,
        has_extra;
    struct reflector *reflector;
    int64_t diagnosed_ms;
    pthread_mutex_t lock; /* guards what follows */
    struct settings *now; /* never NULL */
    bool is_ready;
};

/* ---- lists of names ---- */

static int list_of_tree(const cJSON *tree, const char *key, char ***ret, struct err *err)
{
    if (!cJSON_IsArray(tree) || json_len(tree) > LIST_MAX)
        return err_set(err, ERR_INVALID, "%s: not a short list", key);
    char **list = xcalloc(json_len(tree) + 1, sizeof(char *));
    size_t n = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, tree)
    {
        if (!cJSON_IsString(item)) {
            strv_free(list);
            return err_set(err, ERR_INVALID, "%s: not a list of strings", key);
        }
        list[n++] = xstrdup(item->valuestring);
    }
    *ret = list;
    return 0;
}

/* JSON text; absent and "" are the empty list. */
static int parse_list(const cJSON *data, const char *key, char ***ret, struct err *err)
{
    const cJSON *node = json_get(data, key);
    const char *text = cJSON_IsString(node) ? node->valuestring : "";
    SCOPED(json_free_p) cJSON *tree = NULL;
    if (!*text) {
        *ret = xcalloc(1, sizeof(char *));
        return 0;
    }
    if (json_parse_str(text, &tree, err) < 0)
        return err_wrap(err, "%s", key);
    return list_of_tree(tree, key, ret, err);
}

/* ---- one set ---- */

static void settings_fini(struct settings *s)
{
    bundle_unref(s->client_ca);
    bundle_unref(s->requestheader_ca);
    strv_free(s->allowed_names);
    strv_free(s->username_headers);
    strv_free(s->uid_headers);
    strv_free(s->group_headers);
    strv_free(s->extra_prefixes);
    *s = (struct settings){0};
}

static int parse_bundle(const cJSON *data, const char *key, struct bundle **ret, struct err *err)
{
    const cJSON *node = json_get(data, key);
    const char *pem = cJSON_IsString(node) ? node->valuestring : "";
    if (!*pem)
        return 0;
    int r = bundle_parse(pem, strlen(pem), ret, err);
    return r < 0 ? err_wrap(err, "%s", key) : 0;
}

static int pick_bundle(const cJSON *data, const char *key, bool is_given, struct bundle *given,
                       struct bundle **ret, struct err *err)
{
    if (!is_given)
        return parse_bundle(data, key, ret, err);
    *ret = bundle_ref(given);
    return 0;
}

static int pick_list(const cJSON *data, const char *key, bool is_given, char **given, char ***ret,
                     struct err *err)
{
    if (!is_given)
        return parse_list(data, key, ret, err);
    *ret = strv_copy((const char *const *)given);
    return 0;
}

static int read_settings(const struct config *c, const cJSON *data, struct settings *ret,
                         struct err *err)
{
    const struct settings *g = &c->given;
    SCOPED(settings_fini) struct settings s = {.refs = 1};
    int r = pick_bundle(data, "client-ca-file", c->has_client_ca, g->client_ca, &s.client_ca, err);
    if (r == 0)
        r = pick_bundle(data, "requestheader-client-ca-file", c->has_requestheader_ca,
                        g->requestheader_ca, &s.requestheader_ca, err);
    const struct {
        const char *key;
        bool is_given;
        char **given, ***ret;
    } lists[] = {
        {"requestheader-allowed-names", c->has_names, g->allowed_names, &s.allowed_names},
        {"requestheader-username-headers", c->has_username, g->username_headers,
         &s.username_headers},
        {"requestheader-uid-headers", c->has_uid, g->uid_headers, &s.uid_headers},
        {"requestheader-group-headers", c->has_group, g->group_headers, &s.group_headers},
        {"requestheader-extra-headers-prefix", c->has_extra, g->extra_prefixes, &s.extra_prefixes},
    };
    for (size_t i = 0; i < ARRAY_LEN(lists) && r == 0; i++)
        r = pick_list(data, lists[i].key, lists[i].is_given, lists[i].given, lists[i].ret, err);
    if (r == 0)
        *ret = steal(&s);
    return r;
}

/* ---- the present set ---- */

static void unref_locked(struct settings *s)
{
    if (--s->refs > 0)
        return;
    settings_fini(s);
    free(s);
}

const struct settings *config_get(struct config *c)
{
    pthread_mutex_lock(&c->lock);
    struct settings *s = c->now;
    s->refs++;
    pthread_mutex_unlock(&c->lock);
    return s;
}

void config_put(struct config *c, const struct settings *s)
{
    struct settings *mine;
    memcpy(&mine, &s, sizeof s); /* constant for its users, but the count is ours */
    pthread_mutex_lock(&c->lock);
    unref_locked(mine);
    pthread_mutex_unlock(&c->lock);
}

static int swap_in(struct config *c, const cJSON *data, bool is_ready, struct err *err)
{
    struct settings fresh = {0};
    int r = read_settings(c, data, &fresh, err);
    if (r < 0)
        return r;
    struct settings *s = xmemdup(&fresh, sizeof fresh);
    pthread_mutex_lock(&c->lock);
    struct settings *old = c->now;
    c->now = s;
    c->is_ready = c->is_ready || is_ready;
    if (old)
        unref_locked(old);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static int apply_configmap(struct config *c, const cJSON *configmap, struct err *err)
{
    return swap_in(c, json_get(configmap, "data"), true, err);
}

bool config_is_ready(struct config *c)
{
    pthread_mutex_lock(&c->lock);
    bool is_ready = c->is_ready;
    pthread_mutex_unlock(&c->lock);
    return is_ready;
}

/* ---- following ---- */

static void take_configmap(struct config *c, const cJSON *configmap)
{
    struct err err = {0};
    if (!str_equal(json_str(configmap, "metadata.name"), NAME))
        return;
    if (apply_configmap(c, configmap, &err) < 0)
        log_error("configmap " NAME " not usable, keeping what was known reason=\"%s\"",
                  err_text(&err));
    else
        log_info("configmap " NAME " read version=%s",
                 json_str_or(configmap, "metadata.resourceVersion", ""));
    err_fini(&err);
}

/* Absent: nothing changes. Until it appears nobody comes in by the front proxy. */
static void on_replace(void *ctx, const cJSON *const *objects, size_t n, const char *version)
{
    (void)version;
    for (size_t i = 0; i < n; i++)
        take_configmap(ctx, objects[i]);
    if (n == 0)
        log_warn("configmap " NAME " is absent, no change to who is trusted");
}

static void on_event(void *ctx, const cJSON *object, bool is_delete)
{
    if (is_delete)
        log_warn("configmap " NAME " was deleted, keeping what was known");
    else
        take_configmap(ctx, object);
}

/* A GET by name, which says why, or helps where only that is allowed. */
static void diagnose(struct config *c)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *configmap = NULL;
    struct kube_call call = {.method = "GET", .path = COLLECTION "/" NAME};
    int r = kube_do(c->kube, &call, &configmap, &err);
    if (r == 0)
        take_configmap(c, configmap);
    else if (err.code == ERR_FORBIDDEN)
        log_error("configmap " NAME
                  " may not be read; bind the role extension-apiserver-authentication-reader "
                  "of namespace kube-system to this server's account");
    else
        log_warn("configmap " NAME " not read, trying on reason=\"%s\"", err_text(&err));
}

static void on_link(void *ctx, bool is_up)
{
    struct config *c = ctx;
    int64_t now = clock_monotonic_ms(c->clock);
    if (is_up || config_is_ready(c) ||
        (c->diagnosed_ms && now - c->diagnosed_ms < DIAGNOSE_INTERVAL_MS))
        return;
    c->diagnosed_ms = now;
    diagnose(c);
}

static bool needs_configmap(const struct config *c)
{
    return c->kube && !(c->has_client_ca && c->has_requestheader_ca);
}

void config_start(struct config *c)
{
    static const struct reflector_ops ops = {
        .on_replace = on_replace, .on_event = on_event, .on_link = on_link};
    if (needs_configmap(c))
        c->reflector = reflector_start(c->kube, COLLECTION, NULL, "metadata.name=" NAME, &ops, c);
}

/* ---- what is given ---- */

static int read_bundle(const char *path, struct bundle **ret, struct err *err)
{
    SCOPED(buf_fini) struct buf pem = {0};
    if (!path)
        return 0;
    int r = file_read(path, CA_FILE_MAX, &pem, err);
    if (r == 0 && (r = bundle_parse(buf_cstr(&pem), pem.len, ret, err)) < 0)
        err_wrap(err, "%s", path);
    return r;
}

/* With the front proxy's authority given, the header names have their usual values. The uid's is
 * never assumed. */
static void take_lists(struct config *c, const struct auth_config *from)
{
    static const char *const user[] = {"X-Remote-User", NULL},
                             *const group[] = {"X-Remote-Group", NULL},
                             *const extra[] = {"X-Remote-Extra-", NULL};
    bool is_static = from->requestheader_ca_file;
    c->has_names = is_static || from->requestheader_allowed_names;
    c->has_username = is_static || from->username_headers;
    c->has_group = is_static || from->group_headers;
    c->has_extra = is_static || from->extra_prefixes;
    c->has_uid = is_static || from->uid_headers;
    c->given.allowed_names = strv_copy(from->requestheader_allowed_names);
    c->given.username_headers = strv_copy(from->username_headers ? from->username_headers : user);
    c->given.group_headers = strv_copy(from->group_headers ? from->group_headers : group);
    c->given.extra_prefixes = strv_copy(from->extra_prefixes ? from->extra_prefixes : extra);
    c->given.uid_headers = strv_copy(from->uid_headers);
}

int config_new(const struct auth_config *from, struct config **ret, struct err *err)
{
    struct config *c = xcalloc(1, sizeof *c);
    c->kube = from->kube;
    c->clock = from->clock;
    pthread_mutex_init(&c->lock, NULL);
    c->has_client_ca = from->client_ca_file;
    c->has_requestheader_ca = from->requestheader_ca_file;
    take_lists(c, from);
    int r = read_bundle(from->client_ca_file, &c->given.client_ca, err);
    if (r == 0)
        r = read_bundle(from->requestheader_ca_file, &c->given.requestheader_ca, err);
    if (r == 0)
        r = swap_in(c, NULL, !needs_configmap(c), err);
    if (r < 0) {
        config_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void config_free(struct config *c)
{
    if (!c)
        return;
    reflector_stop(c->reflector);
    if (c->now)
        unref_locked(c->now);
    settings_fini(&c->given);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
