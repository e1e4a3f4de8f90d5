/* Admission: rows of an object sent, and what it becomes or why not. Texts: the recorded answers of
 * kube-apiserver. */
#include "admission/admit.h"

#include <stdio.h>

#include "admission/rules.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

#define QN                                                                                         \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character "                                                                      \
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "                  \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define SUB                                                                                        \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start "                                                                         \
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "    \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define SKIPPED                                                                                    \
    "<nil>: Invalid value: null: some validation rules were not checked because the object was "   \
    "invalid; correct the "                                                                        \
    "existing errors to complete validation"
#define CANNOT "Sandbox in version \"v1beta1\" cannot be handled as a Sandbox: "
#define INVALID "Sandbox.agents.x-k8s.io \"a\" is invalid: "
#define POD "\"podTemplate\":{\"spec\":{\"containers\":[]}}"
#define HEAD "\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\","
#define SPEC ",\"spec\":{" POD "}"

static struct clock_fake fake;
static struct rand_fixed fixed;
static struct admit_env env;

static void setup(void)
{
    clock_fake_init(&fake, 1767323045000); /* 2026-01-02T03:04:05Z */
    rand_fixed_init(&fixed, 7);
    env = (struct admit_env){.clock = &fake.clock, .randomness = &fixed.r};
}

static cJSON *tree_of(const char *json)
{
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(json_parse_str(json, &tree, &err) == 0, "%s: %s", err_text(&err), json);
    return tree;
}

/* One request on a Sandbox; returns the sorted tree as text, or the error's. */
static char *run(const struct admit_request *like, const char *json, struct pairs *warnings,
                 struct err *err)
{
    struct admit_request req = *like;
    req.kind = req.kind ? req.kind : &kind_sandbox;
    req.namespace_name = "ns";
    SCOPED(json_free_p) cJSON *tree = tree_of(json);
    if (admit(&env, &req, tree, warnings, err) < 0)
        return NULL;
    json_sort(tree);
    return json_to_str(tree);
}

static void check_warnings(const struct pairs *got, const char *expected) /* lines */
{
    SCOPED(buf_fini) struct buf text = {0};
    for (size_t i = 0; i < got->n; i++)
        buf_printf(&text, "%s%s", i ? "\n" : "", got->v[i].name);
    ck_assert_str_eq(buf_cstr(&text), expected);
}

/* ---- create ---- */

