/* The CEL interpreter: a table of expressions, ceilings, and the public conformance vectors when a
 * folder with them is at hand ($AGENT_SANDBOX_SHARED, or ../shared beside the tree). */
#include "admission/cel.h"

#include <math.h>
#include <stdio.h>

#include "admission/cel_tree.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

static const char *const names[] = {"self", "oldSelf", NULL};
static const struct field number_fields[] = {
    {.name = "count", .type = F_INT64},
    {.name = "labels", .type = F_MAP, .item = F_STRING},
    {.name = "ratio", .type = F_NUMBER},
    {.name = "ratios", .type = F_LIST, .item = F_NUMBER},
    {0},
};
static const struct shape numbers = {.name = "Numbers", .fields = number_fields};
static const char self_text[] =
    "{\"name\":\"web\",\"count\":3,\"ratio\":2,\"ratios\":[1,2],\"half\":0.5,\"on\":true,"
    "\"none\":null,\"big\":9007199254740993,\"labels\":{\"a.b/c\":\"x\",\"k\":\"v\"},\"list\":[1,2,"
    "3],\"items\":[{\"name\":\"a\",\"n\":1},{\"name\":\"b\",\"n\":2}],\"empty\":[],\"time\":"
    "\"2026-01-02T03:04:05Z\",\"a-b\":\"1\",\"c.d\":\"2\",\"e/"
    "f\":\"3\",\"x__y\":\"4\",\"namespace\":\"5\"}";
static const char old_text[] = "{\"name\":\"old\",\"list\":[1,2,3],\"labels\":{\"k\":\"v\",\"a.b/"
                               "c\":\"x\"},\"items\":[]}";

static struct cel_value value_of(struct arena *arena, const char *expr,
                                 const struct cel_variable *vars, const char *const *declared)
{
    SCOPED(err_fini) struct err err = {0};
    const struct cel_node *tree = NULL;
    if (cel_parse(arena, expr, declared, &tree, &err) < 0)
        return cel_error(arena_printf(arena, "parse: %s", err_text(&err)));
    return cel_eval(arena, tree, vars, CEL_STEPS_MAX, NULL);
}

/* The same type and value; NaN is itself here. */
static bool is_same(struct cel_value a, struct cel_value b)
{
    SCOPED(arena_fini) struct arena arena = {0};
    struct cel_ctx c = {.arena = &arena, .steps = CEL_STEPS_MAX};
    if (a.type != b.type)
        return false;
    return (a.type == CEL_DOUBLE && isnan(a.d) && isnan(b.d)) || cel_equal(&c, &a, &b);
}

