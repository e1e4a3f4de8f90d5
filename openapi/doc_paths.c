/* Paths and operations; see doc_paths.h. Operation ids, parameters and media types as
 * kube-apiserver v1.37 publishes for custom resources, texts our own. */
#include "openapi/doc_paths.h"

#include <ctype.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"

#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

struct param {
    const char *name, *type, *doc;
    const char *shared; /* Swagger 2.0: its key among the document's parameters; NULL = written out
                           in each operation */
    bool in_path;
};

static const struct param list_params[] = {
    {"allowWatchBookmarks", "boolean",
     "Watch: send bookmarks, events that only tell how far the stream has come.",
     "allowWatchBookmarks-HC2hJt-J"},
    {"continue", "string",
     "Where to go on: metadata.continue of the list before. All other parameters must be the same.",
     "continue-QfD61s0i"},
    {"fieldSelector", "string", "Only objects whose fields are like this: metadata.name=a.",
     "fieldSelector-xIcQKXFG"},
    {"labelSelector", "string", "Only objects whose labels are like this: team=a,tier!=b.",
     "labelSelector-5Zw57w4C"},
    {"limit", "integer", "At most so many objects; metadata.continue then leads to the rest.",
     "limit-1NfNmdNH"},
    {"resourceVersion", "string",
     "How recent the answer must be; empty is the most recent, 0 is anything.",
     "resourceVersion-5WAnf1kx"},
    {"resourceVersionMatch", "string",
     "Exact or NotOlderThan: what resourceVersion means for a list.",
     "resourceVersionMatch-t8XhRHeC"},
    {"sendInitialEvents", "boolean",
     "Watch: begin with an event for each object that is there, then a bookmark that says so.",
     "sendInitialEvents-rLXlEK_k"},
    {"shardSelector", "string", "Only objects whose UID falls into a range of hashes.",
     "shardSelector-Kgyki_3_"},
    {"timeoutSeconds", "integer", "End the request after so many seconds, whatever happens.",
     "timeoutSeconds-yvYezaOC"},
    {"watch", "boolean", "Send changes as they happen instead of a list.", "watch-XNNPZGbK"},
    {0},
};
static const struct param pretty = {"pretty", "string", "true: indent the answer for people.",
                                    "pretty-tJGM1-ng"};
static const struct param namespace = {"namespace", "string", "The namespace of the objects.",
                                       "namespace-vgWSWtn3", true};
static const struct param read_params[] = {
    {"resourceVersion", "string",
     "How recent the answer must be; empty is the most recent, 0 is anything.",
     "resourceVersion-5WAnf1kx"},
    {0},
};
#define DRY_RUN                                                                                    \
    {                                                                                              \
        "dryRun", "string", "All: do everything but store the result. Nothing else is allowed."    \
    }
#define FIELD_VALIDATION                                                                           \
    {                                                                                              \
        "fieldValidation", "string",                                                               \
            "What to do about unknown and repeated fields: Strict refuses, Warn drops them with "  \
            "a warning, Ignore drops them."                                                        \
    }
static const struct param write_params[] = {
    DRY_RUN,
    {"fieldManager", "string",
     "Who makes the change, for managedFields. At most 128 printable characters.",
     "fieldManager-Qy4HdaTW"},
    FIELD_VALIDATION,
    {0},
};
static const struct param patch_params[] = {
    DRY_RUN,
    {"fieldManager", "string",
     "Who makes the change, for managedFields. At most 128 printable characters; required to "
     "apply.",
     "fieldManager-7c6nTn1T"},
    FIELD_VALIDATION,
    {"force", "boolean", "Apply only: take over fields that other managers set to something else.",
     "force-tOGGb0Yi"},
    {0},
};
static const struct param delete_params[] = {
    DRY_RUN,
    {"gracePeriodSeconds", "integer", "Seconds that the object may take to end; 0 is at once.",
     "gracePeriodSeconds--K5HaBOS"},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "boolean",
     "Delete what is stored even if it cannot be read any more, without regard to finalizers.",
     "ignoreStoreReadErrorWithClusterBreakingPotential-QbNkfIqj"},
    {"orphanDependents", "boolean",
     "Older form of propagationPolicy: true is Orphan, false Background.",
     "orphanDependents-uRB25kX5"},
    {"propagationPolicy", "string",
     "What becomes of what belongs to the object: Orphan, Background or Foreground.",
     "propagationPolicy-6jk3prlO"},
    {0},
};

