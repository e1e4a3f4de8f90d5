#include "reconcile/event.h"

#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"

#define NOTE_MAX 1024     /* bytes; events.k8s.io/v1 validation */
#define NAME_PART_MAX 240 /* so that name and suffix stay below 253 */

cJSON *event_make(const cJSON *regarding, const struct event_text *text, const char *controller,
                  const char *instance, int64_t now_unix_us, const struct randomness *randomness)
{
    char suffix[11], now[CLOCK_TEXT_SIZE];
    rand_name_suffix(randomness, suffix, sizeof suffix - 1);
    clock_print_rfc3339_micro(now_unix_us, now);
    SCOPED_FREE char *name = xasprintf("%.*s.%s", NAME_PART_MAX, meta_name(regarding), suffix);
    SCOPED_FREE char *note =
        xstrndup(text->note, str_utf8_cut(text->note, strlen(text->note), NOTE_MAX));
    cJSON *event = json_object(), *meta = json_object(), *ref = json_object();
    json_set_str(event, "apiVersion", "events.k8s.io/v1");
    json_set_str(event, "kind", "Event");
    json_set_str(meta, "name", name);
    json_set_str(meta, "namespace", meta_namespace(regarding));
    json_set(event, "metadata", meta);
    json_set_str(event, "eventTime", now);
    json_set_str(event, "reportingController", controller);
    json_set_str(event, "reportingInstance", instance);
    json_set_str(event, "action", text->action);
    json_set_str(event, "reason", text->reason);
    json_set_str(event, "type", text->type);
    json_set_str(event, "note", note);
    json_set_str(ref, "apiVersion", json_str_or(regarding, "apiVersion", ""));
    json_set_str(ref, "kind", json_str_or(regarding, "kind", ""));
    json_set_str(ref, "namespace", meta_namespace(regarding));
    json_set_str(ref, "name", meta_name(regarding));
    json_set_str(ref, "uid", meta_uid(regarding));
    json_set_str(ref, "resourceVersion", json_str_or(regarding, "metadata.resourceVersion", ""));
    json_set(event, "regarding", ref);
    return event;
}
