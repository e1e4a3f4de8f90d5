/* From objects, and from the Pod, to the files of a volume. */
#include "node/volume_fill.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/lookup.h"

#define FILE_MODE 0644

/* ---- files from other objects ---- */

/* A group of the volume's may always read. */
static int put_file(const struct volume *v, const char *path, struct buf *take_bytes, int64_t mode,
                    struct err *err)
{
    return payload_put(v->payload, path, take_bytes,
                       (mode_t)(mode & 0777) | (v->group >= 0 ? 0440 : 0), err);
}

struct origin { /* a kind of object whose data become files */
    const char *field, *resource;
    const char *name_field; /* of the spec, when it is a volume of its own */
};
static const struct origin config_map = {"configMap", "configmaps", "name"};
static const struct origin secret = {"secret", "secrets", "secretName"};

static int data_bytes(const struct origin *o, const cJSON *object, const char *key, bool *ret_found,
                      struct buf *out, struct err *err)
{
    const cJSON *plain = json_get(json_get(object, "data"), key);
    const cJSON *binary = json_get(json_get(object, "binaryData"), key);
    const cJSON *coded = o == &secret ? plain : binary;
    *ret_found = plain || binary;
    if (cJSON_IsString(coded)) {
        if (!buf_unbase64(out, coded->valuestring, strlen(coded->valuestring)))
            return err_set(err, ERR_INVALID, "%s: a value is no base64", o->resource);
    } else if (cJSON_IsString(plain)) {
        buf_puts(out, plain->valuestring);
    }
    return 0;
}

static int put_key(const struct volume *v, const struct origin *o, const cJSON *object,
                   const char *key, const char *path, int64_t mode, bool *ret_found,
                   struct err *err)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    int rc = data_bytes(o, object, key, ret_found, &bytes, err);
    return rc < 0 || !*ret_found ? rc : put_file(v, path, &bytes, mode, err);
}

/* All keys of an object, or those that items list, each under its path. */
static int put_object(const struct volume *v, const struct origin *o, const cJSON *spec,
                      const cJSON *object, int64_t mode, struct err *err)
{
    const cJSON *items = json_get(spec, "items"), *entry;
    bool is_found;
    int rc = 0;
    cJSON_ArrayForEach(entry, items)
    {
        const char *key = json_str_or(entry, "key", "");
        rc = put_key(v, o, object, key, json_str_or(entry, "path", ""),
                     json_i64_or(entry, "mode", mode), &is_found, err);
        if (rc == 0 && !is_found && !json_bool_or(spec, "optional", false))
            rc = err_set(err, ERR_NOT_FOUND, "references non-existent key: %s", key);
        if (rc < 0)
            return rc;
    }
    static const char *const maps[] = {"data", "binaryData"};
    for (size_t i = 0; !items && i < ARRAY_LEN(maps); i++) {
        cJSON_ArrayForEach(entry, json_get(object, maps[i]))
        {
            rc = put_key(v, o, object, entry->string, entry->string, mode, &is_found, err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int fill_from(const struct volume *v, const struct origin *o, const cJSON *spec,
                     const char *name, int64_t mode, struct err *err)
{
    SCOPED(json_free_p) cJSON *object = NULL;
    int rc = v->s->get(v->s->ctx, o->resource, name, &object, err);
    if (rc == -ERR_NOT_FOUND && json_bool_or(spec, "optional", false))
        return 0;
    return rc < 0 ? rc : put_object(v, o, spec, object, mode, err);
}

int volume_fill_config_map(const struct volume *v, struct err *err)
{
    return fill_from(v, &config_map, v->spec, json_str_or(v->spec, "name", ""),
                     json_i64_or(v->spec, "defaultMode", FILE_MODE), err);
}

int volume_fill_secret(const struct volume *v, struct err *err)
{
    return fill_from(v, &secret, v->spec, json_str_or(v->spec, "secretName", ""),
                     json_i64_or(v->spec, "defaultMode", FILE_MODE), err);
}

/* ---- the Pod's own fields ---- */

static int put_fields(const struct volume *v, const cJSON *spec, int64_t mode, struct err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, json_get(spec, "items"))
    {
        SCOPED(buf_fini) struct buf text = {0};
        const cJSON *resource = json_get(item, "resourceFieldRef");
        int rc;
        if (resource)
            rc = env_resource(lookup_spec(v->s->pod, json_str_or(resource, "containerName", "")),
                              resource, &text, err);
        else
            rc = env_field(v->s, json_str_or(item, "fieldRef.fieldPath", ""), &text, err);
        if (rc == 0)
            rc = put_file(v, json_str_or(item, "path", ""), &text, json_i64_or(item, "mode", mode),
                          err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int volume_fill_downward(const struct volume *v, struct err *err)
{
    return put_fields(v, v->spec, json_i64_or(v->spec, "defaultMode", FILE_MODE), err);
}

static int put_token(const struct volume *v, const cJSON *spec, int64_t mode, struct err *err)
{
    SCOPED_FREE char *token = NULL;
    int rc = v->s->token(v->s->ctx, spec, &token, err);
    if (rc < 0)
        return rc;
    SCOPED(buf_fini) struct buf bytes = {0};
    buf_puts(&bytes, token);
    return put_file(v, json_str_or(spec, "path", "token"), &bytes, mode, err);
}

int volume_fill_projected(const struct volume *v, struct err *err)
{
    int64_t mode = json_i64_or(v->spec, "defaultMode", FILE_MODE);
    const cJSON *source;
    int rc = 0;
    cJSON_ArrayForEach(source, json_get(v->spec, "sources"))
    {
        const cJSON *map = json_get(source, "configMap"), *hidden = json_get(source, "secret");
        const cJSON *fields = json_get(source, "downwardAPI");
        const cJSON *token = json_get(source, "serviceAccountToken");
        if (map)
            rc = fill_from(v, &config_map, map, json_str_or(map, "name", ""), mode, err);
        if (rc == 0 && hidden)
            rc = fill_from(v, &secret, hidden, json_str_or(hidden, "name", ""), mode, err);
        if (rc == 0 && fields)
            rc = put_fields(v, fields, mode, err);
        if (rc == 0 && token)
            rc = put_token(v, token, mode, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- what never changes ---- */

static bool is_constant_object(const struct sources *s, const struct origin *o, const cJSON *spec,
                               const char *name_field)
{
    return s->is_immutable(s->ctx, o->resource, json_str_or(spec, name_field, ""));
}

bool volume_is_constant(const struct sources *s, const cJSON *volume)
{
    static const struct origin *const origins[] = {&config_map, &secret};
    const cJSON *source, *sources = json_at(volume, "projected.sources");
    for (size_t i = 0; i < ARRAY_LEN(origins); i++) {
        const cJSON *spec = json_get(volume, origins[i]->field);
        if (spec)
            return is_constant_object(s, origins[i], spec, origins[i]->name_field);
    }
    cJSON_ArrayForEach(source, sources)
    {
        const cJSON *map = json_get(source, "configMap"), *hidden = json_get(source, "secret");
        if (!(map && is_constant_object(s, &config_map, map, "name")) &&
            !(hidden && is_constant_object(s, &secret, hidden, "name")))
            return false;
    }
    return sources != NULL;
}
