/* A reflector brings the Pods of this node, the engine's events say what their containers do, and a
 * work queue, by uid, takes one Pod at a time: look, plan, act, and report. The lock is never held
 * over a call. */
#include "node/runner.h"

#include <dirent.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/claims.h"
#include "node/disk.h"
#include "node/firewall.h"
#include "node/image.h"
#include "node/register.h"
#include "node/run.h"

#define RESYNC_MS 60000      /* looks again though nothing was heard */
#define STEPS_MAX 1000       /* of one pass: more than a Pod has containers */
#define KEY_CLAIMS "/claims" /* no node has such a name */
#define NETWORK_MS 1000      /* before rules that are not in force are asked for again */

/* ---- the cluster's news ---- */

static struct run *new_run(const struct runner *r, const char *uid, cJSON *take_pod)
{
    struct run *run = run_new(uid, take_pod);
    run->is_listed = !map_get(r->found, uid);
    return run;
}

static void on_event(void *ctx, const cJSON *object, bool is_delete)
{
    struct runner *r = ctx;
    const char *uid = json_str_or(object, "metadata.uid", "");
    cJSON *pod = is_delete ? NULL : json_copy(object);
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, uid);
    if (run)
        run->is_gone = is_delete;
    if (run && pod)
        run_take(run, pod);
    else if (pod)
        map_put(r->runs, uid, new_run(r, uid, pod));
    pthread_mutex_unlock(&r->lock);
    loop_add(r->pods, uid);
}

struct absence {
    struct map *present; /* uids of a list */
    char **gone;
};

static bool note_absent(void *ctx, const char *uid, void *value)
{
    struct absence *a = ctx;
    struct run *run = value;
    if (!map_get(a->present, uid)) {
        run->is_gone = true;
        strv_add(&a->gone, xstrdup(uid));
    }
    return true;
}

static bool look_at_found(void *ctx, const char *uid, void *value)
{
    (void)value;
    struct runner *r = ctx;
    loop_add(r->pods, uid);
    return true;
}

/* Containers and folders of whatever Pods: those of none are cleared away by their pass. */
static void look_for_orphans(struct runner *r)
{
    SCOPED_FREE char *folder = xasprintf("%s/pods", r->config.folder);
    map_each(r->found, look_at_found, r);
    DIR *pods = opendir(folder);
    const struct dirent *entry;
    while (pods && (entry = readdir(pods)) != NULL) {
        if (entry->d_name[0] != '.')
            loop_add(r->pods, entry->d_name);
    }
    if (pods)
        closedir(pods);
}

static void on_replace(void *ctx, const cJSON *const *objects, size_t n, const char *version)
{
    (void)version;
    struct runner *r = ctx;
    struct absence absence = {.present = map_new()};
    for (size_t i = 0; i < n; i++) {
        map_put(absence.present, json_str_or(objects[i], "metadata.uid", ""), r);
        on_event(r, objects[i], false);
    }
    pthread_mutex_lock(&r->lock);
    map_each(r->runs, note_absent, &absence);
    bool is_first = !r->is_listed;
    r->is_listed = true;
    pthread_mutex_unlock(&r->lock);
    for (char **uid = absence.gone; uid && *uid; uid++)
        loop_add(r->pods, *uid);
    strv_free(absence.gone);
    map_free(absence.present);
    log_info("pods listed pods=%zu", n);
    if (is_first)
        look_for_orphans(r);
}

static const struct reflector_ops reflector_ops = {.on_replace = on_replace, .on_event = on_event};

static void on_container(void *ctx, const char *uid)
{
    struct runner *r = ctx;
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, uid);
    if (run)
        run->is_moved = true;
    pthread_mutex_unlock(&r->lock);
    loop_add(r->pods, uid);
}

/* ---- one Pod ---- */

static enum phase phase_of(const cJSON *pod)
{
    const char *text = json_str_or(pod, "status.phase", "");
    for (int p = PHASE_PENDING; p <= PHASE_FAILED; p++) {
        if (strcmp(phase_names[p], text) == 0)
            return (enum phase)p;
    }
    return PHASE_PENDING;
}

/* ms until its deadline, 0 when it has passed; INT64_MAX = it has none. */
static int64_t until_deadline(const cJSON *pod, int64_t now_ms)
{
    int64_t start_ms, seconds = json_i64_or(pod, "spec.activeDeadlineSeconds", -1);
    if (seconds < 0 || seconds > INT32_MAX ||
        clock_parse_rfc3339(json_str_or(pod, "status.startTime", ""), &start_ms) < 0)
        return INT64_MAX;
    int64_t left_ms = start_ms + seconds * 1000 - now_ms;
    return left_ms > 0 ? left_ms : 0;
}