static const struct {
    const char *body;     /* without apiVersion and kind */
    const char *metadata; /* expected, without what is always set; NULL = refused */
    const char *text;     /* of the refusal */
    const char *warnings;
} creates[] = {
    {"\"metadata\":{\"name\":\"a\"}" SPEC, "\"name\":\"a\"", NULL, ""},
    {"\"metadata\":{\"name\":\"a\",\"labels\":{},\"annotations\":null,\"finalizers\":[],"
     "\"ownerReferences\":[],"
     "\"generateName\":\"\",\"selfLink\":\"/x\",\"managedFields\":[{}]}" SPEC,
     "\"name\":\"a\"", NULL, ""},
    {"\"metadata\":{\"name\":\"a\",\"labels\":{\"l\":null}}" SPEC,
     "\"labels\":{\"l\":\"\"},\"name\":\"a\"", NULL, ""},
    {"\"metadata\":{\"name\":\"a\",\"finalizers\":[null]}" SPEC, NULL,
     INVALID "[metadata.finalizers: Invalid value: \"\": name part must be non-empty, "
             "metadata.finalizers: Invalid value: \"\": name part " QN "]",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"controller\":null,"
     "\"kind\":\"Pod\",\"name\":\"o\",\"uid\":\"u\"}]}" SPEC,
     "\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"o\","
     "\"uid\":\"u\"}]",
     NULL, ""},
    {"\"metadata\":{\"name\":\"a\",\"uid\":\"hello\",\"creationTimestamp\":\"2001-01-01T00:00:"
     "00Z\",\"generation\":7,"
     "\"deletionTimestamp\":\"2001-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":5}" SPEC,
     "\"name\":\"a\"", NULL, ""},
    {"\"metadata\":{\"name\":\"a\",\"namespace\":\"\"}" SPEC, "\"name\":\"a\"", NULL, ""},
    {"\"metadata\":{\"name\":\"a\",\"namespace\":\"other\"}" SPEC, NULL,
     "the namespace of the provided object does not match the namespace sent on the request", ""},
    {"\"metadata\":{\"name\":\"a\"}" SPEC ",\"status\":{\"service\":\"x\"}", "\"name\":\"a\"", NULL,
     ""},
    {"\"metadata\":{\"name\":\"a\"}" SPEC ",\"status\":{\"conditions\":\"no\"}", "\"name\":\"a\"",
     NULL, ""},
    /* names */
    {"\"metadata\":{}" SPEC, NULL,
     "Sandbox.agents.x-k8s.io \"\" is invalid: [metadata.name: Required value: name or "
     "generateName is required, " SKIPPED "]",
     ""},
    {"\"metadata\":null" SPEC, NULL,
     "Sandbox.agents.x-k8s.io \"\" is invalid: [metadata.name: Required value: name or "
     "generateName is required, " SKIPPED "]",
     ""},
    {"\"metadata\":{\"name\":\"a/b\"}" SPEC, NULL,
     "Sandbox.agents.x-k8s.io \"a/b\" is invalid: metadata.name: Invalid value: \"a/b\": " SUB, ""},
    /* types of metadata */
    {"\"metadata\":\"x\"" SPEC, NULL,
     CANNOT "json: cannot unmarshal string into Go value of type v1.ObjectMeta", ""},
    {"\"metadata\":[]" SPEC, NULL,
     CANNOT "json: cannot unmarshal array into Go value of type v1.ObjectMeta", ""},
    {"\"metadata\":{\"name\":5}" SPEC, NULL,
     CANNOT "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
     ""},
    {"\"metadata\":{\"name\":5,\"labels\":[\"a\"]}" SPEC, NULL,
     CANNOT "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type "
            "map[string]string",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":1}}" SPEC, NULL,
     CANNOT "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"annotations\":{\"a\":{}}}" SPEC, NULL,
     CANNOT
     "json: cannot unmarshal object into Go struct field ObjectMeta.annotations of type string",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"finalizers\":\"f\"}" SPEC, NULL,
     CANNOT
     "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"finalizers\":[true]}" SPEC, NULL,
     CANNOT "json: cannot unmarshal bool into Go struct field ObjectMeta.finalizers of type string",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"ownerReferences\":[5]}" SPEC, NULL,
     CANNOT "json: cannot unmarshal number into Go struct field ObjectMeta.ownerReferences of type "
            "v1.OwnerReference",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"controller\":\"yes\"}]}" SPEC, NULL,
     CANNOT "json: cannot unmarshal string into Go struct field "
            "OwnerReference.ownerReferences.controller of type bool",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"yesterday\"}" SPEC, NULL,
     CANNOT "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse "
            "\"yesterday\" as \"2006\"",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2026-13-01T00:00:00Z\"}" SPEC, NULL,
     CANNOT "parsing time \"2026-13-01T00:00:00Z\": month out of range", ""},
    {"\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2026-01-01T00:00:00Zx\"}" SPEC, NULL,
     CANNOT "parsing time \"2026-01-01T00:00:00Zx\": extra text: \"x\"", ""},
    {"\"metadata\":{\"name\":\"a\",\"creationTimestamp\":5}" SPEC, NULL,
     CANNOT "json: cannot unmarshal number into Go struct field ObjectMeta.creationTimestamp of "
            "type string",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"generation\":\"1\"}" SPEC, NULL,
     CANNOT
     "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"generation\":1.5}" SPEC, NULL,
     CANNOT
     "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"managedFields\":\"x\"}" SPEC, NULL,
     CANNOT "json: cannot unmarshal string into Go struct field ObjectMeta.managedFields of type "
            "[]v1.ManagedFieldsEntry",
     ""},
    /* labels, annotations, finalizers, owners */
    {"\"metadata\":{\"name\":\"a\",\"labels\":{\"-x\":\"1\"}}" SPEC, NULL,
     INVALID "metadata.labels: Invalid value: \"-x\": name part " QN, ""},
    {"\"metadata\":{\"name\":\"a\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}" SPEC, NULL,
     INVALID "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer "
             "orphan and "
             "foregroundDeletion cannot be both set",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"finalizers\":[\"plain\",\"example.org\",\"kubernetes\",\"a/"
     "b\",\"a/b\"]}" SPEC,
     "\"finalizers\":[\"plain\",\"example.org\",\"kubernetes\",\"a/b\",\"a/b\"],\"name\":\"a\"",
     NULL,
     "metadata.finalizers: \"plain\": prefer a domain-qualified finalizer name to avoid accidental "
     "conflicts with other "
     "finalizer writers\nmetadata.finalizers: \"example.org\": prefer a domain-qualified finalizer "
     "name including a path "
     "(/) to avoid accidental conflicts with other finalizer writers"},
    {"\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{}]}" SPEC, NULL,
     INVALID "[metadata.ownerReferences[0].apiVersion: Required value: must not be empty, "
             "metadata.ownerReferences[0].kind: Required value: must not be empty, "
             "metadata.ownerReferences[0].name: "
             "Required value: must not be empty, metadata.ownerReferences[0].uid: Required value: "
             "must not be "
             "empty, " SKIPPED "]",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"a/b/"
     "c\",\"kind\":\"C\",\"name\":\"o\",\"uid\":"
     "\"u\"}]}" SPEC,
     NULL,
     INVALID "metadata.ownerReferences[0].apiVersion: Invalid value: \"a/b/c\": must be "
             "<group>/<version> or <version>",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"uid\":\"u-1\",\"name\":\"o\",\"kind\":"
     "\"Event\",\"apiVersion\":"
     "\"v1\"}]}" SPEC,
     NULL,
     INVALID "metadata.ownerReferences[0]: Invalid value: "
             "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"o\",\"uid\":\"u-1\"}: /v1, "
             "Kind=Event is disallowed "
             "from being an owner",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"C\","
     "\"name\":\"o\",\"uid\":"
     "\"u\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"S\",\"name\":\"p\",\"uid\":"
     "\"v\",\"controller\":true}]"
     "}" SPEC,
     NULL,
     INVALID "metadata.ownerReferences: Invalid value: "
             "[{\"apiVersion\":\"v1\",\"kind\":\"C\",\"name\":\"o\",\"uid\":\"u\",\"controller\":"
             "true},{\"apiVersion\":"
             "\"v1\",\"kind\":\"S\",\"name\":\"p\",\"uid\":\"v\",\"controller\":true}]: Only one "
             "reference can have "
             "Controller set to true. Found \"true\" in references for C/o and S/p",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"C\","
     "\"name\":\"o\",\"uid\":"
     "\"u-1\"},{\"apiVersion\":\"v1\",\"kind\":\"C\",\"name\":\"o\",\"uid\":\"u-1\"}]}" SPEC,
     "\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"C\",\"name\":\"o\","
     "\"uid\":\"u-1\"}]",
     NULL,
     ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in "
     "1.20+, and may reject "
     "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u-1"},
    /* schema, rules and unknown members */
    {"\"metadata\":{\"name\":\"a\"}", NULL, INVALID "[spec: Required value, " SKIPPED "]", ""},
    {"\"metadata\":{\"name\":\"a\"},\"spec\":{" POD ",\"operatingMode\":\"X\"}", NULL,
     INVALID "[spec.operatingMode: Unsupported value: \"X\": supported values: \"Running\", "
             "\"Suspended\", " SKIPPED "]",
     ""},
    {"\"metadata\":{\"name\":\"a\",\"bogus\":1,\"Labels\":{}},\"spec\":{\"zeta\":1," POD
     "},\"alpha\":1",
     "\"name\":\"a\"", NULL,
     "unknown field \"metadata.Labels\"\nunknown field \"metadata.bogus\"\nunknown field "
     "\"alpha\"\nunknown field "
     "\"spec.zeta\""},
};

