/* gen-shape: writes the files .gen.c of openapi/kinds from the OpenAPI v3 documents of a
 * kube-apiserver, so that a new Kubernetes version is one command: parts of kinds that our own
 * kinds are made of, and whole kinds, which a server without a cluster serves itself. It takes
 * structure only: names, types, required members, list and map types, keys of strategic merge
 * patches, defaults. Field texts are our own words and come from hack/gen-shape.docs; a field
 * without one gets a text made from its type and a warning, so that the list of texts to write is
 * what stderr says.
 *
 * The tables describe what a CustomResourceDefinition generated from the same Go types would have,
 * which differs from the core documents on purpose: no enums; no default for a required member (the
 * core documents publish the zero values of Go there), but in whole kinds; no {} defaults;
 * ObjectMeta inside another object is an object without members; types that inline
 * LocalObjectReference are atomic. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"

static const char usage[] =
    "usage: gen-shape --documents DIR [--docs FILE] [--out DIR]\n"
    "\n"
    "Writes *.gen.c into DIR (openapi/kinds) from documents of a kube-apiserver in DIR:\n"
    "    v1.json is the answer of /openapi/v3/api/v1, GROUP.json that of "
    "/openapi/v3/apis/GROUP/v1.\n"
    "Texts come from FILE (hack/gen-shape.docs), lines of TYPE.FIELD<TAB>text; each field without "
    "one is\n"
    "named on standard error. @TYPE<TAB>OTHER: TYPE takes missing texts from OTHER. *.FIELD: for "
    "any type.\n";

struct root {
    const char *type, *symbol;
    bool is_kind,
        has_rules; /* a whole kind, published by its name; its rules are written by hand */
};
#define ROOTS_MAX 12
struct output {
    const char *file, *document;
    struct root roots[ROOTS_MAX];
};
static const struct output outputs[] = {
    {"podspec.gen.c", "v1", {{"PodSpec", "shape_pod_spec"}}},
    {"pvcspec.gen.c", "v1", {{"PersistentVolumeClaimSpec", "shape_pvc_spec"}}},
    {"netpol.gen.c",
     "networking.k8s.io",
     {{"NetworkPolicyIngressRule", "shape_network_policy_ingress"},
      {"NetworkPolicyEgressRule", "shape_network_policy_egress"}}},
    {"core.gen.c",
     "v1",
     {{"ConfigMap", "shape_config_map", true, true},
      {"Event", "shape_core_event", true},
      {"Namespace", "shape_namespace", true},
      {"Node", "shape_node", true},
      {"PersistentVolume", "shape_persistent_volume", true},
      {"PersistentVolumeClaim", "shape_persistent_volume_claim", true, true},
      {"Pod", "shape_pod", true, true},
      {"Secret", "shape_secret", true, true},
      {"Service", "shape_service", true, true},
      {"ServiceAccount", "shape_service_account", true}}},
    {"authentication.gen.c",
     "authentication.k8s.io",
     {{"SelfSubjectReview", "shape_self_subject_review", true},
      {"TokenReview", "shape_token_review", true}}},
    {"authorization.gen.c",
     "authorization.k8s.io",
     {{"LocalSubjectAccessReview", "shape_local_subject_access_review", true},
      {"SelfSubjectAccessReview", "shape_self_subject_access_review", true},
      {"SelfSubjectRulesReview", "shape_self_subject_rules_review", true},
      {"SubjectAccessReview", "shape_subject_access_review", true}}},
    {"coordination.gen.c", "coordination.k8s.io", {{"Lease", "shape_lease", true}}},
    {"discovery.gen.c",
     "discovery.k8s.io",
     {{"EndpointSlice", "shape_endpoint_slice", true, true}}},
    {"events.gen.c", "events.k8s.io", {{"Event", "shape_event", true}}},
    {"networking.gen.c", "networking.k8s.io", {{"NetworkPolicy", "shape_network_policy", true}}},
    {"rbac.gen.c",
     "rbac.authorization.k8s.io",
     {{"ClusterRole", "shape_cluster_role", true},
      {"ClusterRoleBinding", "shape_cluster_role_binding", true, true},
      {"Role", "shape_role", true},
      {"RoleBinding", "shape_role_binding", true, true}}},
    {"storage.gen.c", "storage.k8s.io", {{"StorageClass", "shape_storage_class", true, true}}},
};