/* What is known of a member besides its instances. */
static void add_knowledge(struct runner *r, struct run *run, struct member *m)
{
    struct note *note = run_note(run, m->name);
    m->not_before_ms = note->not_before_ms;
    pthread_mutex_lock(&r->lock);
    bool is_running = m->now && m->now->state == INSTANCE_RUNNING;
    bool passes[PROBE_KINDS], fails[PROBE_KINDS];
    for (int k = 0; k < PROBE_KINDS; k++) {
        struct probe probe = probe_read(m->spec, (enum probe_kind)k);
        passes[k] = probe_passes(&probe, &note->probes[k], (enum probe_kind)k);
        fails[k] = note->probes[k].verdict == PROBE_FAILS;
    }
    bool is_hooked = note->post_start == HOOK_NONE || note->post_start == HOOK_DONE;
    m->has_started = is_running && passes[PROBE_STARTUP] && is_hooked;
    m->is_ready = m->has_started && passes[PROBE_READINESS] && !note->is_stopping;
    m->is_unhealthy = is_running && (fails[PROBE_STARTUP] || fails[PROBE_LIVENESS] ||
                                     note->post_start == HOOK_FAILED || note->is_stopping);
    pthread_mutex_unlock(&r->lock);
}

/* postStart belongs to a start of ours; one from before has had it. */
static void begin_hook(struct runner *r, struct run *run, const struct member *m)
{
    struct note *note = run_note(run, m->name);
    if (!note->has_begun || !m->now || m->now->state != INSTANCE_RUNNING)
        return;
    note->has_begun = false;
    if (json_at(m->spec, "lifecycle.postStart"))
        hook_begin(r, run, m->name, true);
}

static bool is_terminating(const struct run *run)
{
    return json_str(run->pod, "metadata.deletionTimestamp") != NULL;
}

static int64_t monotonic_ms(const struct runner *r)
{
    return clock_monotonic_ms(r->config.clock);
}

/* The engine takes some 5 ms of a processor for a look at one container, and most news of a Pod are
 * of labels and of what was reported ourselves. */
static int look(struct runner *r, struct run *run, struct err *err)
{
    if (monotonic_ms(r) < run->rests_until_ms && !is_terminating(run))
        return 0;
    run->rests_until_ms = 0;
    return observe(r, run, err);
}

static bool is_at_rest(const struct plan *plan)
{
    bool rests = plan->pause && plan->pause->state == INSTANCE_RUNNING && !plan->is_terminating &&
                 !plan->drops_pause;
    for (size_t i = 0; i < plan->n && rests; i++) {
        const struct member *m = &plan->members[i];
        rests =
            m->act == MEMBER_LEAVE && m->now && (m->now->state == INSTANCE_RUNNING || m->is_over);
    }
    return rests;
}

/* After a plan was carried out. */
static void note_rest(const struct runner *r, struct run *run, bool rests)
{
    if (!rests)
        run->rests_until_ms = 0;
    else if (run->rests_until_ms == 0)
        run->rests_until_ms = monotonic_ms(r) + RESYNC_MS;
}

static int make_plan(struct runner *r, struct run *run, struct plan *plan, struct err *err)
{
    int rc = look(r, run, err);
    if (rc < 0)
        return rc;
    int64_t now_ms = run_now_ms(r);
    *plan = (struct plan){
        .members = plan_members(run->pod, &plan->n),
        .n = plan->n,
        .pause = instances_find(&run->instances, INSTANCE_PAUSE, 0),
        .restart = plan_restart_policy(run->pod),
        .known_phase = phase_of(run->pod),
        .is_terminating = is_terminating(run),
        .is_past_deadline = until_deadline(run->pod, now_ms) == 0,
        .now_ms = now_ms,
    };
    for (size_t i = 0; i < plan->n; i++) {
        struct member *m = &plan->members[i];
        m->now = instances_find(&run->instances, m->name, 0);
        m->before = instances_find(&run->instances, m->name, 1);
        prober_adopt(r, run, m);
        begin_hook(r, run, m);
        add_knowledge(r, run, m);
    }
    if (plan->pause && plan->pause->state == INSTANCE_RUNNING &&
        strcmp(run->ip, plan->pause->ip) != 0)
        run_set_ip(r, run, plan->pause->ip);
    plan_make(plan);
    return 0;
}

static void less(int64_t *wait_ms, int64_t ms)
{
    if (ms > 0 && (*wait_ms == 0 || ms < *wait_ms))
        *wait_ms = ms;
}

