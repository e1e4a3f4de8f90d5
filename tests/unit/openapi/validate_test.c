/* Every rule and text of validation. The expected causes were given by kube-apiserver v1.37.2 for
 * the same objects under CustomResourceDefinitions, except where a row says otherwise. */
#include "openapi/validate.h"

#include "apiserver/base/json.h"
#include "openapi/default.h"
#include "openapi/kinds.h"
#include "openapi/prune.h"
#include "tests/lib/suite.h"

#define CAUSES_MAX 12

struct row {
    const char *name;
    const struct kind *kind;
    const char *spec, *old; /* with ' for "; the status when only_status */
    bool only_status, structural;
    const char *causes[CAUSES_MAX]; /* reason|field|message, in any order */
};

#define PATTERN_CONDITION_TYPE                                                                     \
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/"                          \
    ")?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
#define PATTERN_QUANTITY_TEXT                                                                      \
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+("   \
    "\\.[0-9]*)?)|(\\.[0-9]+))))?$"
#define POD "spec.podTemplate.spec"
#define C0 POD ".containers[0]"
#define CPU C0 ".resources.limits.cpu"
#define SANDBOX(pod) "{'podTemplate':{'spec':{" pod "}}}"
#define CONTAINER(rest) SANDBOX("'containers':[{'name':'c'," rest "}]")
#define QUANTITY(text) CONTAINER("'resources':{'limits':{'cpu':" text "}}")
#define WITH(rest) "{'podTemplate':{'spec':{'containers':[]}}," rest "}"
#define POOL(rest) "{'sandboxTemplateRef':{'name':'t'}," rest "}"
#define CONDITION(rest)                                                                            \
    "{'conditions':[{'type':'Ready','status':'True','reason':'Ok','message':'','"                  \
    "lastTransitionTime':'2030-01-02T03:04:05Z'" rest "}]}"
#define TYPE(field, expected, found)                                                               \
    "FieldValueTypeInvalid|" field "|Invalid value: \"" found "\": " field                         \
    " in body must be of type " expected ": \"" found "\""
#define REQUIRED(field) "FieldValueRequired|" field "|Required value"
#define CHECKED(field, format)                                                                     \
    "FieldValueInvalid|<nil>|Invalid value: \"\": Checked value must be of type integer " format   \
    " in " field
#define ANY_OF(field)                                                                              \
    "FieldValueInvalid|<nil>|Invalid value: \"\": \"" field                                        \
    "\" must validate at least one schema (anyOf)"
#define ENUM(field, value, values)                                                                 \
    "FieldValueNotSupported|" field "|Unsupported value: " value ": supported values: " values
#define MODES "\"Running\", \"Suspended\""
#define DUPLICATE(field, value) "FieldValueDuplicate|" field "|Duplicate value: " value
#define SCALE(found)                                                                               \
    "FieldValueInvalid|.spec.replicas|Invalid value: 0: .spec.replicas accessor error: " found     \
    ", expected int64"

#define S &kind_sandbox
#define P &kind_sandbox_warm_pool

