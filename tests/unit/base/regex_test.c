/* Regular expressions: where they match, what is refused by which words, and that no pattern makes
 * them slow. */
#include "apiserver/base/regex.h"

#include "apiserver/base/buf.h"
#include "tests/lib/suite.h"

/* where: "from-to" in bytes of the first match, "" = none, "!" and a part of the mistake. */
static const struct {
    const char *pattern, *text, *where;
} rows[] = {
    {"", "", "0-0"},
    {"", "a", "0-0"},
    {"a", "ba", "1-2"},
    {"ab", "aab", "1-3"},
    {"a|b", "cb", "1-2"},
    {"a|ab", "ab", "0-1"},
    {"ab|a", "ab", "0-2"},
    {"a||b", "c", "0-0"},
    {"(a|b)c", "abc", "1-3"},
    {"(?:a)(?P<n>b)(?<m>c)", "abc", "0-3"},
    /* repetition */
    {"a*", "aaa", "0-3"},
    {"a*?", "aaa", "0-0"},
    {"a+?", "aaa", "0-1"},
    {"a??b", "ab", "0-2"},
    {"a?b", "ab", "0-2"},
    {"a{2}", "aaa", "0-2"},
    {"a{2,}", "aaaa", "0-4"},
    {"a{1,2}", "aaa", "0-2"},
    {"a{1,3}?", "aaa", "0-1"},
    {"a{0}b", "ab", "1-2"},
    {"a{,2}", "a{,2}", "0-5"},
    {"a{x", "a{x", "0-3"},
    {"(ab){2}", "ababab", "0-4"},
    {"(a*)*", "aab", "0-2"},
    {"(a*)+$", "aab", "3-3"},
    {"(a|b)*?c", "abac", "0-4"},
    {"x*", "aaa", "0-0"},
    /* places */
    {"^a", "ba", ""},
    {"a$", "ab", ""},
    {"a$", "a\n", ""},
    {"^$", "", "0-0"},
    {"(?m)^b$", "a\nb\nc", "2-3"},
    {"\\Aa\\z", "a", "0-1"},
    {"(?m)\\Ab", "a\nb", ""},
    {"\\bb", "ab b", "3-4"},
    {"\\Bb", "ab b", "1-2"},
    {"b\\b", "ba b", "3-4"},
    {"^*", "a", "0-0"},
    /* classes */
    {".", "\n", ""},
    {"(?s).", "\n", "0-1"},
    {".", "\xc3\xa4", "0-2"},
    {"[a-c]+", "xabcd", "1-4"},
    {"[^a-c]+", "abcd", "3-4"},
    {"[^a]", "\xc3\xa4", "0-2"},
    {"[]a]+", "a]", "0-2"},
    {"[^]a]", "a]b", "2-3"},
    {"[a-]+", "-a", "0-2"},
    {"[\\]\\\\]+", "\\]", "0-2"},
    {"[\\d\\-x]+", "4-x", "0-3"},
    {"[\\D]", "1a", "1-2"},
    {"[[:alpha:]_]+", "1a_", "1-3"},
    {"[[:^digit:]]", "1a", "1-2"},
    {"[\xc3\xa4-\xc3\xbc]", "a\xc3\xb6", "1-3"},
    {"\\d+\\s\\w+", "a12 b_", "1-6"},
    {"\\D\\S\\W", "1ab.", "1-4"},
    {"(?i)aB[c-d]", "AbD", "0-3"},
    {"(?i)a(?-i)b", "AB", ""},
    {"(?i:a)b", "Ab", "0-2"},
    {"(?i:a)b", "AB", ""},
    {"(?U)a+", "aa", "0-1"},
    {"(?U)a+?", "aa", "0-2"},
    /* escapes */
    {"\\.\\*\\/\\_", ".*/_", "0-4"},
    {"\\t\\n\\x41\\x{e4}\\101\\0",
     "\t\nA\xc3\xa4"
     "A",
     ""},
    {"\\x41\\x{e4}\\101",
     "A\xc3\xa4"
     "A",
     "0-4"},
    {"\\Qa.b\\E.", "a.bc", "0-4"},
    {"\\Q(", "(", "0-1"},
    /* what is broken in the text counts as one character */
    {"^.$", "\xff", "0-1"},
    /* mistakes */
    {"(", "", "!without end"},
    {")", "", "!closes nothing"},
    {"(?x)", "", "!unknown flag"},
    {"(?=a)", "", "!unknown flag"},
    {"(?<>a)", "", "!broken name"},
    {"[a", "", "!class without end"},
    {"[b-a]", "", "!end is before"},
    {"[[:nope:]]", "", "!unknown class"},
    {"*a", "", "!nothing to repeat"},
    {"a**", "", "!repetition of a repetition"},
    {"a{2}{3}", "", "!repetition of a repetition"},
    {"a{1001}", "", "!too large"},
    {"a{3,2}", "", "!ends before"},
    {"((a{100}){100}){100}", "", "!too large"},
    {"((((){1000}){1000}){1000}){1000}", "", "!too large"},
    {"(a{100}){10}b{1000}", "", ""},
    {"(a{100}){11}", "", "!too large"},
    {"(b|(a{0}){1000}){2}", "", "!too large"},
    {"\\1", "", "!unknown escape"},
    {"\\y", "", "!unknown escape"},
    {"\\x4", "", "!unknown escape"},
    {"\\x{110000}", "", "!unknown escape"},
    {"\\pL", "", "!Unicode"},
    {"\\C", "", "!single bytes"},
    {"a\\", "", "!backslash at the end"},
    {"(?i)\xc3\xa4", "", "!beyond ASCII"},
    {"\xff", "", "!UTF-8"},
};

