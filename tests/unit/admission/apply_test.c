/* Server-side apply of one object after another: what comes out, who owns what, what is refused. */
#include "admission/apply.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

#define V "'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox'"
#define NOW_S 1767323045 /* 2026-01-02T03:04:05Z */

static char *swap(const char *text, char from, char to)
{
    char *out = xstrdup(text);
    for (char *p = out; *p; p++)
        *p = *p == from ? to : *p;
    return out;
}

static cJSON *tree_of(const char *text)
{
    SCOPED_FREE char *json = swap(text, '\'', '"');
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(json, &tree, NULL) == 0, "%s", json);
    return tree;
}

static char *text_of(const cJSON *tree)
{
    SCOPED(json_free_p) cJSON *copy = json_copy(tree);
    json_sort(copy);
    SCOPED_FREE char *json = json_to_str(copy);
    return swap(json, '"', '\'');
}

/* m1=Apply{...} m2=Update/status{...}: who owns what, without versions; @ marks a time that is
 * now. */
static char *owners_of(const cJSON *object)
{
    struct buf out = {0};
    const cJSON *entry;
    cJSON_ArrayForEach(entry, json_at(object, "metadata.managedFields"))
    {
        const char *subresource = json_str_or(entry, "subresource", "");
        SCOPED_FREE char *fields = text_of(json_get(entry, "fieldsV1"));
        const char *time = json_str_or(entry, "time", "");
        buf_printf(&out, "%s%s=%s%s%s%s%s", out.len ? " " : "", json_str_or(entry, "manager", ""),
                   json_str_or(entry, "operation", ""), *subresource ? "/" : "", subresource,
                   strcmp(time, "2026-01-02T03:04:05Z") == 0 ? "@"
                   : *time                                   ? ""
                                                             : "-",
                   fields);
    }
    return buf_take(&out, NULL);
}

struct step {
    const char *manager; /* !m = forced; m/status = the subresource */
    const char *patch;
    const char *result; /* spec, status, labels without the managers; "!text" = refused; "=" = as
                           before, the time too */
    const char *owners;
};

#define MAIN "'podTemplate':{'spec':{'containers':[{'name':'a','image':'i'}]}}"

