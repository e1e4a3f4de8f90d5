/* Rows of (subject or rule, question, answer). */
#include "apiserver/auth/rbac.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

/* JSON is easier to read with single quotes. */
static cJSON *parse(const char *text)
{
    SCOPED_FREE char *json = xstrdup(text);
    cJSON *tree = NULL;
    for (char *c = json; *c; c++)
        if (*c == '\'')
            *c = '"';
    ck_assert_int_eq(json_parse_str(json, &tree, NULL), 0);
    return tree;
}

static const struct {
    const char *subject, *namespace_name;
    bool is_named; /* user system:serviceaccount:ns:robot of the groups a and b */
} names[] = {
    {"{'kind':'User','name':'system:serviceaccount:ns:robot'}", "", true},
    {"{'kind':'User','name':'robot'}", "", false},
    {"{'kind':'User'}", "", false},
    {"{'kind':'Group','name':'b'}", "", true},
    {"{'kind':'Group','name':'c'}", "", false},
    {"{'kind':'Group','name':''}", "", false},
    {"{'kind':'ServiceAccount','name':'robot','namespace':'ns'}", "", true},
    {"{'kind':'ServiceAccount','name':'robot','namespace':'other'}", "ns", false},
    {"{'kind':'ServiceAccount','name':'robot'}", "ns", true},
    {"{'kind':'ServiceAccount','name':'robot'}", "", false},
    {"{'kind':'Robot','name':'robot'}", "ns", false},
};

START_TEST(test_names)
{
    SCOPED(json_free_p)
    cJSON *spec = parse("{'user':'system:serviceaccount:ns:robot','groups':['a','b']}");
    SCOPED(json_free_p) cJSON *subjects = json_array();
    json_push(subjects, parse(names[_i].subject));
    ck_assert_int_eq(rbac_names(subjects, names[_i].namespace_name, spec), names[_i].is_named);
}
END_TEST

#define PODS "'resourceAttributes':{'verb':'get','group':'','resource':'pods','name':'x'"
static const struct {
    const char *rule, *spec;
    bool is_cluster, is_allowed;
} rules[] = {
    {"{'verbs':['get'],'apiGroups':[''],'resources':['pods']}", "{" PODS "}}", false, true},
    {"{'verbs':['list'],'apiGroups':[''],'resources':['pods']}", "{" PODS "}}", false, false},
    {"{'verbs':['get'],'apiGroups':['apps'],'resources':['pods']}", "{" PODS "}}", false, false},
    {"{'verbs':['get'],'apiGroups':[''],'resources':['nodes']}", "{" PODS "}}", false, false},
    {"{'verbs':['*'],'apiGroups':['*'],'resources':['*']}", "{" PODS "}}", false, true},
    {"{'verbs':['get'],'resources':['pods']}", "{" PODS "}}", false, false},
    {"{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['x']}", "{" PODS "}}",
     false, true},
    {"{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['y']}", "{" PODS "}}",
     false, false},
    {"{'verbs':['get'],'apiGroups':[''],'resources':['pods']}", "{" PODS ",'subresource':'log'}}",
     false, false},
    {"{'verbs':['get'],'apiGroups':[''],'resources':['pods/log']}",
     "{" PODS ",'subresource':'log'}}", false, true},
    {"{'verbs':['get'],'apiGroups':[''],'resources':['*/log']}", "{" PODS ",'subresource':'log'}}",
     false, true},
    {"{'verbs':['get'],'nonResourceURLs':['/a/*']}",
     "{'nonResourceAttributes':{'verb':'get','path':'/a/b'}}", true, true},
    {"{'verbs':['get'],'nonResourceURLs':['/a']}",
     "{'nonResourceAttributes':{'verb':'get','path':'/a/b'}}", true, false},
    {"{'verbs':['get'],'nonResourceURLs':['/a/b']}",
     "{'nonResourceAttributes':{'verb':'get','path':'/a/b'}}", false, false},
    {"{'verbs':['*'],'apiGroups':['*'],'resources':['*']}",
     "{'nonResourceAttributes':{'verb':'get','path':'/a'}}", true, false},
    {"{'verbs':['*'],'apiGroups':['*'],'resources':['*'],'nonResourceURLs':['*']}", "{}", true,
     false},
};

START_TEST(test_rules)
{
    SCOPED(json_free_p) cJSON *spec = parse(rules[_i].spec), *list = json_array();
    json_push(list, parse(rules[_i].rule));
    ck_assert_int_eq(rbac_allows(list, rules[_i].is_cluster, spec), rules[_i].is_allowed);
}
END_TEST

SUITE(rbac)
{
    LOOP("names", test_names, 0, ARRAY_LEN(names));
    LOOP("rules", test_rules, 0, ARRAY_LEN(rules));
}
