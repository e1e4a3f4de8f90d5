/* Source of the fields: Podman's libpod API, version 4, "SpecGenerator". */
#include "node/create.h"

#include <inttypes.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "node/engine.h"
#include "node/env.h"
#include "node/instance.h"
#include "node/resource.h"

#define LOG_BYTES_MAX (10 << 20) /* of a container's output that is kept */
#define HOSTNAME_MAX 63

/* ---- what all have ---- */

static const char *pod_text(const cJSON *pod, const char *path)
{
    return json_str_or(pod, path, "");
}

static void add_number_label(cJSON *labels, const char *name, unsigned value)
{
    SCOPED_FREE char *text = xasprintf("%u", value);
    json_add(labels, name, json_string(text));
}

static cJSON *labels_of(const struct create_common *common, const char *container, unsigned attempt,
                        unsigned step)
{
    cJSON *labels = json_object();
    SCOPED_FREE char *key = xasprintf("%s/%s", pod_text(common->pod, "metadata.namespace"),
                                      pod_text(common->pod, "metadata.name"));
    json_add(labels, LABEL_NODE, json_string(common->node));
    json_add(labels, LABEL_UID, json_string(pod_text(common->pod, "metadata.uid")));
    json_add(labels, LABEL_POD, json_string(key));
    json_add(labels, LABEL_CONTAINER, json_string(container));
    add_number_label(labels, LABEL_ATTEMPT, attempt);
    add_number_label(labels, LABEL_STEP, step);
    return labels;
}

static void add_limit(cJSON *list, const char *type, int64_t value)
{
    cJSON *limit = json_object();
    json_add(limit, "type", json_string(type));
    json_add(limit, "soft", json_int(value));
    json_add(limit, "hard", json_int(value));
    json_push(list, limit);
}

static void add_namespace(cJSON *spec, const char *name, const char *mode, const char *value)
{
    cJSON *ns = json_object();
    json_add(ns, "nsmode", json_string(mode));
    if (value)
        json_add(ns, "value", json_string(value));
    json_add(spec, name, ns);
}

static cJSON *only(const char *word)
{
    cJSON *list = json_array();
    json_push(list, json_string(word));
    return list;
}

static cJSON *spec_of(const struct create_common *common, const char *name, const char *image)
{
    cJSON *spec = json_object(), *limits = json_array();
    add_limit(limits, "nofile", common->limits.nofile);
    add_limit(limits, "nproc", common->limits.nproc);
    json_add(spec, "name", json_string(name));
    json_add(spec, "image", json_string(image));
    json_add(spec, "r_limits", limits);
    json_add(spec, "systemd", json_string("false"));
    json_add(spec, "httpproxy", json_boolean(false)); /* nothing of the node's environment */
    json_set_at(spec, "healthconfig.Test",
                only("NONE")); /* a Pod has probes; the image's is not one */
    json_set_at(spec, "log_configuration.driver", json_string("k8s-file"));
    json_set_at(spec, "log_configuration.size", json_int(LOG_BYTES_MAX));
    if (common->runtime)
        json_add(spec, "oci_runtime", json_string(common->runtime));
    return spec;
}

/* ---- the pause container ---- */

/* The host name that a Pod's containers have. */
static const char *hostname_of(const cJSON *pod)
{
    return json_str_or(pod, "spec.hostname", pod_text(pod, "metadata.name"));
}

cJSON *create_pause(const struct create_common *common, const char *image, unsigned attempt)
{
    SCOPED_FREE char *name =
        xasprintf("%s.pause.%u", pod_text(common->pod, "metadata.uid"), attempt);
    const char *host = hostname_of(common->pod);
    SCOPED_FREE char *short_host = xstrndup(host, strnlen(host, HOSTNAME_MAX));
    cJSON *spec = spec_of(common, name, image), *networks = json_object();
    json_add(networks, common->network, json_object());
    json_add(spec, "labels", labels_of(common, INSTANCE_PAUSE, attempt, 0));
    json_add(spec, "hostname", json_string(short_host));
    add_namespace(spec, "netns", "bridge", NULL);
    json_add(spec, "Networks", networks);
    json_add(spec, "cap_drop", only("ALL"));
    json_add(spec, "no_new_privileges", json_boolean(true));
    json_add(spec, "read_only_filesystem", json_boolean(true));
    json_add(spec, "use_image_hosts", json_boolean(true));
    json_add(spec, "use_image_resolve_conf", json_boolean(true));
    return spec;
}

/* ---- the Pod's containers ---- */

/* A list of words with $(NAME) replaced. */
static void add_words(cJSON *spec, const char *name, const cJSON *words, const cJSON *env)
{
    if (!words)
        return;
    cJSON *list = json_array();
    const cJSON *word;
    cJSON_ArrayForEach(word, words)
    {
        SCOPED(buf_fini) struct buf text = {0};
        env_expand(cJSON_IsString(word) ? word->valuestring : "", env, &text);
        json_push(list, json_string(buf_cstr(&text)));
    }
    json_add(spec, name, list);
}

/* The container's own setting, else the Pod's. */
static const cJSON *security(const struct create_common *common, const cJSON *container,
                             const char *name)
{
    const cJSON *own = json_get(json_get(container, "securityContext"), name);
    return own ? own : json_get(json_at(common->pod, "spec.securityContext"), name);
}

/* Of a name nobody knows whose it is in the image. */
static bool is_root(const char *user)
{
    int64_t number;
    return str_to_i64(user, &number) < 0 || number == 0;
}