#define CONTAINER(doc)                                                                             \
    {                                                                                              \
        "container", "string", doc " May be left out when the Pod has only one."                   \
    }
#define STREAMS                                                                                    \
    {"stderr", "boolean", "Carry what is written to standard error."},                             \
        {"stdin", "boolean", "Carry what the client sends to standard input."},                    \
        {"stdout", "boolean", "Carry what is written to standard output."},                        \
    {                                                                                              \
        "tty", "boolean", "Through a terminal."                                                    \
    }
static const struct param attach_params[] = {
    CONTAINER("The container to attach to."), STREAMS, {0}};
static const struct param exec_params[] = {
    {"command", "string", "The command, one word each time it is given; no shell looks at it."},
    CONTAINER("The container to run it in."),
    STREAMS,
    {0}};
static const struct param log_params[] = {
    CONTAINER("The container whose output is read."),
    {"follow", "boolean", "Go on with what will be written."},
    {"insecureSkipTLSVerifyBackend", "boolean", "Has no effect: nodes are always verified."},
    {"limitBytes", "integer", "At most so many bytes."},
    {"previous", "boolean", "Of the container that ran before this one."},
    {"sinceSeconds", "integer", "Only what was written in the last so many seconds."},
    {"stream", "string", "One of the two streams alone; not offered."},
    {"tailLines", "integer", "Only the last so many lines."},
    {"timestamps", "boolean", "Begin each line with the time it was written at."},
    {0},
};
static const struct param port_params[] = {
    {"ports", "integer", "A port of the Pod, each time it is given; for WebSockets."}, {0}};

static const char *const any_type[] = {"*/*", NULL};
static const char *const log_types[] = {"text/plain", "application/json", "application/yaml", NULL};
static const char *const media_types[] = {"application/json", "application/yaml", NULL};
static const char *const patch_types[] = {"application/json-patch+json",
                                          "application/merge-patch+json",
                                          "application/apply-patch+yaml", NULL};
static const char *const builtin_patch_types[] = {
    "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml", NULL};

struct response {
    const char *code, *text;
};
static const struct response ok_only[] = {{"200", "OK"}, {0}};
static const struct response ok_created[] = {{"200", "OK"}, {"201", "Created"}, {0}};
static const struct response ok_accepted[] = {{"200", "OK"}, {"202", "Accepted"}, {0}};
static const struct response created_all[] = {
    {"200", "OK"}, {"201", "Created"}, {"202", "Accepted"}, {0}};

/* One operation: what it is called and what goes in and out. */
struct operation {
    const char *method, *action; /* put; x-kubernetes-action */
    const char *verb,
        *infix;         /* replace, Collection: parts of the operation id, before Namespaced */
    bool is_everywhere; /* of all namespaces, though they have some */
    const char *doc;    /* %s is the kind */
    const struct param *params;
    const char *body; /* component name; "" = the object itself; NULL = none */
    bool body_optional, is_patch;
    const char *result; /* component name; "" = the object itself; "List" = its list */
    const struct response *responses;
};
static const struct operation op_list_all = {.method = "get",
                                             .action = "list",
                                             .verb = "list",
                                             .infix = "",
                                             .is_everywhere = true,
                                             .doc =
                                                 "Lists or watches %s objects of all namespaces.",
                                             .result = "List",
                                             .responses = ok_only};
