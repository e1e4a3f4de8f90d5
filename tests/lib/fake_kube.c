#include "tests/lib/fake_kube.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "tests/lib/peer.h"

#define CONFIGMAP "extension-apiserver-authentication"

struct fake_kube {
    struct peer *peer;
    struct fetch *fetch;
    struct kube *kube;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    char *config; /* data as JSON text, NULL = absent */
    int version;
    bool is_forbidden, is_stopping;
    int reviews, flaky;
    char *last;
};

static void sleep_ms(int ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000L};
    nanosleep(&t, NULL);
}

static const char user_json[] = "{\"username\":\"jane\",\"uid\":\"u-1\",\"groups\":[\"devs\","
                                "\"qa\"],\"extra\":{\"k\":[\"v1\",\"v2\"]}}";

static void answer_error(struct peer_conn *c, int code, const char *reason)
{
    SCOPED_FREE char *body = xasprintf(
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no "
        "luck\",\"reason\":\"%s\",\"code\":%d}",
        reason, code);
    peer_answer(c, code, "application/json", body);
}

/* True when the subject asks for trouble and got it. */
static bool make_trouble(struct fake_kube *f, struct peer_conn *c, const char *who)
{
    if (strcmp(who, "broken") == 0)
        answer_error(c, 500, "InternalError");
    else if (strcmp(who, "forbidden") == 0)
        answer_error(c, 403, "Forbidden");
    else if (strcmp(who, "odd") == 0)
        peer_answer(c, 201, "application/json", "{\"kind\":\"What\"}");
    else if (strcmp(who, "flaky") == 0 && f->flaky++ == 0)
        answer_error(c, 503, "ServiceUnavailable");
    else
        return false;
    return true;
}

static void answer_token(struct fake_kube *f, struct peer_conn *c, const cJSON *review)
{
    const char *token = json_str_or(review, "spec.token", "");
    bool is_good =
        strcmp(token, "good") == 0 || strcmp(token, "flaky") == 0 || strcmp(token, "slow") == 0;
    const char *user = is_good ? user_json
                       : strcmp(token, "masters") == 0
                           ? "{\"username\":\"root\",\"groups\":[\"system:masters\"]}"
                       : strcmp(token, "noname") == 0 ? "{}"
                                                      : NULL;
    if (make_trouble(f, c, token))
        return;
    SCOPED_FREE char *body =
        user ? xasprintf(
                   "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":%s}}",
                   user)
             : xstrdup("{\"kind\":\"TokenReview\",\"status\":{\"user\":{},\"error\":\"[invalid "
                       "bearer token]\"}}");
    peer_answer(c, 201, "application/json", body);
}

static void answer_access(struct fake_kube *f, struct peer_conn *c, const cJSON *review)
{
    const char *user = json_str_or(review, "spec.user", "");
    bool is_good =
        strcmp(user, "allowed") == 0 || strcmp(user, "flaky") == 0 || strcmp(user, "slow") == 0;
    const char *status = is_good ? "{\"allowed\":true,\"reason\":\"RBAC\"}"
                         : strcmp(user, "denied") == 0
                             ? "{\"allowed\":false,\"denied\":true,\"reason\":\"because <b> & c\"}"
                         : strcmp(user, "both") == 0 ? "{\"allowed\":true,\"denied\":true}"
                                                     : "{\"allowed\":false}";
    if (make_trouble(f, c, user))
        return;
    SCOPED_FREE char *body = xasprintf("{\"kind\":\"SubjectAccessReview\",\"status\":%s}", status);
    peer_answer(c, 201, "application/json", body);
}

static void answer_review(struct fake_kube *f, struct peer_conn *c, const struct peer_request *req)
{
    SCOPED(json_free_p) cJSON *review = NULL;
    json_parse(buf_cstr(&req->body), req->body.len, NULL, &review, NULL);
    bool is_slow = strstr(buf_cstr(&req->body), "\"slow\"") != NULL;
    if (is_slow)
        sleep_ms(300);
    pthread_mutex_lock(&f->lock);
    f->reviews++;
    free(f->last);
    f->last = xstrdup(buf_cstr(&req->body));
    if (strstr(req->target, "tokenreviews"))
        answer_token(f, c, review);
    else
        answer_access(f, c, review);
    pthread_mutex_unlock(&f->lock);
}

