/* The memory of one Pod, and what its files share. */
#include "node/run.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

#define RETRY_FIRST_MS 10000 /* as a kubelet's for images */
#define RETRY_MAX_MS 300000

int64_t run_now_ms(const struct runner *r)
{
    return clock_unix_ms(r->config.clock);
}

struct run *run_new(const char *uid, cJSON *take_pod)
{
    struct run *run = xcalloc(1, sizeof *run);
    size_t n;
    SCOPED_FREE struct member *members = plan_members(take_pod, &n);
    run->uid = xstrdup(uid);
    run->newest = take_pod;
    run->ip = xstrdup("");
    run->notes = xcalloc(n + 1, sizeof *run->notes);
    run->n_notes = n;
    for (size_t i = 0; i < n; i++)
        run->notes[i].name = xstrdup(members[i].name);
    return run;
}

static void note_fini(struct note *n)
{
    free(n->name);
    free(n->instance_id);
    free(n->trouble);
    free(n->pull_auth);
    free(n->pull_why);
    free(n->reason);
    free(n->message);
    free(n->broken_id);
    free(n->broken_why);
    free(n->image);
}

void run_free(struct run *run)
{
    if (!run)
        return;
    for (size_t i = 0; i < run->n_notes; i++)
        note_fini(&run->notes[i]);
    free(run->notes);
    instances_fini(&run->instances);
    strv_free(run->made);
    strv_free(run->constants);
    tokens_fini(&run->tokens);
    free(run->follow_trouble);
    json_free(run->newest);
    json_free(run->pod);
    free(run->sandbox_trouble);
    free(run->network_trouble);
    free(run->uid);
    free(run->ip);
    free(run);
}

struct note *run_note(struct run *run, const char *container)
{
    for (size_t i = 0; i < run->n_notes; i++) {
        if (strcmp(run->notes[i].name, container) == 0)
            return &run->notes[i];
    }
    return NULL;
}

static uint64_t revision_of(const cJSON *pod)
{
    uint64_t rev = 0;
    str_to_u64(json_str_or(pod, "metadata.resourceVersion", ""), &rev);
    return rev;
}

void run_take(struct run *run, cJSON *take_pod)
{
    bool is_newer = revision_of(take_pod) >= revision_of(run->newest);
    json_free(is_newer ? run->newest : take_pod);
    if (is_newer)
        run->newest = take_pod;
}

void run_set_ip(struct runner *r, struct run *run, const char *ip)
{
    pthread_mutex_lock(&r->lock);
    free(run->ip);
    run->ip = xstrdup(ip);
    pthread_mutex_unlock(&r->lock);
}

int64_t run_retry_ms(unsigned failures)
{
    unsigned doublings = failures ? failures - 1 : 0;
    return doublings > 4 ? RETRY_MAX_MS : (int64_t)RETRY_FIRST_MS << doublings;
}

void run_set_trouble(struct runner *r, const struct run *run, struct note *note, const char *reason,
                     const char *message)
{
    if (!note->reason || strcmp(note->reason, reason) != 0)
        report_event(r, run->pod, "Warning", reason, message);
    free(note->reason);
    free(note->message);
    note->reason = xstrdup(reason);
    note->message = xstrdup(message);
    note->failures++;
    note->not_before_ms = run_now_ms(r) + run_retry_ms(note->failures);
}

void run_clear_trouble(struct note *note)
{
    free(steal(&note->reason));
    free(steal(&note->message));
    note->failures = 0;
    note->not_before_ms = 0;
}

/* ---- where things come from ---- */

static char *print_constant(const char *resource, const char *name)
{
    return xasprintf("%s/%s", resource, name);
}

static bool is_immutable(void *ctx, const char *resource, const char *name)
{
    const struct run_sources *s = ctx;
    SCOPED_FREE char *object = print_constant(resource, name);
    return strv_has(s->run->constants, object);
}