/* The live object goes from step to step; each list begins with none. */
static const struct step steps_main[] = {
    {"m1", "{" V ",'metadata':{'name':'x'},'spec':{'service':true}}", "{'spec':{'service':true}}",
     "m1=Apply@{'f:spec':{'f:service':{}}}"},
    {"m1", "{" V ",'metadata':{'name':'x'},'spec':{'service':true}}", "=",
     "m1=Apply{'f:spec':{'f:service':{}}}"},
    {"m2", "{" V ",'spec':{'service':true}}", "{'spec':{'service':true}}",
     "m2=Apply-{'f:spec':{'f:service':{}}} m1=Apply{'f:spec':{'f:service':{}}}"},
    {"m3", "{" V ",'spec':{'service':false}}",
     "!Apply failed with 2 conflicts: conflicts with 'm1':\n- .spec.service\nconflicts with 'm2':\n"
     "- .spec.service",
     NULL},
    {"!m3", "{" V ",'spec':{'service':false}}", "{'spec':{'service':false}}",
     "m3=Apply@{'f:spec':{'f:service':{}}}"},
    {"m3", "{" V ",'spec':{'operatingMode':'Running'}}", "{'spec':{'operatingMode':'Running'}}",
     "m3=Apply@{'f:spec':{'f:operatingMode':{}}}"},
    {"m3", "{" V "}", "{}", ""},
};
static const struct step steps_lists[] = {
    {"m1", "{" V ",'metadata':{'name':'x','finalizers':['a/a']},'spec':{" MAIN "}}",
     "{'finalizers':['a/a'],'spec':{"
     "'podTemplate':{'spec':{'containers':[{'image':'i','name':'a'}]}}}}",
     "m1=Apply@{'f:metadata':{'f:finalizers':{'v:\\'a/"
     "a\\'':{}}},'f:spec':{'f:podTemplate':{'f:spec':"
     "{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:image':{},'f:name':{}}}}}}}"},
    {"m2",
     "{" V
     ",'metadata':{'finalizers':['b/b']},'spec':{'podTemplate':{'spec':{'containers':[{'name':"
     "'a','image':'j'}]}}}}",
     "!Apply failed with 1 conflict: conflict with 'm1': "
     ".spec.podTemplate.spec.containers[name='a'].image",
     NULL},
    {"m2",
     "{" V
     ",'metadata':{'finalizers':['b/b']},'spec':{'podTemplate':{'spec':{'containers':[{'name':"
     "'b'},{'name':'a'}]}}}}",
     "{'finalizers':['a/a','b/"
     "b'],'spec':{'podTemplate':{'spec':{'containers':[{'name':'b'},{'image'"
     ":'i','name':'a'}]}}}}",
     "m1=Apply{'f:metadata':{'f:finalizers':{'v:\\'a/"
     "a\\'':{}}},'f:spec':{'f:podTemplate':{'f:spec':"
     "{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:image':{},'f:name':{}}}}}}} "
     "m2=Apply@{'f:metadata':{'f:finalizers':{'v:\\'b/"
     "b\\'':{}}},'f:spec':{'f:podTemplate':{'f:spec':"
     "{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'b\\'}':{'.':"
     "{}"
     ",'f:name':{}}}}}}}"},
    /* m1 lets go of its container: the name stays, m2 has it */
    {"m1", "{" V "}",
     "{'finalizers':['b/"
     "b'],'spec':{'podTemplate':{'spec':{'containers':[{'name':'b'},{'name':'a'}]}}"
     "}}",
     "m2=Apply{'f:metadata':{'f:finalizers':{'v:\\'b/"
     "b\\'':{}}},'f:spec':{'f:podTemplate':{'f:spec':"
     "{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}},'k:{\\'name\\':\\'b\\'}':{'.':"
     "{}"
     ",'f:name':{}}}}}}}"},
};
static const struct step steps_status[] = {
    {"m1", "{" V ",'metadata':{'name':'x'},'spec':{},'status':{'service':'s'}}",
     "{'spec':{},'status':{'service':'s'}}", "m1=Apply@{'f:spec':{}}"}, /* admission drops it */
    {"m1/status",
     "{" V ",'metadata':{'labels':{'a':'b'}},'spec':{'service':true},'status':"
     "{'service':'s'}}",
     "{'labels':{'a':'b'},'spec':{'service':true},'status':{'service':'s'}}",
     "m1=Apply{'f:spec':{}} m1=Apply/status@{'f:status':{'f:service':{}}}"},
    {"m2/status", "{" V ",'status':{'service':'t'}}",
     "!Apply failed with 1 conflict: conflict with 'm1' with subresource 'status': .status.service",
     NULL},
    {"m2", "{" V ",'status':{'service':'t'}}",
     "{'labels':{'a':'b'},'spec':{'service':true},'status':{'service':'t'}}",
     "m1=Apply{'f:spec':{}} m1=Apply/status{'f:status':{'f:service':{}}}"},
};
static const struct step steps_refused[] = {
    {"m", "1",
     "!error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
     "number into Go value of type map[string]interface {}",
     NULL},
    {"m", "[]",
     "!error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
     "array into Go value of type map[string]interface {}",
     NULL},
    {"m", "null", "!invalid object type: /, Kind=", NULL},
    {"m", "{'apiVersion':'v1','kind':'Sandbox'}", "!invalid object type: /v1, Kind=Sandbox", NULL},
    {"m", "{'apiVersion':'a/b/c','kind':'Sandbox'}", "!invalid object type: /, Kind=", NULL},
    {"m", "{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Foo'}",
     "!invalid object type: agents.x-k8s.io/v1beta1, Kind=Foo", NULL},
    {"m", "{" V ",'metadata':{'managedFields':[]}}", "!metadata.managedFields must be nil", NULL},
    {"m", "{" V ",'metadata':{'managedFields':[{}]}}", "!metadata.managedFields must be nil", NULL},
    {"m", "{" V ",'metadata':{'name':'x','namespace':'n','managedFields':1}}",
     "!failed to create typed patch object (n/x; agents.x-k8s.io/v1beta1, Kind=Sandbox): "
     ".metadata.managedFields: expected list, got &{1}",
     NULL},
    {"m", "{" V ",'spec':{'x':1}}",
     "!failed to create typed patch object (/; agents.x-k8s.io/v1beta1, Kind=Sandbox): .spec.x: "
     "field not declared in schema",
     NULL},
};
static const struct {
    const char *name;
    const struct step *steps;
    size_t n;
} sequences[] = {
    {"main", steps_main, ARRAY_LEN(steps_main)},
    {"lists", steps_lists, ARRAY_LEN(steps_lists)},
    {"status", steps_status, ARRAY_LEN(steps_status)},
    {"refused", steps_refused, ARRAY_LEN(steps_refused)},
};

