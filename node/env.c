#include "node/env.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/quantity.h"

/* ---- fields of the Pod ---- */

static const char *const plain_fields[] = {"metadata.name", "metadata.namespace", "metadata.uid",
                                           "spec.nodeName", "spec.serviceAccountName"};
static const char *const map_fields[] = {"metadata.labels", "metadata.annotations"};

/* metadata.labels['app']: the part in quotes; NULL when path is not of that map. */
static char *subscript(const char *path, const char *map)
{
    size_t n = strlen(map), len = strlen(path);
    if (strncmp(path, map, n) != 0 || strncmp(path + n, "['", 2) != 0 || len < n + 4 ||
        strcmp(path + len - 2, "']") != 0)
        return NULL;
    return xstrndup(path + n + 2, len - n - 4);
}

/* As the downward API prints it: key="value", a line each, by key. */
static void print_map(const cJSON *map, struct buf *out)
{
    SCOPED(json_free_p) cJSON *sorted = json_copy(map);
    if (sorted)
        json_sort(sorted);
    const cJSON *entry;
    cJSON_ArrayForEach(entry, sorted)
    {
        if (!cJSON_IsString(entry))
            continue;
        buf_printf(out, "%s%s=", out->len ? "\n" : "", entry->string);
        buf_go_quote(out, entry->valuestring, strlen(entry->valuestring));
    }
}

static bool field_of_map(const struct sources *s, const char *path, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(map_fields); i++) {
        const cJSON *map = json_at(s->pod, map_fields[i]);
        SCOPED_FREE char *key = subscript(path, map_fields[i]);
        if (strcmp(path, map_fields[i]) == 0) {
            print_map(map, out);
            return true;
        }
        if (key) {
            const cJSON *value = json_get(map, key);
            buf_puts(out, cJSON_IsString(value) ? value->valuestring : "");
            return true;
        }
    }
    return false;
}

int env_field(const struct sources *s, const char *path, struct buf *out, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(plain_fields); i++) {
        if (strcmp(path, plain_fields[i]) == 0) {
            buf_puts(out, json_str_or(s->pod, path, ""));
            return 0;
        }
    }
    if (field_of_map(s, path, out))
        return 0;
    if (strcmp(path, "status.podIP") == 0 || strcmp(path, "status.podIPs") == 0)
        buf_puts(out, s->pod_ip);
    else if (strcmp(path, "status.hostIP") == 0 || strcmp(path, "status.hostIPs") == 0)
        buf_puts(out, s->host_ip);
    else
        return err_set(err, ERR_INVALID, "fieldPath \"%s\" is not supported", path);
    return 0;
}

/* ---- resources ---- */

static const struct {
    const char *name, *divisor; /* the divisor when none is given */
} resources[] = {
    {"limits.cpu", "1"},   {"limits.memory", "1"},   {"limits.ephemeral-storage", "1"},
    {"requests.cpu", "1"}, {"requests.memory", "1"}, {"requests.ephemeral-storage", "1"},
};

/* What a limit is that nobody has set, in thousandths. */
static int64_t whole_machine(const char *name)
{
    if (strcmp(name, "limits.cpu") == 0)
        return sysconf(_SC_NPROCESSORS_ONLN) * 1000;
    if (strcmp(name, "limits.memory") == 0)
        return sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) * 1000;
    return 0;
}

int env_resource(const cJSON *container, const cJSON *ref, struct buf *out, struct err *err)
{
    const char *name = json_str_or(ref, "resource", "");
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        if (strcmp(name, resources[i].name) != 0)
            continue;
        const cJSON *kind =
            json_at(container, name[0] == 'l' ? "resources.limits" : "resources.requests");
        const cJSON *given = json_get(ref, "divisor");
        int64_t value = 0, divisor = 0;
        if (quantity_read_milli(given, &divisor) < 0 || divisor == 0)
            quantity_parse_milli(resources[i].divisor, &divisor);
        if (quantity_read_milli(json_get(kind, strchr(name, '.') + 1), &value) < 0)
            value = whole_machine(name);
        buf_printf(out, "%" PRId64, value / divisor + (value % divisor != 0));
        return 0;
    }
    return err_set(err, ERR_INVALID, "resource \"%s\" is not supported", name);
}

/* ---- expansion ---- */

void env_expand(const char *text, const cJSON *env, struct buf *out)
{
    const char *close;
    for (; *text; text++) {
        if (text[0] != '$') {
            buf_putc(out, *text);
        } else if (text[1] == '$') {
            buf_putc(out, *text++);
        } else if (text[1] == '(' && (close = strchr(text, ')')) != NULL) {
            SCOPED_FREE char *name = xstrndup(text + 2, (size_t)(close - text) - 2);
            const cJSON *value = json_get(env, name);
            if (cJSON_IsString(value))
                buf_puts(out, value->valuestring);
            else
                buf_append(out, text, (size_t)(close - text) + 1);
            text = close;
        } else {
            buf_putc(out, '$');
        }
    }
}

/* ---- variables ---- */

struct env { /* in the making */
    const struct sources *s;
    const cJSON *container;
    cJSON *vars;
    size_t n, bytes;
};

static int set_var(struct env *e, const char *name, const struct buf *value, struct err *err)
{
    e->n++;
    e->bytes += strlen(name) + value->len + 2;
    if (e->n > ENV_MAX || e->bytes > ENV_BYTES_MAX || buf_failed(value))
        return err_set(err, ERR_INVALID,
                       "more than %d environment variables, or more than %zu bytes of them",
                       ENV_MAX, ENV_BYTES_MAX);
    json_set_str(e->vars, name, buf_cstr(value));
    return 0;
}