#define USE(list, name, path) ",\"" list "\":[{\"name\":\"" name "\",\"" path "\":\"/d\"}]"
#define CONTAINER(name, use) "{\"name\":\"" name "\",\"image\":\"i\"" use "}"

/* IL-067: volume claim templates w and x; the one that no container mounts is warned of. */
static const struct {
    const char *pod; /* its spec */
    const char *warnings;
} mounts[] = {
    {"\"containers\":[" CONTAINER("c", "") "]",
     "spec.volumeClaimTemplates: no container mounts volume \"w\"\n"
     "spec.volumeClaimTemplates: no container mounts volume \"x\""},
    {"\"containers\":[" CONTAINER("c", USE("volumeMounts", "w", "mountPath")) "]",
     "spec.volumeClaimTemplates: no container mounts volume \"x\""},
    {"\"containers\":[" CONTAINER("c", USE("volumeMounts", "w", "mountPath")) "," CONTAINER(
         "d", USE("volumeDevices", "x", "devicePath")) "]",
     ""},
    {"\"containers\":[" CONTAINER(
         "c", USE("volumeMounts", "x",
                  "mountPath")) "],\"initContainers\":[" CONTAINER("i", USE("volumeMounts", "w",
                                                                            "mountPath")) "]",
     ""},
};

START_TEST(test_mounts)
{
    setup();
    SCOPED(pairs_fini) struct pairs warnings = {0};
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *body = xasprintf(
        "{" HEAD "\"metadata\":{\"name\":\"a\"},\"spec\":{\"podTemplate\":{\"spec\":{%s}},"
        "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"w\"},\"spec\":{}},{\"metadata\":{"
        "\"name\":\"x\"},\"spec\":{}}]}}",
        mounts[_i].pod);
    const struct admit_request req = {0};
    SCOPED_FREE char *got = run(&req, body, &warnings, &err);
    ck_assert_msg(got != NULL, "%s", err_text(&err));
    check_warnings(&warnings, mounts[_i].warnings);
}
END_TEST

