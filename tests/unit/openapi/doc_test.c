/* The OpenAPI documents: they parse, every reference leads somewhere, and they hold what clients
 * look for. */
#include "openapi/doc.h"

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/rand.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

#define A "agents.x-k8s.io"
#define E "extensions.agents.x-k8s.io"

static cJSON *parse(const struct buf *document)
{
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(json_parse(document->data, document->len, NULL, &tree, &err) == 0, "%s",
                  err_text(&err));
    return tree;
}

static cJSON *document_v3(const char *group)
{
    SCOPED(buf_fini) struct buf out = {0};
    doc_v3_print(group, "v1beta1", &out);
    return parse(&out);
}

static cJSON *document_v2(void)
{
    SCOPED(buf_fini) struct buf out = {0};
    doc_v2_print(&out);
    return parse(&out);
}

/* Follows #/a/b/c; names hold no slash. */
static const cJSON *follow(const cJSON *document, const char *ref)
{
    const cJSON *node = document;
    const char *p = ref + 1;
    while (node && *p == '/') {
        size_t n = strcspn(p + 1, "/");
        SCOPED_FREE char *name = xstrndup(p + 1, n);
        node = json_get(node, name);
        p += n + 1;
    }
    return node;
}

static size_t check_refs(const cJSON *document, const cJSON *node)
{
    size_t n = 0;
    const cJSON *child;
    cJSON_ArrayForEach(child, node)
    {
        if (child->string && strcmp(child->string, "$ref") == 0) {
            ck_assert_msg(follow(document, child->valuestring) != NULL, "%s", child->valuestring);
            n++;
        } else if (cJSON_IsObject(child) || cJSON_IsArray(child)) {
            n += check_refs(document, child);
        }
    }
    return n;
}

START_TEST(test_references)
{
    SCOPED(json_free_p) cJSON *agents = document_v3(A);
    SCOPED(json_free_p) cJSON *extensions = document_v3(E);
    SCOPED(json_free_p) cJSON *v2 = document_v2();
    ck_assert_uint_gt(check_refs(agents, agents), 50);
    ck_assert_uint_gt(check_refs(extensions, extensions), 100);
    ck_assert_uint_gt(check_refs(v2, v2), 200);
    ck_assert_ptr_null(
        json_get(json_at(agents, "components.schemas"), "io.k8s.api.autoscaling.v1.Scale"));
}
END_TEST

static void check_operation_ids(const cJSON *document, size_t expected)
{
    struct map *seen = map_new();
    const cJSON *path, *operation;
    cJSON_ArrayForEach(path, json_get(document, "paths"))
    {
        cJSON_ArrayForEach(operation, path)
        {
            const char *id = cJSON_IsObject(operation) ? json_str(operation, "operationId") : NULL;
            if (!cJSON_IsObject(operation))
                continue;
            ck_assert_ptr_nonnull(id);
            ck_assert_ptr_nonnull(json_get(operation, "x-kubernetes-group-version-kind"));
            ck_assert_ptr_nonnull(json_get(operation, "x-kubernetes-action"));
            ck_assert_msg(map_put(seen, id, seen) == NULL, "%s twice", id);
        }
    }
    ck_assert_uint_eq(map_len(seen), expected);
    map_free(seen);
}

START_TEST(test_operations)
{
    SCOPED(json_free_p) cJSON *agents = document_v3(A);
    SCOPED(json_free_p) cJSON *v2 = document_v2();
    check_operation_ids(agents, 8 + 3);         /* object and collection, status */
    check_operation_ids(v2, 4 * 8 + 3 * 3 + 3); /* four kinds, three with status, one with scale */
    const cJSON *path = json_get(json_get(agents, "paths"),
                                 "/apis/" A "/v1beta1/namespaces/{namespace}/sandboxes/{name}");
    ck_assert_str_eq(json_str(path, "patch.operationId"),
                     "patchAgentsXK8sIoV1beta1NamespacedSandbox");
    const cJSON *content = json_at(path, "patch.requestBody.content");
    ck_assert_uint_eq(json_len(content), 3);
    ck_assert_ptr_null(json_get(content, "application/strategic-merge-patch+json"));
    ck_assert_ptr_nonnull(json_get(content, "application/apply-patch+yaml"));
}
END_TEST