static char *print_config(const struct fake_kube *f)
{
    return xasprintf(
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" CONFIGMAP
        "\",\"namespace\":\"kube-system\",\"uid\":\"c\",\"resourceVersion\":\"%d\"},\"data\":%s}",
        f->version, f->config ? f->config : "{}");
}

static void answer_list(struct fake_kube *f, struct peer_conn *c)
{
    SCOPED_FREE char *one = print_config(f);
    SCOPED_FREE char *body = xasprintf("{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\","
                                       "\"metadata\":{\"resourceVersion\":\"%d\"},\"items\":[%s]}",
                                       f->version, f->config ? one : "");
    peer_answer(c, 200, "application/json", body);
}

/* Sends each later version until the test ends. */
static void run_watch(struct fake_kube *f, struct peer_conn *c, const char *target)
{
    const char *from = strstr(target, "resourceVersion=");
    int seen = from ? (int)strtol(from + strlen("resourceVersion="), NULL, 10) : f->version;
    bool was_there = f->config && seen == f->version;
    peer_begin_chunks(c, 200);
    while (!f->is_stopping) {
        if (seen == f->version) {
            pthread_cond_wait(&f->changed, &f->lock);
            continue;
        }
        SCOPED_FREE char *one = print_config(f);
        SCOPED_FREE char *event = xasprintf("{\"type\":\"%s\",\"object\":%s}\n",
                                            !f->config  ? "DELETED"
                                            : was_there ? "MODIFIED"
                                                        : "ADDED",
                                            one);
        peer_chunk(c, event);
        seen = f->version;
        was_there = f->config;
    }
}

static void answer_config(struct fake_kube *f, struct peer_conn *c, const char *target)
{
    pthread_mutex_lock(&f->lock);
    if (f->is_forbidden)
        answer_error(c, 403, "Forbidden");
    else if (strstr(target, "watch="))
        run_watch(f, c, target);
    else if (!strstr(target, "/" CONFIGMAP))
        answer_list(f, c);
    else
        answer_error(c, 404, "NotFound");
    pthread_mutex_unlock(&f->lock);
}

static bool on_request(void *ctx, struct peer_conn *c, const struct peer_request *req)
{
    struct fake_kube *f = ctx;
    if (strcmp(req->method, "POST") == 0)
        answer_review(f, c, req);
    else
        answer_config(f, c, req->target);
    return true;
}

struct fake_kube *fake_kube_new(void)
{
    struct fake_kube *f = xcalloc(1, sizeof *f);
    struct err err = {0};
    char path[] = "/tmp/fake-kube.XXXXXX";
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->version = 10;
    f->peer = peer_start(NULL, on_request, f);
    f->fetch = fetch_new();
    int fd = mkstemp(path);
    dprintf(fd,
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: "
            "{cluster: c, user: u}}]\n"
            "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:%d\"}}]\nusers: [{name: u, "
            "user: {}}]\n",
            peer_port(f->peer));
    close(fd);
    if (kube_new(path, f->fetch, &f->kube, &err) < 0) {
        fprintf(stderr, "fake_kube: %s\n", err_text(&err));
        abort();
    }
    unlink(path);
    return f;
}

struct kube *fake_kube_client(struct fake_kube *f)
{
    return f->kube;
}

void fake_kube_break(struct fake_kube *f)
{
    pthread_mutex_lock(&f->lock);
    f->is_stopping = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (f->peer)
        peer_stop(f->peer);
    f->peer = NULL;
}

void fake_kube_free(struct fake_kube *f)
{
    fake_kube_break(f);
    kube_free(f->kube);
    fetch_free(f->fetch);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f->config);
    free(f->last);
    free(f);
}

void fake_kube_set_config(struct fake_kube *f, const char *data)
{
    pthread_mutex_lock(&f->lock);
    free(f->config);
    f->config = data ? xstrdup(data) : NULL;
    f->version++;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

void fake_kube_forbid_config(struct fake_kube *f)
{
    f->is_forbidden = true; /* before anybody asks */
}

int fake_kube_reviews(struct fake_kube *f)
{
    pthread_mutex_lock(&f->lock);
    int n = f->reviews;
    pthread_mutex_unlock(&f->lock);
    return n;
}

char *fake_kube_last_review(struct fake_kube *f)
{
    pthread_mutex_lock(&f->lock);
    char *last = xstrdup(f->last ? f->last : "");
    pthread_mutex_unlock(&f->lock);
    return last;
}
