/* Who a request comes from. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apiserver/auth/auth.h"
#include "apiserver/base/mem.h"

void user_fini(struct user *u)
{
    if (!u)
        return;
    free(u->name);
    free(u->uid);
    strv_free(u->groups);
    pairs_fini(&u->extra);
    *u = (struct user){0};
}

bool user_in_group(const struct user *u, const char *group)
{
    return strv_has(u->groups, group);
}

void user_join_common(struct user *u)
{
    static const char known[] = "system:authenticated", unknown[] = "system:unauthenticated";
    if (!u->groups)
        u->groups = xcalloc(1, sizeof(char *));
    if (!user_in_group(u, known) && !user_in_group(u, unknown))
        strv_add(&u->groups, xstrdup(known));
}

/* Lower-cases and percent-decodes; with a bad escape, or one that would end the string, it stays as
 * it was written. */
static char *extra_key(const char *raw)
{
    char *lower = xstrdup(raw);
    str_lower(lower);
    char *decoded = xstrdup(lower), *out = decoded;
    for (const char *s = lower; *s; s++) {
        int high = *s == '%' ? str_hex_digit(s[1]) : 0,
            low = *s == '%' && high >= 0 ? str_hex_digit(s[2]) : 0;
        if (high < 0 || low < 0 || (*s == '%' && high == 0 && low == 0)) {
            free(decoded);
            return lower;
        }
        *out++ = *s == '%' ? (char)(high * 16 + low) : *s;
        s += *s == '%' ? 2 : 0;
    }
    *out = '\0';
    free(lower);
    return decoded;
}

void user_take_extra(struct user *u, const struct pairs *headers, const char *prefix)
{
    size_t n = strlen(prefix);
    for (size_t i = 0; i < headers->n; i++) {
        const struct pair *h = &headers->v[i];
        if (n == 0 || strncasecmp(h->name, prefix, n) != 0)
            continue;
        SCOPED_FREE char *key = extra_key(h->name + n);
        pairs_add(&u->extra, key, h->value);
    }
}
