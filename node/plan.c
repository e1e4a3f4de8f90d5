#include "node/plan.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

const char *const phase_names[] = {
    [PHASE_PENDING] = "Pending",
    [PHASE_RUNNING] = "Running",
    [PHASE_SUCCEEDED] = "Succeeded",
    [PHASE_FAILED] = "Failed",
};

/* ---- reading ---- */

static void read_list(const cJSON *list, bool is_init, struct member *members, size_t *n)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, list)
    {
        if (*n == PLAN_CONTAINERS_MAX)
            return;
        bool is_sidecar = is_init && str_equal(json_str(c, "restartPolicy"), "Always");
        members[(*n)++] = (struct member){
            .spec = c,
            .name = json_str_or(c, "name", ""),
            .kind = is_sidecar ? MEMBER_SIDECAR
                    : is_init  ? MEMBER_INIT
                               : MEMBER_MAIN,
        };
    }
}

struct member *plan_members(const cJSON *pod, size_t *ret_n)
{
    struct member *members = xcalloc(PLAN_CONTAINERS_MAX, sizeof *members);
    size_t n = 0;
    read_list(json_at(pod, "spec.initContainers"), true, members, &n);
    read_list(json_at(pod, "spec.containers"), false, members, &n);
    *ret_n = n;
    return members;
}

enum restart_policy plan_restart_policy(const cJSON *pod)
{
    const char *text = json_str_or(pod, "spec.restartPolicy", "Always");
    return strcmp(text, "Never") == 0       ? RESTART_NEVER
           : strcmp(text, "OnFailure") == 0 ? RESTART_ON_FAILURE
                                            : RESTART_ALWAYS;
}

/* ---- one container ---- */

static bool is_running(const struct instance *i)
{
    return i && i->state == INSTANCE_RUNNING;
}

static bool has_exited(const struct instance *i)
{
    return i && i->state == INSTANCE_EXITED;
}

int64_t plan_backoff_ms(unsigned step)
{
    if (step < 2) /* the first restart is at once */
        return 0;
    unsigned doublings = step - 2;
    return doublings > 4 ? PLAN_BACKOFF_MAX_MS : (int64_t)PLAN_BACKOFF_MS << doublings;
}

static unsigned next_step(const struct instance *last)
{
    bool ran_long =
        last->started_ms > 0 && last->finished_ms - last->started_ms >= PLAN_BACKOFF_RESET_MS;
    return ran_long ? 1 : last->step + 1;
}

/* So init containers have to run again. */
bool plan_is_stale(const struct plan *p, const struct instance *i)
{
    return p->pause && i->created_ms < p->pause->created_ms;
}

static bool is_done(const struct plan *p, const struct member *m)
{
    return has_exited(m->now) && m->now->exit_code == 0 && !plan_is_stale(p, m->now);
}

static bool restarts(const struct plan *p, const struct member *m)
{
    if (m->kind == MEMBER_SIDECAR || p->restart == RESTART_ALWAYS)
        return true;
    return p->restart == RESTART_ON_FAILURE && m->now->exit_code != 0;
}

static void wake_at(struct plan *p, int64_t at_ms)
{
    int64_t wait_ms = at_ms > p->now_ms ? at_ms - p->now_ms : 1;
    if (p->wait_ms == 0 || wait_ms < p->wait_ms)
        p->wait_ms = wait_ms;
}

/* Starts it now, or later. */
static void start(struct plan *p, struct member *m)
{
    int64_t at_ms = m->not_before_ms;
    m->step = has_exited(m->now) ? next_step(m->now) : m->now ? m->now->step : 0;
    if (has_exited(m->now)) {
        int64_t after_ms = m->now->finished_ms + plan_backoff_ms(m->step);
        m->is_waiting = after_ms > p->now_ms;
        at_ms = after_ms > at_ms ? after_ms : at_ms;
    }
    if (at_ms > p->now_ms)
        wake_at(p, at_ms);
    else
        m->act = MEMBER_START;
}

/* ---- the Pod ---- */

static bool have_mains_begun(const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct member *m = &p->members[i];
        if (m->kind == MEMBER_MAIN && m->now && !plan_is_stale(p, m->now))
            return true;
    }
    return false;
}

static bool has_init(const struct plan *p)
{
    return p->n > 0 && p->members[0].kind != MEMBER_MAIN;
}