static int secret_text(const cJSON *value, struct buf *out, struct err *err)
{
    const char *text = cJSON_IsString(value) ? value->valuestring : "";
    if (!buf_unbase64(out, text, strlen(text)))
        return err_set(err, ERR_INVALID, "a secret's value is no base64");
    return 0;
}

struct origin {
    const char *name, *resource;
    bool is_secret;
};
static const struct origin key_origins[] = {{"configMapKeyRef", "configmaps", false},
                                            {"secretKeyRef", "secrets", true}};
static const struct origin whole_origins[] = {{"configMapRef", "configmaps", false},
                                              {"secretRef", "secrets", true}};

static int value_of_key(const struct env *e, const cJSON *from, bool *ret_is_there, struct buf *out,
                        struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(key_origins); i++) {
        const struct origin *o = &key_origins[i];
        const cJSON *ref = json_get(from, o->name);
        if (!ref)
            continue;
        const char *name = json_str_or(ref, "name", ""), *key = json_str_or(ref, "key", "");
        bool is_optional = json_bool_or(ref, "optional", false);
        SCOPED(json_free_p) cJSON *object = NULL;
        int rc = e->s->get(e->s->ctx, o->resource, name, &object, err);
        if (rc == -ERR_NOT_FOUND && is_optional) {
            *ret_is_there = false;
            return 0;
        }
        if (rc < 0)
            return rc;
        const cJSON *value = json_get(json_get(object, "data"), key);
        if (!value && is_optional) {
            *ret_is_there = false;
            return 0;
        }
        if (!value)
            return err_set(err, ERR_NOT_FOUND, "couldn't find key %s in %s %s/%s", key,
                           o->is_secret ? "Secret" : "ConfigMap",
                           json_str_or(e->s->pod, "metadata.namespace", ""), name);
        if (o->is_secret)
            return secret_text(value, out, err);
        buf_puts(out, cJSON_IsString(value) ? value->valuestring : "");
        return 0;
    }
    return err_set(err, ERR_INVALID, "a valueFrom of this kind is not supported");
}

static int value_from(const struct env *e, const cJSON *from, bool *ret_is_there, struct buf *out,
                      struct err *err)
{
    const cJSON *field = json_get(from, "fieldRef");
    const cJSON *resource = json_get(from, "resourceFieldRef");
    if (field)
        return env_field(e->s, json_str_or(field, "fieldPath", ""), out, err);
    if (resource)
        return env_resource(e->container, resource, out, err);
    return value_of_key(e, from, ret_is_there, out, err);
}

static int add_one(struct env *e, const cJSON *var, struct err *err)
{
    SCOPED(buf_fini) struct buf value = {.max = ENV_BYTES_MAX};
    const cJSON *from = json_get(var, "valueFrom");
    bool is_there = true;
    int rc = 0;
    if (from)
        rc = value_from(e, from, &is_there, &value, err);
    else
        env_expand(json_str_or(var, "value", ""), e->vars, &value);
    if (rc < 0 || !is_there)
        return rc;
    return set_var(e, json_str_or(var, "name", ""), &value, err);
}

static int add_object(struct env *e, const struct origin *o, const cJSON *object,
                      const char *prefix, struct err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, json_get(object, "data"))
    {
        SCOPED(buf_fini) struct buf value = {.max = ENV_BYTES_MAX};
        SCOPED_FREE char *name = xasprintf("%s%s", prefix, entry->string);
        int rc = 0;
        if (o->is_secret)
            rc = secret_text(entry, &value, err);
        else
            buf_puts(&value, cJSON_IsString(entry) ? entry->valuestring : "");
        if (rc == 0)
            rc = set_var(e, name, &value, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_all_of(struct env *e, const cJSON *from, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(whole_origins); i++) {
        const struct origin *o = &whole_origins[i];
        const cJSON *ref = json_get(from, o->name);
        if (!ref)
            continue;
        SCOPED(json_free_p) cJSON *object = NULL;
        int rc = e->s->get(e->s->ctx, o->resource, json_str_or(ref, "name", ""), &object, err);
        if (rc == -ERR_NOT_FOUND && json_bool_or(ref, "optional", false))
            return 0;
        return rc < 0 ? rc : add_object(e, o, object, json_str_or(from, "prefix", ""), err);
    }
    return 0;
}

/* Source: kubelet, the variables of Services; of these this one alone is given. */
static int add_api(struct env *e, struct err *err)
{
    static const char *const names[] = {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
                                        "KUBERNETES_SERVICE_PORT_HTTPS"};
    for (size_t i = 0; e->s->api.address && i < ARRAY_LEN(names); i++) {
        SCOPED(buf_fini) struct buf value = {0};
        if (i == 0)
            buf_puts(&value, ENV_API_HOST);
        else
            buf_printf(&value, "%d", e->s->api.port);
        int rc = set_var(e, names[i], &value, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int env_make(const struct sources *s, const cJSON *container, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *vars = json_object();
    struct env e = {.s = s, .container = container, .vars = vars};
    const cJSON *item;
    int rc = add_api(&e, err);
    if (rc < 0)
        return rc;
    cJSON_ArrayForEach(item, json_get(container, "envFrom"))
    {
        rc = add_all_of(&e, item, err);
        if (rc < 0)
            return rc;
    }
    cJSON_ArrayForEach(item, json_get(container, "env"))
    {
        rc = add_one(&e, item, err);
        if (rc < 0)
            return rc;
    }
    *ret = steal(&vars);
    return 0;
}
