/* What the cluster hears of Pods: status, events, and the end. */
#include <inttypes.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "node/run.h"
#include "node/status.h"

#define EVENT_TEXT_MAX 1024

static const char *pod_text(const cJSON *pod, const char *path)
{
    return json_str_or(pod, path, "");
}

static char *path_of(const cJSON *pod, const char *subresource)
{
    return kube_path(&(struct kube_place){.api = "/api/v1",
                                          .namespace_name = pod_text(pod, "metadata.namespace"),
                                          .resource = "pods",
                                          .name = pod_text(pod, "metadata.name"),
                                          .subresource = subresource});
}

/* What the cluster answers is the newest that is known of the Pod, before its event comes. */
static int send_status(struct runner *r, struct run *run, cJSON *take_status, struct err *err)
{
    SCOPED(json_free_p) cJSON *status = take_status;
    SCOPED(json_free_p) cJSON *patch = status_patch(run->pod, status), *answer = NULL;
    if (!patch)
        return 0;
    SCOPED_FREE char *path = path_of(run->pod, "status");
    int rc = kube_do(
        r->config.kube,
        &(struct kube_call){
            .method = "PATCH", .path = path, .body = patch, .content_type = KUBE_STRATEGIC_PATCH},
        &answer, err);
    if (rc < 0)
        return rc;
    json_free(run->pod);
    run->pod = json_copy(answer);
    pthread_mutex_lock(&r->lock);
    run_take(run, steal(&answer));
    pthread_mutex_unlock(&r->lock);
    return 0;
}

static void report_open(struct runner *r, const struct run *run)
{
    log_warn("network policies of a Pod are NOT enforced pod=%s namespace=%s name=%s", run->uid,
             pod_text(run->pod, "metadata.namespace"), pod_text(run->pod, "metadata.name"));
    report_event(r, run->pod, "Warning", "NetworkPolicyNotEnforced",
                 "This node does not enforce network policies: the Pod is open to all networks");
}

int report_status(struct runner *r, struct run *run, const struct plan *plan, const char *reason,
                  const char *message, struct err *err)
{
    SCOPED_FREE struct waiting *waiting = xcalloc(plan->n + 1, sizeof *waiting);
    SCOPED_FREE const char **images = xcalloc(plan->n + 1, sizeof *images);
    for (size_t i = 0; i < plan->n; i++) {
        const struct member *m = &plan->members[i];
        const struct note *note = run_note(run, m->name);
        waiting[i] = (struct waiting){note->reason, note->message};
        images[i] = note->image ? note->image : m->now ? m->now->image_id : "";
    }
    bool has_ip = plan->pause && *run->ip, is_open = firewall_is_open(r->firewall, run->uid);
    if (is_open && !status_says_open(run->pod))
        report_open(r, run);
    return send_status(r, run,
                       status_make(&(struct status_input){
                           .pod = run->pod,
                           .plan = plan,
                           .waiting = waiting,
                           .images = images,
                           .pod_ip = has_ip ? run->ip : pod_text(run->pod, "status.podIP"),
                           .host_ip = r->config.address,
                           .reason = reason,
                           .message = message,
                           .is_open = is_open,
                           .now_ms = run_now_ms(r),
                       }),
                       err);
}

int report_refused(struct runner *r, struct run *run, const char *reason, const char *message,
                   struct err *err)
{
    if (strcmp(pod_text(run->pod, "status.phase"), "Failed") == 0)
        return 0;
    report_event(r, run->pod, "Warning", reason, message);
    return send_status(
        r, run, status_refused(run->pod, reason, message, r->config.address, run_now_ms(r)), err);
}

int report_end(struct runner *r, const struct run *run, struct err *err)
{
    SCOPED(json_free_p) cJSON *body = json_object();
    SCOPED_FREE char *path = path_of(run->pod, NULL);
    json_add(body, "apiVersion", json_string("v1"));
    json_add(body, "kind", json_string("DeleteOptions"));
    json_add(body, "gracePeriodSeconds", json_int(0));
    json_set_at(body, "preconditions.uid", json_string(run->uid));
    int rc =
        kube_do(r->config.kube, &(struct kube_call){.method = "DELETE", .path = path, .body = body},
                NULL, err);
    return rc == -ERR_NOT_FOUND || rc == -ERR_CONFLICT ? 0 : rc;
}

/* ---- events ---- */

static cJSON *event_of(const struct runner *r, const cJSON *pod, const char *type,
                       const char *reason, const char *message)
{
    static const char *const involved[][2] = {{"namespace", "metadata.namespace"},
                                              {"name", "metadata.name"},
                                              {"uid", "metadata.uid"},
                                              {"resourceVersion", "metadata.resourceVersion"}};
    char now[CLOCK_TEXT_SIZE], suffix[11];
    clock_print_rfc3339(clock_unix_s(r->config.clock), now);
    rand_name_suffix(&rand_system, suffix, sizeof suffix - 1);
    SCOPED_FREE char *name = xasprintf("%.200s.%s", pod_text(pod, "metadata.name"), suffix);
    SCOPED_FREE char *text =
        xstrndup(message, str_utf8_cut(message, strlen(message), EVENT_TEXT_MAX));
    cJSON *event = json_object(), *object = json_object();
    json_add(event, "apiVersion", json_string("v1"));
    json_add(event, "kind", json_string("Event"));
    json_set_at(event, "metadata.name", json_string(name));
    json_add(object, "apiVersion", json_string("v1"));
    json_add(object, "kind", json_string("Pod"));
    for (size_t i = 0; i < ARRAY_LEN(involved); i++)
        json_add(object, involved[i][0], json_string(pod_text(pod, involved[i][1])));
    json_add(event, "involvedObject", object);
    json_add(event, "type", json_string(type));
    json_add(event, "reason", json_string(reason));
    json_add(event, "message", json_string(text));
    json_set_at(event, "source.component", json_string("sandbox-node"));
    json_set_at(event, "source.host", json_string(r->config.name));
    json_add(event, "firstTimestamp", json_string(now));
    json_add(event, "lastTimestamp", json_string(now));
    json_add(event, "count", json_int(1));
    return event;
}

/* Nothing waits for an event: one that is lost is lost. */
void report_event(struct runner *r, const cJSON *pod, const char *type, const char *reason,
                  const char *message)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *event = event_of(r, pod, type, reason, message);
    SCOPED_FREE char *path =
        kube_path(&(struct kube_place){.api = "/api/v1",
                                       .namespace_name = pod_text(pod, "metadata.namespace"),
                                       .resource = "events"});
    if (kube_do(r->config.kube, &(struct kube_call){.method = "POST", .path = path, .body = event},
                NULL, &err) < 0)
        log_info("event not written pod=%s reason=%s: %s", pod_text(pod, "metadata.uid"), reason,
                 err_text(&err));
}