static const struct row rows[] = {
    {"good", S, SANDBOX("'containers':[]"), .causes = {NULL}},
    {"metadata is not looked at", S, WITH("'service':true"), .causes = {NULL}},
    /* types */
    {"spec string", S, "'x'", .structural = true, .causes = {TYPE("spec", "object", "string")}},
    {"spec list", S, "[]", .structural = true, .causes = {TYPE("spec", "object", "array")}},
    {"spec number", S, "5", .structural = true, .causes = {TYPE("spec", "object", "integer")}},
    {"spec null", S, "null", .structural = true, .causes = {REQUIRED("spec")}},
    {"list object", S, SANDBOX("'containers':{}"), .structural = true,
     .causes = {TYPE(POD ".containers", "array", "object")}},
    {"bool string", S, WITH("'service':'true'"), .structural = true,
     .causes = {TYPE("spec.service", "boolean", "string")}},
    {"string bool", S, CONTAINER("'image':true"), .structural = true,
     .causes = {TYPE(C0 ".image", "string", "boolean")}},
    {"string numbers", S, CONTAINER("'args':[1,'b',2.5]"), .structural = true,
     .causes = {TYPE(C0 ".args[0]", "string", "integer"), TYPE(C0 ".args[2]", "string", "number")}},
    {"string float without fraction", S, CONTAINER("'image':2.0"), .structural = true,
     .causes = {TYPE(C0 ".image", "string", "number")}},
    {"string object", S, CONTAINER("'image':{'a':1}"), .structural = true,
     .causes = {TYPE(C0 ".image", "string", "object")}},
    {"map values", S, SANDBOX("'containers':[],'nodeSelector':{'a.b/c':1,'x y':true}"),
     .structural = true,
     .causes = {TYPE(POD ".nodeSelector.a.b/c", "string", "integer"),
                TYPE(POD ".nodeSelector.x y", "string", "boolean")}},
    {"map list", S, "{'podTemplate':{'spec':{'containers':[]},'metadata':{'labels':['a']}}}",
     .structural = true, .causes = {TYPE("spec.podTemplate.metadata.labels", "object", "array")}},
    {"object without members", S,
     SANDBOX("'containers':[],'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{'metadata'"
             ":5,'spec':{}}}}]"),
     .structural = true,
     .causes = {TYPE(POD ".volumes[0].ephemeral.volumeClaimTemplate.metadata", "object",
                     "integer")}},
    {"null in a list", S, WITH("'volumeClaimTemplates':[null]"), .structural = true,
     .causes = {TYPE("spec.volumeClaimTemplates[0]", "object", "null")}},
    /* required */
    {"required", S, "{'podTemplate':{}}", .structural = true,
     .causes = {REQUIRED("spec.podTemplate.spec")}},
    {"required in items", S, SANDBOX("'containers':[{'image':'x'}]"), .structural = true,
     .causes = {REQUIRED(C0 ".name")}},
    {"required null", S, CONTAINER("'livenessProbe':{'httpGet':{'port':null}}"), .structural = true,
     .causes = {REQUIRED(C0 ".livenessProbe.httpGet.port")}},
    /* numbers */
    {"int32 string", S, SANDBOX("'containers':[],'priority':'x'"), .structural = true,
     .causes = {TYPE(POD ".priority", "integer", "string")}},
    {"int32 list", S, SANDBOX("'containers':[],'priority':[1]"), .structural = true,
     .causes = {TYPE(POD ".priority", "integer", "array")}},
    {"int32 bool", S, SANDBOX("'containers':[],'priority':true"), .structural = true,
     .causes = {TYPE(POD ".priority", "int32", "")}},
    {"int64 object", S, SANDBOX("'containers':[],'activeDeadlineSeconds':{'a':1}"),
     .structural = true, .causes = {TYPE(POD ".activeDeadlineSeconds", "int64", "")}},
    {"int32 fraction", S, SANDBOX("'containers':[],'priority':1.5"), .structural = true,
     .causes = {TYPE(POD ".priority", "int32", "float64"),
                CHECKED(POD ".priority", "with format int32")}},
    {"int32 float", S, SANDBOX("'containers':[],'priority':2.0"), .causes = {NULL}},
    {"int32 too large", S, SANDBOX("'containers':[],'priority':2147483648"),
     .causes = {CHECKED(POD ".priority", "with format int32")}},
    {"int32 float too large", S, SANDBOX("'containers':[],'priority':3e9"),
     .causes = {CHECKED(POD ".priority", "with format int32")}},
    {"int64 largest", S, SANDBOX("'containers':[],'activeDeadlineSeconds':9223372036854775807"),
     .causes = {NULL}},
    {"int64 inexact float", S, SANDBOX("'containers':[],'activeDeadlineSeconds':1e17"),
     .structural = true, .causes = {TYPE(POD ".activeDeadlineSeconds", "int64", "float64")}},
    {"int64 too large", S, SANDBOX("'containers':[],'activeDeadlineSeconds':9223372036854775808"),
     .structural = true,
     .causes = {TYPE(POD ".activeDeadlineSeconds", "int64", "float64"),
                CHECKED(POD ".activeDeadlineSeconds", "with format int64")}},
    {"minimum", &kind_sandbox_claim,
     "{'warmPoolRef':{'name':'p'},'lifecycle':{'ttlSecondsAfterFinished':-1}}",
     .causes =
         {"FieldValueInvalid|spec.lifecycle.ttlSecondsAfterFinished|Invalid value: -1: "
          "spec.lifecycle.ttlSecondsAfterFinished in body should be greater than or equal to 0"}},
    /* texts */
    {"time", S, WITH("'shutdownTime':'tomorrow'"), .structural = true,
     .causes = {TYPE("spec.shutdownTime", "date-time", "tomorrow")}},
    {"time empty", S, WITH("'shutdownTime':''"), .structural = true,
     .causes = {TYPE("spec.shutdownTime", "date-time", "")}},
    {"time without zone", S, WITH("'shutdownTime':'2030-01-02T03:04:05'"), .structural = true,
     .causes = {TYPE("spec.shutdownTime", "date-time", "2030-01-02T03:04:05")}},
    {"time leap second", S, WITH("'shutdownTime':'2030-01-02T03:04:60Z'"), .structural = true,
     .causes = {TYPE("spec.shutdownTime", "date-time", "2030-01-02T03:04:60Z")}},
    {"time impossible day", S, WITH("'shutdownTime':'2030-02-31T03:04:05Z'"), .structural = true,
     .causes = {TYPE("spec.shutdownTime", "date-time", "2030-02-31T03:04:05Z")}},
    {"time lower case", S, WITH("'shutdownTime':'2030-01-02t03:04:05z'"), .causes = {NULL}},
    {"time number", S, WITH("'shutdownTime':1"), .structural = true,
     .causes = {TYPE("spec.shutdownTime", "date-time", "int64")}},
    {"time float", S, WITH("'shutdownTime':1.5"), .structural = true,
     .causes = {TYPE("spec.shutdownTime", "date-time", "float64")}},
    {"time bool", S, WITH("'shutdownTime':true"), .structural = true,
     .causes = {TYPE("spec.shutdownTime", "date-time", "")}},
    {"time list, which kube-apiserver lets pass", S, WITH("'shutdownTime':['x']"),
     .structural = true, .causes = {TYPE("spec.shutdownTime", "string", "array")}},
    {"enum", S, WITH("'operatingMode':'Paused'"), .structural = true,
     .causes = {ENUM("spec.operatingMode", "\"Paused\"", MODES)}},
    {"enum empty", S, WITH("'operatingMode':''"), .structural = true,
     .causes = {ENUM("spec.operatingMode", "\"\"", MODES)}},
    {"enum order", &kind_sandbox_template,
     "{'podTemplate':{'spec':{'containers':[]}},'envVarsInjectionPolicy':'a','"
     "volumeClaimTemplatesPolicy':'b'}",
     .structural = true,
     .causes = {ENUM("spec.envVarsInjectionPolicy", "\"a\"",
                     "\"Allowed\", \"Overrides\", \"Disallowed\""),
                ENUM("spec.volumeClaimTemplatesPolicy", "\"b\"",
                     "\"Disallowed\", \"Allowed\", \"Overrides\"")}},
    {"enum number", S, WITH("'operatingMode':1"), .structural = true,
     .causes = {TYPE("spec.operatingMode", "string", "integer"),
                ENUM("spec.operatingMode", "1", MODES)}},
    {"enum bool", S, WITH("'operatingMode':true"), .structural = true,
     .causes = {TYPE("spec.operatingMode", "string", "boolean"),
                ENUM("spec.operatingMode", "true", MODES)}},
    {"enum list", S, WITH("'operatingMode':['<']"), .structural = true,
     .causes = {TYPE("spec.operatingMode", "string", "array"),
                ENUM("spec.operatingMode", "[\"\\u003c\"]", MODES)}},
    {"enum quoting", S, WITH("'operatingMode':'\\\"\\\\\\n\\tx\\u0001\\u2028<'"),
     .structural = true,
     .causes = {ENUM("spec.operatingMode", "\"\\\"\\\\\\n\\tx\\x01\\u2028<\"", MODES)}},
    /* quantities and int-or-string */
    {"quantity good", S,
     CONTAINER("'resources':{'limits':{'a':'1.5','b':'+1Ki','c':'-1e3','d':'.5E2','e':'5.','f':"
               "3000000000}}"),
     .causes = {NULL}},
    {"quantity empty", S, QUANTITY("''"),
     .causes = {"FieldValueInvalid|" CPU "|Invalid value: \"\": " CPU
                " in body should match '" PATTERN_QUANTITY_TEXT "'"}},
    {"quantity newline", S, QUANTITY("'1\\n'"),
     .causes = {"FieldValueInvalid|" CPU "|Invalid value: \"1\\n\": " CPU
                " in body should match '" PATTERN_QUANTITY_TEXT "'"}},
    {"quantity bool", S, QUANTITY("true"), .structural = true,
     .causes = {ANY_OF(CPU), TYPE(CPU, "integer,string", "boolean"),
                TYPE(CPU, "integer", "boolean")}},
    {"quantity fraction", S, QUANTITY("0.5"), .structural = true,
     .causes = {ANY_OF(CPU), TYPE(CPU, "integer,string", "number"), TYPE(CPU, "integer", "number"),
                CHECKED(CPU, "(default format)")}},
    {"quantity float", S, QUANTITY("2.0"), .causes = {NULL}},
    {"quantity null", S, QUANTITY("null"), .causes = {NULL}},
    {"port object", S, CONTAINER("'livenessProbe':{'httpGet':{'port':{}}}"), .structural = true,
     .causes = {ANY_OF(C0 ".livenessProbe.httpGet.port"),
                TYPE(C0 ".livenessProbe.httpGet.port", "integer,string", "object"),
                TYPE(C0 ".livenessProbe.httpGet.port", "integer", "object")}},
    /* list types */
    {"duplicate", S, SANDBOX("'containers':[{'name':'a'},{'name':'b'},{'name':'a'},{'name':'a'}]"),
     .causes = {DUPLICATE(POD ".containers[2]", "{\"name\":\"a\"}")}},
    {"duplicate by two keys and a default", S,
     CONTAINER("'ports':[{'containerPort':80},{'containerPort':80,'protocol':'UDP'},{'"
               "containerPort':80,'protocol':'TCP'}]"),
     .causes = {DUPLICATE(C0 ".ports[2]", "{\"containerPort\":80,\"protocol\":\"TCP\"}")}},
    {"duplicate without keys", S, SANDBOX("'containers':[{},{}]"), .structural = true,
     .causes = {REQUIRED(C0 ".name"), REQUIRED(POD ".containers[1].name"),
                DUPLICATE(POD ".containers[1]", "{}")}},
    {"no object", S, SANDBOX("'containers':['x',5]"), .structural = true,
     .causes = {TYPE(C0, "object", "string"), TYPE(POD ".containers[1]", "object", "integer"),
                "FieldValueInvalid|" C0
                "|Invalid value: \"x\": must be an object for an array of list-type map"}},
    {"set", S,
     CONTAINER("'restartPolicyRules':[{'action':'x','exitCodes':{'operator':'In','values':[1,2,1,1,"
               "2]}}]"),
     .causes = {DUPLICATE(C0 ".restartPolicyRules[0].exitCodes.values[2]", "1"),
                DUPLICATE(C0 ".restartPolicyRules[0].exitCodes.values[4]", "2")}},
    {"an atomic list may repeat", S,
     SANDBOX("'containers':[],'tolerations':[{'key':'a'},{'key':'a'}]"), .causes = {NULL}},
    /* scale paths */
    {"replicas negative", P, POOL("'replicas':-1"),
     .causes =
         {"FieldValueInvalid|spec.replicas|Invalid value: -1: spec.replicas in body should be "
          "greater than or equal to 0",
          "FieldValueInvalid|.spec.replicas|Invalid value: -1: should be a non-negative integer"}},
    {"replicas too many", P, POOL("'replicas':2147483648"),
     .causes = {CHECKED("spec.replicas", "with format int32"),
                "FieldValueInvalid|.spec.replicas|Invalid value: 2147483648: should be less than "
                "or equal to 2147483647"}},
    {"replicas float", P, POOL("'replicas':2.0"), .causes = {SCALE("2 is of the type float64")}},
    {"replicas string", P, POOL("'replicas':'x'"), .structural = true,
     .causes = {TYPE("spec.replicas", "integer", "string"), SCALE("x is of the type string")}},
    {"replicas list", P, POOL("'replicas':[1,'a',{'b':true}]"), .structural = true,
     .causes = {TYPE("spec.replicas", "integer", "array"),
                SCALE("[1 a map[]] is of the type []interface {}")}},
    {"replicas large float", P, POOL("'replicas':-1e21"), .structural = true,
     .causes = {TYPE("spec.replicas", "int32", "float64"),
                CHECKED("spec.replicas", "with format int32"),
                "FieldValueInvalid|spec.replicas|Invalid value: -1e+21: spec.replicas in body "
                "should be greater than or equal to 0",
                SCALE("-1e+21 is of the type float64")}},
    {"spec of a pool", P, "'x'", .structural = true,
     .causes = {TYPE("spec", "object", "string"),
                "FieldValueInvalid|.spec.replicas|Invalid value: 0: .spec.replicas accessor error: "
                "x is of the type string, "
                "expected map[string]interface{}"}},
    /* the status subresource */
    {"status good", S, CONDITION(""), .only_status = true, .causes = {NULL}},
    {"status string", S, "'x'", .only_status = true, .structural = true,
     .causes = {"FieldValueTypeInvalid|status|Invalid value: \"string\":  in body must be of type "
                "object: \"string\""}},
    {"status pattern", S, CONDITION(",'type':'a b'"), .only_status = true,
     .causes = {"FieldValueInvalid|status.conditions[0].type|Invalid value: \"a b\": "
                "conditions[0].type in body should match '" PATTERN_CONDITION_TYPE "'"}},
    {"status too short", S, CONDITION(",'reason':''"), .only_status = true,
     .causes = {"FieldValueInvalid|status.conditions[0].reason|Invalid value: \"\": "
                "conditions[0].reason in body should be at "
                "least 1 chars long"}},
    {"status enum", S, CONDITION(",'status':'X'"), .only_status = true, .structural = true,
     .causes = {ENUM("status.conditions[0].status", "\"X\"", "\"True\", \"False\", \"Unknown\"")}},
    {"status required", S, "{'conditions':[{}]}", .only_status = true, .structural = true,
     .causes = {REQUIRED("status.conditions[0].lastTransitionTime"),
                REQUIRED("status.conditions[0].message"), REQUIRED("status.conditions[0].reason"),
                REQUIRED("status.conditions[0].status"), REQUIRED("status.conditions[0].type")}},
    {"status number", S, CONDITION(",'observedGeneration':-1.5"), .only_status = true,
     .structural = true,
     .causes = {"FieldValueTypeInvalid|status.conditions[0].observedGeneration|Invalid value: "
                "\"float64\": "
                "conditions[0].observedGeneration in body must be of type int64: \"float64\"",
                "FieldValueInvalid|status|Invalid value: \"\": Checked value must be of type "
                "integer with format int64 in "
                "conditions[0].observedGeneration",
                "FieldValueInvalid|status.conditions[0].observedGeneration|Invalid value: -1.5: "
                "conditions[0].observedGeneration in body should be greater than or equal to 0"}},
    {"status conditions may repeat", S,
     "{'conditions':[{'type':'A','status':'True','reason':'Ok','message':'','lastTransitionTime':'"
     "2030-01-02T03:04:05Z'},"
     "{'type':'A','status':'True','reason':'Ok','message':'','lastTransitionTime':'2030-01-02T03:"
     "04:05Z'}]}",
     .only_status = true, .causes = {NULL}},
    {"status of a pool", P, "{'replicas':-1,'selector':1}", .only_status = true, .structural = true,
     .causes =
         {"FieldValueInvalid|.status.replicas|Invalid value: -1: should be a non-negative integer",
          "FieldValueTypeInvalid|status.selector|Invalid value: \"integer\": selector in body must "
          "be of type string: "
          "\"integer\"",
          "FieldValueInvalid|.status.selector|Invalid value: \"\": .status.selector accessor "
          "error: 1 is of the type "
          "int64, expected string"}},
    /* ratcheting: what the stored object has already */
    {"unchanged error", S, WITH("'operatingMode':'X','service':true"), WITH("'operatingMode':'X'"),
     .causes = {NULL}},
    {"changed error", S, WITH("'operatingMode':'Y'"), WITH("'operatingMode':'X'"),
     .structural = true, .causes = {ENUM("spec.operatingMode", "\"Y\"", MODES)}},
    {"unchanged item of a moved map list", S,
     SANDBOX("'containers':[{'name':'b'},{'name':'a','image':1}]"),
     SANDBOX("'containers':[{'name':'a','image':1}]"), .causes = {NULL}},
    {"missing member of a changed parent", S,
     SANDBOX("'containers':[{'name':'a','ports':[{'hostPort':1}]}]"),
     SANDBOX("'containers':[{'name':'a','ports':[{}]}]"), .structural = true,
     .causes = {REQUIRED(C0 ".ports[0].containerPort")}},
    {"item without keys has no counterpart", S,
     SANDBOX("'containers':[{'image':'x'}],'hostIPC':true"),
     SANDBOX("'containers':[{'image':'x'}]"), .structural = true, .causes = {REQUIRED(C0 ".name")}},
    {"item of an atomic list in a changed list", S, WITH("'volumeClaimTemplates':[{},{'spec':{}}]"),
     WITH("'volumeClaimTemplates':[{}]"), .structural = true,
     .causes = {REQUIRED("spec.volumeClaimTemplates[0].spec")}},
    {"unchanged atomic list", S, WITH("'volumeClaimTemplates':[{}],'service':true"),
     WITH("'volumeClaimTemplates':[{}]"), .causes = {NULL}},
    {"duplicates that were there", S,
     SANDBOX("'containers':[{'name':'a'},{'name':'a'}],'hostIPC':true"),
     SANDBOX("'containers':[{'name':'a'},{'name':'a'}]"), .causes = {NULL}},
    {"new duplicates where others were", S,
     SANDBOX("'containers':[{'name':'a'},{'name':'a'},{'name':'b'},{'name':'b'}]"),
     SANDBOX("'containers':[{'name':'a'},{'name':'a'},{'name':'b'}]"), .causes = {NULL}},
    {"new duplicates", S, SANDBOX("'containers':[{'name':'a'},{'name':'a'}]"),
     SANDBOX("'containers':[{'name':'a'}]"),
     .causes = {DUPLICATE(POD ".containers[1]", "{\"name\":\"a\"}")}},
};