static const struct operation collection_ops[] = {
    {.method = "get",
     .action = "list",
     .verb = "list",
     .infix = "",
     .doc = "Lists or watches %s objects.",
     .params = list_params,
     .result = "List",
     .responses = ok_only},
    {.method = "post",
     .action = "post",
     .verb = "create",
     .infix = "",
     .doc = "Creates a %s.",
     .params = write_params,
     .body = "",
     .result = "",
     .responses = created_all},
    {.method = "delete",
     .action = "deletecollection",
     .verb = "delete",
     .infix = "Collection",
     .doc = "Deletes all %s objects that the selectors leave.",
     .params = list_params,
     .result = META "Status",
     .responses = ok_only},
    {0},
};
static const struct operation object_ops[] = {
    {.method = "get",
     .action = "get",
     .verb = "read",
     .infix = "",
     .doc = "Reads a %s.",
     .params = read_params,
     .result = "",
     .responses = ok_only},
    {.method = "put",
     .action = "put",
     .verb = "replace",
     .infix = "",
     .doc = "Replaces a %s.",
     .params = write_params,
     .body = "",
     .result = "",
     .responses = ok_created},
    {.method = "delete",
     .action = "delete",
     .verb = "delete",
     .infix = "",
     .doc = "Deletes a %s.",
     .params = delete_params,
     .body = META "DeleteOptions",
     .body_optional = true,
     .result = META "Status",
     .responses = ok_accepted},
    {.method = "patch",
     .action = "patch",
     .verb = "patch",
     .infix = "",
     .doc = "Changes parts of a %s.",
     .params = patch_params,
     .body = META "Patch",
     .is_patch = true,
     .result = "",
     .responses = ok_only},
    {0},
};
static const struct operation subresource_ops[] = {
    {.method = "get",
     .action = "get",
     .verb = "read",
     .infix = "",
     .doc = "Reads this part of a %s.",
     .params = read_params,
     .result = "",
     .responses = ok_only},
    {.method = "put",
     .action = "put",
     .verb = "replace",
     .infix = "",
     .doc = "Replaces this part of a %s.",
     .params = write_params,
     .body = "",
     .result = "",
     .responses = ok_created},
    {.method = "patch",
     .action = "patch",
     .verb = "patch",
     .infix = "",
     .doc = "Changes this part of a %s.",
     .params = patch_params,
     .body = META "Patch",
     .is_patch = true,
     .result = "",
     .responses = ok_only},
    {0},
};

/* ---- parameters -------------------------------------------------------------------------- */

static cJSON *full_parameter(const struct param *p, enum doc_form form)
{
    cJSON *out = json_object(), *schema = form == DOC_V2 ? out : json_object();
    json_set_str(out, "name", p->name);
    json_set_str(out, "in", p->in_path ? "path" : "query");
    json_set_str(out, "description", p->doc);
    if (p->in_path)
        json_set_bool(out, "required", true);
    json_set_str(schema, "type", p->type);
    json_set_bool(schema, "uniqueItems", true);
    if (schema != out)
        json_set(out, "schema", schema);
    return out;
}

static cJSON *parameter_ref(const char *key)
{
    SCOPED_FREE char *ref = xasprintf("#/parameters/%s", key);
    cJSON *out = json_object();
    json_set_str(out, "$ref", ref);
    return out;
}

static cJSON *parameter(const struct param *p, enum doc_form form)
{
    return form == DOC_V2 && p->shared ? parameter_ref(p->shared) : full_parameter(p, form);
}

static void add_parameters(cJSON *list, const struct param *params, enum doc_form form)
{
    for (; params && params->name; params++)
        json_push(list, parameter(params, form));
}

/* What a path has in common for all its operations. */
static cJSON *path_parameters(const struct kind *kind, bool is_everywhere, bool named,
                              enum doc_form form)
{
    cJSON *list = json_array();
    SCOPED_FREE char *doc = xasprintf("The name of the %s.", kind->kind);
    const struct param name = {"name", "string", doc, NULL, true};
    if (is_everywhere)
        add_parameters(list, list_params, form);
    if (named)
        json_push(list, parameter(&name, form));
    if (!is_everywhere && !kind->is_cluster_scoped)
        json_push(list, parameter(&namespace, form));
    json_push(list, parameter(&pretty, form));
    return list;
}