/* Defaults that Go declares by reference: the core documents have them, generated CRDs do not. */
static const char *const default_by_reference[] = {"AzureDiskVolumeSource.cachingMode",
                                                   "AzureDiskVolumeSource.kind"};
/* Types that inline LocalObjectReference and inherit its atomic map type in generated CRDs. */
static const char *const inlines_reference[] = {"ConfigMapEnvSource", "ConfigMapProjection",
                                                "ConfigMapVolumeSource", "SecretEnvSource",
                                                "SecretProjection"};
/* Types that stand for one field type. */
static const struct {
    const char *type, *field_type;
} scalar_types[] = {
    {"Quantity", "F_QUANTITY"}, {"IntOrString", "F_INT_OR_STRING"}, {"Time", "F_TIME"},
    {"MicroTime", "F_TIME"},    {"ObjectMeta", "F_EMPTY"},          {"FieldsV1", "F_ANY"},
    {"RawExtension", "F_ANY"},
};

struct gen {
    const cJSON *schemas;        /* components.schemas of the document at hand */
    struct map *docs;            /* TYPE.FIELD → text */
    struct map *used;            /* keys of docs that were looked up */
    struct map *done;            /* types written into the file at hand */
    const struct output *output; /* the file at hand */
    struct buf out;
    size_t warnings;
};

