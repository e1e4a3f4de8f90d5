/* Two things that tables of Kubernetes' own kinds say and ours do not: members that a client may
 * write as plain text, and defaults that stand at a path instead of in the shape, since shapes are
 * shared with kinds that have other defaults. Source: the Kubernetes API reference, v1.37. */
#include <string.h>

#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

int step_encode(struct admission *a, struct err *err)
{
    (void)err;
    const struct kind *k = a->req->kind;
    if (!k->encodes.plain)
        return 0;
    SCOPED(json_free_p) cJSON *plain = json_detach(a->object, k->encodes.plain);
    const cJSON *text;
    cJSON_ArrayForEach(text, plain)
    {
        SCOPED(buf_fini) struct buf encoded = {0};
        if (!cJSON_IsString(text))
            continue;
        buf_base64(&encoded, text->valuestring, strlen(text->valuestring));
        json_set_str(json_ensure_object(a->object, k->encodes.encoded), text->string,
                     buf_cstr(&encoded));
    }
    return 0;
}

static bool is_nothing(const cJSON *node)
{
    return (cJSON_IsString(node) && !*node->valuestring) ||
           (cJSON_IsNumber(node) && node->valuedouble == 0);
}

static void add_missing(cJSON *to, const cJSON *from)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, from)
    {
        if (!json_get(to, member->string))
            json_set(to, member->string, json_copy(member));
    }
}

/* At the path's end. */
static void set_member(cJSON *at, const char *name, const struct path_default *d)
{
    const cJSON *present = json_get(at, name), *source = d->from ? json_get(at, d->from) : NULL;
    cJSON *tree = NULL;
    if (cJSON_IsObject(source)) {
        add_missing(json_ensure_object(at, name), source);
        return;
    }
    if ((present && !(d->from && is_nothing(present))) || (d->is_alone && json_len(at) > 1))
        return;
    if (source)
        json_set(at, name, json_copy(source));
    else if (d->value && json_parse_str(d->value, &tree, NULL) == 0)
        json_set(at, name, tree);
}

/* Where a default's path is followed: one part of it after the other. */
static void set_default(cJSON *at, const char *path, const struct path_default *d, bool is_top)
{
    size_t n = strcspn(path, ".[");
    SCOPED_FREE char *name = xstrndup(path, n);
    const char *rest = path + n;
    if (!*rest) {
        set_member(at, name, d);
        return;
    }
    bool is_list = str_has_prefix(rest, "[].");
    cJSON *below = json_get(at, name);
    if (!below && is_top)
        below = json_ensure_object(at, name);
    if (!is_list) {
        if (cJSON_IsObject(below))
            set_default(below, rest + 1, d, false);
        return;
    }
    cJSON *item;
    cJSON_ArrayForEach(item, below)
    {
        if (cJSON_IsObject(item))
            set_default(item, rest + strlen("[]."), d, false);
    }
}

int step_path_defaults(struct admission *a, struct err *err)
{
    (void)err;
    for (const struct path_default *d = a->req->kind->defaults; d && d->path; d++)
        if (!d->is_first || !a->is_update)
            set_default(a->object, d->path, d, true);
    return 0;
}