/* Swagger 2.0's body parameter, as an entry of its own. */
static cJSON *full_body(const char *component, bool optional)
{
    cJSON *out = json_object();
    json_set_str(out, "name", "body");
    json_set_str(out, "in", "body");
    if (!optional)
        json_set_bool(out, "required", true);
    json_set(out, "schema", doc_schema_ref(component, DOC_V2));
    return out;
}

#define BODY_DELETE "body-2Y1dVQaQ"
#define BODY_PATCH "body-78PwaGsr"

cJSON *doc_paths_parameters(void)
{
    static const struct param *const tables[] = {list_params, read_params, write_params,
                                                 patch_params, delete_params};
    cJSON *out = json_object();
    json_set(out, BODY_DELETE, full_body(META "DeleteOptions", true));
    json_set(out, BODY_PATCH, full_body(META "Patch", false));
    json_set(out, namespace.shared, full_parameter(&namespace, DOC_V2));
    json_set(out, pretty.shared, full_parameter(&pretty, DOC_V2));
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct param *p = tables[t]; p->name; p++)
            if (p->shared)
                json_set(out, p->shared, full_parameter(p, DOC_V2));
    json_sort(out);
    return out;
}

/* ---- operations -------------------------------------------------------------------------- */

/* agents.x-k8s.io → AgentsXK8sIo; the core group → Core */
static char *camel_group(const char *group)
{
    struct buf b = {0};
    bool begin = true;
    for (const char *p = *group ? group : "core"; *p; p++) {
        if (isalnum((unsigned char)*p))
            buf_putc(&b, begin ? (char)toupper((unsigned char)*p) : *p);
        begin = !isalnum((unsigned char)*p);
    }
    return buf_take(&b, NULL);
}

static char *operation_id(const struct kind *kind, const struct operation *op, const char *suffix)
{
    SCOPED_FREE char *group = camel_group(kind->group);
    SCOPED_FREE char *version = xstrdup(kind->version);
    bool is_namespaced = !kind->is_cluster_scoped && !op->is_everywhere;
    *version = (char)toupper((unsigned char)*version);
    return xasprintf("%s%s%s%s%s%s%s", op->verb, group, version, op->infix,
                     is_namespaced ? "Namespaced" : "", kind->kind, suffix);
}

static void set_tags(cJSON *out, const struct kind *kind)
{
    SCOPED_FREE char *group = camel_group(kind->group);
    *group = (char)tolower((unsigned char)*group);
    SCOPED_FREE char *tag = xasprintf("%s_%s", group, kind->version);
    cJSON *tags = json_array();
    json_push(tags, json_string(tag));
    json_set(out, "tags", tags);
}

static void set_media(cJSON *out, const char *key, const char *const *types)
{
    cJSON *list = json_array();
    for (; *types; types++)
        json_push(list, json_string(*types));
    json_set(out, key, list);
}

static cJSON *string_schema(void)
{
    cJSON *schema = json_object();
    json_set_str(schema, "type", "string");
    return schema;
}

/* {"content": {type: {"schema": ref}}}; component NULL = any text. */
static void set_content(cJSON *out, const char *component, const char *const *types)
{
    cJSON *content = json_object();
    for (; *types; types++) {
        cJSON *media = json_object();
        json_set(media, "schema", component ? doc_schema_ref(component, DOC_V3) : string_schema());
        json_set(content, *types, media);
    }
    json_set(out, "content", content);
}

/* The component that an operation's body or result is, "" and "List" being the kind's own; object
 * is what "" means. */
static char *component_name(const struct kind *kind, const char *name, const char *object)
{
    if (strcmp(name, "List") == 0)
        return xasprintf("%sList", kind->schema_name);
    return xstrdup(*name ? name : object);
}

static cJSON *responses(const struct operation *op, const char *component, enum doc_form form)
{
    cJSON *out = json_object();
    for (const struct response *r = op->responses; r->code; r++) {
        cJSON *one = json_object();
        json_set_str(one, "description", r->text);
        if (form == DOC_V2)
            json_set(one, "schema", doc_schema_ref(component, form));
        else
            set_content(one, component, media_types);
        json_set(out, r->code, one);
    }
    cJSON *unauthorized = json_object();
    json_set_str(unauthorized, "description", "Unauthorized");
    json_set(out, "401", unauthorized);
    return out;
}

