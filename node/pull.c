/* Images that come from registries, which may take as long as they like: a Pod's pass asks for one
 * and goes on when it is there. A key is UID/CONTAINER. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/lookup.h"
#include "node/run.h"

/* ---- who asks ---- */

static char *print_auth(const char *user, const char *password)
{
    SCOPED(json_free_p) cJSON *out = json_object();
    struct buf header = {0};
    json_add(out, "username", json_string(user));
    json_add(out, "password", json_string(password));
    SCOPED_FREE char *json = json_to_str(out);
    buf_base64(&header, json, strlen(json));
    return buf_take(&header, NULL);
}

/* What a pull secret knows of the registry; NULL when that is nothing. */
static char *auth_of(const cJSON *secret, const char *host)
{
    SCOPED(json_free_p) cJSON *config = NULL;
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(buf_fini) struct buf both = {0};
    const cJSON *coded = json_get(json_get(secret, "data"), ".dockerconfigjson");
    if (!cJSON_IsString(coded) ||
        !buf_unbase64(&text, coded->valuestring, strlen(coded->valuestring)) ||
        json_parse(buf_cstr(&text), text.len, NULL, &config, NULL) < 0)
        return NULL;
    const char *auth = json_str(json_get(json_get(config, "auths"), host), "auth");
    const char *colon =
        auth && buf_unbase64(&both, auth, strlen(auth)) ? strchr(buf_cstr(&both), ':') : NULL;
    if (!colon)
        return NULL;
    SCOPED_FREE char *user = xstrndup(buf_cstr(&both), (size_t)(colon - buf_cstr(&both)));
    return print_auth(user, colon + 1);
}

/* Of the Pod's pull secrets the first that knows the registry, in the form of X-Registry-Auth. */
static char *registry_auth(struct runner *r, struct run *run, const char *image)
{
    struct run_sources ctx = {r, run};
    struct sources s = run_sources(&ctx);
    SCOPED_FREE char *host = xstrndup(image, strcspn(image, "/"));
    char *auth = NULL;
    const cJSON *ref;
    cJSON_ArrayForEach(ref, json_at(run->pod, "spec.imagePullSecrets"))
    {
        SCOPED(json_free_p) cJSON *secret = NULL;
        if (!auth && s.get(s.ctx, "secrets", json_str_or(ref, "name", ""), &secret, NULL) == 0)
            auth = auth_of(secret, host);
    }
    return auth;
}

/* Lock held. */
static bool take_result(struct note *note, int *ret_rc, struct err *err)
{
    enum pull_state state = note->pull;
    SCOPED_FREE char *why = steal(&note->pull_why);
    if (state == PULL_RUNS || state == PULL_NONE)
        return false;
    note->pull = PULL_NONE;
    *ret_rc = state == PULL_DONE ? 0 : err_set(err, ERR_UNAVAILABLE, "%s", why ? why : "");
    return true;
}

bool pull_image(struct runner *r, struct run *run, struct note *note, int *ret_rc, struct err *err)
{
    pthread_mutex_lock(&r->lock);
    bool is_over = take_result(note, ret_rc, err), is_new = !is_over && note->pull == PULL_NONE;
    pthread_mutex_unlock(&r->lock);
    if (!is_new)
        return is_over;
    const char *image = json_str_or(lookup_spec(run->pod, note->name), "image", "");
    SCOPED_FREE char *auth = registry_auth(r, run, image);
    SCOPED_FREE char *key = xasprintf("%s/%s", run->uid, note->name);
    pthread_mutex_lock(&r->lock);
    note->pull = PULL_RUNS;
    free(note->pull_auth);
    note->pull_auth = steal(&auth);
    pthread_mutex_unlock(&r->lock);
    loop_add(r->pulls, key);
    return false;
}

/* ---- who does it ---- */

struct pull {
    char *uid, *container, *image, *auth;
};

static void pull_fini(struct pull *p)
{
    free(p->uid);
    free(p->container);
    free(p->image);
    free(p->auth);
}

/* Lock held; NULL when nobody waits for it any more. */
static struct note *note_of(struct runner *r, const struct pull *p)
{
    struct run *run = map_get(r->runs, p->uid);
    struct note *note = run ? run_note(run, p->container) : NULL;
    return note && note->pull == PULL_RUNS ? note : NULL;
}

static bool find(struct runner *r, struct pull *p)
{
    pthread_mutex_lock(&r->lock);
    struct note *note = note_of(r, p);
    if (note) {
        const struct run *run = map_get(r->runs, p->uid);
        p->image = xstrdup(json_str_or(lookup_spec(run->newest, p->container), "image", ""));
        p->auth = note->pull_auth ? xstrdup(note->pull_auth) : NULL;
    }
    pthread_mutex_unlock(&r->lock);
    return note != NULL;
}

static void conclude(struct runner *r, const struct pull *p, int rc, const struct err *err)
{
    pthread_mutex_lock(&r->lock);
    struct note *note = note_of(r, p);
    if (note) {
        free(steal(&note->pull_auth));
        free(note->pull_why);
        note->pull_why = rc < 0 ? xstrdup(err_text(err)) : NULL;
        note->pull = rc < 0 ? PULL_FAILED : PULL_DONE;
    }
    pthread_mutex_unlock(&r->lock);
    loop_add(r->pods, p->uid);
}

int pull_work(void *ctx, const char *key, struct loop_result *ret)
{
    struct runner *r = ctx;
    size_t n = strcspn(key, "/");
    SCOPED(pull_fini) struct pull p = {.uid = xstrndup(key, n), .container = xstrdup(key + n + 1)};
    SCOPED(err_fini) struct err err = {0};
    if (!find(r, &p))
        return 0;
    if (!handler_enter(r, p.uid, HANDLER_PULLS)) {
        ret->again_after_ms = HANDLER_WAIT_MS;
        return 0;
    }
    int rc = podman_image_pull(r->far_podman, p.image, p.auth, &err);
    handler_leave(r, p.uid, HANDLER_PULLS);
    conclude(r, &p, rc, &err);
    return 0;
}
