/* From a Pod's spec to containers that run. */
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/image.h"
#include "node/run.h"

static struct create_common common_of(const struct runner *r, const struct run *run)
{
    return (struct create_common){
        .pod = run->pod,
        .node = r->config.name,
        .network = r->config.network,
        .runtime = refuse_runtime(run->pod, &r->config.policy),
        .limits = r->limits,
    };
}

/* ---- the sandbox ---- */

static int make_volumes(struct runner *r, struct run *run, struct err *err)
{
    SCOPED_FREE char *folder = NULL, *claims = NULL;
    struct run_sources ctx = {r, run};
    struct sources s = run_sources(&ctx);
    struct volume_place place = run_place(r, run->uid, &folder, &claims);
    int rc = volume_make_all(&s, &place, err);
    run->has_volumes = rc == 0;
    run->follow_ms = run_now_ms(r) + r->config.follow_ms;
    return rc;
}

static int write_network(struct runner *r, struct run *run, struct err *err)
{
    SCOPED_FREE char *folder = NULL, *claims = NULL;
    struct run_sources ctx = {r, run};
    struct sources s = run_sources(&ctx);
    struct volume_place place = run_place(r, run->uid, &folder, &claims);
    return volume_write_network(&s, &place, r->config.dns, r->config.domain, err);
}

/* After an error it may be there or not. */
static int create(struct runner *r, struct run *run, const cJSON *spec, char **ret_id,
                  struct err *err)
{
    int rc = podman_create(r->config.podman, spec, ret_id, err);
    if (rc == 0)
        strv_add(&run->made, xstrdup(*ret_id));
    else
        run->is_listed = false;
    return rc;
}

static void remove_one(struct runner *r, struct run *run, const char *id)
{
    podman_remove(r->config.podman, id, NULL);
    run->is_listed = false;
}

static int make_pause(struct runner *r, struct run *run, unsigned attempt, struct err *err)
{
    struct create_common common = common_of(r, run);
    SCOPED(json_free_p) cJSON *spec = create_pause(&common, r->pause_image, attempt);
    SCOPED(json_free_p) cJSON *inspection = NULL;
    SCOPED_FREE char *id = NULL;
    SCOPED(instance_fini) struct instance pause = {0};
    int rc = create(r, run, spec, &id, err);
    if (rc == 0)
        rc = podman_start(r->config.podman, id, err);
    if (rc == 0)
        rc = podman_inspect(r->config.podman, id, &inspection, err);
    if (rc < 0)
        return rc;
    instance_read(inspection, r->config.network, &pause);
    run_set_ip(r, run, pause.ip);
    return 0;
}

static int try_sandbox(struct runner *r, struct run *run, const struct instance *old,
                       struct err *err)
{
    int rc = 0;
    if (!run->has_volumes)
        rc = make_volumes(r, run, err);
    if (rc == 0 && old) /* refused while containers of it are kept: they go first, in the end */
        remove_one(r, run, old->id);
    if (rc == 0)
        rc = make_pause(r, run, old ? old->attempt + 1 : 0, err);
    return rc == 0 ? write_network(r, run, err) : rc;
}

void start_sandbox(struct runner *r, struct run *run, const struct instance *old)
{
    SCOPED(err_fini) struct err err = {0};
    run->is_cleared = false;
    if (try_sandbox(r, run, old, &err) == 0) {
        run->sandbox_failures = 0;
        free(steal(&run->sandbox_trouble));
        return;
    }
    run->sandbox_failures++;
    run->sandbox_not_before_ms = run_now_ms(r) + run_retry_ms(run->sandbox_failures);
    if (!run->sandbox_trouble || strcmp(run->sandbox_trouble, err_text(&err)) != 0)
        report_event(r, run->pod, "Warning",
                     run->has_volumes ? "FailedCreatePodSandBox" : "FailedMount", err_text(&err));
    free(run->sandbox_trouble);
    run->sandbox_trouble = xstrdup(err_text(&err));
    log_info("sandbox failed pod=%s, trying again: %s", run->uid, err_text(&err));
}

/* ---- images ---- */

static int fail_never(struct runner *r, struct run *run, struct note *note, const char *name,
                      struct err *err)
{
    SCOPED_FREE char *text =
        xasprintf("Container image \"%s\" is not present with pull policy of Never", name);
    run_set_trouble(r, run, note, "ErrImageNeverPull", text);
    return err_set(err, ERR_NOT_FOUND, "%s", text);
}

static void note_no_pull(struct runner *r, struct run *run, struct note *note, const char *name,
                         const struct err *err)
{
    SCOPED_FREE char *text = xasprintf("Back-off pulling image \"%s\": %s", name, err_text(err));
    bool is_first = note->failures == 0;
    run_set_trouble(r, run, note, is_first ? "ErrImagePull" : "ImagePullBackOff",
                    is_first ? err_text(err) : text);
}

