#include "node/outcome.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

static cJSON *status_of(const char *result)
{
    cJSON *status = json_object();
    json_add(status, "metadata", json_object());
    json_add(status, "status", json_string(result));
    return status;
}

static void add_cause(cJSON *status, const char *reason, const char *message)
{
    cJSON *causes = json_array(), *cause = json_object();
    if (reason)
        json_add(cause, "reason", json_string(reason));
    json_add(cause, "message", json_string(message));
    json_push(causes, cause);
    json_set_at(status, "details.causes", causes);
}

static cJSON *failure(const char *reason, const char *message)
{
    cJSON *status = status_of("Failure");
    json_add(status, "message", json_string(message));
    json_add(status, "reason", json_string(reason));
    return status;
}

static cJSON *make(int exit_code, const struct err *err)
{
    if (err->code != ERR_NONE) {
        SCOPED_FREE char *text =
            xasprintf("error executing command in container: %s", err_text(err));
        SCOPED_FREE char *message = xasprintf("Internal error occurred: %s", text);
        cJSON *status = failure("InternalError", message);
        add_cause(status, NULL, text);
        json_add(status, "code", json_int(500));
        return status;
    }
    if (exit_code == 0)
        return status_of("Success");
    SCOPED_FREE char *code = xasprintf("%d", exit_code);
    SCOPED_FREE char *message =
        xasprintf("command terminated with non-zero exit code: exit status %d", exit_code);
    cJSON *status = failure("NonZeroExitCode", message);
    add_cause(status, "ExitCode", code);
    return status;
}

void outcome_print(int exit_code, const struct err *err, bool is_status, struct buf *out)
{
    SCOPED(json_free_p) cJSON *status = make(exit_code, err);
    if (is_status)
        json_print(status, out);
    else
        buf_puts(out, json_str_or(status, "message", ""));
}