static bool in_list(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static bool read_file(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    char chunk[65536];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_append(out, chunk, n);
    bool ok = !ferror(f) && !buf_failed(out);
    (void)fclose(f);
    return ok;
}

/* ---- texts ------------------------------------------------------------------------------- */

static void load_docs(struct map *docs, char *text)
{
    char *line = text;
    while (line && *line) {
        char *end = strchr(line, '\n');
        if (end)
            *end = 0;
        char *tab = strchr(line, '\t');
        if (tab && *line != '#') {
            *tab = 0;
            (void)map_put(docs, line, tab + 1);
        }
        line = end ? end + 1 : NULL;
    }
}

static const char *use_doc(struct gen *g, const char *key)
{
    const char *text = map_get(g->docs, key);
    if (text)
        (void)map_put(g->used, key, g);
    return text;
}

/* TYPE.FIELD, or that of the type which @TYPE names, or *.FIELD. */
static const char *find_doc(struct gen *g, const char *type, const char *field)
{
    SCOPED_FREE char *key = field ? xasprintf("%s.%s", type, field) : xstrdup(type);
    SCOPED_FREE char *alias_key = xasprintf("@%s", type);
    const char *text = use_doc(g, key);
    const char *alias = text ? NULL : use_doc(g, alias_key);
    if (alias)
        return find_doc(g, alias, field);
    if (text || !field)
        return text;
    SCOPED_FREE char *any_key = xasprintf("*.%s", field);
    return use_doc(g, any_key);
}

static bool report_unused(void *ctx, const char *key, void *value)
{
    struct gen *g = ctx;
    (void)value;
    if (!map_get(g->used, key)) {
        (void)fprintf(stderr, "gen-shape: text for %s is not used\n", key);
        g->warnings++;
    }
    return true;
}

/* ---- schemas ----------------------------------------------------------------------------- */

static const char *short_name(const char *full)
{
    const char *dot = strrchr(full, '.');
    return dot ? dot + 1 : full;
}

/* The full name of the type a schema refers to, or NULL. */
static const char *ref_of(const cJSON *schema)
{
    const char *ref = json_str(schema, "$ref");
    const cJSON *all_of = json_get(schema, "allOf");
    if (!ref && all_of)
        ref = json_str(all_of->child, "$ref");
    const char *slash = ref ? strrchr(ref, '/') : NULL;
    return slash ? slash + 1 : NULL;
}

static const char *scalar_type(const char *type)
{
    for (size_t i = 0; i < ARRAY_LEN(scalar_types); i++)
        if (strcmp(scalar_types[i].type, type) == 0)
            return scalar_types[i].field_type;
    return NULL;
}

static const char *map_type(const cJSON *schema)
{
    const char *type = json_str(schema, "x-kubernetes-map-type");
    return type ? type : "";
}

static bool is_atomic(struct gen *g, const cJSON *schema)
{
    if (strcmp(map_type(schema), "atomic") == 0)
        return true;
    const char *ref = ref_of(schema);
    return ref && (strcmp(map_type(json_get(g->schemas, ref)), "atomic") == 0 ||
                   in_list(inlines_reference, ARRAY_LEN(inlines_reference), short_name(ref)));
}

/* The root that a type is, in the file at hand or, for parts of kinds, in another one. */
static const struct root *root_of(const struct gen *g, const char *type)
{
    for (size_t o = 0; o < ARRAY_LEN(outputs); o++)
        for (const struct root *r = outputs[o].roots; r < &outputs[o].roots[ROOTS_MAX]; r++)
            if (r->type && strcmp(r->type, type) == 0 && (!r->is_kind || &outputs[o] == g->output))
                return r;
    return NULL;
}

static bool is_of_kinds(const struct gen *g)
{
    return g->output->roots[0].is_kind;
}

/* Name of the C symbol of a type: shape_container for Container. */
static char *symbol_of(const struct gen *g, const char *type)
{
    const struct root *root = root_of(g, type);
    if (root)
        return xstrdup(root->symbol);
    struct buf b = {0};
    buf_puts(&b, is_of_kinds(g) ? "shape_part_" : "shape_"); /* apart from our own */
    for (const char *p = type; *p; p++) {
        bool upper = *p >= 'A' && *p <= 'Z';
        bool after_lower = p > type && !(p[-1] >= 'A' && p[-1] <= 'Z');
        bool before_lower = p[1] >= 'a' && p[1] <= 'z';
        if (upper && p > type && (after_lower || before_lower))
            buf_putc(&b, '_');
        buf_putc(&b, upper ? (char)(*p - 'A' + 'a') : *p);
    }
    return buf_take(&b, NULL);
}

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)fputs("gen-shape: ", stderr);
    (void)vfprintf(stderr, fmt, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* The field type of a schema without its items, F_LIST and F_MAP included. */
static const char *field_type(const cJSON *schema, const char *where)
{
    const char *ref = ref_of(schema);
    if (ref) {
        const char *scalar = scalar_type(short_name(ref));
        return scalar ? scalar : "F_OBJECT";
    }
    const char *type = json_str_or(schema, "type", ""), *format = json_str_or(schema, "format", "");
    if (strcmp(type, "string") == 0)
        return strcmp(format, "date-time") == 0 ? "F_TIME" : "F_STRING";
    if (strcmp(type, "boolean") == 0)
        return "F_BOOL";
    if (strcmp(type, "number") == 0)
        return "F_NUMBER";
    if (strcmp(type, "integer") == 0)
        return strcmp(format, "int32") == 0 ? "F_INT32" : "F_INT64";
    if (strcmp(type, "array") == 0)
        return "F_LIST";
    if (strcmp(type, "object") == 0 && json_get(schema, "additionalProperties"))
        return "F_MAP";
    die("%s: cannot express its schema", where);
}

static const cJSON *items_of(const cJSON *schema)
{
    const cJSON *items = json_get(schema, "items");
    return items ? items : json_get(schema, "additionalProperties");
}

static bool is_required(const cJSON *type_schema, const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, json_get(type_schema, "required"))
    {
        if (strcmp(item->valuestring, name) == 0)
            return true;
    }
    return false;
}