/* Carries out what the plan says; true when there is something new to look at. */
static bool act(struct runner *r, struct run *run, struct plan *plan, int64_t *wait_ms)
{
    bool has_acted = false;
    if (plan->makes_pause && run->sandbox_not_before_ms <= plan->now_ms) {
        start_sandbox(r, run, plan->pause);
        return true;
    }
    if (plan->makes_pause)
        *wait_ms = run->sandbox_not_before_ms - plan->now_ms;
    bool has_network = network_attach(r, run, plan);
    if (!has_network)
        less(wait_ms, NETWORK_MS);
    for (size_t i = 0; i < plan->n; i++) {
        const struct member *m = &plan->members[i];
        if (m->act == MEMBER_START && has_network) {
            has_acted = start_member(r, run, plan, i) || has_acted;
        } else if (m->act == MEMBER_STOP) {
            stop_member(r, run, m, wait_ms);
        }
    }
    if (plan->drops_pause) /* it is removed with the containers that name it */
        podman_signal(r->config.podman, plan->pause->id, "KILL", NULL);
    return has_acted;
}

static int clear(struct runner *r, struct run *run, struct err *err)
{
    bool knows_all = run->is_listed && !run->made;
    int rc = stop_all(r, run->uid, knows_all ? &run->instances : NULL, err);
    run->is_listed = false;
    run->is_cleared = rc == 0;
    return rc;
}

static int finish(struct runner *r, struct run *run, struct err *err)
{
    int rc = clear(r, run, err);
    return rc < 0 ? rc : report_end(r, run, err);
}

/* The Pod will not be run: says so, and lets it go when it is deleted. */
static int refuse(struct runner *r, struct run *run, const char *reason, const char *message,
                  struct err *err)
{
    int rc = phase_of(run->pod) == PHASE_FAILED ? 0 : clear(r, run, err);
    if (rc == 0)
        rc = report_refused(r, run, reason, message, err);
    return rc == 0 && is_terminating(run) ? finish(r, run, err) : rc;
}

static int report(struct runner *r, struct run *run, const struct plan *plan, struct err *err)
{
    const char *reason = plan->is_past_deadline ? "DeadlineExceeded" : NULL;
    const char *message =
        reason ? "Pod was active on the node longer than the specified deadline" : NULL;
    return report_status(r, run, plan, reason, message, err);
}

/* Takes a place on the node, as long as it has not ended; false when there is none. */
static bool accept(struct runner *r, struct run *run)
{
    bool needs_room = phase_of(run->pod) < PHASE_SUCCEEDED;
    pthread_mutex_lock(&r->lock);
    bool has_room = needs_room && (run->is_accepted || r->accepted < r->config.pods);
    r->accepted += has_room - run->is_accepted;
    run->is_accepted = has_room;
    pthread_mutex_unlock(&r->lock);
    return has_room || !needs_room;
}

/* Of one that has ended, what was said then stays: nothing of it may be left here, and nobody knows
 * any more why a container was not started. */
static bool is_said(const struct run *run, const struct plan *plan)
{
    bool is_unknown = run->instances.n == 0;
    for (size_t i = 0; i < plan->n; i++)
        is_unknown =
            is_unknown || (plan->members[i].now && plan->members[i].now->state == INSTANCE_CREATED);
    return is_unknown && plan->is_over && plan->known_phase >= PHASE_SUCCEEDED;
}

static int step(struct runner *r, struct run *run, bool *ret_has_acted, int64_t *ret_wait_ms,
                struct err *err)
{
    struct plan plan = {0};
    int64_t wait_ms = 0;
    int rc = make_plan(r, run, &plan, err);
    SCOPED_FREE struct member *members = plan.members;
    if (rc < 0)
        return rc;
    if (!json_str(run->pod, "status.startTime")) { /* before what may take long */
        rc = report(r, run, &plan, err);
        *ret_has_acted = rc == 0; /* the plan is of the Pod that was: a new one */
        return rc;
    }
    if (plan.pause && plan.pause->state == INSTANCE_RUNNING && !plan.is_over)
        less(&wait_ms, follow_volumes(r, run));
    int64_t act_wait_ms = 0;
    *ret_has_acted = act(r, run, &plan, &act_wait_ms);
    note_rest(r, run, !*ret_has_acted && act_wait_ms == 0 && is_at_rest(&plan));
    if (*ret_has_acted)
        return 0;
    if (!is_said(run, &plan))
        rc = report(r, run, &plan, err);
    if (rc == 0 && plan.is_over && plan.is_terminating)
        rc = finish(r, run, err);
    less(&wait_ms, act_wait_ms);
    less(&wait_ms, plan.wait_ms);
    less(&wait_ms, RESYNC_MS);
    if (run->rests_until_ms)
        less(&wait_ms, run->rests_until_ms - monotonic_ms(r) + 1);
    int64_t left_ms = until_deadline(run->pod, run_now_ms(r));
    less(&wait_ms, left_ms == INT64_MAX || plan.is_over ? 0 : left_ms + 1);
    *ret_wait_ms = wait_ms;
    return rc;
}