static cJSON *object_of(const struct row *r, const char *part)
{
    SCOPED_FREE char *text =
        xasprintf("{'metadata':{'name':'x'},'%s':%s}", r->only_status ? "status" : "spec", part);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    const struct json_opts last_wins = {.flags = JSON_KEEP_LAST_DUPLICATE};
    ck_assert_msg(json_parse(text, strlen(text), &last_wins, &tree, &err) == 0, "%s: %s", r->name,
                  err_text(&err));
    prune_nulls(tree, r->kind->shape);
    prune_unknown(tree, r->kind->shape, NULL);
    default_apply(tree, r->kind->shape);
    return tree;
}

static bool has_cause(const struct err *causes, const char *expected)
{
    for (size_t i = 0; i < causes->n_causes; i++) {
        const struct err_cause *c = &causes->causes[i];
        SCOPED_FREE char *text = xasprintf("%s|%s|%s", c->reason, c->field, c->message);
        if (strcmp(text, expected) == 0)
            return true;
    }
    return false;
}

START_TEST(test_row)
{
    const struct row *r = &rows[_i];
    SCOPED(json_free_p) cJSON *tree = object_of(r, r->spec);
    SCOPED(json_free_p) cJSON *old = r->old ? object_of(r, r->old) : NULL;
    SCOPED(err_fini) struct err causes = {0};
    bool structural = !r->structural;
    const struct validate_opts opts = {.old = old, .only_status = r->only_status};
    int result = validate_tree(tree, r->kind->shape, &opts, &causes, &structural);
    size_t n = 0;
    for (; n < CAUSES_MAX && r->causes[n]; n++)
        ck_assert_msg(has_cause(&causes, r->causes[n]), "%s: missing %s; first is %s %s", r->name,
                      r->causes[n], causes.n_causes ? causes.causes[0].field : "none",
                      causes.n_causes ? causes.causes[0].message : "");
    ck_assert_msg(causes.n_causes == n, "%s: %zu causes", r->name, causes.n_causes);
    ck_assert_msg(result == (n ? -ERR_INVALID : 0), "%s: result %d", r->name, result);
    ck_assert_msg(structural == r->structural, "%s: structural", r->name);
}
END_TEST

