/* A struct err already knows its HTTP status and reason (err_codes.h); what is left is to write
 * them down. */
#include "apiserver/http/status.h"

#include <stdio.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/respond.h"

/* Characters of all warnings together. Source: docs/kubernetes-api.md 22.3. */
#define WARNINGS_BUDGET 4096
#define WARNING_SHORT 256 /* characters of each once the budget is exceeded */

static void set_if(cJSON *object, const char *name, const char *value)
{
    if (value && *value)
        json_set_str(object, name, value);
}

static cJSON *cause_tree(const struct err_cause *c)
{
    cJSON *cause = json_object();
    set_if(cause, "reason", c->reason);
    set_if(cause, "message", c->message);
    set_if(cause, "field", c->field);
    return cause;
}

static bool has_details(const struct err *err)
{
    return err->has_details || err->name || err->group || err->kind || err->uid || err->n_causes ||
           err->retry_after_s;
}

static cJSON *details_tree(const struct err *err)
{
    cJSON *details = json_object();
    set_if(details, "name", err->name);
    set_if(details, "group", err->group);
    set_if(details, "kind", err->kind);
    set_if(details, "uid", err->uid);
    if (err->n_causes)
        json_set(details, "causes", json_array());
    for (size_t i = 0; i < err->n_causes; i++)
        json_push(json_get(details, "causes"), cause_tree(&err->causes[i]));
    if (err->retry_after_s > 0)
        json_set_int(details, "retryAfterSeconds", err->retry_after_s);
    return details;
}

static cJSON *status_head(const char *status)
{
    cJSON *tree = json_object();
    json_set_str(tree, "kind", "Status");
    json_set_str(tree, "apiVersion", "v1");
    json_set(tree, "metadata", json_object());
    json_set_str(tree, "status", status);
    return tree;
}

cJSON *status_tree(const struct err *err)
{
    cJSON *tree = status_head("Failure");
    set_if(json_get(tree, "metadata"), "continue", err->continue_token);
    set_if(tree, "message", err_text(err));
    set_if(tree, "reason", err_reason(err->code));
    if (has_details(err))
        json_set(tree, "details", details_tree(err));
    json_set_int(tree, "code", err_status(err->code));
    return tree;
}

cJSON *status_success(const char *group, const char *resource, const char *name, const char *uid)
{
    cJSON *tree = status_head("Success"), *details = json_object();
    set_if(details, "name", name);
    set_if(details, "group", group);
    set_if(details, "kind", resource);
    set_if(details, "uid", uid);
    json_set(tree, "details", details);
    return tree;
}

void status_respond(const struct request *req, const struct err *err, struct response *resp)
{
    struct negotiated form = negotiate_error(&req->headers, &req->params);
    buf_clear(&resp->body);
    if (err->retry_after_s > 0) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", err->retry_after_s);
        respond_header(resp, "Retry-After", seconds);
    }
    respond_tree(resp, err_status(err->code), &form, status_tree(err));
}

/* Bytes of the first max characters of s. */
static size_t cut_at(const char *s, size_t max)
{
    size_t n = 0, chars = 0;
    while (s[n] && (chars += ((unsigned char)s[n] & 0xc0) != 0x80) <= max)
        n++;
    return n;
}

static void warn(struct response *resp, const char *text, size_t n)
{
    SCOPED(buf_fini) struct buf line = {0};
    buf_puts(&line, "299 - \"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            buf_putc(&line, '\\');
        buf_putc(&line, (char)c);
    }
    buf_putc(&line, '"');
    pairs_add(&resp->headers, "Warning", buf_cstr(&line));
}

/* A text with control characters makes no header, and kube-apiserver drops it as well. */
static bool has_control(const char *s)
{
    uint32_t rune;
    for (size_t n = strlen(s), len; n > 0; s += len, n -= len) {
        len = str_utf8_decode(s, n, &rune);
        if (len && (rune < 0x20 || (rune >= 0x7f && rune < 0xa0)))
            return true;
        len += len == 0;
    }
    return false;
}

static bool is_repeated(const struct pairs *warnings, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(warnings->v[k].name, warnings->v[i].name) == 0)
            return true;
    return false;
}

static size_t total_length(const struct pairs *warnings)
{
    size_t total = 0;
    for (size_t i = 0; i < warnings->n && total <= WARNINGS_BUDGET; i++)
        if (!is_repeated(warnings, i))
            total += cut_at(warnings->v[i].name, SIZE_MAX);
    return total;
}

void status_warn(const struct pairs *warnings, struct response *resp)
{
    size_t max = total_length(warnings) > WARNINGS_BUDGET ? WARNING_SHORT : SIZE_MAX, total = 0;
    for (size_t i = 0; i < warnings->n && total < WARNINGS_BUDGET; i++) {
        if (is_repeated(warnings, i) || has_control(warnings->v[i].name))
            continue;
        size_t n = cut_at(warnings->v[i].name, max);
        warn(resp, warnings->v[i].name, n);
        total += n;
    }
}
