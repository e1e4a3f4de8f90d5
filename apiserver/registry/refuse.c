/* The errors of the registry, in kube-apiserver's words. Source: docs/kubernetes-api.md 13.2, 14.4,
 * 17, 23.2. */
#include <inttypes.h>
#include <stdarg.h>

#include "apiserver/base/mem.h"
#include "apiserver/registry/cache.h"
#include "openapi/kinds.h"

/* As Go's %q. A NUL, which no C string holds, is C0 80 in what the URL unescaped to. */
static char *quoted(const char *name)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    struct buf b = {0};
    for (const char *p = name; *p; p += strncmp(p, "\xc0\x80", 2) == 0 ? 2 : 1)
        buf_putc(&bytes, strncmp(p, "\xc0\x80", 2) == 0 ? '\0' : *p);
    buf_go_quote(&b, buf_cstr(&bytes), bytes.len);
    return buf_take(&b, NULL);
}

int refuse_not_found(const struct kind *kind, const char *name, struct err *err)
{
    SCOPED_FREE char *resource = kind_resource_name(kind);
    SCOPED_FREE char *quoted_name = quoted(name);
    err_set(err, ERR_NOT_FOUND, "%s %s not found", resource, quoted_name);
    err_details(err, kind->group, kind->plural, name, NULL);
    return -ERR_NOT_FOUND;
}

int refuse_unreadable(const struct kind *kind, const char *what, struct err *err)
{
    return err_set(err, ERR_INTERNAL,
                   "Internal error occurred: %s \"%s\" is stored in a form that cannot be read",
                   kind->plural, what);
}

int refuse_not_ready(const struct kind *kind, struct err *err)
{
    SCOPED_FREE char *resource = kind_resource_name(kind);
    err_set(err, ERR_UNAVAILABLE, "%s cannot be served yet: the server is loading its objects",
            resource);
    if (err)
        err->retry_after_s = 1;
    return -ERR_UNAVAILABLE;
}

int refuse_conflict(const struct kind *kind, const char *name, struct err *err, const char *fmt,
                    ...)
{
    SCOPED_FREE char *resource = kind_resource_name(kind);
    va_list args;
    va_start(args, fmt);
    SCOPED_FREE char *why = xvasprintf(fmt, args);
    va_end(args);
    err_set(err, ERR_CONFLICT, "Operation cannot be fulfilled on %s \"%s\": %s", resource, name,
            why);
    err_details(err, kind->group, kind->plural, name, NULL);
    return -ERR_CONFLICT;
}

int refuse_modified(const struct kind *kind, const char *name, struct err *err)
{
    return refuse_conflict(kind, name, err,
                           "the object has been modified; please apply your changes to the latest "
                           "version and try again");
}

int refuse_exists(const struct kind *kind, const char *name, bool is_terminating, bool is_generated,
                  struct err *err)
{
    SCOPED_FREE char *resource = kind_resource_name(kind);
    const char *prefix = is_terminating ? "object is being deleted: " : "";
    const char *suffix =
        is_generated ? ", the server was not able to generate a unique name for the object" : "";
    err_set(err, ERR_ALREADY_EXISTS, "%s%s \"%s\" already exists%s", prefix, resource, name,
            suffix);
    err_details(err, kind->group, kind->plural, name, NULL);
    if (err && is_generated)
        err->retry_after_s = 1;
    return -ERR_ALREADY_EXISTS;
}

int refuse_too_large_rev(int64_t rev, int64_t current, struct err *err)
{
    SCOPED(err_fini) struct err e = {0};
    err_set(&e, ERR_TIMEOUT, "Timeout: Too large resource version: %" PRId64 ", current: %" PRId64,
            rev, current);
    err_cause(&e, "ResourceVersionTooLarge", NULL, "Too large resource version");
    e.retry_after_s = 1;
    return err_move(err, &e);
}

int refuse_store(const struct kind *kind, const char *op, struct err *store_err, struct err *err)
{
    switch (store_err->code) {
    case ERR_UNAVAILABLE:
    case ERR_SERVER_TIMEOUT:
    case ERR_UNDETERMINED: {
        SCOPED_FREE char *resource = kind_resource_name(kind);
        enum err_code code =
            store_err->code == ERR_UNDETERMINED ? ERR_UNDETERMINED : ERR_SERVER_TIMEOUT;
        err_set(
            err, code,
            "The %s operation against %s could not be completed at this time, please try again.",
            op, resource);
        err_details(err, kind->group, kind->plural, op, NULL);
        if (err)
            err->retry_after_s = 2;
        err_fini(store_err);
        return -(int)code;
    }
    default:
        return err_move(err, store_err);
    }
}