/* An init container that failed and may not run again. */
static bool has_init_failed(const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct member *m = &p->members[i];
        if (m->kind == MEMBER_INIT && has_exited(m->now) && m->now->exit_code != 0 &&
            p->restart == RESTART_NEVER)
            return true;
    }
    return false;
}

static bool are_mains_over(const struct plan *p)
{
    bool is_over = true;
    for (size_t i = 0; i < p->n; i++) {
        struct member *m = &p->members[i];
        if (m->kind != MEMBER_MAIN)
            continue;
        m->is_over = has_exited(m->now) && !restarts(p, m);
        is_over = is_over && m->is_over;
    }
    return is_over;
}

/* Everything ends: first the others, then sidecars from the last to the first. */
static void end(struct plan *p)
{
    bool runs = false;
    for (size_t i = p->n; i-- > 0;) {
        struct member *m = &p->members[i];
        m->is_over = true;
        if (!is_running(m->now))
            continue;
        if (m->kind != MEMBER_SIDECAR || !runs)
            m->act = MEMBER_STOP;
        runs = true;
    }
    p->is_over = !runs;
    p->drops_pause = !runs && is_running(p->pause);
}

/* The sandbox broke down: what runs in it cannot be reached any more. */
static void rebuild(struct plan *p)
{
    bool runs = false;
    for (size_t i = 0; i < p->n; i++) {
        if (is_running(p->members[i].now)) {
            p->members[i].act = MEMBER_STOP;
            runs = true;
        }
    }
    p->makes_pause = !runs;
}

/* One init container or sidecar; false: what comes after it has to wait. */
static bool go_on_init(struct plan *p, struct member *m)
{
    if (m->kind == MEMBER_INIT && is_done(p, m)) {
        m->is_over = true;
        return true;
    }
    if (!is_running(m->now)) {
        start(p, m);
        return false;
    }
    if (m->is_unhealthy)
        m->act = MEMBER_STOP;
    return m->kind == MEMBER_SIDECAR && m->has_started;
}

static void go_on_main(struct plan *p, struct member *m)
{
    if (is_running(m->now)) {
        if (m->is_unhealthy)
            m->act = MEMBER_STOP;
    } else if (!m->now || m->now->state == INSTANCE_CREATED || restarts(p, m)) {
        start(p, m);
    }
}

static void go_on(struct plan *p)
{
    bool have_begun = have_mains_begun(p), is_blocked = false;
    for (size_t i = 0; i < p->n; i++) {
        struct member *m = &p->members[i];
        if (m->kind == MEMBER_MAIN && !is_blocked)
            go_on_main(p, m);
        else if (m->kind == MEMBER_SIDECAR && have_begun)
            go_on_init(p, m);
        else if (m->kind != MEMBER_MAIN && !have_begun && !is_blocked)
            is_blocked = !go_on_init(p, m);
        else if (m->kind == MEMBER_INIT && have_begun)
            m->is_over = true;
    }
    p->is_initialized = !is_blocked;
}

/* ---- phase ---- */

static bool have_all_succeeded(const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct member *m = &p->members[i];
        if (m->kind == MEMBER_MAIN && (!has_exited(m->now) || m->now->exit_code != 0))
            return false;
    }
    return true;
}

static enum phase phase_of(const struct plan *p, bool is_failed)
{
    if (p->known_phase == PHASE_FAILED || p->known_phase == PHASE_SUCCEEDED)
        return p->known_phase;
    if (is_failed)
        return PHASE_FAILED;
    bool is_ending = are_mains_over(p) || (p->is_terminating && p->is_over);
    if (is_ending)
        return have_all_succeeded(p) ? PHASE_SUCCEEDED : PHASE_FAILED;
    for (size_t i = 0; i < p->n; i++) {
        const struct member *m = &p->members[i];
        if (m->kind == MEMBER_MAIN && (!m->now || m->now->state == INSTANCE_CREATED))
            return p->known_phase == PHASE_RUNNING ? PHASE_RUNNING : PHASE_PENDING;
    }
    return PHASE_RUNNING;
}

void plan_make(struct plan *p)
{
    bool is_failed = p->is_past_deadline || has_init_failed(p);
    bool is_final = p->known_phase == PHASE_FAILED || p->known_phase == PHASE_SUCCEEDED;
    p->is_initialized = !has_init(p) || have_mains_begun(p);
    if (p->is_terminating || is_failed || is_final || are_mains_over(p))
        end(p);
    else if (!is_running(p->pause))
        rebuild(p);
    else
        go_on(p);
    p->phase = phase_of(p, is_failed);
}