START_TEST(test_create)
{
    setup();
    SCOPED(pairs_fini) struct pairs warnings = {0};
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *body = xasprintf("{" HEAD "%s}", creates[_i].body);
    const struct admit_request req = {0};
    SCOPED_FREE char *got = run(&req, body, &warnings, &err);
    check_warnings(&warnings, creates[_i].warnings);
    if (!creates[_i].metadata) {
        ck_assert_msg(!got, "%s", creates[_i].body);
        ck_assert_str_eq(err_text(&err), creates[_i].text);
        return;
    }
    ck_assert_msg(got, "%s: %s", creates[_i].body, err_text(&err));
    SCOPED(json_free_p) cJSON *tree = tree_of(got);
    ck_assert_str_eq(json_str(tree, "metadata.creationTimestamp"), "2026-01-02T03:04:05Z");
    ck_assert_str_eq(json_str(tree, "metadata.namespace"), "ns");
    ck_assert_int_eq(json_i64_or(tree, "metadata.generation", 0), 1);
    ck_assert_uint_eq(strlen(json_str(tree, "metadata.uid")), 36);
    ck_assert_ptr_null(json_get(tree, "status"));
    static const char *const set[] = {"creationTimestamp", "namespace", "generation", "uid",
                                      "managedFields"};
    for (size_t i = 0; i < ARRAY_LEN(set); i++)
        json_remove(json_get(tree, "metadata"), set[i]);
    SCOPED_FREE char *rest = json_to_str(json_get(tree, "metadata"));
    SCOPED_FREE char *expected = xasprintf("{%s}", creates[_i].metadata);
    ck_assert_str_eq(rest, expected);
}
END_TEST

