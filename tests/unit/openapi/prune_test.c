/* Unknown members and nulls. */
#include "openapi/prune.h"

#include "apiserver/base/json.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

struct row {
    const char *name;
    const struct kind *kind;
    const char *before, *after; /* with ' for " */
    const char *unknown;        /* paths with blanks between, in walking order */
};

#define S &kind_sandbox
#define T &kind_sandbox_template
#define C &kind_sandbox_claim

static const struct row unknown_rows[] = {
    {"nothing", S, "{'spec':{'podTemplate':{}}}", "{'spec':{'podTemplate':{}}}", ""},
    {"top", S, "{'foo':1,'spec':{}}", "{'spec':{}}", "foo"},
    {"deep", S, "{'spec':{'podTemplate':{'spec':{'containers':[{'name':'a','x':1},{'bar':{}}]}}}}",
     "{'spec':{'podTemplate':{'spec':{'containers':[{'name':'a'},{}]}}}}",
     "spec.podTemplate.spec.containers[0].x spec.podTemplate.spec.containers[1].bar"},
    {"case matters", S, "{'Spec':{},'spec':{'Service':true}}", "{'spec':{}}", "Spec spec.Service"},
    {"metadata", S,
     "{'metadata':{'name':'a','baz':1,'ownerReferences':[{'uid':'u','x':1}],'labels':{'any':'thing'"
     "}}}",
     "{'metadata':{'name':'a','ownerReferences':[{'uid':'u'}],'labels':{'any':'thing'}}}",
     "metadata.baz metadata.ownerReferences[0].x"},
    {"managedFields are free below fieldsV1", S,
     "{'metadata':{'managedFields':[{'fieldsV1':{'f:x':{'.':{}}},'y':1}]}}",
     "{'metadata':{'managedFields':[{'fieldsV1':{'f:x':{'.':{}}}}]}}",
     "metadata.managedFields[0].y"},
    {"map values", C, "{'spec':{'additionalPodMetadata':{'labels':{'a':'b'},'name':'n'}}}",
     "{'spec':{'additionalPodMetadata':{'labels':{'a':'b'}}}}", "spec.additionalPodMetadata.name"},
    {"object for a scalar keeps no members", S, "{'spec':{'service':{'a':1,'b':{'c':1}}}}",
     "{'spec':{'service':{}}}", "spec.service.a spec.service.b"},
    {"list for a scalar", S, "{'spec':{'service':[{'a':1},[{'b':1}]]}}",
     "{'spec':{'service':[{},[{}]]}}", "spec.service[0].a spec.service[1][0].b"},
    {"list for an object", S, "{'spec':[{'service':true}]}", "{'spec':[{}]}", "spec[0].service"},
    {"object for a list", S, "{'spec':{'volumeClaimTemplates':{'spec':{}}}}",
     "{'spec':{'volumeClaimTemplates':{}}}", "spec.volumeClaimTemplates.spec"},
    {"metadata of an ephemeral volume", S,
     "{'spec':{'podTemplate':{'spec':{'volumes':[{'ephemeral':{'volumeClaimTemplate':{'metadata':{'"
     "labels':{}}}}}]}}}}",
     "{'spec':{'podTemplate':{'spec':{'volumes':[{'ephemeral':{'volumeClaimTemplate':{'metadata':{}"
     "}}}]}}}}",
     "spec.podTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.labels"},
    {"newer than the snapshot", S, "{'spec':{'podFailurePolicy':'Recreate'}}",
     "{'spec':{'podFailurePolicy':'Recreate'}}", ""},
    {"only for sandboxes", T, "{'spec':{'podFailurePolicy':'Recreate','operatingMode':'Running'}}",
     "{'spec':{}}", "spec.podFailurePolicy spec.operatingMode"},
    {"no status", T, "{'status':{}}", "{}", "status"},
};

static const struct row null_rows[] = {
    {"dropped", S, "{'spec':{'service':null,'podTemplate':null}}", "{'spec':{}}"},
    {"default", S, "{'spec':{'operatingMode':null}}", "{'spec':{'operatingMode':'Running'}}"},
    {"number default", &kind_sandbox_warm_pool, "{'spec':{'replicas':null}}",
     "{'spec':{'replicas':1}}"},
    {"in a list it stays", S, "{'spec':{'volumeClaimTemplates':[null,{'metadata':null}]}}",
     "{'spec':{'volumeClaimTemplates':[null,{}]}}"},
    {"in a map", C, "{'spec':{'additionalPodMetadata':{'labels':{'a':null,'b':'c'}}}}",
     "{'spec':{'additionalPodMetadata':{'labels':{'b':'c'}}}}"},
    {"label", S, "{'metadata':{'labels':{'a':null},'annotations':{'b':null},'namespace':null}}",
     "{'metadata':{'labels':{'a':''},'annotations':{'b':''}}}"},
    {"unknown is not touched", S, "{'foo':null}", "{'foo':null}"},
};

static cJSON *parse(const char *quoted)
{
    SCOPED_FREE char *text = xstrdup(quoted);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

static void assert_tree(const struct row *r, const cJSON *tree)
{
    SCOPED(json_free_p) cJSON *expected = parse(r->after);
    SCOPED_FREE char *text = json_to_str(tree);
    ck_assert_msg(json_equal(tree, expected), "%s: %s", r->name, text);
}

START_TEST(test_unknown)
{
    const struct row *r = &unknown_rows[_i];
    SCOPED(json_free_p) cJSON *tree = parse(r->before);
    SCOPED(pairs_fini) struct pairs unknown = {0};
    SCOPED(buf_fini) struct buf names = {0};
    prune_unknown(tree, r->kind->shape, &unknown);
    assert_tree(r, tree);
    for (size_t i = 0; i < unknown.n; i++)
        buf_printf(&names, "%s%s", i ? " " : "", unknown.v[i].name);
    ck_assert_msg(strcmp(buf_cstr(&names), r->unknown) == 0, "%s: %s", r->name, buf_cstr(&names));
}
END_TEST

START_TEST(test_nulls)
{
    const struct row *r = &null_rows[_i];
    SCOPED(json_free_p) cJSON *tree = parse(r->before);
    prune_nulls(tree, r->kind->shape);
    assert_tree(r, tree);
}
END_TEST

START_TEST(test_reports_have_a_ceiling)
{
    SCOPED(json_free_p) cJSON *tree = json_object();
    SCOPED(pairs_fini) struct pairs unknown = {0};
    for (int i = 0; i < 3000; i++) {
        SCOPED_FREE char *name = xasprintf("x%d", i);
        json_set_int(tree, name, i);
    }
    prune_unknown(tree, kind_sandbox.shape, &unknown);
    ck_assert_uint_eq(unknown.n, 1000);
    ck_assert_ptr_null(tree->child);
}
END_TEST

START_TEST(test_without_report)
{
    SCOPED(json_free_p) cJSON *tree = parse("{'x':1}"), *scalar = parse("5");
    prune_unknown(tree, kind_sandbox.shape, NULL);
    ck_assert_ptr_null(tree->child);
    prune_unknown(scalar, kind_sandbox.shape, NULL);
    prune_nulls(scalar, kind_sandbox.shape);
}
END_TEST

SUITE(prune)
{
    LOOP("unknown", test_unknown, 0, ARRAY_LEN(unknown_rows));
    LOOP("nulls", test_nulls, 0, ARRAY_LEN(null_rows));
    TESTS("other", test_reports_have_a_ceiling, test_without_report);
}
