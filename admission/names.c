/* What a name may be. The texts are those of apimachinery's validation, odd blanks included; see
 * docs/kubernetes-api.md 14.3 and 14.5. No regular expressions: the languages are small, and the
 * names hostile. */
#include "admission/names.h"

#include "admission/admit.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/mem.h"

#define SUBDOMAIN_RE "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
#define NAME_PART_RE "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

static const char subdomain_text[] = "a lowercase RFC 1123 subdomain must consist of lower case "
                                     "alphanumeric characters, '-' or '.', and must start and "
                                     "end with an alphanumeric character (e.g. 'example.com', "
                                     "regex used for validation is '" SUBDOMAIN_RE "')";
static const char label_text[] =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
#define NAME_PART_TEXT                                                                             \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character "                                                                      \
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" NAME_PART_RE    \
    "')"
static const char label_value_text[] =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is "
    "'(" NAME_PART_RE ")?')";

static const char label_1035_text[] =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

#define SUBDOMAIN_MAX 253
#define MANAGER_MAX 128 /* bytes. Source: docs/kubernetes-api.md 22.1 */
#define LABEL_MAX 63    /* also of a key's name part, and of a label's value */

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

/* Lower-case letters, digits and dashes, no dash at either end. */
static bool is_dns_label(const char *p, size_t n)
{
    if (n == 0 || !is_lower_alnum(p[0]) || !is_lower_alnum(p[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_lower_alnum(p[i]) && p[i] != '-')
            return false;
    return true;
}

static bool is_subdomain(const char *p, size_t n)
{
    for (const char *end = p + n;; p++) {
        const char *dot = memchr(p, '.', (size_t)(end - p));
        const char *label_end = dot ? dot : end;
        if (!is_dns_label(p, (size_t)(label_end - p)))
            return false;
        if (!dot)
            return true;
        p = dot;
    }
}

static bool is_name_part(const char *p, size_t n)
{
    if (n == 0 || !is_alnum(p[0]) || !is_alnum(p[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_alnum(p[i]) && !(p[i] != '\0' && strchr("-_.", p[i])))
            return false;
    return true;
}

static void refuse(struct err *causes, const char *field, const char *value, const char *what,
                   const char *text)
{
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, value, strlen(value));
    err_cause(causes, "FieldValueInvalid", field, "Invalid value: %s: %s%s", buf_cstr(&quoted),
              what, text);
}

static bool is_label_1035(const char *p, size_t n)
{
    return is_dns_label(p, n) && *p >= 'a';
}

static const struct {
    size_t max;
    const char *too_long, *text;
    bool (*is_right)(const char *p, size_t n);
} object_names[] = {
    [NAME_SUBDOMAIN] = {SUBDOMAIN_MAX, "must be no more than 253 characters", subdomain_text,
                        is_subdomain},
    [NAME_LABEL] = {LABEL_MAX, "must be no more than 63 bytes", label_text, is_dns_label},
    [NAME_LABEL_1035] = {LABEL_MAX, "must be no more than 63 bytes", label_1035_text,
                         is_label_1035},
};

/* What can be one part of a URL's path, and no more than that. */
static size_t check_segment(const char *s, bool is_prefix, const char *field, struct err *causes)
{
    size_t found = 0;
    const char *problem = is_prefix              ? NULL
                          : strcmp(s, ".") == 0  ? "may not be '.'"
                          : strcmp(s, "..") == 0 ? "may not be '..'"
                                                 : NULL;
    if (problem) {
        refuse(causes, field, s, "", problem);
        return 1;
    }
    if (strchr(s, '/')) {
        refuse(causes, field, s, "", "may not contain '/'");
        found++;
    }
    if (strchr(s, '%')) {
        refuse(causes, field, s, "", "may not contain '%'");
        found++;
    }
    return found;
}

size_t name_check_object(const char *s, bool is_prefix, enum name_form form, const char *field,
                         struct err *causes)
{
    size_t n = strlen(s), found = 0;
    if (form == NAME_SEGMENT)
        return check_segment(s, is_prefix, field, causes);
    /* Something follows a prefix, so a dash may end it. */
    bool masks_dash = is_prefix && n > 1 && s[n - 1] == '-';
    SCOPED_FREE char *masked = xstrdup(s);
    if (masks_dash)
        masked[n - 1] = 'a';
    if (n > object_names[form].max) {
        refuse(causes, field, s, "", object_names[form].too_long);
        found++;
    }
    if (!object_names[form].is_right(masked, n)) {
        refuse(causes, field, s, "", object_names[form].text);
        found++;
    }
    return found;
}

/* Parts of a key; shown is the whole key as it was written. */
static size_t check_prefix_part(const char *part, size_t n, const char *shown, const char *field,
                                struct err *causes)
{
    if (n == 0) {
        refuse(causes, field, shown, "prefix part ", "must be non-empty");
        return 1;
    }
    size_t found = 0;
    if (n > SUBDOMAIN_MAX) {
        refuse(causes, field, shown, "prefix part ", "must be no more than 253 bytes");
        found++;
    }
    if (!is_subdomain(part, n)) {
        refuse(causes, field, shown, "prefix part ", subdomain_text);
        found++;
    }
    return found;
}

static size_t check_name_part(const char *part, const char *shown, const char *field,
                              struct err *causes)
{
    size_t n = strlen(part), found = 0;
    if (n == 0) {
        refuse(causes, field, shown, "name part ", "must be non-empty");
        found++;
    } else if (n > LABEL_MAX) {
        refuse(causes, field, shown, "name part ", "must be no more than 63 bytes");
        found++;
    }
    if (!is_name_part(part, n)) {
        refuse(causes, field, shown, "name part ", NAME_PART_TEXT);
        found++;
    }
    return found;
}

static size_t check_key(const char *key, const char *shown, const char *field, struct err *causes)
{
    const char *slash = strchr(key, '/');
    if (!slash)
        return check_name_part(key, shown, field, causes);
    if (strchr(slash + 1, '/')) {
        refuse(causes, field, shown, "a valid label key ",
               NAME_PART_TEXT
               " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
        return 1;
    }
    size_t found = check_prefix_part(key, (size_t)(slash - key), shown, field, causes);
    return found + check_name_part(slash + 1, shown, field, causes);
}

size_t name_check_label_key(const char *s, const char *field, struct err *causes)
{
    return check_key(s, s, field, causes);
}

size_t name_check_label_value(const char *s, const char *field, struct err *causes)
{
    size_t n = strlen(s), found = 0;
    if (n > LABEL_MAX) {
        refuse(causes, field, s, "", "must be no more than 63 bytes");
        found++;
    }
    if (n > 0 && !is_name_part(s, n)) {
        refuse(causes, field, s, "", label_value_text);
        found++;
    }
    return found;
}

size_t name_check_annotation_key(const char *s, const char *field, struct err *causes)
{
    SCOPED_FREE char *lower = xstrdup(s);
    for (char *p = lower; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    return check_key(lower, s, field, causes);
}

/* As Go's %q escapes what is not. */
bool name_is_printable(const char *s, size_t n, uint32_t rune)
{
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, s, n);
    return rune == '"' || rune == '\\' || buf_cstr(&quoted)[1] != '\\';
}

static size_t refuse_unprintable(const char *s, const char *field, struct err *causes)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n;) {
        uint32_t rune;
        size_t len = str_utf8_decode(s + i, n - i, &rune);
        if (len && !name_is_printable(s + i, len, rune)) {
            SCOPED(buf_fini) struct buf quoted = {0};
            buf_go_quote(&quoted, s, n);
            err_cause(causes, "FieldValueInvalid", field,
                      "Invalid value: %s: invalid character U+%04X (at position %zu)",
                      buf_cstr(&quoted), rune, i);
            return 1;
        }
        i += len ? len : 1; /* a broken byte stands for U+FFFD */
    }
    return 0;
}

size_t name_check_manager(const char *s, const char *field, struct err *causes)
{
    bool is_long = strlen(s) > MANAGER_MAX;
    if (is_long)
        err_cause(causes, "FieldValueTooLong", field, "Too long: may not be more than %d bytes",
                  MANAGER_MAX);
    return is_long + refuse_unprintable(s, field, causes);
}