static int get(void *ctx, const char *resource, const char *name, cJSON **ret, struct err *err)
{
    const struct run_sources *s = ctx;
    const char *of_pod = json_str_or(s->run->pod, "metadata.namespace", "");
    bool is_of_all = strcmp(resource, "persistentvolumes") == 0;
    SCOPED_FREE char *path =
        kube_path(&(struct kube_place){.api = "/api/v1",
                                       .namespace_name = is_of_all ? NULL : of_pod,
                                       .resource = resource,
                                       .name = name});
    int rc =
        kube_do(s->r->config.kube, &(struct kube_call){.method = "GET", .path = path}, ret, err);
    if (rc == 0 && json_bool_or(*ret, "immutable", false) && !is_immutable(ctx, resource, name))
        strv_add(&s->run->constants, print_constant(resource, name));
    return rc;
}

/* Bound to the Pod, so that it ends with it. */
static int ask_token(void *ctx, const cJSON *projection, struct token *ret, struct err *err)
{
    const struct run_sources *s = ctx;
    const cJSON *pod = s->run->pod;
    SCOPED_FREE char *path = kube_path(
        &(struct kube_place){.api = "/api/v1",
                             .namespace_name = json_str_or(pod, "metadata.namespace", ""),
                             .resource = "serviceaccounts",
                             .name = json_str_or(pod, "spec.serviceAccountName", "default"),
                             .subresource = "token"});
    SCOPED(json_free_p) cJSON *body = json_object(), *answer = NULL;
    cJSON *spec = json_object(), *bound = json_object(), *audiences = json_array();
    const char *audience = json_str(projection, "audience");
    int64_t seconds = json_i64_or(projection, "expirationSeconds", TOKEN_SECONDS_DEFAULT);
    if (audience)
        json_push(audiences, json_string(audience));
    json_add(spec, "audiences", audiences);
    json_add(spec, "expirationSeconds", json_int(seconds));
    json_add(bound, "apiVersion", json_string("v1"));
    json_add(bound, "kind", json_string("Pod"));
    json_add(bound, "name", json_string(json_str_or(pod, "metadata.name", "")));
    json_add(bound, "uid", json_string(s->run->uid));
    json_add(spec, "boundObjectRef", bound);
    json_add(body, "apiVersion", json_string("authentication.k8s.io/v1"));
    json_add(body, "kind", json_string("TokenRequest"));
    json_add(body, "spec", spec);
    int64_t now_ms = run_now_ms(s->r);
    int rc =
        kube_do(s->r->config.kube,
                &(struct kube_call){.method = "POST", .path = path, .body = body}, &answer, err);
    if (rc < 0)
        return rc;
    *ret = (struct token){.text = xstrdup(json_str_or(answer, "status.token", "")),
                          .issued_ms = now_ms,
                          .expires_ms = now_ms + seconds * 1000};
    clock_parse_rfc3339(json_str_or(answer, "status.expirationTimestamp", ""), &ret->expires_ms);
    return 0;
}

static int token(void *ctx, const cJSON *projection, char **ret, struct err *err)
{
    const struct run_sources *s = ctx;
    return tokens_get(&s->run->tokens, projection, run_now_ms(s->r), ask_token, ctx, ret, err);
}

struct sources run_sources(struct run_sources *ctx)
{
    return (struct sources){
        .pod = ctx->run->pod,
        .pod_ip = ctx->run->ip, /* changed by this worker alone */
        .host_ip = ctx->r->config.address,
        .api = relay_is_for(ctx->run->pod) ? ctx->r->config.api : (struct env_api){0},
        .get = get,
        .is_immutable = is_immutable,
        .token = token,
        .ctx = ctx,
    };
}

struct volume_place run_place(const struct runner *r, const char *uid, char **ret_folder,
                              char **ret_claims)
{
    *ret_folder = xasprintf("%s/pods/%s", r->config.folder, uid);
    *ret_claims = xasprintf("%s/claims", r->config.folder);
    return (struct volume_place){.folder = *ret_folder,
                                 .claims = *ret_claims,
                                 .salt = r->salt,
                                 .host_paths = r->config.policy.host_paths};
}
