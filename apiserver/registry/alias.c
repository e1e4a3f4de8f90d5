#include "apiserver/registry/alias.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"

const struct kind *alias_stored_kind(const struct kind *kind)
{
    return kind->stored_as ? kind->stored_as : kind;
}

/* The same object in the other form; NULL when the bytes are no object at all. */
static char *convert(const struct kind *from, const struct kind *to, const struct rename *renames,
                     bool is_back, const char *json, size_t len, size_t *ret_len)
{
    static const struct json_opts lenient = {.flags =
                                                 JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE};
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(buf_fini) struct buf out = {0};
    SCOPED_FREE char *from_version = kind_api_version(from);
    SCOPED_FREE char *to_version = kind_api_version(to);
    if (json_parse(json, len, &lenient, &tree, NULL) < 0 ||
        !str_equal(json_str(tree, "apiVersion"), from_version))
        return NULL;
    json_set_str(tree, "apiVersion", to_version);
    for (const struct rename *r = renames; r->shown; r++) {
        cJSON *member = json_detach(tree, is_back ? r->shown : r->stored);
        if (member)
            json_set(tree, is_back ? r->stored : r->shown, member);
    }
    json_sort(tree);
    json_print(tree, &out);
    return buf_take(&out, ret_len);
}

int alias_object(const struct kind *kind, struct store_kv *kv, struct object **ret, struct err *err)
{
    char *bytes = steal(&kv->value);
    size_t len = kv->value_len;
    if (kind->stored_as) {
        char *shown = convert(kind->stored_as, kind, kind->renames, false, bytes, len, &len);
        if (shown) {
            free(bytes);
            bytes = shown;
        }
    }
    return object_from_bytes(kind, bytes, len, kv->mod_rev, ret, err);
}

char *alias_stored_bytes(const struct kind *kind, const char *json, size_t len, size_t *ret_len)
{
    if (!kind->stored_as || !json)
        return NULL;
    return convert(kind, kind->stored_as, kind->renames, true, json, len, ret_len);
}