static int apply(const char *manager, const cJSON *patch, const cJSON *live, cJSON **ret,
                 struct err *err)
{
    bool force = *manager == '!';
    SCOPED_FREE char *name = xstrdup(manager + force);
    char *slash = strchr(name, '/');
    if (slash)
        *slash = '\0';
    const struct apply a = {.kind = &kind_sandbox,
                            .subresource = slash ? slash + 1 : "",
                            .manager = name,
                            .namespace_name = "ns",
                            .name = "x",
                            .force = force,
                            .now_unix_s = NOW_S};
    return apply_run(&a, patch, live, ret, err);
}

/* Spec, status, labels and finalizers, without the rest. */
static char *result_of(const cJSON *object)
{
    SCOPED(json_free_p) cJSON *out = json_object();
    const char *const paths[] = {"spec", "status", "metadata.labels", "metadata.finalizers"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        const cJSON *part = json_at(object, paths[i]);
        const char *dot = strrchr(paths[i], '.');
        if (part)
            json_set(out, dot ? dot + 1 : paths[i], json_copy(part));
    }
    return text_of(out);
}

/* A time that was now is then. */
static void age(cJSON *object)
{
    cJSON *entry;
    cJSON_ArrayForEach(entry, json_at(object, "metadata.managedFields"))
    {
        if (json_get(entry, "time"))
            json_set_str(entry, "time", "2025-01-01T00:00:00Z");
    }
}

START_TEST(test_sequence)
{
    SCOPED(json_free_p) cJSON *live = NULL;
    for (size_t i = 0; i < sequences[_i].n; i++) {
        const struct step *step = &sequences[_i].steps[i];
        SCOPED(json_free_p) cJSON *patch = tree_of(step->patch), *out = NULL;
        SCOPED(err_fini) struct err err = {0};
        SCOPED_FREE char *before = live ? text_of(live) : xstrdup("");
        int rc = apply(step->manager, patch, live, &out, &err);
        if (*step->result == '!') {
            SCOPED_FREE char *text = swap(err_text(&err), '"', '\'');
            ck_assert_msg(rc < 0, "%s %zu", sequences[_i].name, i);
            ck_assert_str_eq(text, step->result + 1);
            continue;
        }
        ck_assert_msg(rc == 0, "%s %zu: %s", sequences[_i].name, i, err_text(&err));
        SCOPED_FREE char *owners = owners_of(out);
        SCOPED_FREE char *result = strcmp(step->result, "=") == 0 ? text_of(out) : result_of(out);
        ck_assert_str_eq(result, strcmp(step->result, "=") == 0 ? before : step->result);
        ck_assert_msg(strcmp(owners, step->owners) == 0, "%s %zu: %s", sequences[_i].name, i,
                      owners);
        json_free(live);
        live = steal(&out);
        age(live);
        /* The same again changes nothing, times included. */
        SCOPED(json_free_p) cJSON *again = NULL;
        ck_assert_int_eq(apply(step->manager, patch, live, &again, NULL), 0);
        ck_assert_msg(json_equal(again, live), "%s %zu", sequences[_i].name, i);
    }
}
END_TEST

/* ---- objects from before ---- */

