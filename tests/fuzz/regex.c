/* Fuzz target for base/regex: the first line is a pattern, the rest a text. A pattern that is none
 * says why. A match lies in the text, is found again from where it begins, and not behind it when
 * it is put alone; and looking whether there is one agrees. */
#include "apiserver/base/regex.h"

#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_match(const struct regex *re, struct str text)
{
    size_t start = SIZE_MAX, end = SIZE_MAX, again, again_end;
    bool is_found = regex_find(re, text, 0, &start, &end);
    require(is_found == regex_matches(re, text));
    if (!is_found) {
        require(start == SIZE_MAX && end == SIZE_MAX);
        return;
    }
    require(start <= end && end <= text.n);
    require(regex_find(re, text, start, &again, &again_end));
    require(again == start && again_end == end);
}

/* Alternatives that are the same, and a group around, change nothing. */
static void check_variants(struct arena *arena, struct str pattern, const struct regex *re,
                           struct str text)
{
    const char *mistake = NULL;
    char *twice = arena_alloc(arena, 2 * pattern.n + 12);
    size_t n = 0;
    twice[n++] = '(';
    memcpy(twice + n, pattern.p, pattern.n);
    n += pattern.n;
    memcpy(twice + n, ")|(", 3);
    n += 3;
    memcpy(twice + n, pattern.p, pattern.n);
    n += pattern.n;
    twice[n++] = ')';
    const struct regex *other = regex_compile(arena, (struct str){twice, n}, &mistake);
    size_t start, end, other_start, other_end;
    if (!other || !regex_find(re, text, 0, &start, &end))
        return;
    require(regex_find(other, text, 0, &other_start, &other_end));
    require(other_start == start && other_end == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED(arena_fini) struct arena arena = {0};
    const char *mistake = NULL;
    struct str all = {(const char *)data, size};
    const char *line_end = size ? memchr(all.p, '\n', size) : NULL;
    struct str pattern = {all.p, line_end ? (size_t)(line_end - all.p) : size};
    struct str text = {all.p + pattern.n + (line_end != NULL),
                       size - pattern.n - (line_end != NULL)};
    const struct regex *re = regex_compile(&arena, pattern, &mistake);
    if (!re) {
        require(mistake && *mistake);
    } else {
        require(regex_cost(re, text.n) >= text.n);
        check_match(re, text);
        check_variants(&arena, pattern, re, text);
    }
    return 0;
}