static int pass(struct runner *r, struct run *run, struct loop_result *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf why = {0};
    const char *reason = refuse_pod(run->pod, &r->config.policy, &why);
    if (reason)
        return refuse(r, run, reason, buf_cstr(&why), err);
    if (!accept(r, run))
        return refuse(r, run, "OutOfpods", "the node has no room for more pods", err);
    bool has_acted = true;
    int rc = 0;
    for (int i = 0; i < STEPS_MAX && rc == 0 && has_acted; i++)
        rc = step(r, run, &has_acted, &ret->again_after_ms, err);
    return rc;
}

/* Takes the Pod as it is now; NULL when there is none any more: then something may be left of it.
 */
static struct run *begin(struct runner *r, const char *uid, bool *ret_is_left)
{
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, uid), *gone = NULL;
    if (run && run->is_gone) {
        gone = map_del(r->runs, uid);
        r->accepted -= gone->is_accepted;
        run = NULL;
    }
    if (run) {
        if (run->pod)
            follow_change(run, run->pod, run->newest);
        json_free(run->pod);
        run->pod = json_copy(run->newest);
        run->rests_until_ms = run->is_moved ? 0 : run->rests_until_ms;
        run->is_moved = false;
    }
    *ret_is_left = r->is_listed && !(gone && gone->is_cleared);
    pthread_mutex_unlock(&r->lock);
    run_free(gone);
    return run;
}

static int work(void *ctx, const char *uid, struct loop_result *ret)
{
    struct runner *r = ctx;
    SCOPED(err_fini) struct err err = {0};
    bool is_left;
    struct run *run = begin(r, uid, &is_left);
    int rc = 0;
    if (run)
        rc = pass(r, run, ret, &err);
    else if (is_left)
        rc = stop_all(r, uid, NULL, &err);
    /* Changed or gone meanwhile: its event brings the next look. */
    if (rc < 0 && rc != -ERR_CONFLICT && rc != -ERR_NOT_FOUND)
        log_warn("pass failed pod=%s, trying again: %s", uid, err_text(&err));
    return rc == -ERR_CONFLICT || rc == -ERR_NOT_FOUND ? 0 : rc;
}

/* ---- look-up ---- */

struct wanted {
    const char *namespace_name, *name;
    cJSON *pod;
};

static bool find_named(void *ctx, const char *uid, void *value)
{
    (void)uid;
    struct wanted *w = ctx;
    const struct run *run = value;
    if (run->is_gone || !run->is_settled ||
        strcmp(json_str_or(run->newest, "metadata.name", ""), w->name) != 0 ||
        strcmp(json_str_or(run->newest, "metadata.namespace", ""), w->namespace_name) != 0)
        return true;
    w->pod = json_copy(run->newest);
    return false;
}

bool runner_find_pod(struct runner *r, const char *namespace_name, const char *name, cJSON **ret)
{
    struct wanted w = {.namespace_name = namespace_name, .name = name};
    pthread_mutex_lock(&r->lock);
    map_each(r->runs, find_named, &w);
    pthread_mutex_unlock(&r->lock);
    *ret = w.pod;
    return w.pod != NULL;
}

/* ---- the node ---- */

static int claims_work(struct runner *r, struct loop_result *ret)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *folder = xasprintf("%s/claims", r->config.folder);
    ret->again_after_ms = RESYNC_MS;
    if (claims_sweep(r->config.kube, folder, &err) < 0)
        log_warn("claims not looked through: %s", err_text(&err));
    return 0;
}

static int node_work(void *ctx, const char *key, struct loop_result *ret)
{
    struct runner *r = ctx;
    if (strcmp(key, KEY_CLAIMS) == 0)
        return claims_work(r, ret);
    SCOPED(err_fini) struct err err = {0};
    int rc = 0;
    struct node_facts facts =
        register_facts(r->config.name, r->config.address, r->config.port, r->config.pods);
    ret->again_after_ms = r->config.lease_ms;
    if (!r->is_registered)
        rc = register_node(r->config.kube, &facts, clock_unix_s(r->config.clock), &err);
    if (rc == 0)
        rc = register_renew(r->config.kube, r->config.name, r->config.lease_ms,
                            clock_unix_ms(r->config.clock), &err);
    if (rc < 0)
        log_warn("node not registered, trying again: %s", err_text(&err));
    else if (!r->is_registered)
        log_info("node registered node=%s", r->config.name);
    r->is_registered = r->is_registered || rc == 0;
    return rc;
}