/* ---- printing ---------------------------------------------------------------------------- */

/* Whether every item has all keys: those of Go's own types need not, but a table's must. */
static bool has_keys(struct gen *g, const cJSON *list)
{
    const cJSON *item = json_get(g->schemas, ref_of(json_get(list, "items"))), *key;
    cJSON_ArrayForEach(key, json_get(list, "x-kubernetes-list-map-keys"))
    {
        const cJSON *field = json_get(json_get(item, "properties"), key->valuestring);
        if (!is_required(item, key->valuestring) && !json_get(field, "default"))
            return false;
    }
    return true;
}

static bool push_key(void *ctx, const char *key, void *value)
{
    struct buf *out = ctx;
    (void)value;
    buf_printf(out, "\"%s\", ", key);
    return true;
}

/* In alphabetical order, as tables have them. */
static void print_keys(struct gen *g, const cJSON *list)
{
    struct omap *keys = omap_new();
    const cJSON *key;
    cJSON_ArrayForEach(key, json_get(list, "x-kubernetes-list-map-keys"))
    {
        omap_put(keys, key->valuestring, g);
    }
    buf_puts(&g->out, ", .list = LIST_MAP, .keys = (const char *const[]){");
    omap_each(keys, NULL, push_key, &g->out);
    buf_puts(&g->out, "NULL}");
    omap_free(keys);
}

static void print_list_type(struct gen *g, const cJSON *schema, const char *where)
{
    const char *type = json_str(schema, "x-kubernetes-list-type");
    if (!type)
        buf_puts(&g->out, ", .list = LIST_UNDECLARED");
    else if (strcmp(type, "atomic") == 0)
        buf_puts(&g->out, ", .list = LIST_ATOMIC");
    else if (strcmp(type, "set") == 0)
        buf_puts(&g->out, ", .list = LIST_SET");
    else if (strcmp(type, "map") != 0)
        die("%s: unknown list type %s", where, type);
    else if (!has_keys(g, schema))
        buf_puts(&g->out, ", .list = LIST_ATOMIC");
    else
        print_keys(g, schema);
    const char *key = json_str(schema, "x-kubernetes-patch-merge-key");
    bool is_merged =
        str_has_prefix(json_str_or(schema, "x-kubernetes-patch-strategy", ""), "merge");
    if (is_merged)
        buf_printf(&g->out, ", .merge_key = \"%s\"", key ? key : "");
}

/* What Go makes of an absent member that has to be there: whole kinds are decoded by it. */
static const char *zero_value(const char *type)
{
    static const char *const zeroes[][2] = {
        {"F_STRING", "\\\"\\\""}, {"F_BOOL", "false"}, {"F_INT32", "0"}, {"F_INT64", "0"}};
    for (size_t i = 0; i < ARRAY_LEN(zeroes); i++)
        if (strcmp(type, zeroes[i][0]) == 0)
            return zeroes[i][1];
    return NULL;
}

static void print_default(struct gen *g, const cJSON *schema, const char *where, bool required)
{
    const cJSON *dflt = json_get(schema, "default");
    const char *zero = required && is_of_kinds(g) ? zero_value(field_type(schema, where)) : NULL;
    if (zero)
        buf_printf(&g->out, ", .dflt = \"%s\"", zero);
    if (!dflt || required || cJSON_IsObject(dflt) ||
        in_list(default_by_reference, ARRAY_LEN(default_by_reference), where))
        return;
    SCOPED_FREE char *text = json_to_str(dflt);
    buf_puts(&g->out, ", .dflt = ");
    buf_json_string(&g->out, text, strlen(text));
}

