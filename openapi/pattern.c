/* Patterns of the tables; see pattern.h. They are kept for the life of the process: there are only
 * as many as the tables have, and a ceiling holds even that. */
#include "openapi/pattern.h"

#include <pthread.h>

#include "apiserver/base/regex.h"

#define PATTERNS_MAX 64 /* different patterns in all tables together */

static struct {
    pthread_mutex_t lock;
    struct arena arena;
    size_t n;
    struct {
        const char *text;          /* static, compared by address first */
        const struct regex *regex; /* NULL when it does not compile */
    } v[PATTERNS_MAX];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct regex *find_locked(const char *pattern)
{
    for (size_t i = 0; i < cache.n; i++)
        if (cache.v[i].text == pattern || strcmp(cache.v[i].text, pattern) == 0)
            return cache.v[i].regex;
    if (cache.n == PATTERNS_MAX)
        return NULL;
    const char *mistake = NULL;
    cache.v[cache.n].text = pattern;
    cache.v[cache.n].regex = regex_compile(&cache.arena, STR(pattern), &mistake);
    return cache.v[cache.n++].regex;
}

static const struct regex *find(const char *pattern)
{
    pthread_mutex_lock(&cache.lock);
    const struct regex *regex = find_locked(pattern);
    pthread_mutex_unlock(&cache.lock);
    return regex;
}

bool pattern_is_valid(const char *pattern)
{
    return find(pattern) != NULL;
}

bool pattern_matches(const char *pattern, const char *text)
{
    const struct regex *regex = find(pattern);
    return regex && regex_matches(regex, STR(text));
}
