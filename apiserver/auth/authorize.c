/* The chain of authorizers, the review's spec, and the text of a refusal. */
#include "apiserver/auth/authorize.h"

#include <string.h>

#include "apiserver/auth/cache.h"
#include "apiserver/auth/review.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"

#define PATH "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#define TTL_MS 10000
#define ENTRIES_MAX 8192
/* Of what the caller chose; more is asked each time. Source: webhook authorizer, shouldCache. */
#define KEPT_BYTES_MAX 10000

static const char *const open_paths[] = {"/healthz", "/livez", "/readyz"};

struct authorizer {
    struct kube *kube;
    const struct auth_judge *judge;
    struct cache *cache;
};

struct authorizer *authorizer_new(struct kube *kube, const struct auth_judge *judge,
                                  const struct clock *clock)
{
    struct authorizer *a = xcalloc(1, sizeof *a);
    a->kube = kube;
    a->judge = judge;
    a->cache = cache_new(ENTRIES_MAX, TTL_MS, clock);
    return a;
}

void authorizer_free(struct authorizer *a)
{
    if (!a)
        return;
    cache_free(a->cache);
    free(a);
}

static const char *text(const char *s)
{
    return s ? s : "";
}

/* ---- the spec ---- */

static void set_text(cJSON *object, const char *name, const char *value)
{
    if (value && *value)
        json_set_str(object, name, value);
}

void auth_describe_user(const struct user *u, cJSON *spec)
{
    json_set_str(spec, "user", text(u->name));
    set_text(spec, "uid", u->uid);
    cJSON *groups = json_array();
    for (char **g = u->groups; g && *g; g++)
        json_push(groups, json_string(*g));
    json_set(spec, "groups", groups);
    for (size_t i = 0; i < u->extra.n; i++) {
        cJSON *extra = json_ensure_object(spec, "extra");
        const char *key = u->extra.v[i].name;
        if (!json_get(extra, key))
            json_set(extra, key, json_array());
        json_push(json_get(extra, key), json_string(u->extra.v[i].value));
    }
}

static void set_resource(cJSON *spec, const struct access *x)
{
    cJSON *a = json_object();
    set_text(a, "namespace", x->namespace_name);
    set_text(a, "verb", x->verb);
    set_text(a, "group", x->group);
    set_text(a, "version", x->version);
    set_text(a, "resource", x->resource);
    set_text(a, "subresource", x->subresource);
    set_text(a, "name", x->name);
    if (x->field_selector)
        json_set(a, "fieldSelector", json_copy(x->field_selector));
    if (x->label_selector)
        json_set(a, "labelSelector", json_copy(x->label_selector));
    json_set(spec, "resourceAttributes", a);
}

static cJSON *make_spec(const struct user *u, const struct access *x)
{
    cJSON *spec = json_object();
    auth_describe_user(u, spec);
    if (x->is_resource) {
        set_resource(spec, x);
    } else {
        cJSON *a = json_object();
        set_text(a, "path", x->path);
        set_text(a, "verb", x->verb);
        json_set(spec, "nonResourceAttributes", a);
    }
    return spec;
}

/* ---- the review ---- */

struct ask {
    struct kube *kube;
    const cJSON *spec;
};

static int ask_cluster(void *ctx, cJSON **ret, struct err *err)
{
    struct ask *a = ctx;
    SCOPED(json_free_p) cJSON *review = json_object();
    json_set_str(review, "apiVersion", "authorization.k8s.io/v1");
    json_set_str(review, "kind", "SubjectAccessReview");
    json_set(review, "spec", json_copy(a->spec));
    return review_post(a->kube, PATH, review, ret, err);
}

static bool is_master(const cJSON *spec)
{
    return json_has_str(json_get(spec, "groups"), "system:masters");
}

int authorizer_review(struct authorizer *a, const cJSON *spec, cJSON **ret_status, struct err *err)
{
    if (!a->judge)
        return err_set(err, ERR_INTERNAL, "nobody to judge here");
    if (!is_master(spec))
        return a->judge->access(a->judge->ctx, spec, ret_status, err);
    *ret_status = json_object();
    json_set_bool(*ret_status, "allowed", true);
    return 0;
}