static void where(const char *pattern, const char *text, struct buf *out)
{
    SCOPED(arena_fini) struct arena arena = {0};
    const char *mistake = NULL;
    size_t start, end;
    const struct regex *re = regex_compile(&arena, STR(pattern), &mistake);
    if (!re)
        buf_printf(out, "!%s", mistake);
    else if (regex_find(re, STR(text), 0, &start, &end))
        buf_printf(out, "%zu-%zu", start, end);
    if (re)
        ck_assert_int_eq(regex_matches(re, STR(text)), out->len > 0);
}

START_TEST(test_row)
{
    SCOPED(buf_fini) struct buf got = {0};
    const char *expected = rows[_i].where;
    where(rows[_i].pattern, rows[_i].text, &got);
    bool is_right = expected[0] == '!'
                        ? buf_cstr(&got)[0] == '!' && strstr(buf_cstr(&got), expected + 1)
                        : strcmp(buf_cstr(&got), expected) == 0;
    ck_assert_msg(is_right, "/%s/ in \"%s\": %s", rows[_i].pattern, rows[_i].text, buf_cstr(&got));
}
END_TEST

START_TEST(test_from)
{
    SCOPED(arena_fini) struct arena arena = {0};
    const char *mistake;
    size_t start, end;
    const struct regex *re = regex_compile(&arena, STR("\\bb|^a"), &mistake);
    ck_assert(regex_find(re, STR("ab b"), 1, &start, &end));
    ck_assert_uint_eq(start, 3); /* what is before from is still seen */
    ck_assert(!regex_find(re, STR("ab b"), 4, &start, &end));
    ck_assert(regex_find(re,
                         STR("a\xa9\xa9"
                             "b"),
                         3, &start, &end)); /* bytes that are no character are no word */
    ck_assert_uint_eq(start, 3);
}
END_TEST

/* Patterns that take a backtracking matcher years: the bound is on steps, and time shows it. */
static const struct {
    const char *pattern;
    bool matches;
} slow[] = {
    {"^(a+)+$", false},  {"(a|aa)+$", false},
    {"(a*)*b", true},    {"(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[^ab]", false},
    {"(x+x+)+y", false}, {"^(([a-z])+.)+[A-Z]([a-z])+$", false},
};

START_TEST(test_slow)
{
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED(buf_fini) struct buf text = {0};
    for (int i = 0; i < 50000; i++)
        buf_putc(&text, 'a');
    buf_putc(&text, 'b');
    const char *mistake;
    const struct regex *re = regex_compile(&arena, STR(slow[_i].pattern), &mistake);
    ck_assert_ptr_nonnull(re);
    ck_assert_int_eq(regex_matches(re, buf_str(&text)), slow[_i].matches);
    ck_assert_uint_ge(regex_cost(re, text.len), text.len);
    ck_assert_uint_le(regex_cost(re, text.len), (text.len + 1) * 100);
}
END_TEST

START_TEST(test_ceilings)
{
    static const struct {
        const char *piece;
        size_t n;
        const char *mistake;
    } large[] = {{"a", REGEX_TEXT_MAX + 1, "too long"},
                 {"(", 1000, "too deep"},
                 {"[a-b]", 800, NULL},
                 {"a|", 2000, "too large"}};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        SCOPED(arena_fini) struct arena arena = {0};
        SCOPED(buf_fini) struct buf pattern = {0};
        const char *mistake = "";
        for (size_t j = 0; j < large[i].n; j++)
            buf_puts(&pattern, large[i].piece);
        const struct regex *re = regex_compile(&arena, buf_str(&pattern), &mistake);
        ck_assert_msg(large[i].mistake ? !re && strstr(mistake, large[i].mistake) : re != NULL,
                      "%s: %s", large[i].piece, mistake);
    }
}
END_TEST

SUITE(regex)
{
    LOOP("rows", test_row, 0, ARRAY_LEN(rows));
    LOOP("slow", test_slow, 0, ARRAY_LEN(slow));
    TESTS("rest", test_from, test_ceilings);
}
