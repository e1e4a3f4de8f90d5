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

static pcre2_code *compile(const char *pattern)
{
    int error;
    PCRE2_SIZE offset;
    return pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                         PCRE2_DOLLAR_ENDONLY | PCRE2_UTF, &error, &offset, NULL);
}

static void make_limits(void)
{
    cache.limits = pcre2_match_context_create(NULL);
    if (!cache.limits)
        return;
    pcre2_set_match_limit(cache.limits, MATCH_STEPS_MAX);
    pcre2_set_heap_limit(cache.limits, MATCH_MEMORY_KIB);
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
    cache.v[cache.n].code = compile(pattern);
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

bool pattern_matches(const char *pattern, const char *text)
{
    const pcre2_code *code = find(pattern);
    if (!code || !cache.limits)
        return false;
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    if (!data)
        return false;
    int n = pcre2_match(code, (PCRE2_SPTR)text, strlen(text), 0, 0, data, cache.limits);
    pcre2_match_data_free(data);
    return n >= 0;
}