START_TEST(test_type_meta)
{
    setup();
    static const char *const rows[][2] = {
        {"{\"apiVersion\":\"agents.x-k8s.io/v1\",\"kind\":\"Sandbox\"}",
         "the API version in the data (agents.x-k8s.io/v1) does not match the expected API version "
         "(agents.x-k8s.io/v1beta1)"},
        {"{\"kind\":\"Sandbox\"}", "the API version in the data () does not match the expected API "
                                   "version (agents.x-k8s.io/v1beta1)"},
        {"{\"apiVersion\":\"agents.x-k8s.io/"
         "v1beta1\",\"kind\":\"Foo\",\"metadata\":{\"name\":\"k\"}}",
         "Foo.agents.x-k8s.io \"k\" is invalid: kind: Invalid value: \"Foo\": must be Sandbox"},
        {"[]", "the object provided is unrecognized (must be of type Sandbox)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SCOPED(err_fini) struct err err = {0};
        const struct admit_request req = {0};
        ck_assert_ptr_null(run(&req, rows[i][0], NULL, &err));
        ck_assert_str_eq(err_text(&err), rows[i][1]);
    }
}
END_TEST

START_TEST(test_generate_name)
{
    setup();
    SCOPED(err_fini) struct err err = {0};
    const struct admit_request req = {0};
    SCOPED_FREE char *base = xmalloc(71);
    memset(base, 'g', 70);
    base[70] = '\0';
    SCOPED_FREE char *body =
        xasprintf("{" HEAD "\"metadata\":{\"generateName\":\"%s\"}" SPEC "}", base);
    SCOPED_FREE char *got = run(&req, body, NULL, &err);
    ck_assert_ptr_nonnull(got);
    SCOPED(json_free_p) cJSON *tree = tree_of(got);
    const char *name = json_str(tree, "metadata.name");
    ck_assert_uint_eq(strlen(name), 63);
    ck_assert_uint_eq(strspn(name + 58, "bcdfghjklmnpqrstvwxz2456789"), 5);
    ck_assert_str_eq(json_str(tree, "metadata.generateName"), base);
    SCOPED_FREE char *bad =
        run(&req, "{" HEAD "\"metadata\":{\"generateName\":\"A_b.\"}" SPEC "}", NULL, &err);
    ck_assert_ptr_null(bad);
    ck_assert_uint_eq(err.n_causes, 2);
    ck_assert_str_eq(err.causes[0].field, "metadata.generateName");
    ck_assert_str_eq(err.causes[0].message, "Invalid value: \"A_b.\": " SUB);
    ck_assert_str_eq(err.causes[1].field, "metadata.name");
    ck_assert(str_has_prefix(err.name, "A_b.") && strlen(err.name) == 9);
}
END_TEST

START_TEST(test_annotations_size)
{
    setup();
    SCOPED_FREE char *value = xmalloc(262145);
    memset(value, 'v', 262144);
    value[262144] = '\0';
    SCOPED(err_fini) struct err err = {0};
    const struct admit_request req = {0};
    SCOPED_FREE char *body = xasprintf(
        "{" HEAD "\"metadata\":{\"name\":\"a\",\"annotations\":{\"x\":\"%s\"}}" SPEC "}", value);
    ck_assert_ptr_null(run(&req, body, NULL, &err));
    ck_assert_str_eq(err_text(&err), INVALID
                     "[metadata.annotations: Too long: may not be more than 262144 bytes, " SKIPPED
                     "]");
    value[262143] = '\0';
    SCOPED_FREE char *fits = xasprintf(
        "{" HEAD "\"metadata\":{\"name\":\"a\",\"annotations\":{\"x\":\"%s\"}}" SPEC "}", value);
    SCOPED_FREE char *got = run(&req, fits, NULL, &err);
    ck_assert_ptr_nonnull(got);
}
END_TEST

/* ---- field validation ---- */

START_TEST(test_strict) /* IL-009 */
{
    setup();
    SCOPED(err_fini) struct err err = {0};
    SCOPED(pairs_fini) struct pairs findings = {0}, yaml = {0}, warnings = {0};
    pairs_add(&findings, "duplicate field \"metadata.labels.a\"", "");
    pairs_add(&yaml, "line 5: key \"a\" already set in map", "");
    pairs_add(&yaml, "line 6: key \"b\" already set in map", "");
    const char *body = "{" HEAD "\"metadata\":{\"name\":\"a\",\"bogus\":1},\"spec\":{\"what\":1,"
                       "\"operatingMode\":\"X\"," POD "}}";
    struct admit_request req = {.field_validation = FIELD_VALIDATION_STRICT,
                                .decode_findings = &findings};
    ck_assert_ptr_null(run(&req, body, &warnings, &err));
    ck_assert_int_eq(err.code, ERR_BAD_REQUEST);
    ck_assert_str_eq(err_text(&err), CANNOT
                     "strict decoding error: duplicate field \"metadata.labels.a\", unknown field "
                     "\"metadata.bogus\", unknown field \"spec.what\"");
    req.decode_findings = &yaml;
    ck_assert_ptr_null(run(&req, body, &warnings, &err));
    ck_assert(
        strstr(err_text(&err),
               "strict decoding error: yaml: unmarshal errors:\n  line 5: key \"a\" already set in "
               "map\n  line 6: key \"b\" already set in map, unknown field"));
    ck_assert_uint_eq(warnings.n, 0);
    req.field_validation = FIELD_VALIDATION_IGNORE;
    ck_assert_ptr_null(run(&req, body, &warnings, &err)); /* operatingMode */
    ck_assert_int_eq(err.code, ERR_INVALID);
    ck_assert_uint_eq(warnings.n, 0);
    req.field_validation = FIELD_VALIDATION_WARN;
    req.decode_findings = &findings;
    ck_assert_ptr_null(run(&req, body, &warnings, &err));
    check_warnings(
        &warnings,
        "duplicate field \"metadata.labels.a\"\nunknown field \"metadata.bogus\"\nunknown field "
        "\"spec.what\"");
}
END_TEST

/* ---- update ---- */

#define OLD_META                                                                                   \
    "\"creationTimestamp\":\"2025-01-01T00:00:00Z\",\"generation\":3,\"name\":\"a\","              \
    "\"namespace\":\"ns\","                                                                        \
    "\"resourceVersion\":\"5\",\"uid\":\"u-1\""
#define OLD_SPEC ",\"spec\":{\"operatingMode\":\"Running\"," POD ",\"shutdownPolicy\":\"Retain\"}"
#define OLD "{" HEAD "\"metadata\":{" OLD_META "}" OLD_SPEC ",\"status\":{\"service\":\"s\"}}"
#define ENDING                                                                                     \
    "{" HEAD "\"metadata\":{\"deletionTimestamp\":\"2025-02-01T00:00:00Z\"," OLD_META "}" OLD_SPEC \
    "}"
#define NEW_META "\"name\":\"a\",\"resourceVersion\":\"5\""

static const struct {
    const char *old;
    const char *body; /* without apiVersion and kind */
    const char *expected, *text;
    bool is_status, is_patch;
} updates[] = {
    {OLD, "\"metadata\":{" NEW_META "}" SPEC, OLD, NULL},
    {OLD,
     "\"metadata\":{" NEW_META
     ",\"uid\":\"u-1\",\"generation\":9,\"creationTimestamp\":null,\"selfLink\":\"x\"}" SPEC
     ",\"status\":{\"service\":\"other\"}",
     OLD, NULL},
    {OLD, "\"metadata\":{" NEW_META ",\"uid\":\"u-2\"}" SPEC, NULL,
     INVALID "metadata.uid: Invalid value: \"u-2\": field is immutable", false, true},
    {OLD, "\"metadata\":{" NEW_META ",\"deletionTimestamp\":\"2001-01-01T00:00:00Z\"}" SPEC, NULL,
     INVALID
     "metadata.deletionTimestamp: Invalid value: \"2001-01-01T00:00:00Z\": field is immutable"},
    {ENDING, "\"metadata\":{" NEW_META ",\"deletionTimestamp\":\"2001-01-01T00:00:00Z\"}" SPEC,
     ENDING, NULL},
    {OLD, "\"metadata\":{" NEW_META ",\"deletionGracePeriodSeconds\":5}" SPEC, NULL,
     INVALID "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"},
    {OLD, "\"metadata\":{" NEW_META "},\"spec\":{" POD ",\"service\":true}",
     "{" HEAD "\"metadata\":{\"creationTimestamp\":\"2025-01-01T00:00:00Z\",\"generation\":4,"
     "\"name\":\"a\",\"namespace\":"
     "\"ns\",\"resourceVersion\":\"5\",\"uid\":\"u-1\"},\"spec\":{\"operatingMode\":"
     "\"Running\"," POD
     ",\"service\":true,\"shutdownPolicy\":\"Retain\"},\"status\":{\"service\":\"s\"}}",
     NULL},
    {OLD, "\"metadata\":{" NEW_META ",\"generateName\":\"x-\"}" SPEC,
     "{" HEAD "\"metadata\":{\"creationTimestamp\":\"2025-01-01T00:00:00Z\",\"generateName\":\"x-"
     "\",\"generation\":3,"
     "\"name\":\"a\",\"namespace\":\"ns\",\"resourceVersion\":\"5\",\"uid\":\"u-1\"}" OLD_SPEC
     ",\"status\":{\"service\":\"s\"}}",
     NULL},
    {OLD, "\"metadata\":{" NEW_META "},\"spec\":{" POD ",\"volumeClaimTemplates\":[]}", NULL,
     INVALID "spec: Invalid value: volumeClaimTemplates is immutable"},
    {OLD,
     "\"metadata\":{" NEW_META "},\"spec\":{" POD
     ",\"volumeClaimTemplates\":[],\"operatingMode\":\"X\"}",
     NULL,
     INVALID "[spec.operatingMode: Unsupported value: \"X\": supported values: \"Running\", "
             "\"Suspended\", " SKIPPED "]"},
    {OLD,
     "\"metadata\":{" NEW_META ",\"labels\":{\"a b\":\"c\"}},\"spec\":{" POD
     ",\"volumeClaimTemplates\":[]}",
     NULL,
     INVALID "[metadata.labels: Invalid value: \"a b\": name part " QN
             ", spec: Invalid value: volumeClaimTemplates is immutable]"},
    {OLD, "\"metadata\":{" NEW_META ",\"labels\":{\"a b\":\"c\"}},\"status\":{\"service\":\"t\"}",
     "{" HEAD "\"metadata\":{" OLD_META "}" OLD_SPEC ",\"status\":{\"service\":\"t\"}}", NULL,
     true},
    {OLD, "\"metadata\":{" NEW_META "},\"spec\":5",
     "{" HEAD "\"metadata\":{" OLD_META "}" OLD_SPEC "}", NULL, true},
};

START_TEST(test_update)
{
    setup();
    SCOPED(json_free_p) cJSON *old = tree_of(updates[_i].old);
    struct admit_request req = {.operation = ADMIT_UPDATE,
                                .name = "a",
                                .old = old,
                                .is_status = updates[_i].is_status,
                                .is_patch = updates[_i].is_patch};
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *body = xasprintf("{" HEAD "%s}", updates[_i].body);
    SCOPED_FREE char *got = run(&req, body, NULL, &err);
    if (!updates[_i].expected) {
        ck_assert_ptr_null(got);
        ck_assert_str_eq(err_text(&err), updates[_i].text);
        return;
    }
    ck_assert_msg(got, "%s", err_text(&err));
    SCOPED(json_free_p) cJSON *expected = tree_of(updates[_i].expected);
    json_sort(expected);
    SCOPED_FREE char *text = json_to_str(expected);
    ck_assert_str_eq(got, text);
}
END_TEST

/* On updates each layer of kube-apiserver reports: labels thrice, finalizers once, what is
 * immutable twice. */
START_TEST(test_repeats)
{
    setup();
    SCOPED(json_free_p) cJSON *old = tree_of(OLD);
    struct admit_request req = {.operation = ADMIT_UPDATE, .name = "a", .old = old};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_ptr_null(run(
        &req,
        "{" HEAD "\"metadata\":{" NEW_META
        ",\"labels\":{\"a b\":\"1\"},\"annotations\":{\"-x\":\"1\"},"
        "\"finalizers\":[\"a b\"],\"ownerReferences\":[{}],\"deletionGracePeriodSeconds\":5}" SPEC
        "}",
        NULL, &err));
    static const struct {
        const char *field;
        size_t n;
    } expected[] = {{"metadata.labels", 3},
                    {"metadata.annotations", 3},
                    {"metadata.finalizers", 1},
                    {"metadata.ownerReferences[0].uid", 3},
                    {"metadata.deletionGracePeriodSeconds", 2},
                    {"<nil>", 1}};
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        size_t n = 0;
        for (size_t k = 0; k < err.n_causes; k++)
            n += strcmp(err.causes[k].field, expected[i].field) == 0;
        ck_assert_msg(n == expected[i].n, "%s: %zu", expected[i].field, n);
    }
    /* The message says each once. */
    const char *first = strstr(err_text(&err), "metadata.labels: ");
    ck_assert(first && !strstr(first + 1, "metadata.labels: "));
}
END_TEST

