/* Regular expressions by PCRE2; see pattern.h. Compiled patterns are kept for the life of the
 * process: there are only as many as the tables have, and a ceiling holds even that. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "openapi/pattern.h"

#include <pcre2.h>
#include <pthread.h>
#include <string.h>

#define PATTERNS_MAX 64 /* different patterns in all tables together */
#define MATCH_STEPS_MAX                                                                            \
    200000 /* backtracking steps of one match; a text of the tables' length limits needs far fewer \
            */
#define MATCH_MEMORY_KIB 4096

static struct {
    pthread_mutex_t lock;
    size_t n;
    struct {
        const char *text; /* static, compared by address first */
        pcre2_code *code; /* NULL when it does not compile */
    } v[PATTERNS_MAX];
    pcre2_match_context *limits;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pcre2_code *compile(struct str pattern)
{
    int error;
    PCRE2_SIZE offset;
    return pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n, PCRE2_DOLLAR_ENDONLY | PCRE2_UTF, &error,
                         &offset, NULL);
}

static void make_limits(void)
{
    cache.limits = pcre2_match_context_create(NULL);
    if (!cache.limits)
        return;
    pcre2_set_match_limit(cache.limits, MATCH_STEPS_MAX);
    pcre2_set_heap_limit(cache.limits, MATCH_MEMORY_KIB);
}

static bool has_limits(void)
{
    pthread_mutex_lock(&cache.lock);
    if (!cache.limits)
        make_limits();
    bool has = cache.limits != NULL;
    pthread_mutex_unlock(&cache.lock);
    return has;
}

static const pcre2_code *find_locked(const char *pattern)
{
    if (!cache.limits)
        make_limits();
    for (size_t i = 0; i < cache.n; i++)
        if (cache.v[i].text == pattern || strcmp(cache.v[i].text, pattern) == 0)
            return cache.v[i].code;
    if (cache.n == PATTERNS_MAX)
        return NULL;
    cache.v[cache.n].text = pattern;
    cache.v[cache.n].code = compile(STR(pattern));
    return cache.v[cache.n++].code;
}

static const pcre2_code *find(const char *pattern)
{
    pthread_mutex_lock(&cache.lock);
    const pcre2_code *code = find_locked(pattern);
    pthread_mutex_unlock(&cache.lock);
    return code;
}

bool pattern_is_valid(const char *pattern)
{
    return find(pattern) != NULL;
}

/* Whether text contains a match: 1 or 0; -1 when that costs too much. */
static int match(const pcre2_code *code, struct str text)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    if (!data)
        return -1;
    int n = pcre2_match(code, (PCRE2_SPTR)text.p, text.n, 0, 0, data, cache.limits);
    pcre2_match_data_free(data);
    return n >= 0 ? 1 : n == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

bool pattern_matches(const char *pattern, const char *text)
{
    const pcre2_code *code = find(pattern);
    return code && cache.limits && match(code, STR(text)) == 1;
}

int pattern_matches_once(struct str pattern, struct str text)
{
    if (pattern.n > PATTERN_LENGTH_MAX || !has_limits())
        return -1;
    pcre2_code *code = compile(pattern);
    int found = code ? match(code, text) : -1;
    pcre2_code_free(code);
    return found;
}
