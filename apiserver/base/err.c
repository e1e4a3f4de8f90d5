/* The error value. Whoever passes NULL still gets the code back: it is also remembered for the
 * thread, so that err_wrap(NULL, ...) right after a failure returns the code of that failure. */
#include "apiserver/base/err.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

/* Bytes of a message, of a cause's message, of a field path; of all causes together. */
#define TEXT_MAX ((size_t)64 << 10)
#define CAUSES_BYTES_MAX ((size_t)4 << 20)

static _Thread_local enum err_code last_code;

struct row {
    const char *name, *reason;
    int status;
};
static const struct row rows[ERR_CODES] = {
    [ERR_NONE] = {.status = 200, .name = "ERR_NONE", .reason = ""},
#define ERR_ROW(code, http_status, text)                                                           \
    [code] = {.status = (http_status), .name = #code, .reason = (text)},
#include "apiserver/base/err_codes.h"
#undef ERR_ROW
};

static const struct row *row_of(enum err_code code)
{
    return &rows[(unsigned)code < ERR_CODES ? code : ERR_UNKNOWN];
}

static int answer(enum err_code code)
{
    last_code = code;
    return -(int)code;
}

static char *__attribute__((format(printf, 1, 0))) format(const char *fmt, va_list args)
{
    char *s = xmalloc(TEXT_MAX + 2); /* one byte more than is kept shows where a cut splits */
    int n = vsnprintf(s, TEXT_MAX + 2, fmt, args);
    size_t len = n < 0 ? 0 : (size_t)n > TEXT_MAX + 1 ? TEXT_MAX + 1 : (size_t)n;
    len = str_utf8_cut(s, len, TEXT_MAX);
    s[len] = '\0';
    return xrealloc(s, len + 1);
}

static char *dup_cut(const char *s)
{
    return s ? xstrndup(s, str_utf8_cut(s, strnlen(s, TEXT_MAX + 1), TEXT_MAX)) : NULL;
}

static void replace(char **to, char *take)
{
    free(*to);
    *to = take;
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    if (!err)
        return answer(code);
    va_list args;
    va_start(args, fmt);
    char *message = format(fmt, args); /* first: the arguments may point into err */
    va_end(args);
    err_fini(err);
    err->code = code;
    err->message = message;
    return answer(code);
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    if (!err)
        return answer(last_code ? last_code : ERR_UNKNOWN);
    va_list args;
    va_start(args, fmt);
    SCOPED_FREE char *prefix = format(fmt, args);
    va_end(args);
    if (err->code == ERR_NONE)
        err->code = ERR_UNKNOWN;
    if (!err->message || !*err->message) {
        replace(&err->message, steal(&prefix));
        return answer(err->code);
    }
    size_t n = strlen(prefix), m = strlen(err->message);
    char *joined = xmalloc(n + 2 + m + 1);
    memcpy(joined, prefix, n);
    memcpy(joined + n, ": ", 2);
    memcpy(joined + n + 2, err->message, m + 1);
    joined[str_utf8_cut(joined, n + 2 + m, TEXT_MAX)] = '\0';
    replace(&err->message, joined);
    return answer(err->code);
}

static size_t cause_bytes(const struct err_cause *c)
{
    return strlen(c->reason) + strlen(c->field) + strlen(c->message);
}

static void cause_fini(struct err_cause *c)
{
    free(c->reason);
    free(c->field);
    free(c->message);
}

/* Takes the cause, or frees it when err has enough of them. */
static void keep_cause(struct err *err, struct err_cause take)
{
    size_t bytes = cause_bytes(&take);
    if (err->n_causes >= ERR_CAUSES_MAX || bytes > CAUSES_BYTES_MAX - err->causes_bytes) {
        cause_fini(&take);
        return;
    }
    if ((err->n_causes & (err->n_causes - 1)) == 0) /* grows at powers of two */
        err->causes =
            xreallocarray(err->causes, err->n_causes ? err->n_causes * 2 : 1, sizeof *err->causes);
    err->causes[err->n_causes++] = take;
    err->causes_bytes += bytes;
}

int err_cause(struct err *err, const char *reason, const char *field, const char *fmt, ...)
{
    if (!err)
        return answer(ERR_INVALID);
    va_list args;
    va_start(args, fmt);
    struct err_cause c = {
        .reason = dup_cut(reason ? reason : ""),
        .field = dup_cut(field ? field : ""),
        .message = format(fmt, args),
    };
    va_end(args);
    keep_cause(err, c);
    if (err->code == ERR_NONE)
        err->code = ERR_INVALID;
    return answer(err->code);
}

int err_details(struct err *err, const char *group, const char *kind, const char *name,
                const char *uid)
{
    if (!err)
        return answer(last_code ? last_code : ERR_UNKNOWN);
    replace(&err->group, dup_cut(group));
    replace(&err->kind, dup_cut(kind));
    replace(&err->name, dup_cut(name));
    replace(&err->uid, dup_cut(uid));
    err->has_details = true;
    return answer(err->code);
}

/* "field: message" of each cause, each text once. Returns how many. */
static size_t print_causes(const struct err *err, struct buf *out)
{
    struct map *seen = map_new();
    for (size_t i = 0; i < err->n_causes && !buf_failed(out); i++) {
        const struct err_cause *c = &err->causes[i];
        SCOPED_FREE char *text = xasprintf("%s: %s", c->field, c->message);
        if (!map_put(seen, text, seen))
            buf_printf(out, "%s%s", map_len(seen) > 1 ? ", " : "", text);
    }
    size_t n = map_len(seen);
    map_free(seen);
    return n;
}

int err_invalid(struct err *causes, const char *group, const char *kind, const char *name,
                struct err *err)
{
    if (causes->n_causes == 0)
        return 0;
    SCOPED(buf_fini) struct buf text = {.max = TEXT_MAX}, quoted = {0};
    size_t n = print_causes(causes, &text);
    buf_go_quote(&quoted, name, strlen(name));
    replace(&causes->message,
            xasprintf("%s%s%s %s is invalid: %s%s%s", kind, *group ? "." : "", group,
                      buf_cstr(&quoted), n > 1 ? "[" : "", buf_cstr(&text), n > 1 ? "]" : ""));
    causes->code = ERR_INVALID;
    err_details(causes, group, kind, name, NULL);
    return err_move(err, causes);
}

int err_move(struct err *to, struct err *from)
{
    enum err_code code = from ? from->code : ERR_UNKNOWN;
    if (to && from && to != from) {
        err_fini(to);
        *to = steal(from);
    } else if (to != from) {
        err_fini(from);
    }
    return answer(code);
}

void err_fini(struct err *err)
{
    if (!err)
        return;
    for (size_t i = 0; i < err->n_causes; i++)
        cause_fini(&err->causes[i]);
    free(err->causes);
    free(err->message);
    free(err->name);
    free(err->group);
    free(err->kind);
    free(err->uid);
    free(err->continue_token);
    *err = (struct err){0};
}

int err_status(enum err_code code)
{
    return row_of(code)->status;
}

const char *err_reason(enum err_code code)
{
    return row_of(code)->reason;
}

const char *err_name(enum err_code code)
{
    return row_of(code)->name;
}

/* Status and reason decide; without a known reason the status alone does. */
enum err_code err_from_status(int status, const char *reason)
{
    for (enum err_code c = ERR_NONE + 1; c < ERR_CODES; c++)
        if (rows[c].status == status && strcmp(rows[c].reason, reason ? reason : "") == 0)
            return c;
    if (status == 409) /* two codes share it; a bare 409 is most often a lost update */
        return ERR_CONFLICT;
    for (enum err_code c = ERR_NONE + 1; status != 500 && c < ERR_CODES; c++)
        if (rows[c].status == status)
            return c;
    return ERR_UNKNOWN;
}

const char *err_text(const struct err *err)
{
    if (err && err->message)
        return err->message;
    return err && err->n_causes ? err->causes[0].message : "";
}