START_TEST(test_patch_texts)
{
    setup();
    SCOPED(json_free_p) cJSON *old = tree_of(OLD);
    struct admit_request req = {.operation = ADMIT_UPDATE,
                                .name = "a",
                                .old = old,
                                .is_patch = true,
                                .field_validation = FIELD_VALIDATION_STRICT};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_ptr_null(run(&req, "{" HEAD "\"metadata\":\"x\"}", NULL, &err));
    ck_assert_str_eq(
        err_text(&err),
        " \"\" is invalid: patch: Invalid value: "
        "\"{\\\"apiVersion\\\":\\\"agents.x-k8s.io/"
        "v1beta1\\\",\\\"kind\\\":\\\"Sandbox\\\",\\\"metadata\\\":"
        "\\\"x\\\"}\": json: cannot unmarshal string into Go value of type v1.ObjectMeta");
    ck_assert_int_eq(err.code, ERR_INVALID);
    ck_assert(err.has_details && !err.kind);
    ck_assert_str_eq(err.causes[0].field, "patch");
    ck_assert_ptr_null(
        run(&req, "{" HEAD "\"metadata\":{" NEW_META "},\"spec\":{\"nope\":1}}", NULL, &err));
    ck_assert(strstr(
        err_text(&err),
        "\\\"spec\\\":{\\\"nope\\\":1}}\": strict decoding error: unknown field \"spec.nope\""));
    ck_assert_ptr_null(run(&req, "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\"}", NULL, &err));
    ck_assert(
        strstr(err_text(&err),
               ": Object 'Kind' is missing in '{\"apiVersion\":\"agents.x-k8s.io/v1beta1\"}'"));
    ck_assert_ptr_null(run(
        &req, "{\"apiVersion\":\"x/v1\",\"kind\":\"Sandbox\",\"metadata\":{" NEW_META "}" SPEC "}",
        NULL, &err));
    ck_assert_str_eq(err_text(&err),
                     "Sandbox.x \"a\" is invalid: apiVersion: Invalid value: \"x/v1\": must be "
                     "agents.x-k8s.io/v1beta1");
    ck_assert_str_eq(err.group, "x");
    SCOPED(pairs_fini) struct pairs warnings = {0};
    SCOPED_FREE char *got =
        run(&req,
            "{" HEAD "\"metadata\":{" NEW_META
            ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"C\",\"name\":\"o\","
            "\"uid\":\"u-1\"},{\"apiVersion\":\"v1\",\"kind\":\"C\",\"name\":\"o\",\"uid\":\"u-1\"}"
            "]}" SPEC "}",
            &warnings, &err);
    ck_assert_ptr_nonnull(got);
    ck_assert(strstr(warnings.v[0].name,
                     "contains duplicate entries after mutating admission happens; API server"));
}
END_TEST

