#include "node/callers.h"

#include <pthread.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"

#define PATH "/apis/authorization.k8s.io/v1/subjectaccessreviews"
/* How long an answer counts. Source: defaults of the kubelet's authorization.webhook. */
#define YES_MS (5 * 60000)
#define NO_MS 30000
#define ANSWERS_MAX 1000

struct callers {
    struct kube *kube;
    const char *node;
    const struct clock *clock;
    pthread_mutex_t lock;
    struct map *answers; /* question to struct answer */
};

struct answer {
    bool is_yes;
    int64_t until_ms; /* monotonic */
};

struct callers *callers_new(struct kube *kube, const char *node, const struct clock *clock)
{
    struct callers *c = xcalloc(1, sizeof *c);
    *c = (struct callers){.kube = kube, .node = node, .clock = clock, .answers = map_new()};
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

static bool free_answer(void *ctx, const char *question, void *answer)
{
    (void)ctx, (void)question;
    free(answer);
    return true;
}

/* Everything, so that nobody needs to look for the oldest: there are few callers. */
static void forget_all(struct callers *c)
{
    map_each(c->answers, free_answer, NULL);
    map_free(c->answers);
    c->answers = map_new();
}

void callers_free(struct callers *c)
{
    if (!c)
        return;
    forget_all(c);
    map_free(c->answers);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* The whole of what decides; as JSON, no two questions are the same text. */
static cJSON *spec_of(const struct callers *c, const struct subject *who, const char *verb)
{
    cJSON *spec = json_object(), *groups = json_array();
    for (char **group = who->organizations; *group; group++)
        json_push(groups, json_string(*group));
    json_push(groups, json_string("system:authenticated"));
    json_add(spec, "user", json_string(who->common_name));
    if (*who->uid)
        json_add(spec, "uid", json_string(who->uid));
    json_add(spec, "groups", groups);
    json_set_at(spec, "resourceAttributes.verb", json_string(verb));
    json_set_at(spec, "resourceAttributes.version", json_string("v1"));
    json_set_at(spec, "resourceAttributes.resource", json_string("nodes"));
    json_set_at(spec, "resourceAttributes.subresource", json_string("proxy"));
    json_set_at(spec, "resourceAttributes.name", json_string(c->node));
    return spec;
}

static int ask(struct callers *c, cJSON *take_spec, bool *ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *review = json_object(), *answer = NULL;
    json_add(review, "apiVersion", json_string("authorization.k8s.io/v1"));
    json_add(review, "kind", json_string("SubjectAccessReview"));
    json_add(review, "spec", take_spec);
    int rc = kube_do(c->kube, &(struct kube_call){.method = "POST", .path = PATH, .body = review},
                     &answer, err);
    if (rc < 0)
        return err_wrap(err, "asking who may");
    *ret = json_bool_or(answer, "status.allowed", false) &&
           !json_bool_or(answer, "status.denied", false);
    return 0;
}

static bool find(struct callers *c, const char *question, bool *ret)
{
    pthread_mutex_lock(&c->lock);
    const struct answer *a = map_get(c->answers, question);
    bool counts = a && a->until_ms > clock_monotonic_ms(c->clock);
    if (counts)
        *ret = a->is_yes;
    pthread_mutex_unlock(&c->lock);
    return counts;
}

static void keep(struct callers *c, const char *question, bool is_yes)
{
    struct answer *a = xcalloc(1, sizeof *a);
    a->is_yes = is_yes;
    a->until_ms = clock_monotonic_ms(c->clock) + (is_yes ? YES_MS : NO_MS);
    pthread_mutex_lock(&c->lock);
    if (map_len(c->answers) >= ANSWERS_MAX)
        forget_all(c);
    free(map_put(c->answers, question, a));
    pthread_mutex_unlock(&c->lock);
}

int callers_check(struct callers *c, const struct subject *who, const char *verb, struct err *err)
{
    SCOPED(json_free_p) cJSON *spec = spec_of(c, who, verb);
    SCOPED_FREE char *question = json_to_str(spec);
    bool is_yes = false;
    if (!find(c, question, &is_yes)) {
        int rc = ask(c, steal(&spec), &is_yes, err);
        if (rc < 0)
            return rc;
        keep(c, question, is_yes);
    }
    if (!is_yes)
        return err_set(err, ERR_FORBIDDEN,
                       "Forbidden (user=%s, verb=%s, resource=nodes, subresource=proxy)",
                       who->common_name, verb);
    return 0;
}