/* A group alone leaves the image's user. Source: the kubelet, which always says both. */
static int add_user(const struct create_common *common, const struct create_container *c,
                    cJSON *spec, struct err *err)
{
    int64_t user = -1, group = -1, number;
    json_node_i64(security(common, c->spec, "runAsUser"), &user);
    json_node_i64(security(common, c->spec, "runAsGroup"), &group);
    const char *of_image = c->image_user ? c->image_user : "";
    SCOPED_FREE char *name =
        user >= 0 ? xasprintf("%" PRId64, user) : xstrndup(of_image, strcspn(of_image, ":"));
    if (is_root(name) && cJSON_IsTrue(security(common, c->spec, "runAsNonRoot")))
        return err_set(err, ERR_FORBIDDEN,
                       "container has runAsNonRoot and image will run as root (or its user is not "
                       "a number)");
    if (group >= 0) {
        SCOPED_FREE char *both = xasprintf("%s:%" PRId64, *name ? name : "0", group);
        json_add(spec, "user", json_string(both));
    } else if (user >= 0) {
        json_add(spec, "user", json_string(name));
    }
    cJSON *groups = json_array();
    const cJSON *item;
    const cJSON *fs_group = json_at(common->pod, "spec.securityContext.fsGroup");
    cJSON_ArrayForEach(item, json_at(common->pod, "spec.securityContext.supplementalGroups"))
    {
        if (json_node_i64(item, &number) == 0) {
            SCOPED_FREE char *one = xasprintf("%" PRId64, number);
            json_push(groups, json_string(one));
        }
    }
    if (json_node_i64(fs_group, &number) == 0) {
        SCOPED_FREE char *one = xasprintf("%" PRId64, number);
        json_push(groups, json_string(one));
    }
    json_add(spec, "groups", groups);
    return 0;
}

/* Beginnings of names that runtimes take for settings, such as another filter of system calls; the
 * engine hands an image's annotations on to them. Source: crun(1), systemd in runc, Kata
 * Containers, gVisor. */
static const char *const runtime_settings[] = {
    "dev.gvisor.",  "io.containers.", "io.katacontainers.", "io.kubernetes.", "io.podman.",
    "module.wasm.", "org.criu.",      "org.systemd.",       "run.oci."};

static int check_annotations(const cJSON *annotations, struct err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, annotations)
    {
        for (size_t i = 0; i < ARRAY_LEN(runtime_settings); i++) {
            if (str_has_prefix(item->string, runtime_settings[i]))
                return err_set(err, ERR_FORBIDDEN,
                               "the image's annotation \"%.80s\" would be a setting of the runtime",
                               item->string);
        }
    }
    return 0;
}

static void add_capabilities(const cJSON *container, cJSON *spec)
{
    static const char *const fields[][2] = {{"add", "cap_add"}, {"drop", "cap_drop"}};
    const cJSON *item;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        cJSON *list = json_array();
        cJSON_ArrayForEach(
            item, json_get(json_at(container, "securityContext.capabilities"), fields[i][0]))
            json_push(list, json_string(cJSON_IsString(item) ? item->valuestring : ""));
        json_add(spec, fields[i][1], list);
    }
}

static void add_security(const cJSON *container, cJSON *spec)
{
    bool may_rise = json_bool_or(container, "securityContext.allowPrivilegeEscalation", true);
    bool is_read_only = json_bool_or(container, "securityContext.readOnlyRootFilesystem", false);
    add_capabilities(container, spec);
    json_add(spec, "no_new_privileges", json_boolean(!may_rise));
    json_add(spec, "read_only_filesystem", json_boolean(is_read_only));
}

static void add_namespaces(const struct create_common *common, const char *pause_id, cJSON *spec)
{
    static const char *const joined[] = {"netns", "ipcns", "utsns"};
    for (size_t i = 0; i < ARRAY_LEN(joined); i++)
        add_namespace(spec, joined[i], "container", pause_id);
    if (json_bool_or(common->pod, "spec.shareProcessNamespace", false))
        add_namespace(spec, "pidns", "container", pause_id);
    else
        add_namespace(spec, "pidns", "private", NULL);
}

/* A terminal stays as it is anyway. */
static bool keeps_stdin(const cJSON *container)
{
    return json_bool_or(container, "stdin", false) && !json_bool_or(container, "tty", false) &&
           !json_bool_or(container, "stdinOnce", false);
}

int create_container(const struct create_common *common, const struct create_container *c,
                     cJSON **ret, struct err *err)
{
    const char *container = json_str_or(c->spec, "name", "");
    SCOPED_FREE char *name =
        xasprintf("%s.%s.%u%s", pod_text(common->pod, "metadata.uid"), container, c->attempt,
                  keeps_stdin(c->spec) ? ENGINE_KEEPS_STDIN : "");
    SCOPED(json_free_p) cJSON *spec = spec_of(common, name, c->image);
    int rc = check_annotations(c->image_annotations, err);
    if (rc == 0)
        rc = add_user(common, c, spec, err);
    if (rc < 0)
        return rc;
    json_add(spec, "labels", labels_of(common, container, c->attempt, c->step));
    add_words(spec, "entrypoint", json_get(c->spec, "command"), c->env);
    add_words(spec, "command", json_get(c->spec, "args"), c->env);
    json_add(spec, "env", json_copy(c->env));
    json_add(spec, "mounts", json_copy(c->mounts));
    if (json_str(c->spec, "workingDir"))
        json_add(spec, "work_dir", json_string(json_str(c->spec, "workingDir")));
    json_add(spec, "terminal", json_boolean(json_bool_or(c->spec, "tty", false)));
    json_add(spec, "stdin", json_boolean(json_bool_or(c->spec, "stdin", false)));
    add_security(c->spec, spec);
    add_namespaces(common, c->pause_id, spec);
    cJSON *limits = resource_limits(c->spec);
    if (limits)
        json_add(spec, "resource_limits", limits);
    *ret = steal(&spec);
    return 0;
}