/* ---- rules ---- */

START_TEST(test_service_name)
{
    setup();
    char name[65];
    memset(name, 'n', 64);
    name[64] = '\0';
    SCOPED(err_fini) struct err err = {0};
    struct admit_request req = {0};
    SCOPED_FREE char *long_name = xasprintf(
        "{" HEAD "\"metadata\":{\"name\":\"%s\"},\"spec\":{" POD ",\"service\":true}}", name);
    ck_assert_ptr_null(run(&req, long_name, NULL, &err));
    ck_assert_uint_eq(err.n_causes, 1);
    ck_assert_str_eq(err.causes[0].field, "metadata.name");
    ck_assert_str_eq(err.causes[0].message, "Invalid value: must have at most 63 characters when "
                                            "spec.service is true: it names the service");
    SCOPED_FREE char *no_service = xasprintf(
        "{" HEAD "\"metadata\":{\"name\":\"%s\"},\"spec\":{" POD ",\"service\":false}}", name);
    SCOPED_FREE char *got = run(&req, no_service, NULL, &err);
    ck_assert_ptr_nonnull(got);
    SCOPED_FREE char *fitting = xasprintf(
        "{" HEAD "\"metadata\":{\"name\":\"%s\"},\"spec\":{" POD ",\"service\":true}}", name + 1);
    SCOPED_FREE char *fits = run(&req, fitting, NULL, &err);
    ck_assert_ptr_nonnull(fits);
    /* An object that was there before the rule can still be written, in all but these two. */
    SCOPED_FREE char *old_text =
        xasprintf("{" HEAD "\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"resourceVersion\":"
                  "\"5\",\"uid\":\"u\"},\"spec\":{" POD ",\"service\":true}}",
                  name);
    SCOPED(json_free_p) cJSON *old = tree_of(old_text);
    req = (struct admit_request){
        .operation = ADMIT_UPDATE, .is_status = true, .name = name, .old = old};
    SCOPED(pairs_fini) struct pairs warnings = {0};
    SCOPED_FREE char *same = run(&req, old_text, &warnings, &err);
    ck_assert_ptr_nonnull(same);
    ck_assert_uint_eq(warnings.n, 1);
    ck_assert_ptr_nonnull(strstr(warnings.v[0].name, "metadata.name: Invalid value: must have"));
    json_set_bool(json_get(old, "spec"), "service", false);
    req.is_status = false;
    ck_assert_ptr_null(run(&req, old_text, NULL, &err));
    ck_assert_int_eq(err.code, ERR_INVALID);
}
END_TEST