static char *repeated(char c, size_t n)
{
    char *s = xmalloc(n + 1);
    memset(s, c, n);
    s[n] = 0;
    return s;
}

/* Lengths are characters, whatever the word in the message; only the first failing text rule is
 * reported. */
START_TEST(test_too_long)
{
    SCOPED_FREE char *fits = repeated('x', 316);
    SCOPED_FREE char *text = xasprintf(
        "{\"status\":{\"conditions\":[{\"type\":\"%s\"},{\"type\":\"%s \"}]}}", fits, fits);
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(err_fini) struct err causes = {0};
    bool structural = false;
    ck_assert_int_eq(json_parse_str(text, &tree, NULL), 0);
    validate_tree(tree, kind_sandbox.shape, &(struct validate_opts){.only_status = true}, &causes,
                  &structural);
    ck_assert(has_cause(
        &causes,
        "FieldValueTooLong|status.conditions[1].type|Too long: may not be more than 316 bytes"));
    ck_assert_uint_eq(causes.n_causes, 9); /* and four required members of each */
    ck_assert(structural);
}
END_TEST

/* Rules that no kind uses, on a table made here. */
START_TEST(test_other_rules)
{
    static const struct field fields[] = {
        {.name = "few", .type = F_LIST, .item = F_STRING, .max_items = 1, .doc = "x"},
        {.name = "many", .type = F_LIST, .item = F_STRING, .min_items = 2, .doc = "x"},
        {.name = "max", .type = F_NUMBER, .has_max = true, .max = 3, .doc = "x"},
        {.name = "any", .type = F_ANY, .doc = "x"},
        {0},
    };
    static const struct shape shape = {.name = "T", .fields = fields};
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(err_fini) struct err causes = {0};
    ck_assert_int_eq(
        json_parse_str("{\"few\":[\"a\",\"b\"],\"many\":[\"a\"],\"max\":3.5,\"any\":[null]}", &tree,
                       NULL),
        0);
    validate_tree(tree, &shape, &(struct validate_opts){0}, &causes, NULL);
    ck_assert(has_cause(&causes, "FieldValueTooMany|few|Too many: 2: must have at most 1 items"));
    ck_assert(has_cause(
        &causes,
        "FieldValueInvalid|many|Invalid value: 1: many in body should have at least 2 items"));
    ck_assert(has_cause(
        &causes,
        "FieldValueInvalid|max|Invalid value: 3.5: max in body should be less than or equal to 3"));
    ck_assert_uint_eq(causes.n_causes, 3);
}
END_TEST

