/* Accept clauses parsed, ordered and matched against what is offered; Content-Type matched against
 * what is taken. The odd corners (case counts, q=0 does not exclude, a clause with a wrong
 * transform is skipped) are what kube-apiserver does. */
#include "apiserver/http/negotiate.h"

#include <stdlib.h>
#include <strings.h>

#include "apiserver/base/mem.h"

#define CLAUSES_MAX 64 /* further ones of a hostile header are not looked at */

struct clause {
    struct str type, subtype, params; /* params: what follows the first ';' */
    double q;
};
struct clauses {
    struct clause v[CLAUSES_MAX];
    size_t n;
};

static struct str trim(struct str s)
{
    while (s.n && strchr(" \t\r\n", *s.p))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Cuts off and returns what stands before the next separator. */
static struct str next_part(struct str *rest, char separator)
{
    const char *at = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
    struct str part = {rest->p, at ? (size_t)(at - rest->p) : rest->n};
    *rest = at ? (struct str){at + 1, rest->n - part.n - 1} : (struct str){NULL, 0};
    return part;
}

/* The next name=value of a clause; false at the end. Broken ones have an empty name. */
static bool next_param(struct str *rest, struct str *ret_name, struct str *ret_value)
{
    if (!rest->n)
        return false;
    struct str value = next_part(rest, ';'), name = next_part(&value, '=');
    bool is_good = value.n && !memchr(value.p, '=', value.n);
    *ret_name = is_good ? trim(name) : (struct str){"", 0};
    *ret_value = trim(value);
    return true;
}

static double clause_quality(struct str params)
{
    double q = 1;
    struct str name, value;
    while (next_param(&params, &name, &value)) {
        char text[16] = "";
        if (!str_eq(name, "q"))
            continue;
        if (value.n < sizeof text)
            memcpy(text, value.p, value.n);
        char *end;
        q = strtod(text, &end);
        if (*end || q != q)
            q = 0;
    }
    return q;
}

static void parse_clause(struct str text, struct clauses *to)
{
    struct str rest = trim(text), subtype = next_part(&rest, ';'), type = next_part(&subtype, '/');
    struct clause c = {.type = trim(type), .subtype = trim(subtype), .params = rest};
    if (!subtype.n) {
        if (!str_eq(c.type, "*"))
            return;
        c.subtype = c.type;
    }
    if (memchr(subtype.p ? subtype.p : "", '/', subtype.n) || to->n == CLAUSES_MAX)
        return;
    c.q = clause_quality(c.params);
    to->v[to->n++] = c;
}

/* Higher quality first, then the more specific, else as written; but one that is more specific than
 * its neighbour goes before it whatever its quality, so that this is no order: what comes out
 * depends on how it is sorted, by insertion. Source: github.com/munnerz/goautoneg. */
static bool comes_before(const struct clause *a, const struct clause *b)
{
    return a->q > b->q || (!str_eq(a->type, "*") && str_eq(b->type, "*")) ||
           (!str_eq(a->subtype, "*") && str_eq(b->subtype, "*"));
}

static void sort_clauses(struct clauses *c)
{
    for (size_t i = 1; i < c->n; i++)
        for (size_t k = i; k > 0 && comes_before(&c->v[k], &c->v[k - 1]); k--) {
            struct clause swap = c->v[k];
            c->v[k] = c->v[k - 1];
            c->v[k - 1] = swap;
        }
}

/* The first Accept header alone, as kube-apiserver reads it. False when there is none, or an empty
 * one: then everything is accepted. */
static bool parse_accept(const struct pairs *headers, struct clauses *ret)
{
    const char *text = pairs_get_ci(headers, "Accept");
    struct str rest = STR(text ? text : "");
    bool is_given = rest.n > 0;
    ret->n = 0;
    while (rest.n)
        parse_clause(next_part(&rest, ','), ret);
    sort_clauses(ret);
    return is_given;
}

static bool clause_takes(const struct clause *c, const char *subtype)
{
    if (str_eq(c->type, "*") && str_eq(c->subtype, "*"))
        return true;
    return str_eq(c->type, "application") &&
           (str_eq(c->subtype, "*") || str_eq(c->subtype, subtype));
}

struct target { /* of a transformation, as a clause names it */
    struct str kind, group, version, stream, server_version;
    bool is_given, is_pretty;
};

static struct target clause_target(const struct clause *c)
{
    struct target t = {0};
    struct str params = c->params, name, value;
    while (next_param(&params, &name, &value)) {
        struct str *to = str_eq(name, "as")       ? &t.kind
                         : str_eq(name, "g")      ? &t.group
                         : str_eq(name, "v")      ? &t.version
                         : str_eq(name, "stream") ? &t.stream
                         : str_eq(name, "sv")     ? &t.server_version
                                                  : NULL;
        if (str_eq(name, "pretty"))
            t.is_pretty = str_eq(value, "1");
        if (!to)
            continue;
        *to = value;
        t.is_given |= to == &t.kind || to == &t.group || to == &t.version;
    }
    return t;
}

static bool transform_parse(const struct target *t, struct negotiated *ret)
{
    static const struct {
        const char *kind;
        enum transform transform;
    } known[] = {
        {"Table", TRANSFORM_TABLE},
        {"PartialObjectMetadata", TRANSFORM_PARTIAL},
        {"PartialObjectMetadataList", TRANSFORM_PARTIAL_LIST},
    };
    if (!str_eq(t->group, "meta.k8s.io"))
        return false;
    ret->transform_version = str_eq(t->version, "v1")        ? "meta.k8s.io/v1"
                             : str_eq(t->version, "v1beta1") ? "meta.k8s.io/v1beta1"
                                                             : NULL;
    for (size_t i = 0; ret->transform_version && i < ARRAY_LEN(known); i++)
        if (str_eq(t->kind, known[i].kind)) {
            ret->transform = known[i].transform;
            return true;
        }
    return false;
}

/* Does one of the offers satisfy the clause? */
static bool clause_satisfied(const struct clause *c, enum negotiate_for purpose,
                             struct negotiated *ret)
{
    struct target t = clause_target(c);
    struct negotiated n = {.is_pretty = t.is_pretty};
    if (clause_takes(c, "json"))
        n.media = MEDIA_JSON;
    else if (clause_takes(c, "yaml") && !t.stream.n)
        n.media = MEDIA_YAML;
    else
        return false;
    if (t.stream.n && (purpose == NEGOTIATE_PLAIN || !str_eq(t.stream, "watch")))
        return false;
    if (t.server_version.n && (purpose == NEGOTIATE_PLAIN || !str_eq(t.server_version, "v1")))
        return false;
    if (t.is_given && (purpose == NEGOTIATE_PLAIN || !transform_parse(&t, &n)))
        return false;
    *ret = n;
    return true;
}

static bool is_browser(const char *agent)
{
    return agent && (str_has_prefix(agent, "curl") || str_has_prefix(agent, "Wget") ||
                     str_has_prefix(agent, "Mozilla/5.0"));
}

/* The query decides; without it the clause or the kind of client does. */
static bool wants_pretty(const struct pairs *headers, const struct pairs *params, bool in_clause)
{
    const char *text = pairs_get(params, "pretty");
    bool is_pretty = false;
    if (text && *text)
        return (str_to_bool(text, &is_pretty) == 0 && is_pretty) || in_clause;
    return in_clause || is_browser(pairs_get_ci(headers, "User-Agent"));
}

static const char accepted[] =
    "only the following media types are accepted: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf";
static const char accepted_watch[] =
    "only the following media types are accepted: application/json;stream=watch, "
    "application/vnd.kubernetes.protobuf;stream=watch";

static bool find_offer(const struct pairs *headers, enum negotiate_for purpose,
                       struct negotiated *ret)
{
    struct clauses clauses;
    if (!parse_accept(headers, &clauses))
        return true;
    for (size_t i = 0; i < clauses.n; i++)
        if (clause_satisfied(&clauses.v[i], purpose, ret))
            return true;
    return false;
}

int negotiate(const struct pairs *headers, const struct pairs *params, enum negotiate_for purpose,
              struct negotiated *ret, struct err *err)
{
    struct negotiated n = {0};
    if (!find_offer(headers, purpose, &n))
        return err_set(err, ERR_NOT_ACCEPTABLE, "%s", accepted);
    if (purpose == NEGOTIATE_WATCH && n.media != MEDIA_JSON)
        return err_set(err, ERR_NOT_ACCEPTABLE, "%s", accepted_watch);
    n.is_pretty = wants_pretty(headers, params, n.is_pretty);
    *ret = n;
    return 0;
}

struct negotiated negotiate_error(const struct pairs *headers, const struct pairs *params)
{
    struct negotiated n = {0};
    (void)negotiate(headers, params, NEGOTIATE_PLAIN, &n, NULL); /* nothing fits: JSON */
    return n;
}

/* v2 or v2beta1 when the clause asks for an aggregated document in JSON. */
static const char *clause_aggregated(const struct clause *c)
{
    struct target t = clause_target(c);
    if (!clause_takes(c, "json") || !str_eq(t.kind, "APIGroupDiscoveryList") ||
        !str_eq(t.group, "apidiscovery.k8s.io"))
        return NULL;
    return str_eq(t.version, "v2") ? "v2" : str_eq(t.version, "v2beta1") ? "v2beta1" : NULL;
}

int negotiate_discovery(const struct pairs *headers, const struct pairs *params,
                        const char **ret_aggregated, struct negotiated *ret_plain, struct err *err)
{
    struct clauses clauses;
    struct negotiated n = {0};
    *ret_aggregated = NULL;
    if (parse_accept(headers, &clauses))
        for (size_t i = 0; i < clauses.n; i++) {
            const char *aggregated = clause_aggregated(&clauses.v[i]);
            if (!aggregated && !clause_satisfied(&clauses.v[i], NEGOTIATE_PLAIN, &n))
                continue;
            *ret_aggregated = aggregated;
            break;
        }
    if (*ret_aggregated)
        return 0;
    return negotiate(headers, params, NEGOTIATE_PLAIN, ret_plain, err);
}

bool negotiate_takes_json(const struct pairs *headers)
{
    struct clauses clauses;
    if (!parse_accept(headers, &clauses))
        return true;
    for (size_t i = 0; i < clauses.n; i++)
        if (clause_takes(&clauses.v[i], "json"))
            return true;
    return false;
}

bool negotiate_takes_gzip(const struct pairs *headers)
{
    for (size_t i = 0; i < headers->n; i++)
        if (strcasecmp(headers->v[i].name, "Accept-Encoding") == 0 &&
            strstr(headers->v[i].value, "gzip"))
            return true;
    return false;
}

/* ---- bodies ---- */

static bool is_token_char(char c)
{
    return c > ' ' && c < 0x7f && !strchr("()<>@,;:\\\"/[]?=", c);
}

static struct str cut_token(struct str *rest)
{
    struct str token = {rest->p, 0};
    while (token.n < rest->n && is_token_char(rest->p[token.n]))
        token.n++;
    *rest = (struct str){rest->p + token.n, rest->n - token.n};
    return token;
}

/* A token or a quoted text; false when there is neither. */
static bool cut_value(struct str *rest)
{
    if (!rest->n || *rest->p != '"')
        return cut_token(rest).n > 0;
    for (size_t i = 1; i < rest->n; i++) {
        if (rest->p[i] == '\\')
            i++;
        else if (rest->p[i] == '"') {
            *rest = (struct str){rest->p + i + 1, rest->n - i - 1};
            return true;
        }
    }
    return false;
}

/* What stands behind a media type: nothing, or parameters with values. A semicolon may be the end.
 * Source: Go's mime.ParseMediaType. */
static bool are_good_params(struct str rest)
{
    while ((rest = trim(rest)).n && *rest.p == ';') {
        rest = trim((struct str){rest.p + 1, rest.n - 1});
        if (!rest.n)
            return true;
        if (!cut_token(&rest).n || !(rest = trim(rest)).n || *rest.p != '=')
            return false;
        rest = trim((struct str){rest.p + 1, rest.n - 1});
        if (!cut_value(&rest))
            return false;
    }
    return !rest.n;
}

struct body_name {
    const char *name;
    enum body_type type;
};

static bool is_type(struct str given, const char *name)
{
    return given.n == strlen(name) && strncasecmp(given.p, name, given.n) == 0;
}

/* The type of a patch is compared as it is written (str_eq), that of an object in any case
 * (is_type). */
static const struct body_name *find_body(const struct pairs *headers, const struct body_name *names,
                                         bool (*equal)(struct str given, const char *name))
{
    const char *given = pairs_get_ci(headers, "Content-Type");
    bool is_given = given && *given;
    struct str rest = STR(given ? given : ""), name = trim(next_part(&rest, ';'));
    for (; names->name; names++)
        if (*names->name ? is_given && equal(name, names->name) : !is_given)
            return names;
    return NULL;
}

int negotiate_body(const struct pairs *headers, bool takes_protobuf, enum body_type *ret,
                   struct err *err)
{
    static const struct body_name names[] = {{"", BODY_JSON},
                                             {"application/json", BODY_JSON},
                                             {"application/yaml", BODY_YAML},
                                             {"application/vnd.kubernetes.protobuf", BODY_PROTOBUF},
                                             {0}};
    const struct body_name *found = find_body(headers, names, is_type);
    const char *given = pairs_get_ci(headers, "Content-Type");
    size_t n = given ? strcspn(given, ";") : 0;
    if (!found || (found->type == BODY_PROTOBUF && !takes_protobuf) ||
        (given && !are_good_params((struct str){given + n, strlen(given) - n})))
        return err_set(
            err, ERR_UNSUPPORTED_MEDIA,
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml, application/vnd.kubernetes.protobuf");
    *ret = found->type;
    return 0;
}

int negotiate_patch(const struct pairs *headers, bool takes_strategic, enum body_type *ret,
                    struct err *err)
{
    static const struct body_name names[] = {
        {"application/json-patch+json", BODY_JSON_PATCH},
        {"application/merge-patch+json", BODY_MERGE_PATCH},
        {"application/strategic-merge-patch+json", BODY_STRATEGIC_PATCH},
        {"application/apply-patch+yaml", BODY_APPLY},
        {0}};
    const struct body_name *found = find_body(headers, names, str_eq);
    if (!found || (found->type == BODY_STRATEGIC_PATCH && !takes_strategic))
        return err_set(
            err, ERR_UNSUPPORTED_MEDIA,
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, "
            "%sapplication/apply-patch+yaml",
            takes_strategic ? "application/strategic-merge-patch+json, " : "");
    *ret = found->type;
    return 0;
}