#define VOLUME(size)                                                                               \
    "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"d\"},\"spec\":{\"resources\":{"           \
    "\"requests\":{\"storage\":\"" size "\"}}}}]"
static const struct {
    const char *before, *after;
    bool holds;
} volumes[] = {
    {"", "", true},
    {",\"volumeClaimTemplates\":[]", ",\"volumeClaimTemplates\":[]", true},
    {"," VOLUME("1Gi"), "," VOLUME("1Gi"), true},
    {"", ",\"volumeClaimTemplates\":[]", false},
    {",\"volumeClaimTemplates\":[]", "", false},
    {"," VOLUME("1Gi"), "", false},
    {"", "," VOLUME("1Gi"), false},
    {"," VOLUME("1Gi"), "," VOLUME("2Gi"), false},
    {"," VOLUME("1Gi"), "," VOLUME("1024Mi"), false},
    {"," VOLUME("1Gi"), ",\"volumeClaimTemplates\":null", false},
};

START_TEST(test_volumes)
{
    setup();
    SCOPED_FREE char *before =
        xasprintf("{" HEAD "\"metadata\":{" OLD_META "},\"spec\":{" POD "%s}}", volumes[_i].before);
    SCOPED_FREE char *after =
        xasprintf("{" HEAD "\"metadata\":{" NEW_META "},\"spec\":{" POD "%s}}", volumes[_i].after);
    SCOPED(json_free_p) cJSON *old = tree_of(before);
    struct admit_request req = {.operation = ADMIT_UPDATE, .name = "a", .old = old};
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *got = run(&req, after, NULL, &err);
    ck_assert_msg((got != NULL) == volumes[_i].holds, "%s", err_text(&err));
    if (!got)
        ck_assert_str_eq(err_text(&err),
                         INVALID "spec: Invalid value: volumeClaimTemplates is immutable");
}
END_TEST

static void print_mistake(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "%s\n", text);
}

START_TEST(test_rules_parse)
{
    ck_assert_uint_eq(rules_check(print_mistake, NULL), 0);
}
END_TEST

/* ---- namespaces ---- */

static int state_unknown(void *ctx, const char *name, enum namespace_state *ret, struct err *err)
{
    (void)ctx, (void)name, (void)ret;
    return err_set(err, ERR_UNAVAILABLE, "namespaces are not known yet");
}

static int state_given(void *ctx, const char *name, enum namespace_state *ret, struct err *err)
{
    (void)name, (void)err;
    *ret = *(enum namespace_state *)ctx;
    return 0;
}

START_TEST(test_namespace)
{
    setup();
    enum namespace_state state = NAMESPACE_ABSENT;
    env.namespace_state = state_given;
    env.ctx = &state;
    SCOPED(err_fini) struct err err = {0};
    const struct admit_request req = {0};
    /* Before validation. */
    const char *body =
        "{" HEAD "\"metadata\":{\"name\":\"new\"},\"spec\":{\"operatingMode\":\"X\"}}";
    ck_assert_ptr_null(run(&req, body, NULL, &err));
    ck_assert_str_eq(err_text(&err), "namespaces \"ns\" not found");
    ck_assert_str_eq(err.kind, "namespaces");
    ck_assert_ptr_null(err.group);
    state = NAMESPACE_TERMINATING;
    ck_assert_ptr_null(run(&req, body, NULL, &err));
    ck_assert_int_eq(err.code, ERR_FORBIDDEN);
    ck_assert_str_eq(err.causes[0].reason, "NamespaceTerminating");
    ck_assert_str_eq(err.causes[0].message, "namespace ns is being terminated");
    ck_assert_str_eq(err.causes[0].field, "metadata.namespace");
    ck_assert_str_eq(err.name, "new");
    env.namespace_state = state_unknown;
    ck_assert_ptr_null(run(&req, body, NULL, &err));
    ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
}
END_TEST

SUITE(admit)
{
    LOOP("mounts", test_mounts, 0, ARRAY_LEN(mounts));
    LOOP("create", test_create, 0, ARRAY_LEN(creates));
    LOOP("update", test_update, 0, ARRAY_LEN(updates));
    LOOP("volumes", test_volumes, 0, ARRAY_LEN(volumes));
    TESTS("rest", test_type_meta, test_generate_name, test_annotations_size, test_strict,
          test_repeats, test_patch_texts, test_service_name, test_rules_parse, test_namespace);
}