/* What is expected: another expression, or "!" and a part of the error. */
static const struct {
    const char *expr, *expected;
} rows[] = {
    /* literals */
    {"0", "0"},
    {"-9223372036854775808", "-9223372036854775807 - 1"},
    {"9223372036854775808", "!out of range"},
    {"18446744073709551615u", "0u + 18446744073709551615u"},
    {"18446744073709551616u", "!out of range"},
    {"-1u", "!parse"},
    {"0xff", "255"},
    {"-0xF", "-15"},
    {"0xFFu", "255u"},
    {"0x", "!without digits"},
    {"1.5", "3.0 / 2.0"},
    {".5", "0.5"},
    {"1e3", "1000.0"},
    {"-1.5E-2", "-0.015"},
    {"'a' \"b\"", "!more text"},
    {"'a'", "\"a\""},
    {"'''a'b'''", "\"a'b\""},
    {"\"\"\"a\"\nb\"\"\"", "'a\"\\nb'"},
    {"r'\\n'", "'\\\\n'"},
    {"R\"\\d\"", "'\\\\d'"},
    {"'\\x41\\101\\u0041\\U00000041'", "'AAAA'"},
    {"'\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\\"\\'\\`'.size()", "12"},
    {"b'\\xff'.size()", "1"},
    {"'\\xff'.size()", "1"},
    {"bytes('\\xff').size()", "2"},
    {"b'\\u0041'", "!escape"},
    {"'\\ud800'", "!escape"},
    {"'\\U00110000'", "!escape"},
    {"'\\q'", "!escape"},
    {"'\\4'", "!escape"},
    {"'abc", "!without end"},
    {"'a\nb'", "!without end"},
    {"rb'\\n'", "b'\\\\n'"},
    {"true", "true == !false"},
    {"null", "{'a': null}.a"},
    {"// nothing\n1 // one", "1"},
    {"", "!missing"},
    {"1 +", "!missing"},
    {"(1", "!sign"},
    {"1)", "!more text"},
    {"[1,]", "[1]"},
    {"size([1],)", "!missing"},
    {"size([1], )", "!missing"},
    {"[1, 2, ].size()", "2"},
    {"[,]", "!missing"},
    {"{1: 2,}", "{1: 2}"},
    {"{1}", "!sign"},
    {"#", "!unexpected"},
    {"a", "!not declared"},
    {"for", "!reserved"},
    {"f(1)", "!does not exist"},
    {"size()", "!number of arguments"},
    {"size(1, 2)", "!number of arguments"},
    {"'a'.contains()", "!number of arguments"},
    {"contains('a', 'a')", "!does not exist"},
    {"'a'.int()", "!does not exist"},
    {"self.in", "!reserved"},
    {"self.", "!missing"},
    {".5.a", "!no such member"},
    {"has(self)", "!needs a member"},
    {"[1].all(1, true)", "!variable"},
    {"[1].all(x)", "!number of arguments"},
    {"[1].filter(x, true, x)", "!number of arguments"},
    {"[1].all(x, true) && x", "!not declared"},
    /* integers */
    {"1 + 2 * 3", "7"},
    {"(1 + 2) * 3", "9"},
    {"7 / 2", "3"},
    {"-7 / 2", "-3"},
    {"-7 % 3", "-1"},
    {"7 % -3", "1"},
    {"1 - 2 - 3", "-4"},
    {"--1", "1"},
    {"-(-9223372036854775808)", "!overflow"},
    {"9223372036854775807 + 1", "!overflow"},
    {"-9223372036854775808 - 1", "!overflow"},
    {"9223372036854775807 * 2", "!overflow"},
    {"-9223372036854775808 / -1", "!overflow"},
    {"-9223372036854775808 % -1", "!overflow"},
    {"1 / 0", "!division by zero"},
    {"1 % 0", "!modulus by zero"},
    {"1u - 2u", "!overflow"},
    {"1u / 0u", "!division by zero"},
    {"5u % 3u", "2u"},
    {"18446744073709551615u + 1u", "!overflow"},
    {"1 + 1u", "!overload"},
    {"1 + 1.0", "!overload"},
    {"-(1u)", "!overload"},
    {"-'a'", "!overload"},
    /* doubles */
    {"1.0 / 0.0", "double('+Inf')"},
    {"-1.0 / 0.0", "double('-Inf')"},
    {"0.0 / 0.0", "double('NaN')"},
    {"0.0 / 0.0 == 0.0 / 0.0", "false"},
    {"0.0 / 0.0 != 0.0 / 0.0", "true"},
    {"0.0 / 0.0 < 1.0", "false"},
    {"1.5 % 1.0", "!overload"},
    {"0.1 + 0.2 > 0.3", "true"},
    /* comparisons */
    {"1 == 1.0", "true"},
    {"1 == 1u", "true"},
    {"1u < 1.5", "true"},
    {"-1 < 0u", "true"},
    {"9007199254740993 == 9007199254740992.0", "true"},
    {"9223372036854775807 < 9223372036854775808.0", "false"},
    {"9223372036854775807 < 9223372036854777856.0", "true"},
    {"9223372036854775807 < 9223372036854775808u", "true"},
    {"1 == '1'", "false"},
    {"1 != '1'", "true"},
    {"1 < '1'", "!overload"},
    {"true == 1", "false"},
    {"false < true", "true"},
    {"'a' < 'b'", "true"},
    {"'a' < 'ab'", "true"},
    {"'B' < 'a'", "true"},
    {"b'a' < b'b'", "true"},
    {"b'a' == 'a'", "false"},
    {"null == null", "true"},
    {"null == 0", "false"},
    {"null < null", "!overload"},
    {"[1, 2] == [1, 2.0]", "true"},
    {"[1, 2] == [2, 1]", "false"},
    {"[1] == [1, 2]", "false"},
    {"[1] < [2]", "!overload"},
    {"{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "true"},
    {"{'a': 1} == {'a': 2}", "false"},
    {"{'a': 1} == {'b': 1}", "false"},
    {"{1: 'x'} == {1u: 'x'}", "true"},
    {"1 < 2 == true", "true"},
    /* logic */
    {"true && false", "false"},
    {"true || false", "true"},
    {"!true", "false"},
    {"!!true", "true"},
    {"!1", "!overload"},
    {"false && 1 / 0 == 1", "false"},
    {"1 / 0 == 1 && false", "false"},
    {"true || 1 / 0 == 1", "true"},
    {"1 / 0 == 1 || true", "true"},
    {"true && 1 / 0 == 1", "!division"},
    {"1 / 0 == 1 && true", "!division"},
    {"false || 1 / 0 == 1", "!division"},
    {"1 / 0 == 1 || 1 % 0 == 1", "!division"},
    {"1 && true", "!overload"},
    {"'x' || true", "true"},
    {"true ? 1 : 1 / 0", "1"},
    {"false ? 1 / 0 : 2", "2"},
    {"1 / 0 == 1 ? 1 : 2", "!division"},
    {"1 ? 1 : 2", "!overload"},
    {"true ? false ? 1 : 2 : 3", "!sign"},
    {"true ? (false ? 1 : 2) : 3", "2"},
    {"false ? 1 : true ? 2 : 3", "2"},
    {"false || true && false", "false"},
    /* lists and maps */
    {"[1, 2, 3][1]", "2"},
    {"[1][1]", "!out of bounds"},
    {"[1][-1]", "!out of bounds"},
    {"[1][0.0]", "1"},
    {"[1][0u]", "1"},
    {"[1][0.5]", "!index"},
    {"[1]['a']", "!index"},
    {"[1] + [2, 3]", "[1, 2, 3]"},
    {"[] + []", "[]"},
    {"[1] - [1]", "!overload"},
    {"1 in [1, 2]", "true"},
    {"3 in [1, 2]", "false"},
    {"'a' in {'a': 1}", "true"},
    {"1.0 in {1: 1}", "true"},
    {"1 in 'a'", "!overload"},
    {"{'a': 1}['a']", "1"},
    {"{'a': 1}.a", "1"},
    {"{'a': 1}.b", "!no such key: b"},
    {"{1: 'x'}[1u]", "'x'"},
    {"{1: 'x'}[2]", "!no such key"},
    {"{'a': 1, 'a': 2}", "!repeated"},
    {"{1: 1, 1u: 2}", "!repeated"},
    {"{1.5: 1}", "!key type"},
    {"{null: 1}", "!key type"},
    {"{'a b': 1}['a b']", "1"},
    {"{'a-b': 1}.`a-b`", "1"},
    {"{'f': {'g': [1, {'h': 'x'}]}}.f.g[1].h", "'x'"},
    {"1[0]", "!overload"},
    {"1 .a", "!no such member"},
    {"size([1, 2])", "2"},
    {"[1, 2].size()", "2"},
    {"size({'a': 1})", "1"},
    {"size(1)", "!overload"},
    /* macros */
    {"has({'a': 1}.a)", "true"},
    {"has({'a': 1}.b)", "false"},
    {"has({'a': {}}.a.b)", "false"},
    {"has({}.a.b)", "!no such key"},
    {"has([1].a)", "!overload"},
    {"[1, 2].all(x, x > 0)", "true"},
    {"[1, 2].all(x, x > 1)", "false"},
    {"[].all(x, false)", "true"},
    {"[0, 1].all(x, 1 / x == 2)", "false"},
    {"[0, 1].all(x, 1 / x == 1)", "!division"},
    {"[1].all(x, x)", "!overload"},
    {"[1, 2].exists(x, x == 2)", "true"},
    {"[].exists(x, true)", "false"},
    {"[0, 1].exists(x, 1 / x == 1)", "true"},
    {"[0, 1].exists(x, 1 / x == 2)", "!division"},
    {"[1, 2, 2].exists_one(x, x == 1)", "true"},
    {"[1, 2, 2].exists_one(x, x == 2)", "false"},
    {"[0, 1].exists_one(x, 1 / x == 1)", "!division"},
    {"[1, 2, 3].filter(x, x > 1)", "[2, 3]"},
    {"[0].filter(x, 1 / x > 1)", "!division"},
    {"[1, 2].map(x, x * 2)", "[2, 4]"},
    {"[1, 2, 3].map(x, x > 1, x * 2)", "[4, 6]"},
    {"[0].map(x, 1 / x)", "!division"},
    {"{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])", "true"},
    {"{'a': 1, 'b': 2}.map(k, k)", "['a', 'b']"},
    {"{'a': 1, 'b': 2}.filter(k, k == 'b')", "['b']"},
    {"[[1, 2], [3]].map(x, x.map(y, y + 1))", "[[2, 3], [4]]"},
    {"[1].map(x, [2].map(x, x))", "[[2]]"},
    {"[1, 2].all(x, [3].exists(y, x < y))", "true"},
    {"1 .all(x, true)", "!overload"},
    /* texts */
    {"'a' + 'b'", "'ab'"},
    {"b'a' + b'b'", "b'ab'"},
    {"'a' + 1", "!overload"},
    {"'a' * 2", "!overload"},
    {"size('h\\u00e4\\U0001f600')", "3"},
    {"size(b'\\xc3\\xa4')", "2"},
    {"'abc'.contains('bc')", "true"},
    {"'abc'.contains('')", "true"},
    {"'abc'.contains('cb')", "false"},
    {"'abc'.contains(1)", "!overload"},
    {"'abc'.startsWith('ab')", "true"},
    {"'abc'.startsWith('abcd')", "false"},
    {"'abc'.endsWith('bc')", "true"},
    {"'abc'.endsWith('abcd')", "false"},
    {"'a\\x00b'.contains('\\x00b')", "true"},
    {"'abc'.matches('^a.c$')", "true"},
    {"matches('abc', 'b')", "true"},
    {"'abc'.matches('^b')", "false"},
    {"'a\\n'.matches('^a$')", "false"},
    {"'\\u00e4'.matches('^.$')", "true"},
    {"'abc'.matches('(')", "!regular expression"},
    {"'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.matches('^(a+)+$')", "false"},
    {"'aBc\\u00c4'.lowerAscii()", "'abc\\u00c4'"},
    {"'aBc\\u00e4'.upperAscii()", "'ABC\\u00e4'"},
    {"'h\\u00e4llo'.charAt(1)", "'\\u00e4'"},
    {"'abc'.charAt(3)", "''"},
    {"'abc'.charAt(4)", "!index"},
    {"'abc'.charAt(-1)", "!index"},
    {"'\\u00e4bab'.indexOf('b')", "1"},
    {"'abab'.indexOf('b', 2)", "3"},
    {"'abab'.indexOf('x')", "-1"},
    {"'abab'.indexOf('b', 9)", "!index"},
    {"'\\u00e4bab'.lastIndexOf('b')", "3"},
    {"'abab'.lastIndexOf('b', 2)", "1"},
    {"'abab'.lastIndexOf('x')", "-1"},
    {"'abab'.replace('b', 'c')", "'acac'"},
    {"'abab'.replace('b', 'c', 1)", "'acab'"},
    {"'abab'.replace('b', 'c', 0)", "'abab'"},
    {"'ab'.replace('', '-')", "'-a-b-'"},
    {"'a,b,c'.split(',')", "['a', 'b', 'c']"},
    {"'a,b,c'.split(',', 2)", "['a', 'b,c']"},
    {"'a,b,c'.split(',', 0)", "[]"},
    {"'a\\u00e4'.split('')", "['a', '\\u00e4']"},
    {"''.split(',')", "['']"},
    {"'h\\u00e4llo'.substring(1)", "'\\u00e4llo'"},
    {"'h\\u00e4llo'.substring(1, 3)", "'\\u00e4l'"},
    {"'abc'.substring(2, 1)", "!index"},
    {"'abc'.substring(4)", "!index"},
    {"' \\t a b\\u00a0\\n'.trim()", "'a b'"},
    {"'  '.trim()", "''"},
    {"['a', 'b'].join()", "'ab'"},
    {"['a', 'b'].join('-')", "'a-b'"},
    {"[1].join()", "!overload"},
    {"['a', 'b'].join('-').size()", "3"},
    {"'%s %d %.1f %x %%'.format(['a', -1, 0.25, 255])", "'a -1 0.2 ff %'"},
    {"'%s'.format([{'b': [1, null], 'a': b'\\xff'}])", "'{a: \\ufffd, b: [1, null]}'"},
    {"'%s'.format([self.items])", "'[{n: 1, name: a}, {n: 2, name: b}]'"},
    {"'%b %o %X'.format([true, 8, b'z'])", "'1 10 7A'"},
    {"'%s'.format([[optional.of(1)]])", "!has no text"},
    {"'%'.format([1])", "!has no end"},
    {"'%y'.format([1])", "!unrecognized"},
    {"'%.999f'.format([1.0])", "!too large"},
    {"'%s %s'.format([1])", "!without a value"},
    {"strings.quote('a\\n\"')", "'\"a\\\\n\\\\\"\"'"},
    {"'a\\u00e4b'.reverse()", "'b\\u00e4a'"},
    /* regular expressions */
    {"'ab12'.find('[0-9]+')", "'12'"},
    {"'ab'.find('[0-9]+')", "''"},
    {"'a1b22'.findAll('[0-9]+')", "['1', '22']"},
    {"'a1b22'.findAll('[0-9]+', 1)", "['1']"},
    {"'ab'.findAll('x*')", "['', '', '']"},
    {"'\\u00e4a'.findAll('a*')", "['', 'a']"},
    {"'a'.matches('a' + 'b|a')", "true"},
    {"'a'.matches('(' + '')", "!invalid regular expression"},
    {"'a'.matches('(')", "!a group without end"},
    {"'a'.matches('\\\\pL')", "!classes of Unicode"},
    /* lists, sets */
    {"[1, 2, 2].isSorted() && ![2, 1].isSorted()", "true"},
    {"[1, 'a'].isSorted()", "!overload"},
    {"[3, 1, 2].min() + [3, 1, 2].max()", "4"},
    {"[].min()", "!empty list"},
    {"[1, 2].sum()", "3"},
    {"[].sum()", "0"},
    {"['a'].sum()", "!overload"},
    {"[duration('1s'), duration('2s')].sum()", "duration('3s')"},
    {"[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1)", "2"},
    {"[1].indexOf(2)", "-1"},
    {"sets.contains([1, 2], [2, 1, 1]) && !sets.contains([1], [2])", "true"},
    {"sets.equivalent([1, 2], [2, 1, 1])", "true"},
    {"sets.intersects([1, 2], [3, 1]) && !sets.intersects([1], [])", "true"},
    {"sets.unknown([1])", "!not declared"},
    /* optionals */
    {"self.?name.orValue('x') + self.?missing.orValue('y')", "'weby'"},
    {"self.?a__dash__b.value()", "'1'"},
    {"self.labels[?'k'].value()", "'v'"},
    {"self.list[?7].hasValue()", "false"},
    {"self.?missing.value()", "!dereference"},
    {"self.?items.optMap(i, i.size()).orValue(0)", "2"},
    {"[?self.?missing, ?optional.of(1)]", "[1]"},
    {"{?'a': optional.none(), 'b': 1}", "{'b': 1}"},
    {"[?1]", "!overload"},
    {"(1).?a", "!overload"},
    /* two variables */
    {"self.list.all(i, v, v == i + 1)", "true"},
    {"self.labels.exists(k, v, k == 'k' && v == 'v')", "true"},
    {"[3, 4].transformList(i, v, i > 0, v)", "[4]"},
    {"{'a': 1}.transformMap(k, v, v + 1)", "{'a': 2}"},
    {"{'a': 'b'}.transformMapEntry(k, v, {v: k})", "{'b': 'a'}"},
    {"{'a': 'b'}.transformMapEntry(k, v, {})", "!one key"},
    {"['x', 'x'].transformMapEntry(i, v, {v: i})", "!repeated key"},
    {"[1].all(a, a, true)", "!of one name"},
    {"[1].filter(i, v, true)", "!not declared: v"},
    /* addresses */
    {"ip('10.0.0.1').family() + ip('::1').family()", "10"},
    {"string(ip('2001:DB8::1'))", "'2001:db8::1'"},
    {"cidr('10.0.0.0/8').containsIP('10.1.2.3')", "true"},
    {"cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "true"},
    {"string(cidr('10.1.2.3/12').masked())", "'10.0.0.0/12'"},
    {"cidr('10.0.0.0/8').prefixLength()", "8"},
    {"isIP('010.0.0.1') || isIP('::1%eth0') || isCIDR('10.0.0.0/33') || isCIDR('10.0.0.0/08')",
     "false"},
    {"ip('x')", "!no IP"},
    {"cidr('10.0.0.0')", "!no CIDR"},
    /* times */
    {"timestamp('2026-01-02T03:04:05.678Z').getMilliseconds()", "678"},
    {"timestamp('2026-01-02T23:04:05Z').getDate('+02:00')", "3"},
    {"timestamp('2026-01-02T23:04:05Z').getHours('Europe/Berlin')", "!time zone"},
    {"duration('90m').getHours()", "1"},
    {"duration('-1500ms').getMilliseconds()", "-500"},
    /* what is not there */
    {"url('https://a')", "!of Kubernetes that is not supported here: url"},
    {"self.name.nothing()", "!does not exist: nothing"},
    {"Foo{}", "!messages"},
    {"self.items.map(self, self.n).exists(x, x == .self.count - 1)", "true"},
    /* conversions */
    {"int('42')", "42"},
    {"int('4x')", "!no integer"},
    {"int(3.9)", "3"},
    {"int(-3.9)", "-3"},
    {"int(1e19)", "!range"},
    {"int(9223372036854775807u)", "9223372036854775807"},
    {"int(9223372036854775808u)", "!range"},
    {"int(0.0 / 0.0)", "!range"},
    {"int(true)", "!overload"},
    {"uint(-1)", "!range"},
    {"uint('7')", "7u"},
    {"uint(1e20)", "!range"},
    {"double('1.5')", "1.5"},
    {"double(' 1')", "!no number"},
    {"double(3)", "3.0"},
    {"string(1.0)", "'1'"},
    {"string(0.1)", "'0.1'"},
    {"string(123456.789)", "'123456.789'"},
    {"string(1e21)", "'1e+21'"},
    {"string(1e-7)", "'1e-07'"},
    {"string(1e20)", "'100000000000000000000'"},
    {"string(true)", "'true'"},
    {"string(-5)", "'-5'"},
    {"string(b'abc')", "'abc'"},
    {"string(b'\\xff')", "!UTF-8"},
    {"string([1])", "!overload"},
    {"bytes('\\u00e4')", "b'\\xc3\\xa4'"},
    {"bool('true')", "true"},
    {"bool('yes')", "!truth"},
    {"dyn(1) == 1", "true"},
    {"type(1) == int", "true"},
    {"type(1u)", "uint"},
    {"type(type(1)) == type", "true"},
    {"type([])", "list"},
    {"type({}) == map", "true"},
    {"type(null)", "null_type"},
    /* times */
    {"timestamp('2026-01-02T03:04:05Z') < timestamp('2026-01-02T03:04:06Z')", "true"},
    {"timestamp('2026-01-02T04:04:05+01:00')", "timestamp('2026-01-02T03:04:05Z')"},
    {"timestamp('nonsense')", "!no time"},
    {"int(timestamp('1970-01-01T00:01:00Z'))", "60"},
    {"timestamp(60)", "timestamp('1970-01-01T00:01:00Z')"},
    {"timestamp(1) - timestamp(0)", "duration('1s')"},
    {"timestamp(0) + duration('1h')", "timestamp(3600)"},
    {"timestamp(0) - duration('1ms')", "timestamp('1969-12-31T23:59:59.999Z')"},
    {"timestamp(253402300799) + duration('1s')", "!overflow"},
    {"timestamp(253402300800)", "!range"},
    {"string(timestamp('2026-01-02T03:04:05.060Z'))", "'2026-01-02T03:04:05.06Z'"},
    {"duration('1h30m') > duration('89m')", "true"},
    {"duration('-1.5s') + duration('1s')", "duration('-500ms')"},
    {"duration('1')", "!no duration"},
    {"string(duration('1m1.5s'))", "'61.5s'"},
    {"-duration('1s')", "duration('-1s')"},
    {"duration('1s') * 2", "!overload"},
    /* objects */
    {"self.name", "'web'"},
    {"self.count + 1", "4"},
    {"type(self.ratio)", "double"},
    {"self.ratios.map(r, r / 2.0)", "[0.5, 1.0]"},
    {"self.big", "9007199254740993"},
    {"self.half", "0.5"},
    {"self.on", "true"},
    {"self.none == null", "true"},
    {"has(self.none)", "true"},
    {"has(self.nothing)", "false"},
    {"self.nothing", "!no such key: nothing"},
    {"self.name.size() <= 63", "true"},
    {"self.labels['a.b/c']", "'x'"},
    {"self.labels == oldSelf.labels", "true"},
    {"self.list == oldSelf.list", "true"},
    {"self.list == [1, 2, 3]", "true"},
    {"self.items == oldSelf.items", "false"},
    {"self.name == oldSelf.name", "false"},
    {"self.items.all(i, i.n > 0)", "true"},
    {"self.items.map(i, i.name)", "['a', 'b']"},
    {"self.items.exists_one(i, i.name == 'b' && i.n == 2)", "true"},
    {"self.items[0] == {'n': 1, 'name': 'a'}", "true"},
    {"'k' in self.labels", "true"},
    {"2 in self.list", "true"},
    {"size(self.empty)", "0"},
    {"size(self.labels)", "2"},
    {"self.list + [4]", "[1, 2, 3, 4]"},
    {"type(self.time)", "string"},
    {"self.a__dash__b + self.c__dot__d + self.e__slash__f", "'123'"},
    {"self.x__underscores__y + self.__namespace__", "'45'"},
    {"has(self.__in__)", "false"},
    {"self.labels.k__dash__x", "!no such key: k__dash__x"},
    {"timestamp(self.time) > timestamp(0)", "true"},
    {"self.labels.all(k, self.labels[k].size() == 1)", "true"},
};

START_TEST(test_row)
{
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED(json_free_p) cJSON *self = NULL, *old = NULL;
    ck_assert_int_eq(json_parse_str(self_text, &self, NULL), 0);
    ck_assert_int_eq(json_parse_str(old_text, &old, NULL), 0);
    const struct cel_variable vars[] = {
        {"self", cel_from_json(self, &numbers)}, {"oldSelf", cel_from_json(old, &numbers)}, {0}};
    const char *expected = rows[_i].expected;
    struct cel_value got = value_of(&arena, rows[_i].expr, vars, names);
    const char *error = got.type == CEL_ERROR ? got.error : "";
    if (expected[0] == '!')
        ck_assert_msg(strstr(error, expected + 1) != NULL, "%s: \"%s\"", rows[_i].expr, error);
    else
        ck_assert_msg(is_same(got, value_of(&arena, expected, vars, names)), "%s: type %d %s",
                      rows[_i].expr, got.type, error);
}
END_TEST

/* ---- ceilings ---- */

static char *repeated(const char *before, const char *piece, size_t n, const char *after)
{
    struct buf b = {0};
    buf_puts(&b, before);
    for (size_t i = 0; i < n; i++)
        buf_puts(&b, piece);
    buf_puts(&b, after);
    return buf_take(&b, NULL);
}

static const struct {
    const char *before, *piece;
    size_t n;
    const char *after, *error;
} large[] = {
    {"", "(", 100000, "1", "too large"},
    {"", "(", 1000, "1", "too large"},
    {"", "[", 1000, "", "too large"},
    {"", "-", 1000, "1", "too large"},
    {"", "!", 1000, "true", "too large"},
    {"1", "+1", 1000, "", "too large"},
    {"{}", ".a", 1000, "", "too large"},
    {"[]", "[0]", 1000, "", "too large"},
    {"", "true?1:", 1000, "1", "too large"},
    {"[", "1,", 1000, "]", "too many arguments"},
    {"{", "1:1,", 1000, "}", "too many members"},
    {"'", "a", 20000, "'", "too large"},
    {"[[0,1,2,3,4,5,6,7,8,9].map(a,0)", "+[0,1,2,3,4,5,6,7,8,9]", 20,
     "].all(l,l.all(a,l.all(b,l.all(c,l.all(d,true)))))", CEL_TOO_COSTLY},
    {"['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa']", ".map(s,s+s+s+s+s+s+s+s)", 12, "", CEL_TOO_COSTLY},
    {"[0]", ".map(s,[s,s,s,s,s,s,s,s])", 100, "", ""},
    {"[0,0]", ".map(s,s).filter(s,true)", 40, "==[0,0]", ""},
};

START_TEST(test_large)
{
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED_FREE char *text =
        repeated(large[_i].before, large[_i].piece, large[_i].n, large[_i].after);
    struct cel_value got = value_of(&arena, text, NULL, NULL);
    const char *error = got.type == CEL_ERROR ? got.error : "";
    ck_assert_msg(strstr(error, large[_i].error) && (!*error == !*large[_i].error), "%s: \"%s\"",
                  large[_i].piece, error);
}
END_TEST

START_TEST(test_bad_utf8)
{
    SCOPED(arena_fini) struct arena arena = {0};
    struct cel_value got = value_of(&arena, "'\xff'", NULL, NULL);
    ck_assert_int_eq(got.type, CEL_ERROR);
    ck_assert_ptr_nonnull(strstr(got.error, "UTF-8"));
}
END_TEST

START_TEST(test_uses)
{
    SCOPED(arena_fini) struct arena arena = {0};
    const struct cel_node *tree = NULL;
    ck_assert_int_eq(cel_parse(&arena, "self.a == 'oldSelf'", names, &tree, NULL), 0);
    ck_assert(cel_uses(tree, "self") && !cel_uses(tree, "oldSelf"));
    ck_assert_int_eq(cel_parse(&arena, "[1].all(x, oldSelf.a == x)", names, &tree, NULL), 0);
    ck_assert(cel_uses(tree, "oldSelf"));
}
END_TEST

/* ---- the public vectors: a reader of text-format protobuf, as far as they need it ---- */

struct pb {
    const char *name;
    struct str text; /* of a scalar, without quotes and escapes */
    bool is_message;
    struct pb *first, *next; /* fields of a message; the next field of its parent */
};
struct reader {
    struct arena *arena;
    const char *p;
};

static void skip(struct reader *r)
{
    for (;;) {
        r->p += strspn(r->p, " \t\r\n,;");
        if (*r->p != '#')
            return;
        r->p += strcspn(r->p, "\n");
    }
}

static char unescaped(struct reader *r)
{
    static const char simple[] = "abfnrtv\\?\"'", meant[] = "\a\b\f\n\r\t\v\\?\"'";
    const char *at = strchr(simple, *r->p);
    if (at) {
        r->p++;
        return meant[at - simple];
    }
    int base = *r->p == 'x' ? 16 : 8, digits = base == 16 ? 2 : 3, v = 0;
    r->p += base == 16;
    for (; digits > 0 && str_hex_digit(*r->p) >= 0 && str_hex_digit(*r->p) < base; digits--)
        v = v * base + str_hex_digit(*r->p++);
    return (char)v;
}

/* Strings beside each other are one. */
static struct str read_string(struct reader *r)
{
    SCOPED(buf_fini) struct buf out = {0};
    while (*r->p == '"' || *r->p == '\'') {
        char quote = *r->p++;
        while (*r->p && *r->p != quote) {
            if (*r->p == '\\' && (r->p[1] == 'u' || r->p[1] == 'U')) {
                size_t n = r->p[1] == 'u' ? 4 : 8;
                char bytes[4], hex[9] = "";
                memcpy(hex, r->p + 2, n);
                buf_append(&out, bytes, str_utf8_encode((uint32_t)strtoul(hex, NULL, 16), bytes));
                r->p += 2 + n;
            } else if (*r->p == '\\') {
                r->p++;
                buf_putc(&out, unescaped(r));
            } else {
                buf_putc(&out, *r->p++);
            }
        }
        ck_assert_int_eq(*r->p, quote);
        r->p++;
        skip(r);
    }
    char *copy = arena_alloc(r->arena, out.len + 1);
    memcpy(copy, buf_cstr(&out), out.len);
    return (struct str){copy, out.len};
}

static void read_fields(struct reader *r, struct pb *parent);

static void read_value(struct reader *r, struct pb *field)
{
    if (*r->p == '{') {
        r->p++;
        field->is_message = true;
        read_fields(r, field);
        ck_assert_int_eq(*r->p, '}');
        r->p++;
    } else if (*r->p == '"' || *r->p == '\'') {
        field->text = read_string(r);
    } else {
        size_t n = strcspn(r->p, " \t\r\n,;}]#");
        field->text = (struct str){arena_strndup(r->arena, r->p, n), n};
        r->p += n;
    }
}

static void read_fields(struct reader *r, struct pb *parent)
{
    struct pb **end = &parent->first;
    for (skip(r); *r->p && *r->p != '}'; skip(r)) {
        size_t n = *r->p == '[' ? strcspn(r->p, "]") + 1 : strcspn(r->p, ": \t\r\n{");
        const char *name = arena_strndup(r->arena, r->p, n);
        r->p += n;
        skip(r);
        r->p += *r->p == ':';
        skip(r);
        bool is_list = *r->p == '[';
        r->p += is_list;
        for (skip(r); *r->p && *r->p != ']'; skip(r)) {
            struct pb *field = arena_alloc(r->arena, sizeof *field);
            field->name = name;
            read_value(r, field);
            *end = field;
            end = &field->next;
            if (!is_list)
                break;
        }
        r->p += is_list;
    }
}

static const struct pb *pb_get(const struct pb *m, const char *name)
{
    for (const struct pb *f = m ? m->first : NULL; f; f = f->next)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static const char *pb_text(const struct pb *m, const char *name)
{
    const struct pb *f = pb_get(m, name);
    return f && f->text.p ? f->text.p : "";
}

/* A cel.expr.Value; false for message types. */
static bool pb_value(struct arena *arena, const struct pb *m, struct cel_value *ret);

static bool pb_items(struct arena *arena, const struct pb *m, bool is_map, struct cel_value *ret)
{
    struct cel_value *items = arena_alloc(arena, 1000 * sizeof *items);
    size_t n = 0;
    for (const struct pb *f = m->first; f && n < 998; f = f->next) {
        if (is_map && !pb_value(arena, pb_get(f, "key"), &items[n++]))
            return false;
        if (!pb_value(arena, is_map ? pb_get(f, "value") : f, &items[n++]))
            return false;
    }
    *ret = cel_list(items, n);
    ret->type = is_map ? CEL_MAP : CEL_LIST;
    return true;
}

/* The one message that JSON has a value for. */
static bool pb_duration(const struct pb *m, struct cel_value *ret)
{
    if (!m || strcmp(m->name, "[type.googleapis.com/google.protobuf.Duration]") != 0)
        return false;
    *ret = cel_duration(strtoll(pb_text(m, "seconds"), NULL, 10) * 1000000000 +
                        strtoll(pb_text(m, "nanos"), NULL, 10));
    return true;
}

static bool pb_value(struct arena *arena, const struct pb *m, struct cel_value *ret)
{
    const struct pb *f = m ? m->first : NULL;
    if (!f)
        return false;
    if (strcmp(f->name, "object_value") == 0)
        return pb_duration(f->first, ret);
    if (strcmp(f->name, "int64_value") == 0)
        *ret = cel_int(strtoll(f->text.p, NULL, 10));
    else if (strcmp(f->name, "uint64_value") == 0)
        *ret = cel_uint(strtoull(f->text.p, NULL, 10));
    else if (strcmp(f->name, "double_value") == 0)
        *ret = cel_double(strtod(f->text.p, NULL));
    else if (strcmp(f->name, "bool_value") == 0)
        *ret = cel_bool(str_eq(f->text, "true"));
    else if (strcmp(f->name, "null_value") == 0)
        *ret = (struct cel_value){.type = CEL_NULL};
    else if (strcmp(f->name, "string_value") == 0 || strcmp(f->name, "bytes_value") == 0)
        *ret = (struct cel_value){.type = f->name[0] == 's' ? CEL_STRING : CEL_BYTES, .s = f->text};
    else if (strcmp(f->name, "type_value") == 0)
        *ret = value_of(arena, f->text.p, NULL, NULL);
    else if (strcmp(f->name, "list_value") == 0 || strcmp(f->name, "map_value") == 0)
        return pb_items(arena, f, f->name[0] == 'm', ret);
    else
        return false;
    return ret->type != CEL_ERROR;
}

/* Vectors that are not for this interpreter, and why: by file and beginning of the name ("" = every
 * one), and by a piece of the expression ("" = any). */
#define UNBOUND "names are settled while parsing, as Kubernetes does by type checking"
#define CONTAINER "containers and variables with dots in their names: rules have self and oldSelf"
#define MESSAGES "protobuf messages, which JSON does not have"
#define ZONES "names of time zones, which depend on a data base of the machine"
static const struct {
    const char *file, *test, *piece, *why;
} excluded[] = {
    {"", "", "TestAllTypes", MESSAGES},
    {"", "", "google.protobuf.Any", MESSAGES},
    {"", "", "google.protobuf.Struct", MESSAGES},
    {"", "", "google.protobuf.Value", MESSAGES},
    {"", "", "google.protobuf.ListValue", MESSAGES},
    {"", "", "google.protobuf.BoolValue", MESSAGES},
    {"", "", "google.protobuf.BytesValue", MESSAGES},
    {"", "", "google.protobuf.DoubleValue", MESSAGES},
    {"", "", "google.protobuf.FloatValue", MESSAGES},
    {"", "", "google.protobuf.Int", MESSAGES},
    {"", "", "google.protobuf.UInt", MESSAGES},
    {"", "", "google.protobuf.StringValue", MESSAGES},
    {"basic", "unbound_is_runtime_error", "", UNBOUND},
    {"parse", "", "() || true", UNBOUND},
    {"fields", "qualified_ident", "", CONTAINER},
    {"fields", "map_field_select", "", CONTAINER},
    {"fields", "ident_with_longest_prefix_check", "", CONTAINER},
    {"namespace", "self_eval", "", CONTAINER},
    {"namespace", "basic", "", CONTAINER},
    {"namespace", "comprehension_shadowing_namespaced_selector", "", CONTAINER},
    {"timestamps", "", "('Australia/", ZONES},
    {"timestamps", "", "('US/", ZONES},
    {"timestamps", "", "('America/", ZONES},
    {"timestamps", "", "('Asia/", ZONES},
};

static const char *why_excluded(const char *file, const char *name, struct str expr)
{
    for (size_t i = 0; i < ARRAY_LEN(excluded); i++)
        if ((!*excluded[i].file || str_equal(excluded[i].file, file)) &&
            str_has_prefix(name, excluded[i].test) && strstr(expr.p, excluded[i].piece))
            return excluded[i].why;
    return memchr(expr.p, 0, expr.n) ? "a NUL byte in the text, which a C string cannot have"
                                     : NULL;
}

/* NULL when the vector holds, else what is wrong. */
static const char *run_vector(struct arena *arena, const struct pb *test)
{
    struct cel_variable vars[8] = {0};
    const char *declared[9] = {0};
    struct cel_value expected = cel_bool(true);
    size_t n = 0;
    for (const struct pb *f = test->first; f; f = f->next)
        if (strcmp(f->name, "bindings") == 0 && n < 7) {
            declared[n] = vars[n].name = pb_text(f, "key");
            if (!pb_value(arena, pb_get(pb_get(f, "value"), "value"), &vars[n++].value))
                return "a binding that is not understood";
        }
    const struct pb *value = pb_get(test, "value");
    if (value && !pb_value(arena, value, &expected))
        return "a value that is not understood";
    struct cel_value got = value_of(arena, pb_text(test, "expr"), vars, declared);
    if (pb_get(test, "eval_error"))
        return got.type == CEL_ERROR ? NULL : "no error";
    return is_same(got, expected) ? NULL : got.type == CEL_ERROR ? got.error : "another value";
}

/* All but math_ext, an extension that Kubernetes does not enable. */
static const char *const files[] = {
    "basic",     "comparisons", "conversions", "fields",  "integer_math", "fp_math",
    "lists",     "logic",       "macros",      "macros2", "namespace",    "network_ext",
    "optionals", "parse",       "plumbing",    "string",  "string_ext",   "timestamps"};

START_TEST(test_vectors)
{
    const char *shared = getenv("AGENT_SANDBOX_SHARED"), *file = files[_i];
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED(buf_fini) struct buf text = {0};
    FILE *in =
        fopen(arena_printf(&arena, "%s/data/cel/%s.textproto", shared ? shared : "../shared", file),
              "re");
    if (!in) {
        printf("# skip: no conformance vectors of CEL for %s\n", file);
        return;
    }
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, in)) > 0;)
        buf_append(&text, piece, n);
    fclose(in);
    struct pb whole = {0};
    read_fields(&(struct reader){&arena, buf_cstr(&text)}, &whole);
    size_t passed = 0, skipped = 0, failed = 0;
    for (const struct pb *s = whole.first; s; s = s->next)
        for (const struct pb *t = s->first; t; t = t->next) {
            if (strcmp(t->name, "test") != 0)
                continue;
            const char *name = pb_text(t, "name");
            const struct pb *expr = pb_get(t, "expr");
            ck_assert_ptr_nonnull(expr);
            const char *why = why_excluded(file, name, expr->text);
            const char *wrong = why ? NULL : run_vector(&arena, t);
            skipped += why != NULL;
            failed += wrong != NULL;
            passed += !why && !wrong;
            if (wrong)
                fprintf(stderr, "%s %s: %s: %s\n", file, name, pb_text(t, "expr"), wrong);
        }
    printf("%s: %zu vectors hold, %zu are left out\n", file, passed, skipped);
    ck_assert_uint_eq(failed, 0);
    ck_assert_uint_gt(passed, 0);
}
END_TEST

SUITE(cel)
{
    LOOP("table", test_row, 0, ARRAY_LEN(rows));
    LOOP("large", test_large, 0, ARRAY_LEN(large));
    TESTS("rest", test_bad_utf8, test_uses);
    LOOP("vectors", test_vectors, 0, ARRAY_LEN(files));
}