START_TEST(test_before_first_apply)
{
    SCOPED(json_free_p)
    cJSON *live = tree_of("{" V ",'metadata':{'name':'x','labels':{'l':'1'}},"
                          "'spec':{'service':true},'status':{'service':'s'}}");
    SCOPED(json_free_p) cJSON *patch = tree_of("{" V ",'spec':{'service':false}}"), *out = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(apply("m", patch, live, &out, &err), -ERR_CONFLICT);
    ck_assert_str_eq(err_text(&err), "Apply failed with 1 conflict: conflict with "
                                     "\"before-first-apply\" using agents.x-k8s.io/v1beta1: "
                                     ".spec.service");
    ck_assert_uint_eq(err.n_causes, 1);
    ck_assert_str_eq(err.causes[0].reason, "FieldManagerConflict");
    ck_assert_str_eq(err.causes[0].field, ".spec.service");
    ck_assert_int_eq(apply("!m", patch, live, &out, &err), 0);
    SCOPED_FREE char *owners = owners_of(out);
    ck_assert_str_eq(owners, "m=Apply@{'f:spec':{'f:service':{}}} before-first-apply=Update@"
                             "{'f:metadata':{'f:labels':{'.':{},'f:l':{}}},'f:spec':{}}");
}
END_TEST

#define LAST "kubectl.kubernetes.io/last-applied-configuration"

/* What kubectl applied by itself is kubectl's also here. */
START_TEST(test_last_applied)
{
    static const char managers[] =
        ",'managedFields':[{'manager':'kubectl-client-side-apply','operation':'Update',"
        "'apiVersion':'agents.x-k8s.io/v1beta1','fieldsType':'FieldsV1','fieldsV1':{'f:metadata':"
        "{'f:annotations':{'.':{},'f:" LAST "':{}}},'f:spec':{'.':{},'f:operatingMode':{},"
        "'f:service':{}}}}]";
    SCOPED_FREE char *text = xasprintf(
        "{" V ",'metadata':{'name':'x','annotations':{'" LAST
        "':'{\\'apiVersion\\':\\'agents.x-k8s.io/v1beta1\\',\\'kind\\':\\'Sandbox\\',\\'spec\\':"
        "{\\'operatingMode\\':\\'Running\\',\\'service\\':true}}'}%s},'spec':{'operatingMode':"
        "'Suspended','service':true}}",
        managers);
    SCOPED(json_free_p) cJSON *live = tree_of(text), *out = NULL, *drifted = NULL;
    SCOPED(json_free_p)
    cJSON *patch = tree_of("{" V ",'metadata':{'name':'<x>'},'spec':{'service':false}}");
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(apply("other", patch, live, &out, NULL), -ERR_CONFLICT);
    ck_assert_int_eq(apply("kubectl", patch, live, &out, &err), 0);
    ck_assert_str_eq(json_get(json_at(out, "metadata.annotations"), LAST)->valuestring,
                     "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\""
                     ":{\"name\":\"\\u003cx\\u003e\"},\"spec\":{\"service\":false}}\n");
    /* A field that was changed since is somebody else's. */
    SCOPED(json_free_p)
    cJSON *both = tree_of("{" V ",'spec':{'service':false,'operatingMode':'Running'}}");
    ck_assert_int_eq(apply("kubectl", both, live, &drifted, &err), -ERR_CONFLICT);
    ck_assert_str_eq(err_text(&err),
                     "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" "
                     "using agents.x-k8s.io/v1beta1: .spec.operatingMode");
}
END_TEST

/* An explicit null counts as a change of the object, and renews the time. */
START_TEST(test_null_managers)
{
    SCOPED(json_free_p)
    cJSON *patch = tree_of("{" V ",'spec':{'service':true}}"), *live = NULL, *out = NULL;
    ck_assert_int_eq(apply("m", patch, NULL, &live, NULL), 0);
    age(live);
    SCOPED(json_free_p)
    cJSON *with_null = tree_of("{" V ",'metadata':{'managedFields':null},'spec':{'service':true}}");
    ck_assert_int_eq(apply("m", with_null, live, &out, NULL), 0);
    SCOPED_FREE char *owners = owners_of(out);
    ck_assert_str_eq(owners, "m=Apply@{'f:spec':{'f:service':{}}}");
}
END_TEST

/* ---- scale ---- */