static void print_doc(struct gen *g, const char *type, const char *field, const char *indent)
{
    const char *text = find_doc(g, type, field);
    SCOPED_FREE char *made = NULL;
    if (!text) {
        (void)fprintf(stderr, "gen-shape: no text for %s%s%s\n", type, field ? "." : "",
                      field ? field : "");
        g->warnings++;
        made = field ? xasprintf("As %s of Kubernetes' own type %s.", field, type)
                     : xasprintf("As Kubernetes' own type %s.", type);
        text = made;
    }
    buf_puts(&g->out, indent);
    buf_puts(&g->out, ".doc = ");
    buf_json_string(&g->out, text, strlen(text));
}

static void print_row(struct gen *g, const char *type, const cJSON *type_schema, const cJSON *field)
{
    SCOPED_FREE char *where = xasprintf("%s.%s", type, field->string);
    const struct root *root = root_of(g, type);
    bool is_of_kind = root && root->is_kind;
    const char *ftype =
        is_of_kind && strcmp(field->string, "metadata") == 0 ? "F_META" : field_type(field, where);
    const cJSON *items = items_of(field);
    const char *item_type = items ? field_type(items, where) : NULL;
    if (item_type && items_of(items)) { /* lists in a map are more than a row can say */
        ftype = "F_ANY";
        items = NULL;
        item_type = NULL;
    }
    const char *of = ref_of(items ? items : field);
    bool required = is_required(type_schema, field->string);
    buf_printf(&g->out, "    {.name = \"%s\", .type = %s", field->string, ftype);
    if (item_type)
        buf_printf(&g->out, ", .item = %s", item_type);
    if (strcmp(item_type ? item_type : ftype, "F_OBJECT") == 0) {
        SCOPED_FREE char *symbol = symbol_of(g, short_name(of));
        buf_printf(&g->out, ", .of = &%s", symbol);
    }
    if (required)
        buf_puts(&g->out, ", .flags = FIELD_REQUIRED");
    else if (is_of_kind && strcmp(field->string, "status") == 0)
        buf_puts(&g->out, ", .flags = FIELD_STATUS");
    print_default(g, field, where, required);
    if (strcmp(ftype, "F_LIST") == 0) {
        print_list_type(g, field, where);
        if (is_atomic(g, items))
            buf_puts(&g->out, ", .items_atomic = true");
    } else if (is_atomic(g, field)) {
        buf_puts(&g->out, ", .is_atomic = true");
    }
    buf_puts(&g->out, ",\n");
    print_doc(g, type, field->string, "     ");
    buf_puts(&g->out, "},\n");
}

static void print_type(struct gen *g, const char *full);

static void print_types_below(struct gen *g, const cJSON *schema)
{
    const cJSON *field;
    cJSON_ArrayForEach(field, json_get(schema, "properties"))
    {
        const cJSON *items = items_of(field);
        const char *ref = ref_of(items ? items : field);
        if (ref && !scalar_type(short_name(ref)) && !root_of(g, short_name(ref)))
            print_type(g, ref);
    }
}

/* The tables of one type, after those it needs. */
static void print_type(struct gen *g, const char *full)
{
    const char *type = short_name(full);
    if (map_put(g->done, type, g))
        return;
    const cJSON *schema = json_get(g->schemas, full);
    if (!schema || strcmp(json_str_or(schema, "type", ""), "object") != 0)
        die("%s is no object of the document", full);
    print_types_below(g, schema);
    const struct root *root = root_of(g, type);
    SCOPED_FREE char *symbol = symbol_of(g, type);
    const char *base = symbol + strlen("shape_");
    buf_printf(&g->out, "\nstatic const struct field fields_%s[] = {\n", base);
    const cJSON *field;
    cJSON_ArrayForEach(field, json_get(schema, "properties"))
    {
        print_row(g, type, schema, field);
    }
    buf_printf(&g->out,
               "    {0},\n};\n%sconst struct shape %s = {\n    .name = \"%s\",\n    .fields = "
               "fields_%s,\n",
               root ? "" : "static ", symbol, type, base);
    if (root && root->is_kind)
        buf_printf(&g->out, "    .ref = \"%s\",\n", full);
    if (root && root->has_rules)
        buf_printf(&g->out, "    .rules = rules_%s,\n", base);
    print_doc(g, type, NULL, "    ");
    buf_puts(&g->out, ",\n};\n");
}