/* ---- life ---- */

static int start_firewall(struct runner *r, struct err *err)
{
    const struct runner_config *c = &r->config;
    return firewall_start(&(struct firewall_config){.kube = c->kube,
                                                    .clock = c->clock,
                                                    .node = c->name,
                                                    .bridge = c->interface,
                                                    .is_enforced = c->enforces_policies,
                                                    .on_selected = on_container,
                                                    .ctx = r},
                          &r->firewall, err);
}

static int prepare(struct runner *r, struct err *err)
{
    const struct runner_config *c = &r->config;
    SCOPED(buf_fini) struct buf archive = {0};
    SCOPED(podman_image_fini) struct podman_image image = {0};
    SCOPED_FREE char *pods = xasprintf("%s/pods", c->folder);
    int rc = start_firewall(r, err);
    if (rc == 0)
        rc = disk_make_folder(pods, 0711, err);
    if (rc == 0)
        rc = podman_limits(c->podman, &r->limits, err);
    if (rc == 0)
        rc = podman_network_ensure(c->podman, c->network, c->interface, c->subnet, err);
    if (rc == 0)
        rc = image_make_pause(c->pause_program, &archive, err);
    if (rc == 0)
        rc = podman_image_load(c->podman, &archive, err);
    if (rc == 0)
        rc = podman_image_find(c->podman, IMAGE_PAUSE, &image, err);
    if (rc == 0)
        r->pause_image = steal(&image.id);
    return rc == 0 ? observe_found(r, err) : rc;
}

static struct loop *make_loop(struct runner *r, const char *name, int workers, loop_work_fn fn)
{
    struct loop *loop = loop_new(&(struct loop_config){
        .name = name, .workers = workers, .clock = r->config.clock, .work = fn, .ctx = r});
    loop_start(loop);
    return loop;
}

int runner_start(const struct runner_config *config, struct runner **ret, struct err *err)
{
    struct runner *r = xcalloc(1, sizeof *r);
    r->config = *config;
    rand_uuid(&rand_system, r->salt);
    int rc = prepare(r, err);
    if (rc < 0) {
        firewall_free(r->firewall);
        map_free(r->found);
        free(r->pause_image);
        free(r);
        return rc;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->runs = map_new();
    r->far_fetch = fetch_new();
    r->far_podman = podman_new(r->far_fetch, podman_socket(config->podman));
    r->pods = make_loop(r, "pods", config->workers, work);
    r->probes = make_loop(r, "probes", HANDLER_WORKERS, prober_work);
    r->hooks = make_loop(r, "hooks", HANDLER_WORKERS, hook_work);
    r->pulls = make_loop(r, "pulls", HANDLER_WORKERS, pull_work);
    r->node = make_loop(r, "node", 1, node_work);
    if (config->relay)
        relay_start(config->relay, network_lets_in, r);
    loop_add(r->node, config->name);
    loop_add(r->node, KEY_CLAIMS);
    firewall_watch(r->firewall);
    r->watch = podman_watch_start(config->podman, LABEL_UID, on_container, r);
    SCOPED_FREE char *own = xasprintf("spec.nodeName=%s", config->name);
    r->reflector = reflector_start(config->kube, "/api/v1/pods", NULL, own, &reflector_ops, r);
    *ret = r;
    return 0;
}

static bool free_run(void *ctx, const char *uid, void *value)
{
    (void)ctx, (void)uid;
    run_free(value);
    return true;
}

void runner_stop(struct runner *r)
{
    if (!r)
        return;
    reflector_stop(r->reflector);
    podman_watch_stop(r->watch);
    firewall_stop(r->firewall);
    loop_stop(r->pods);
    fetch_end_at(r->far_fetch, 0);
    loop_free(r->probes);
    loop_free(r->hooks);
    loop_free(r->pulls);
    loop_free(r->pods);
    loop_free(r->node);
    if (r->config.relay)
        relay_stop(r->config.relay);
    firewall_free(r->firewall);
    podman_free(r->far_podman);
    fetch_free(r->far_fetch);
    map_each(r->runs, free_run, NULL);
    map_free(r->runs);
    map_free(r->found);
    pthread_mutex_destroy(&r->lock);
    free(r->pause_image);
    free(r);
}