static int apply_scale(const char *manager, bool force, const char *scale, const cJSON *parent,
                       cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *patch = tree_of(scale);
    const struct apply a = {.kind = &kind_sandbox_warm_pool,
                            .subresource = "scale",
                            .manager = manager,
                            .namespace_name = "ns",
                            .name = "p",
                            .force = force,
                            .now_unix_s = NOW_S};
    return apply_run(&a, patch, parent, ret, err);
}

#define SCALE(n) "{'apiVersion':'autoscaling/v1','kind':'Scale','spec':{'replicas':" n "}}"

START_TEST(test_scale)
{
    SCOPED(json_free_p)
    cJSON *parent = tree_of(
        "{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxWarmPool','metadata':"
        "{'name':'p','managedFields':[{'manager':'m','operation':'Apply','apiVersion':"
        "'extensions.agents.x-k8s.io/v1beta1','fieldsType':'FieldsV1','fieldsV1':{'f:spec':"
        "{'f:replicas':{}}}}]},'spec':{'replicas':2}}");
    SCOPED(json_free_p) cJSON *shared = NULL, *forced = NULL, *left = NULL, *none = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(apply_scale("hpa", false, SCALE("3"), parent, &forced, &err), -ERR_CONFLICT);
    ck_assert_str_eq(err_text(&err), "Apply failed with 1 conflict: conflict with \"m\": "
                                     ".spec.replicas");
    ck_assert_int_eq(apply_scale("hpa", false, SCALE("2"), parent, &shared, &err), 0);
    SCOPED_FREE char *both = owners_of(shared);
    ck_assert_str_eq(both, "hpa=Apply/scale-{'f:spec':{'f:replicas':{}}} "
                           "m=Apply-{'f:spec':{'f:replicas':{}}}");
    ck_assert_int_eq(apply_scale("hpa", true, SCALE("3"), parent, &forced, &err), 0);
    SCOPED_FREE char *alone = owners_of(forced);
    ck_assert_str_eq(alone, "hpa=Apply/scale-{'f:spec':{'f:replicas':{}}}");
    ck_assert_int_eq(json_i64_or(forced, "spec.replicas", 0), 3);
    /* Who names no number any more leaves none. */
    ck_assert_int_eq(apply_scale("hpa", false, "{'apiVersion':'autoscaling/v1','kind':'Scale'}",
                                 forced, &left, &err),
                     0);
    ck_assert_int_eq(json_i64_or(left, "spec.replicas", -1), 0);
    ck_assert_ptr_null(json_at(left, "metadata.managedFields"));
    ck_assert_int_eq(
        apply_scale("hpa", false, "{'apiVersion':'v1','kind':'Scale'}", parent, &none, &err),
        -ERR_BAD_REQUEST);
    ck_assert_int_eq(apply_scale("hpa", false,
                                 "{'apiVersion':'autoscaling/v1','kind':'Scale',"
                                 "'spec':{'x':1}}",
                                 parent, &none, &err),
                     -ERR_UNKNOWN);
    ck_assert_int_eq(apply_scale("hpa", false,
                                 "{'apiVersion':'autoscaling/v1','kind':'Scale',"
                                 "'metadata':{'name':'q'}}",
                                 parent, &none, &err),
                     -ERR_BAD_REQUEST);
}
END_TEST

/* A pool whose number nobody owns. */
START_TEST(test_scale_before)
{
    SCOPED(json_free_p)
    cJSON *parent = tree_of(
        "{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxWarmPool','metadata':"
        "{'name':'p'},'spec':{'replicas':2}}");
    SCOPED(json_free_p) cJSON *out = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(apply_scale("hpa", false, SCALE("3"), parent, &out, &err), -ERR_CONFLICT);
    ck_assert_str_eq(err_text(&err), "Apply failed with 1 conflict: conflict with "
                                     "\"before-first-apply\" with subresource \"scale\" using "
                                     "autoscaling/v1: .spec.replicas");
    ck_assert_int_eq(apply_scale("hpa", false, SCALE("2"), parent, &out, &err), 0);
}
END_TEST

SUITE(apply)
{
    LOOP("sequence", test_sequence, 0, ARRAY_LEN(sequences));
    TESTS("objects from before", test_before_first_apply, test_last_applied, test_null_managers);
    TESTS("scale", test_scale, test_scale_before);
}