static bool has_parameter(const cJSON *operation, const char *name)
{
    const cJSON *p;
    cJSON_ArrayForEach(
        p,
        json_get(operation, "parameters")) if (str_equal(json_str(p, "name"), name) &&
                                               str_equal(json_str(p, "in"), "query")) return true;
    return false;
}

/* kubectl looks for these on PATCH before it uses --dry-run=server and server-side field
 * validation. */
START_TEST(test_patch_parameters)
{
    SCOPED(json_free_p) cJSON *agents = document_v3(A);
    const cJSON *paths = json_get(agents, "paths");
    const cJSON *patch = json_get(
        json_get(paths, "/apis/" A "/v1beta1/namespaces/{namespace}/sandboxes/{name}"), "patch");
    ck_assert(has_parameter(patch, "dryRun"));
    ck_assert(has_parameter(patch, "fieldManager"));
    ck_assert(has_parameter(patch, "fieldValidation"));
    ck_assert(has_parameter(patch, "force"));
}
END_TEST

START_TEST(test_schemas)
{
    SCOPED(json_free_p) cJSON *agents = document_v3(A);
    SCOPED(json_free_p) cJSON *v2 = document_v2();
    const cJSON *schema =
        json_get(json_at(agents, "components.schemas"), "io.x-k8s.agents.v1beta1.Sandbox");
    SCOPED_FREE char *gvk = json_to_str(json_get(schema, "x-kubernetes-group-version-kind"));
    ck_assert_str_eq(gvk, "[{\"group\":\"" A "\",\"kind\":\"Sandbox\",\"version\":\"v1beta1\"}]");
    ck_assert_str_eq(json_str(json_at(schema, "properties.metadata.allOf")->child, "$ref"),
                     "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    SCOPED_FREE char *mode =
        json_to_str(json_at(schema, "properties.spec.properties.operatingMode.enum"));
    ck_assert_str_eq(mode, "[\"Running\",\"Suspended\"]");
    ck_assert_str_eq(json_str(schema, "properties.spec.properties.operatingMode.default"),
                     "Running");
    ck_assert_uint_eq(json_len(json_at(schema, "properties.spec.x-kubernetes-validations")), 1);
    const cJSON *divisor = json_at(
        schema, "properties.spec.properties.podTemplate.properties.spec.properties.overhead."
                "additionalProperties");
    ck_assert(json_bool_or(divisor, "x-kubernetes-int-or-string", false));
    ck_assert_uint_eq(json_len(json_get(divisor, "anyOf")), 2);
    const cJSON *old = json_get(json_get(v2, "definitions"), "io.x-k8s.agents.v1beta1.Sandbox");
    ck_assert_ptr_null(json_at(old, "properties.spec.properties.operatingMode.default"));
    ck_assert_str_eq(json_str(old, "properties.metadata.$ref"),
                     "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}
END_TEST

static void check_claimed(const cJSON *schemas, const char *name, bool is_claimed)
{
    const cJSON *schema = json_get(schemas, name);
    ck_assert_ptr_nonnull(schema);
    ck_assert_msg((json_get(schema, "x-kubernetes-group-version-kind") != NULL) == is_claimed, "%s",
                  name);
}

/* Kubernetes' own kinds are there in the document that kube-apiserver merges ours into. */
START_TEST(test_kinds_of_others)
{
    static const char *const names[] = {"io.k8s.api.autoscaling.v1.Scale",
                                        "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
                                        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"};
    SCOPED(json_free_p) cJSON *v3 = document_v3(E);
    SCOPED(json_free_p) cJSON *v2 = document_v2();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        check_claimed(json_at(v3, "components.schemas"), names[i], true);
        check_claimed(json_get(v2, "definitions"), names[i], false);
    }
    check_claimed(json_get(v2, "definitions"), "io.x-k8s.agents.v1beta1.SandboxList", true);
}
END_TEST

/* Every property of every schema has a text; there is no prose in the shared types that is not
 * ours, so none may be empty. */
static void check_texts(const cJSON *schema, const char *name)
{
    const cJSON *property;
    cJSON_ArrayForEach(property, json_get(schema, "properties"))
    {
        const char *text = json_str(property, "description");
        ck_assert_msg(text && *text, "%s.%s has no text", name, property->string);
        check_texts(property, property->string);
        if (json_get(property, "items"))
            check_texts(json_get(property, "items"), property->string);
    }
}

START_TEST(test_texts)
{
    SCOPED(json_free_p) cJSON *agents = document_v3(A);
    SCOPED(json_free_p) cJSON *extensions = document_v3(E);
    const cJSON *schema;
    cJSON_ArrayForEach(schema, json_at(agents, "components.schemas"))
    {
        check_texts(schema, schema->string);
    }
    cJSON_ArrayForEach(schema, json_at(extensions, "components.schemas"))
    {
        check_texts(schema, schema->string);
    }
}
END_TEST

START_TEST(test_index)
{
    SCOPED(buf_fini) struct buf out = {0}, document = {0};
    doc_v3_print_index(&out);
    SCOPED(json_free_p) cJSON *index = parse(&out);
    ck_assert_uint_eq(json_len(json_get(index, "paths")), 2);
    doc_v3_print(E, "v1beta1", &document);
    char hash[129];
    digest_sha512_hex(document.data, document.len, hash);
    SCOPED_FREE char *url = xasprintf("/openapi/v3/apis/" E "/v1beta1?hash=%s", hash);
    ck_assert_str_eq(
        json_str(json_get(json_get(index, "paths"), "apis/" E "/v1beta1"), "serverRelativeURL"),
        url);
}
END_TEST

START_TEST(test_same_bytes)
{
    SCOPED(buf_fini) struct buf a = {0}, b = {0};
    doc_v2_print(&a);
    doc_v2_print(&b);
    ck_assert_uint_eq(a.len, b.len);
    ck_assert(memcmp(a.data, b.data, a.len) == 0);
}
END_TEST

START_TEST(test_crd)
{
    SCOPED(buf_fini) struct buf out = {0};
    doc_crd_print(&kind_sandbox_warm_pool, &out);
    SCOPED(json_free_p) cJSON *crd = parse(&out);
    ck_assert_str_eq(json_str(crd, "metadata.name"), "sandboxwarmpools." E);
    const cJSON *version = json_at(crd, "spec.versions")->child;
    ck_assert_str_eq(json_str(version, "subresources.scale.specReplicasPath"), ".spec.replicas");
    ck_assert_str_eq(json_str(version, "schema.openAPIV3Schema.properties.metadata.type"),
                     "object");
    /* kube-apiserver refuses a definition that says more of it. */
    ck_assert_uint_eq(json_len(json_at(version, "schema.openAPIV3Schema.properties.metadata")), 1);
}
END_TEST

/* kube-apiserver refuses a rule that points at what is not declared. */
START_TEST(test_crd_declares_name)
{
    SCOPED(buf_fini) struct buf out = {0};
    doc_crd_print(&kind_sandbox, &out);
    SCOPED(json_free_p) cJSON *crd = parse(&out);
    const cJSON *version = json_at(crd, "spec.versions")->child;
    const cJSON *schema = json_at(version, "schema.openAPIV3Schema");
    const cJSON *rule = json_get(schema, "x-kubernetes-validations")->child;
    ck_assert_str_eq(json_str(rule, "fieldPath"), ".metadata.name");
    ck_assert_str_eq(json_str(schema, "properties.metadata.properties.name.type"), "string");
    ck_assert_uint_eq(json_len(json_at(schema, "properties.metadata.properties")), 1);
}
END_TEST

SUITE(doc)
{
    TESTS("documents", test_references, test_operations, test_patch_parameters, test_schemas,
          test_kinds_of_others, test_texts, test_index, test_same_bytes, test_crd,
          test_crd_declares_name);
}
