#include "reconcile/condition.h"

#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

/* Bytes; metav1.Condition allows as many characters, and not to have the whole status refused for
 * the words of others is worth the rest of them. */
#define MESSAGE_MAX 32768
#define REASON_MAX 1024

cJSON *condition_find(const cJSON *conditions, const char *type)
{
    cJSON *c;
    cJSON_ArrayForEach(c, conditions)
    {
        if (str_equal(json_str(c, "type"), type))
            return c;
    }
    return NULL;
}

bool condition_has_reason(const cJSON *conditions, const char *type, const char *reason)
{
    return str_equal(json_str(condition_find(conditions, type), "reason"), reason);
}

/* A letter, then more of them, digits, _ , and :, the last two not at the end. Source: the pattern
 * of metav1.Condition. */
bool condition_reason_fits(const char *reason)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_,:";
    size_t n = strlen(reason);
    return n > 0 && n <= REASON_MAX && strchr(letters, reason[0]) && strspn(reason, rest) == n &&
           !strchr(",:", reason[n - 1]);
}

static void set_message(cJSON *condition, const char *message)
{
    size_t n = strlen(message);
    if (n <= MESSAGE_MAX) {
        json_set_str(condition, "message", message);
        return;
    }
    SCOPED_FREE char *fit =
        xasprintf("%.*s...", (int)str_utf8_cut(message, n, MESSAGE_MAX - strlen("...")), message);
    json_set_str(condition, "message", fit);
}

void condition_set(cJSON *conditions, const struct condition *c, int64_t now_unix_s)
{
    cJSON *is = condition_find(conditions, c->type);
    bool is_new = !is;
    if (is_new) {
        is = json_object();
        json_set_str(is, "type", c->type);
        json_push(conditions, is);
    }
    if (!str_equal(json_str(is, "status"), c->status)) {
        char now[CLOCK_TEXT_SIZE];
        clock_print_rfc3339(now_unix_s, now);
        json_set_str(is, "lastTransitionTime", now);
    }
    json_set_str(is, "status", c->status);
    json_set_str(is, "reason", c->reason);
    set_message(is, c->message);
    json_set_int(is, "observedGeneration", c->observed_generation);
}

void condition_remove(cJSON *conditions, const char *type)
{
    cJSON *is = condition_find(conditions, type);
    if (is)
        json_remove_node(conditions, is);
}

cJSON *condition_status_copy(const cJSON *object)
{
    cJSON *status = json_copy(json_get(object, "status"));
    if (!cJSON_IsObject(status)) {
        json_free(status);
        status = json_object();
    }
    if (!cJSON_IsArray(json_get(status, "conditions")))
        json_set(status, "conditions", json_array());
    return status;
}