static const char *const *body_types(const struct kind *kind, const struct operation *op)
{
    if (!op->is_patch)
        return media_types;
    return kind->is_builtin ? builtin_patch_types : patch_types;
}

static void set_body_v3(cJSON *out, const struct operation *op, const char *component,
                        const char *const *types)
{
    cJSON *body = json_object();
    set_content(body, component, types);
    if (!op->body_optional)
        json_set_bool(body, "required", true);
    json_set(out, "requestBody", body);
}

static cJSON *body_v2(const struct operation *op, const char *component)
{
    if (op->is_patch)
        return parameter_ref(BODY_PATCH);
    return op->body_optional ? parameter_ref(BODY_DELETE) : full_body(component, false);
}

static cJSON *operation(const struct kind *kind, const struct operation *op, const char *suffix,
                        const char *object, enum doc_form form)
{
    SCOPED_FREE char *id = operation_id(kind, op, suffix);
    SCOPED_FREE char *result = component_name(kind, op->result, object);
    SCOPED_FREE char *body = op->body ? component_name(kind, op->body, object) : NULL;
    SCOPED(buf_fini) struct buf doc = {0};
    const char *mark = strstr(op->doc, "%s");
    buf_append(&doc, op->doc, (size_t)(mark - op->doc));
    buf_printf(&doc, "%s%s", kind->kind, mark + 2);

    cJSON *out = json_object(), *parameters = json_array();
    json_set_str(out, "description", buf_cstr(&doc));
    json_set_str(out, "operationId", id);
    set_tags(out, kind);
    if (form == DOC_V2) {
        set_media(out, "consumes", body_types(kind, op));
        set_media(out, "produces", media_types);
        set_media(out, "schemes", (const char *const[]){"https", NULL});
        if (body)
            json_push(parameters, body_v2(op, body));
    } else if (body) {
        set_body_v3(out, op, body, body_types(kind, op));
    }
    add_parameters(parameters, op->params, form);
    if (parameters->child)
        json_set(out, "parameters", parameters);
    else
        json_free(parameters);
    json_set(out, "responses", responses(op, result, form));
    json_set_str(out, "x-kubernetes-action", op->action);
    json_set(out, "x-kubernetes-group-version-kind",
             doc_schema_gvk(kind->group, kind->version, kind->kind));
    return out;
}

static bool is_taken(const struct kind *kind, const char *method)
{
    if (kind->is_review)
        return strcmp(method, "post") == 0;
    return !kind->is_read_only || strcmp(method, "get") == 0;
}

static void add_path(cJSON *paths, const struct kind *kind, const struct operation *ops,
                     const char *tail, const char *suffix, const char *object, enum doc_form form)
{
    SCOPED_FREE char *root = kind_api_path(kind);
    SCOPED_FREE char *path =
        xasprintf("%s%s/%s%s", root, kind->is_cluster_scoped ? "" : "/namespaces/{namespace}",
                  kind->plural, tail);
    cJSON *item = json_object();
    for (; ops->method; ops++)
        if (is_taken(kind, ops->method))
            json_set(item, ops->method, operation(kind, ops, suffix, object, form));
    json_set(item, "parameters", path_parameters(kind, false, *tail, form));
    json_set(paths, path, item);
}

/* ---- into Pods ---------------------------------------------------------------------------- */

static const struct reach {
    const char *name, *suffix;
    const struct param *params;
} reaches[] = {
    {"attach", "Attach", attach_params},
    {"exec", "Exec", exec_params},
    {"log", "Log", log_params},
    {"portforward", "Portforward", port_params},
};

/* Whatever is carried is text of no schema. */
static cJSON *text_responses(const char *const *types, enum doc_form form)
{
    cJSON *out = json_object(), *ok = json_object(), *unauthorized = json_object();
    json_set_str(ok, "description", "OK");
    if (form == DOC_V2)
        json_set(ok, "schema", string_schema());
    else
        set_content(ok, NULL, types);
    json_set(out, "200", ok);
    json_set_str(unauthorized, "description", "Unauthorized");
    json_set(out, "401", unauthorized);
    return out;
}