/* Trouble is noted; ret is filled when there is none. False while it is on the way. */
static bool need_image(struct runner *r, struct run *run, struct note *note, const cJSON *spec,
                       struct podman_image *ret, int *ret_rc, struct err *err)
{
    const char *name = json_str_or(spec, "image", "");
    const char *policy = json_str_or(spec, "imagePullPolicy", "IfNotPresent");
    int rc = podman_image_find(r->config.podman, name, ret, err);
    *ret_rc = rc;
    if (rc == 0 && strcmp(policy, "Always") != 0)
        return true;
    if (rc < 0 && rc != -ERR_NOT_FOUND) {
        run_set_trouble(r, run, note, "InvalidImageName", err_text(err));
        return true;
    }
    if (strcmp(policy, "Never") == 0) {
        *ret_rc = fail_never(r, run, note, name, err);
        return true;
    }
    podman_image_fini(ret);
    err_fini(err);
    if (!pull_image(r, run, note, ret_rc, err))
        return false;
    if (*ret_rc < 0)
        note_no_pull(r, run, note, name, err);
    else
        *ret_rc = podman_image_find(r->config.podman, name, ret, err);
    return true;
}

/* ---- one container ---- */

/* The create call, from everything that the spec refers to. */
static int make_call(struct runner *r, struct run *run, const struct plan *plan, size_t at,
                     const struct podman_image *image, cJSON **ret, struct err *err)
{
    const struct member *m = &plan->members[at];
    SCOPED_FREE char *folder = NULL, *claims = NULL;
    SCOPED(json_free_p) cJSON *env = NULL, *mounts = NULL;
    struct run_sources ctx = {r, run};
    struct sources s = run_sources(&ctx);
    struct volume_place place = run_place(r, run->uid, &folder, &claims);
    struct create_common common = common_of(r, run);
    unsigned attempt = m->now ? m->now->attempt + 1 : 0;
    int rc = env_make(&s, m->spec, &env, err);
    if (rc == 0)
        rc = volume_mounts(&s, &place, m->spec, attempt, &mounts, err);
    if (rc < 0)
        return rc;
    return create_container(&common,
                            &(struct create_container){
                                .spec = m->spec,
                                .image = image->id,
                                .pause_id = plan->pause->id,
                                .env = env,
                                .mounts = mounts,
                                .attempt = attempt,
                                .step = m->step,
                                .image_user = image->user,
                                .image_annotations = image->annotations,
                            },
                            ret, err);
}

static void remove_older(struct runner *r, struct run *run, const struct member *m)
{
    SCOPED_FREE char *folder = NULL, *claims = NULL;
    struct volume_place place = run_place(r, run->uid, &folder, &claims);
    for (size_t i = 0; i < run->instances.n; i++) {
        const struct instance *it = &run->instances.v[i];
        if (strcmp(it->name, m->name) != 0 || it == m->now)
            continue;
        remove_one(r, run, it->id);
        volume_forget(&place, m->spec, it->attempt);
    }
}

/* One that cannot be started counts as ended, and the plan goes on from there. */
static void start_created(struct runner *r, struct run *run, struct note *note, const char *id)
{
    SCOPED(err_fini) struct err err = {0};
    if (podman_start(r->config.podman, id, &err) == 0) {
        run_clear_trouble(note);
        note->has_begun = true;
        log_debug("container started pod=%s container=%s", run->uid, note->name);
        return;
    }
    free(note->broken_id);
    free(note->broken_why);
    note->broken_id = xstrdup(id);
    note->broken_why = xstrdup(err_text(&err));
    note->broken_ms = run_now_ms(r);
    report_event(r, run->pod, "Warning", "Failed", err_text(&err));
}

bool start_member(struct runner *r, struct run *run, const struct plan *plan, size_t at)
{
    const struct member *m = &plan->members[at];
    struct note *note = run_note(run, m->name);
    SCOPED(err_fini) struct err err = {0};
    SCOPED(podman_image_fini) struct podman_image image = {0};
    SCOPED(json_free_p) cJSON *call = NULL;
    SCOPED_FREE char *id = NULL;
    if (m->now && m->now->state == INSTANCE_CREATED && !plan_is_stale(plan, m->now)) {
        start_created(r, run, note, m->now->id);
        return true;
    }
    int rc = 0;
    if (!need_image(r, run, note, m->spec, &image, &rc, &err))
        return false;
    if (rc < 0)
        return true;
    free(note->image);
    note->image = xstrdup(*image.digest ? image.digest : image.id);
    if (make_call(r, run, plan, at, &image, &call, &err) < 0) {
        run_set_trouble(r, run, note, "CreateContainerConfigError", err_text(&err));
        return true;
    }
    remove_older(r, run, m);
    if (create(r, run, call, &id, &err) < 0)
        run_set_trouble(r, run, note, "CreateContainerError", err_text(&err));
    else
        start_created(r, run, note, id);
    return true;
}
