#include "admission/names.h"

#include "admission/admit.h"
#include "apiserver/base/mem.h"
#include "tests/lib/suite.h"

#define SUB                                                                                        \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start "                                                                         \
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "    \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define QN                                                                                         \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character "                                                                      \
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "                  \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static const struct {
    const char *name;
    bool is_subdomain, is_label;
} names[] = {
    {"a", true, true},       {"1", true, true},      {"a-b", true, true},
    {"a.b", true, false},    {"1.2.3", true, false}, {"", false, false},
    {"a/b", false, false},   {"..", false, false},   {".", false, false},
    {"UPPER", false, false}, {"a b", false, false},  {"-a", false, false},
    {"a-", false, false},    {"a.", false, false},   {".a", false, false},
    {"a..b", false, false},  {"a.-b", false, false}, {"a-.b", false, false},
    {"a_b", false, false},   {"a%b", false, false},  {"\xc3\xa9", false, false},
};

static bool is_name(const char *s, enum name_form form)
{
    SCOPED(err_fini) struct err causes = {0};
    return name_check_object(s, false, form, "f", &causes) == 0;
}

START_TEST(test_names)
{
    const char *s = names[_i].name;
    ck_assert_msg(is_name(s, NAME_SUBDOMAIN) == names[_i].is_subdomain, "%s", s);
    ck_assert_msg(is_name(s, NAME_LABEL) == names[_i].is_label, "%s", s);
}
END_TEST

static void expect_refused(const char *s, enum name_form form, const char *why)
{
    SCOPED(err_fini) struct err causes = {0};
    ck_assert_uint_gt(name_check_object(s, false, form, "f", &causes), 0);
    ck_assert_msg(strstr(causes.causes[0].message, why) != NULL, "%s", causes.causes[0].message);
}

START_TEST(test_texts_and_lengths)
{
    char s[256];
    memset(s, 'n', sizeof s);
    s[253] = '\0';
    ck_assert(is_name(s, NAME_SUBDOMAIN));
    s[253] = 'n';
    s[254] = '\0';
    expect_refused(s, NAME_SUBDOMAIN, "must be no more than 253 characters");
    expect_refused(s, NAME_LABEL, "must be no more than 63 bytes");
    expect_refused("A", NAME_SUBDOMAIN, SUB);
    expect_refused("A", NAME_LABEL,
                   "(e.g. 'my-name',  or '123-abc', regex used for validation is "
                   "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
}
END_TEST

#define K63 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
static const struct {
    const char *key;
    size_t n; /* causes */
    const char *first;
} keys[] = {
    {"a", 0, NULL},
    {"A_b.c-9", 0, NULL},
    {"example.com/A", 0, NULL},
    {K63, 0, NULL},
    {K63 "k", 1, "Invalid value: \"" K63 "k\": name part must be no more than 63 bytes"},
    {"-x", 1, "Invalid value: \"-x\": name part " QN},
    {"", 2, "Invalid value: \"\": name part must be non-empty"},
    {"UP/x", 1, "Invalid value: \"UP/x\": prefix part " SUB},
    {"/x", 1, "Invalid value: \"/x\": prefix part must be non-empty"},
    {"a/", 2, "Invalid value: \"a/\": name part must be non-empty"},
    {"a/b/c", 1,
     "Invalid value: \"a/b/c\": a valid label key " QN
     " with an optional DNS subdomain prefix and '/' (e.g. "
     "'example.com/MyName')"},
    {"a\nb", 1, "Invalid value: \"a\\nb\": name part " QN},
};

START_TEST(test_keys)
{
    SCOPED(err_fini) struct err causes = {0};
    ck_assert_uint_eq(name_check_label_key(keys[_i].key, "f", &causes), keys[_i].n);
    ck_assert_uint_eq(causes.n_causes, keys[_i].n);
    if (keys[_i].n == 0)
        return;
    ck_assert_str_eq(causes.causes[0].message, keys[_i].first);
    ck_assert_str_eq(causes.causes[0].field, "f");
    ck_assert_str_eq(causes.causes[0].reason, "FieldValueInvalid");
}
END_TEST

START_TEST(test_values_and_annotations)
{
    SCOPED(err_fini) struct err causes = {0};
    ck_assert_uint_eq(name_check_label_value("", "f", &causes), 0);
    ck_assert_uint_eq(name_check_label_value(K63, "f", &causes), 0);
    ck_assert_uint_eq(name_check_label_value(K63 "k", "f", &causes), 1);
    ck_assert_str_eq(causes.causes[0].message,
                     "Invalid value: \"" K63 "k\": must be no more than 63 bytes");
    ck_assert_uint_eq(name_check_label_value("a b", "f", &causes), 1);
    ck_assert_uint_eq(name_check_annotation_key("UP/x", "f", &causes), 0);
    ck_assert_uint_eq(name_check_annotation_key("UP/-X", "f", &causes), 1);
    ck_assert_str_eq(causes.causes[2].message, "Invalid value: \"UP/-X\": name part " QN);
    ck_assert_uint_eq(name_check_object("gen-", true, NAME_SUBDOMAIN, "f", &causes), 0);
    ck_assert_uint_eq(name_check_object("gen-", false, NAME_SUBDOMAIN, "f", &causes), 1);
    ck_assert_uint_eq(name_check_object("gen.", true, NAME_SUBDOMAIN, "f", &causes), 1);
    ck_assert_uint_eq(name_check_object("-", true, NAME_SUBDOMAIN, "f", &causes), 1);
}
END_TEST

SUITE(names)
{
    LOOP("names", test_names, 0, ARRAY_LEN(names));
    LOOP("keys", test_keys, 0, ARRAY_LEN(keys));
    TESTS("rest", test_texts_and_lengths, test_values_and_annotations);
}