static int review(struct authorizer *a, const struct user *u, const struct access *x, cJSON **ret,
                  struct err *err)
{
    SCOPED(json_free_p) cJSON *spec = make_spec(u, x);
    SCOPED(buf_fini) struct buf printed = {0}, chosen = {0};
    unsigned char digest[32];
    char key[CACHE_KEY_SIZE];
    struct ask ask = {.kube = a->kube, .spec = spec};
    if (a->judge)
        return authorizer_review(a, spec, ret, err);
    json_print(spec, &printed);
    json_print(json_get(spec, x->is_resource ? "resourceAttributes" : "nonResourceAttributes"),
               &chosen);
    if (chosen.len > KEPT_BYTES_MAX)
        return ask_cluster(&ask, ret, err);
    digest_sha256(buf_cstr(&printed), printed.len, digest);
    digest_print_hex(digest, sizeof digest, key);
    return cache_get(a->cache, key, ask_cluster, &ask, ret, err);
}

/* ---- the refusal ---- */

static void put_quoted(struct buf *b, const char *s)
{
    buf_go_quote(b, text(s), strlen(text(s)));
}

static void put_escaped(struct buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '&')
            buf_puts(b, "&amp;");
        else if (*s == '<')
            buf_puts(b, "&lt;");
        else if (*s == '>')
            buf_puts(b, "&gt;");
        else
            buf_putc(b, *s);
    }
}

static bool is_set(const char *s)
{
    return s && *s;
}

/* Source: apiserver's forbiddenMessage. */
static void put_sentence(struct buf *b, const struct user *u, const struct access *x)
{
    buf_puts(b, "User ");
    put_quoted(b, u->name);
    buf_printf(b, " cannot %s ", text(x->verb));
    if (!x->is_resource) {
        buf_puts(b, "path ");
        put_quoted(b, x->path);
        return;
    }
    SCOPED(buf_fini) struct buf resource = {0};
    buf_printf(&resource, "%s%s%s", text(x->resource), is_set(x->subresource) ? "/" : "",
               text(x->subresource));
    buf_puts(b, "resource ");
    put_quoted(b, buf_cstr(&resource));
    buf_puts(b, " in API group ");
    put_quoted(b, x->group);
    if (is_set(x->namespace_name)) {
        buf_puts(b, " in the namespace ");
        put_quoted(b, x->namespace_name);
    } else {
        buf_puts(b, " at the cluster scope");
    }
}

/* Source: apimachinery's NewForbidden. */
static void put_subject(struct buf *b, const struct access *x)
{
    if (!x->is_resource || !is_set(x->resource)) {
        buf_puts(b, "forbidden: ");
        return;
    }
    buf_printf(b, "%s%s%s ", x->resource, is_set(x->group) ? "." : "", text(x->group));
    if (is_set(x->name)) {
        put_quoted(b, x->name);
        buf_putc(b, ' ');
    }
    buf_puts(b, "is forbidden: ");
}

static int refuse(const struct user *u, const struct access *x, const char *reason, struct err *err)
{
    SCOPED(buf_fini) struct buf sentence = {0}, message = {0};
    put_sentence(&sentence, u, x);
    if (is_set(reason))
        buf_printf(&sentence, ": %s", reason);
    put_subject(&message, x);
    put_escaped(&message, buf_cstr(&sentence));
    err_set(err, ERR_FORBIDDEN, "%s", buf_cstr(&message));
    bool is_resource = x->is_resource;
    return err_details(err, is_resource ? text(x->group) : "", is_resource ? text(x->resource) : "",
                       is_resource ? text(x->name) : "", "");
}

/* ---- the chain ---- */

static bool is_open(const struct access *x)
{
    for (size_t i = 0; !x->is_resource && i < ARRAY_LEN(open_paths); i++)
        if (str_equal(x->path, open_paths[i]))
            return true;
    return false;
}

int authorizer_check(struct authorizer *a, const struct user *u, const struct access *access,
                     struct err *err)
{
    SCOPED(err_fini) struct err failure = {0};
    SCOPED(json_free_p) cJSON *status = NULL;
    if (user_in_group(u, "system:masters") || is_open(access))
        return 0;
    if (!a->kube && !a->judge)
        return refuse(u, access, NULL, err);
    if (review(a, u, access, &status, &failure) < 0)
        return err_set(err, ERR_INTERNAL, "Internal Server Error: \"%s\": %s", text(access->path),
                       err_text(&failure));
    if (json_bool_or(status, "allowed", false) && !json_bool_or(status, "denied", false))
        return 0;
    return refuse(u, access, json_str(status, "reason"), err);
}
