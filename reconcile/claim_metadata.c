/* What a claim may put on its pod (C5): labels only under domains that the operator allowed, no
 * annotations of the system. Checked by the controller, not at admission: a claim that breaks the
 * rules is stored and says so. */
#include <strings.h>

#include "admission/admit.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/claim.h"
#include "reconcile/keys.h"

/* Closed whatever the operator allows. */
static const char *const system_domains[] = {"kubernetes.io", "k8s.io", "agents.x-k8s.io"};

/* The texts of the failures without what validation puts before them, joined as Go's code does. */
static char *texts_of(const struct err *causes, const char *value)
{
    SCOPED(buf_fini) struct buf before = {0};
    struct buf text = {0};
    buf_puts(&before, "Invalid value: ");
    buf_go_quote(&before, value, strlen(value));
    buf_puts(&before, ": ");
    for (size_t i = 0; i < causes->n_causes; i++) {
        const char *message = causes->causes[i].message;
        buf_puts(&text, i ? "; " : "");
        buf_puts(&text,
                 str_has_prefix(message, buf_cstr(&before)) ? message + before.len : message);
    }
    return buf_take(&text, NULL);
}

static bool is_under(const char *domain, const char *parent)
{
    size_t n = strlen(domain), k = strlen(parent);
    return n >= k && strcasecmp(domain + n - k, parent) == 0 &&
           (n == k || domain[n - k - 1] == '.');
}

static bool is_system_domain(const char *domain)
{
    for (size_t i = 0; i < ARRAY_LEN(system_domains); i++) {
        if (is_under(domain, system_domains[i]))
            return true;
    }
    return false;
}

static bool is_allowed_domain(const char *domain, const struct claim_settings *settings)
{
    if (is_system_domain(domain))
        return false;
    for (size_t i = 0; settings->label_domains[i]; i++) {
        if (is_under(domain, settings->label_domains[i]))
            return true;
    }
    return false;
}

/* Each check says what is wrong, the caller's, or NULL. */

static char *check_key(const char *what, const char *key)
{
    SCOPED(err_fini) struct err causes = {0};
    if (name_check_label_key(key, "", &causes) == 0)
        return NULL;
    SCOPED_FREE char *texts = texts_of(&causes, key);
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, key, strlen(key));
    return xasprintf("invalid %s key: %s: %s", what, buf_cstr(&quoted), texts);
}

static char *lower(const char *p, size_t n)
{
    char *out = xstrndup(p, n);
    for (char *c = out; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    return out;
}

/* The domain of a key, the caller's; NULL = it has none. */
static char *domain_of(const char *key)
{
    const char *slash = strchr(key, '/');
    return slash ? lower(key, (size_t)(slash - key)) : NULL;
}

static char *check_label(const char *key, const char *value, const struct claim_settings *settings)
{
    char *wrong = check_key("label", key);
    if (wrong)
        return wrong;
    if (strcasecmp(key, "app") == 0 && strcasecmp(value, "sandbox-router") == 0)
        return xasprintf(
            "restricted system label value: \"%s\"=\"%s\" is not allowed in AdditionalPodMetadata",
            key, value);
    SCOPED_FREE char *domain = domain_of(key);
    if (!domain)
        return xasprintf("label \"%s\" must have a domain prefix (e.g. "
                         "'sandbox.users.io/my-label') to prevent opting into unintended policy "
                         "domains",
                         key);
    if (!is_allowed_domain(domain, settings))
        return xasprintf("label domain \"%s\" is not in the allowlist", domain);
    SCOPED(err_fini) struct err causes = {0};
    if (name_check_label_value(value, "", &causes) == 0)
        return NULL;
    SCOPED_FREE char *texts = texts_of(&causes, value);
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, value, strlen(value));
    return xasprintf("invalid label value: %s does not match allowed pattern: %s",
                     buf_cstr(&quoted), texts);
}

static char *check_annotation(const char *key, const char *value,
                              const struct claim_settings *settings)
{
    (void)value, (void)settings;
    char *wrong = check_key("annotation", key);
    if (wrong)
        return wrong;
    SCOPED_FREE char *domain = domain_of(key);
    if (!domain || !is_system_domain(domain) || str_equal(key, ANNOTATION_SAFE_TO_EVICT))
        return NULL;
    return xasprintf("restricted system domain: \"%s\" is not allowed in AdditionalPodMetadata",
                     key);
}

static int check_map(const cJSON *map, const char *what,
                     char *(*check)(const char *, const char *, const struct claim_settings *),
                     const struct claim_settings *settings, struct claim_error *e)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, map)
    {
        SCOPED_FREE char *wrong = check(entry->string, entry->valuestring, settings);
        if (!wrong)
            continue;
        SCOPED(buf_fini) struct buf quoted = {0};
        buf_go_quote(&quoted, entry->string, strlen(entry->string));
        return claim_fail(e, CLAIM_BAD_METADATA,
                          "invalid additionalPodMetadata: failed to validate %s %s: %s", what,
                          buf_cstr(&quoted), wrong);
    }
    return 0;
}

int claim_check_metadata(const cJSON *claim, const struct claim_settings *settings,
                         struct claim_error *e)
{
    const cJSON *metadata = json_at(claim, "spec.additionalPodMetadata");
    if (check_map(json_get(metadata, "labels"), "label", check_label, settings, e) < 0)
        return -1;
    return check_map(json_get(metadata, "annotations"), "annotation", check_annotation, settings,
                     e);
}

#define DOMAINS_SHOWN 8 /* of those that are allowed, in a warning */

char *claim_foresee(const cJSON *claim, const struct claim_settings *settings)
{
    SCOPED(claim_error_fini) struct claim_error wrong = {0};
    struct buf text = {0};
    if (claim_check_metadata(claim, settings, &wrong) == 0)
        return NULL;
    buf_printf(&text, "this claim will be refused: %s (labels may have the domains of", wrong.text);
    buf_puts(&text, " --allowed-label-domains-file:");
    for (size_t i = 0; settings->label_domains[i] && i <= DOMAINS_SHOWN; i++)
        buf_printf(&text, " %s", i < DOMAINS_SHOWN ? settings->label_domains[i] : "...");
    buf_putc(&text, ')');
    return buf_take(&text, NULL);
}

/* ---- the operator's file (M6) ---- */

#define DEFAULT_DOMAIN "sandbox.users.io"

char **claim_domains_parse(const char *text)
{
    static const char separators[] = ",\n\r", blanks[] = " \t\v\f";
    char **domains = strv_copy(NULL);
    for (const char *p = text; *p; p += strspn(p, separators)) {
        size_t n = strcspn(p, separators);
        const char *start = p;
        p += n;
        while (n > 0 && strchr(blanks, *start))
            start++, n--;
        while (n > 0 && strchr(blanks, start[n - 1]))
            n--;
        if (n > 0)
            strv_add(&domains, lower(start, n));
    }
    if (!domains[0])
        strv_add(&domains, xstrdup(DEFAULT_DOMAIN));
    return domains;
}