static const char *find_full_name(const cJSON *schemas, const char *type)
{
    const cJSON *schema;
    cJSON_ArrayForEach(schema, schemas)
    {
        if (strcmp(short_name(schema->string), type) == 0)
            return schema->string;
    }
    die("the document has no type %s", type);
}

static void write_output(struct gen *g, const struct output *output, const char *dir)
{
    g->done = map_new();
    g->output = output;
    buf_puts(
        &g->out,
        "/* Generated by hack/gen-shape from a kube-apiserver's OpenAPI document; do not edit. */\n"
        "#include \"openapi/kinds.h\"\n");
    if (output->roots[0].is_kind)
        buf_puts(&g->out, "#include \"openapi/kinds/builtin.h\"\n");
    buf_puts(&g->out, "#include \"openapi/shape.h\"\n");
    for (size_t r = 0; r < ROOTS_MAX && output->roots[r].type; r++)
        print_type(g, find_full_name(g->schemas, output->roots[r].type));
    SCOPED_FREE char *path = xasprintf("%s/%s", dir, output->file);
    FILE *f = fopen(path, "we");
    if (!f || fwrite(g->out.data, 1, g->out.len, f) != g->out.len || fclose(f) != 0)
        die("cannot write %s", path);
    buf_clear(&g->out);
    map_free(g->done);
}

static cJSON *load_document(const char *dir, const char *name)
{
    SCOPED_FREE char *path = xasprintf("%s/%s.json", dir, name);
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(err_fini) struct err err = {0};
    cJSON *document = NULL;
    if (!read_file(path, &text))
        die("cannot read %s", path);
    if (json_parse(text.data, text.len, NULL, &document, &err) < 0)
        die("%s: %s", path, err_text(&err));
    json_sort(document); /* tables are in alphabetical order */
    return document;
}

struct options {
    const char *documents, *docs, *out;
};

static struct options parse_options(int argc, char **argv)
{
    struct options o = {.docs = "hack/gen-shape.docs", .out = "openapi/kinds"};
    const struct {
        const char *name;
        const char **value;
    } known[] = {{"--documents", &o.documents}, {"--docs", &o.docs}, {"--out", &o.out}};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(usage, stdout);
            exit(0);
        }
        const char **value = NULL;
        for (size_t k = 0; k < ARRAY_LEN(known); k++)
            if (strcmp(argv[i], known[k].name) == 0 && i + 1 < argc)
                value = known[k].value;
        if (!value) {
            (void)fputs(usage, stderr);
            exit(2);
        }
        *value = argv[++i];
    }
    if (!o.documents) {
        (void)fputs(usage, stderr);
        exit(2);
    }
    return o;
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv);
    SCOPED(buf_fini) struct buf docs = {0};
    if (!read_file(o.docs, &docs))
        die("cannot read %s", o.docs);
    struct gen g = {.docs = map_new(), .used = map_new()};
    if (docs.len)
        load_docs(g.docs, docs.data);
    for (size_t i = 0; i < ARRAY_LEN(outputs); i++) {
        SCOPED(json_free_p) cJSON *document = load_document(o.documents, outputs[i].document);
        g.schemas = json_at(document, "components.schemas");
        write_output(&g, &outputs[i], o.out);
    }
    map_each(g.docs, report_unused, &g);
    map_free(g.docs);
    map_free(g.used);
    buf_fini(&g.out);
    (void)fprintf(stderr, "gen-shape: %zu warnings\n", g.warnings);
    return 0;
}