/* A hostile list must not cost the square of its length, and causes have a ceiling. */
START_TEST(test_long_lists)
{
    SCOPED(buf_fini) struct buf text = {0};
    buf_puts(&text, "{\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[");
    for (int i = 0; i < 50000; i++)
        buf_printf(&text, "%s{\"name\":\"c%d\",\"image\":1}", i ? "," : "", i / 2);
    buf_puts(&text, "]}}}}");
    SCOPED(json_free_p) cJSON *tree = NULL;
    ck_assert_int_eq(json_parse(text.data, text.len, NULL, &tree, NULL), 0);
    SCOPED(json_free_p) cJSON *old = json_copy(tree);
    json_set_bool(json_at(old, "spec"), "service", true);
    SCOPED(err_fini) struct err causes = {0};
    ck_assert_int_lt(
        validate_tree(tree, kind_sandbox.shape, &(struct validate_opts){0}, &causes, NULL), 0);
    ck_assert_uint_le(causes.n_causes, ERR_CAUSES_MAX);
    err_fini(&causes);
    validate_tree(tree, kind_sandbox.shape, &(struct validate_opts){.old = old}, &causes, NULL);
}
END_TEST

SUITE(validate)
{
    LOOP("table", test_row, 0, ARRAY_LEN(rows));
    TESTS("other", test_too_long, test_other_rules, test_long_lists);
}