/* verb is read, or connect and the method. */
static cJSON *reach_operation(const struct kind *kind, const struct subresource *s,
                              const struct reach *r, const char *method, enum doc_form form)
{
    bool is_log = strcmp(r->name, "log") == 0;
    const char *infix = is_log ? "" : strcmp(method, "get") == 0 ? "Get" : "Post";
    const struct operation op = {.verb = is_log ? "read" : "connect", .infix = infix};
    const char *const *types = is_log ? log_types : any_type;
    SCOPED_FREE char *id = operation_id(kind, &op, r->suffix);
    SCOPED_FREE char *doc = is_log ? xasprintf("Reads the log of a container of a %s.", kind->kind)
                                   : xasprintf("Connects to %s of a %s.", r->name, kind->kind);
    cJSON *out = json_object();
    json_set_str(out, "description", doc);
    json_set_str(out, "operationId", id);
    set_tags(out, kind);
    if (form == DOC_V2) {
        set_media(out, "consumes", any_type);
        set_media(out, "produces", types);
        set_media(out, "schemes", (const char *const[]){"https", NULL});
    }
    json_set(out, "responses", text_responses(types, form));
    json_set_str(out, "x-kubernetes-action", is_log ? "get" : "connect");
    json_set(out, "x-kubernetes-group-version-kind", doc_schema_gvk(s->group, s->version, s->kind));
    return out;
}

static cJSON *reach_parameters(const struct subresource *s, const struct reach *r,
                               enum doc_form form)
{
    cJSON *list = json_array();
    SCOPED_FREE char *doc = xasprintf("The name of the %s.", s->kind);
    const struct param name = {"name", "string", doc, NULL, true};
    add_parameters(list, r->params, form);
    json_push(list, parameter(&name, form));
    json_push(list, parameter(&namespace, form));
    if (strcmp(r->name, "log") == 0)
        json_push(list, parameter(&pretty, form));
    return list;
}

static const struct reach *find_reach(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(reaches); i++)
        if (strcmp(reaches[i].name, name) == 0)
            return &reaches[i];
    return NULL;
}

static void add_reaches(cJSON *paths, const struct kind *kind, enum doc_form form)
{
    for (const struct subresource *s = kind->subresources; s && s->name; s++) {
        const struct reach *r = find_reach(s->name);
        if (!r)
            continue;
        SCOPED_FREE char *root = kind_api_path(kind);
        SCOPED_FREE char *path =
            xasprintf("%s/namespaces/{namespace}/%s/{name}/%s", root, kind->plural, s->name);
        cJSON *item = json_object();
        for (const char *const *verb = s->verbs; *verb; verb++) {
            const char *method = strcmp(*verb, "create") == 0 ? "post" : "get";
            json_set(item, method, reach_operation(kind, s, r, method, form));
        }
        json_set(item, "parameters", reach_parameters(s, r, form));
        json_set(paths, path, item);
    }
}

void doc_paths_add(cJSON *paths, const struct kind *kind, enum doc_form form)
{
    const char *object = kind->schema_name;
    add_path(paths, kind, collection_ops, "", "", object, form);
    if (kind->is_review)
        return;
    add_path(paths, kind, object_ops, "/{name}", "", object, form);
    if (kind->scale)
        add_path(paths, kind, subresource_ops, "/{name}/scale", "Scale",
                 "io.k8s.api.autoscaling.v1.Scale", form);
    if (kind->has_status)
        add_path(paths, kind, subresource_ops, "/{name}/status", "Status", object, form);
    add_reaches(paths, kind, form);
    if (kind->is_cluster_scoped)
        return;
    SCOPED_FREE char *root = kind_api_path(kind);
    SCOPED_FREE char *path = xasprintf("%s/%s", root, kind->plural);
    cJSON *item = json_object();
    json_set(item, "get", operation(kind, &op_list_all, "ForAllNamespaces", object, form));
    json_set(item, "parameters", path_parameters(kind, true, false, form));
    json_set(paths, path, item);
}
