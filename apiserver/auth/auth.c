/* Who is asking: the authenticators in their order, the groups that everybody gets, and which
 * headers nobody behind this may see. */
#include "apiserver/auth/auth.h"

#include <string.h>
#include <strings.h>

#include "apiserver/auth/authorize.h"
#include "apiserver/auth/config.h"
#include "apiserver/auth/impersonate.h"
#include "apiserver/auth/token.h"
#include "apiserver/auth/verify.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"

#define REMOTE_PREFIX "X-Remote-"
#define SOCKET_PROTOCOL "Sec-WebSocket-Protocol"
#define SOCKET_TOKEN_PREFIX "base64url.bearer.authorization.k8s.io."

struct auth {
    struct verifier *verifier;
    struct config *config;
    struct tokens *tokens;
    struct authorizer *authorizer;
    bool has_judge; /* there is no cluster: what its API server does is done here */
};

/* One request's way through the authenticators. */
struct attempt {
    struct auth *auth;
    const struct settings *settings;
    const struct credentials *creds;
};

/* ---- parts of a user ---- */

static void add_group(struct user *u, const char *group)
{
    strv_add(&u->groups, xstrdup(group));
}

/* The first value of the first of these headers that has one; NULL when none has. Source:
 * headerrequest's headerValue. */
static const char *first_value(const struct pairs *headers, char *const *names)
{
    for (; *names; names++) {
        const char *value = pairs_get_ci(headers, *names);
        if (value && *value)
            return value;
    }
    return NULL;
}

/* ---- the front proxy ---- */

static void take_remote_groups(const struct pairs *headers, char *const *names, struct user *u)
{
    for (; *names; names++)
        for (size_t i = 0; i < headers->n; i++)
            if (strcasecmp(headers->v[i].name, *names) == 0 && *headers->v[i].value)
                add_group(u, headers->v[i].value);
}

/* What a verified proxy says. False when it names nobody. */
static bool take_remote_user(const struct settings *s, const struct pairs *headers, struct user *u)
{
    const char *name = first_value(headers, s->username_headers),
               *uid = first_value(headers, s->uid_headers);
    if (!name)
        return false;
    u->name = xstrdup(name);
    u->uid = xstrdup(uid ? uid : "");
    take_remote_groups(headers, s->group_headers, u);
    for (char **prefix = s->extra_prefixes; *prefix; prefix++)
        user_take_extra(u, headers, *prefix);
    u->is_proxied = true;
    return true;
}

/* Authenticators return 1 = known (ret filled), 0 = no opinion, or an error. */
static int by_front_proxy(struct attempt *a, struct user *ret, struct err *err)
{
    const struct settings *s = a->settings;
    SCOPED(subject_fini) struct subject subject = {0};
    if (a->creds->n_chain == 0 || !s->requestheader_ca)
        return 0;
    int r = verifier_check(a->auth->verifier, s->requestheader_ca, a->creds->chain,
                           a->creds->n_chain, &subject, err);
    if (r < 0)
        return r;
    if (s->allowed_names[0] && !strv_has(s->allowed_names, subject.common_name))
        return err_set(err, ERR_UNAUTHORIZED, "front proxy's name is not an allowed one");
    return take_remote_user(s, a->creds->headers, ret);
}

/* ---- client certificates ---- */

/* A page of another site in a browser makes the request: the browser says so itself, and would send
 * the user's certificate along without asking; a token it has not. Source: RFC 6454, 7. */
static bool is_of_another_site(const struct pairs *headers)
{
    const char *origin = pairs_get_ci(headers, "Origin"), *host = pairs_get_ci(headers, "Host");
    const char *site = origin ? strstr(origin, "://") : NULL;
    return origin && (!site || !host || strcasecmp(site + strlen("://"), host) != 0);
}

static int by_certificate(struct attempt *a, struct user *ret, struct err *err)
{
    SCOPED(subject_fini) struct subject subject = {0};
    if (a->creds->n_chain == 0)
        return 0;
    if (!a->settings->client_ca)
        return err_set(err, ERR_UNAUTHORIZED, "no authority for client certificates");
    int r = verifier_check(a->auth->verifier, a->settings->client_ca, a->creds->chain,
                           a->creds->n_chain, &subject, err);
    if (r < 0 || !*subject.common_name)
        return r;
    if (is_of_another_site(a->creds->headers))
        return err_set(err, ERR_UNAUTHORIZED, "a certificate does not speak for other sites");
    ret->name = steal(&subject.common_name);
    ret->uid = steal(&subject.uid);
    ret->groups = steal(&subject.organizations);
    return 1;
}

/* ---- tokens ---- */

static int identify_token(struct attempt *a, const char *token, struct user *ret, struct err *err)
{
    int r = tokens_identify(a->auth->tokens, token, ret, err);
    return r < 0 ? r : 1;
}

/* The second part of "Bearer token". Source: bearertoken's AuthenticateRequest. */
static int by_bearer(struct attempt *a, struct user *ret, struct err *err)
{
    const char *header = pairs_get_ci(a->creds->headers, "Authorization");
    if (!header)
        return 0;
    header += strspn(header, " \t");
    if (strncasecmp(header, "bearer ", 7) != 0)
        return 0;
    SCOPED_FREE char *token = xstrndup(header + 7, strcspn(header + 7, " "));
    return *token ? identify_token(a, token, ret, err) : 0;
}

/* NULL when it is no base64url, or no text. */
static char *decode_socket_token(const char *s, size_t n)
{
    SCOPED(buf_fini) struct buf token = {0};
    size_t good;
    if (!buf_unbase64url(&token, s, n, &good) || memchr(buf_cstr(&token), 0, token.len))
        return NULL;
    return buf_take(&token, NULL);
}

/* The protocols a WebSocket client offers: the token among them (owned, NULL when there is none)
 * and the others. */
struct protocols {
    char *token;
    struct buf others;
};

static void protocols_fini(struct protocols *p)
{
    free(p->token);
    buf_fini(&p->others);
}

static int take_protocol(struct protocols *p, const char *name, size_t n, struct err *err)
{
    size_t prefix = strlen(SOCKET_TOKEN_PREFIX);
    if (n < prefix || strncmp(name, SOCKET_TOKEN_PREFIX, prefix) != 0) {
        buf_printf(&p->others, "%s%.*s", p->others.len ? ", " : "", (int)n, name);
        return 0;
    }
    if (p->token)
        return err_set(err, ERR_UNAUTHORIZED, "more than one token among the WebSocket protocols");
    p->token = decode_socket_token(name + prefix, n - prefix);
    return p->token ? 0
                    : err_set(err, ERR_UNAUTHORIZED,
                              "token among the WebSocket protocols is not readable");
}

static int read_protocols(const struct pairs *headers, struct protocols *ret, struct err *err)
{
    for (size_t i = 0; i < headers->n; i++) {
        if (strcasecmp(headers->v[i].name, SOCKET_PROTOCOL) != 0)
            continue;
        const char *s = headers->v[i].value;
        for (s += strspn(s, ", \t"); *s; s += strspn(s, ", \t")) {
            size_t n = strcspn(s, ", \t");
            if (take_protocol(ret, s, n, err) < 0)
                return -ERR_UNAUTHORIZED;
            s += n;
        }
    }
    return 0;
}

bool auth_is_socket_request(const struct pairs *headers)
{
    const char *upgrade = pairs_get_ci(headers, "Upgrade"),
               *connection = pairs_get_ci(headers, "Connection");
    return upgrade && connection && strcasestr(upgrade, "websocket") &&
           strcasestr(connection, "upgrade");
}

/* A browser's WebSocket can send a token in no other way. Source:
 * websocket.ProtocolAuthenticator. */
static int by_socket_token(struct attempt *a, struct user *ret, struct err *err)
{
    struct pairs *headers = a->creds->headers;
    SCOPED(protocols_fini) struct protocols p = {0};
    if (!auth_is_socket_request(headers))
        return 0;
    int r = read_protocols(headers, &p, err);
    if (r < 0 || !p.token || !*p.token)
        return r;
    r = identify_token(a, p.token, ret, err);
    if (r == 1 && p.others.len == 0)
        return err_set(err, ERR_UNAUTHORIZED, "no WebSocket protocol besides the token");
    if (r == 1) {
        pairs_remove_ci(headers, SOCKET_PROTOCOL);
        pairs_add(headers, SOCKET_PROTOCOL, buf_cstr(&p.others));
    }
    return r;
}

/* ---- all of them ---- */

static int (*const authenticators[])(struct attempt *a, struct user *ret, struct err *err) = {
    by_front_proxy,
    by_certificate,
    by_bearer,
    by_socket_token,
};

static void fill_anonymous(struct user *u)
{
    u->name = xstrdup("system:anonymous");
    u->uid = xstrdup("");
    add_group(u, "system:unauthenticated");
}

/* A certificate that came while the authorities are not known yet is neither good nor bad. */
static int judge_failure(struct auth *a, const struct credentials *creds, const struct err *failure,
                         bool is_undecided, struct err *err)
{
    log_debug("not authenticated reason=\"%s\"", err_text(failure));
    if (is_undecided)
        return err_set(err, ERR_UNAVAILABLE, "%s", err_text(failure));
    if (creds->n_chain > 0 && !config_is_ready(a->config))
        return err_set(err, ERR_UNAVAILABLE,
                       "the cluster's authentication settings are not known yet");
    return err_set(err, ERR_UNAUTHORIZED, "Unauthorized");
}

/* The first that knows; else anonymous, unless somebody had something against it. */
static int try_all(struct attempt *a, struct user *ret, struct err *err)
{
    SCOPED(err_fini) struct err failure = {0};
    bool is_undecided = false;
    for (size_t i = 0; i < ARRAY_LEN(authenticators); i++) {
        SCOPED(user_fini) struct user u = {0};
        SCOPED(err_fini) struct err e = {0};
        int r = authenticators[i](a, &u, &e);
        if (r == 1) {
            user_join_common(&u);
            *ret = steal(&u);
            return 0;
        }
        if (r < 0) {
            is_undecided |= e.code != ERR_UNAUTHORIZED;
            err_move(&failure, &e);
        }
    }
    if (failure.code)
        return judge_failure(a->auth, a->creds, &failure, is_undecided, err);
    fill_anonymous(ret);
    return 0;
}

/* ---- headers that end here ---- */

static void remove_all(struct pairs *headers, char *const *names)
{
    for (; *names; names++)
        pairs_remove_ci(headers, *names);
}

static void remove_credentials(const struct settings *s, struct pairs *headers)
{
    pairs_remove_ci(headers, "Authorization");
    pairs_remove_prefix_ci(headers, REMOTE_PREFIX);
    remove_all(headers, s->username_headers);
    remove_all(headers, s->uid_headers);
    remove_all(headers, s->group_headers);
    for (char **prefix = s->extra_prefixes; *prefix; prefix++)
        pairs_remove_prefix_ci(headers, *prefix);
}

/* Through a cluster's API server the effective user arrives, and who comes directly is not offered
 * it; acting as themselves instead would be wrong. */
static int act_for_another(struct auth *a, struct pairs *headers, struct user *u, struct err *err)
{
    if (!a->has_judge)
        return err_set(err, ERR_FORBIDDEN,
                       "forbidden: impersonation is not supported by this server");
    return impersonate(a->authorizer, headers, u, err);
}

int auth_identify(struct auth *a, const struct credentials *creds, struct user *ret,
                  struct err *err)
{
    SCOPED(user_fini) struct user u = {0};
    struct attempt attempt = {.auth = a, .settings = config_get(a->config), .creds = creds};
    int r = try_all(&attempt, &u, err);
    remove_credentials(attempt.settings, creds->headers);
    config_put(a->config, attempt.settings);
    if (r == 0 && impersonate_is_wanted(creds->headers))
        r = act_for_another(a, creds->headers, &u, err);
    if (r == 0)
        *ret = steal(&u);
    return r;
}

int auth_authorize(struct auth *a, const struct user *u, const struct access *access,
                   struct err *err)
{
    return authorizer_check(a->authorizer, u, access, err);
}

int auth_review_access(struct auth *a, const cJSON *spec, cJSON **ret_status, struct err *err)
{
    return authorizer_review(a->authorizer, spec, ret_status, err);
}

/* ---- start and stop ---- */

int auth_new(const struct auth_config *config, struct auth **ret, struct err *err)
{
    struct auth *a = xcalloc(1, sizeof *a);
    int r = config_new(config, &a->config, err);
    if (r < 0) {
        free(a);
        return r;
    }
    a->has_judge = config->judge != NULL;
    a->verifier = verifier_new(config->clock);
    a->tokens = tokens_new(config->kube, config->judge, config->clock);
    a->authorizer = authorizer_new(config->kube, config->judge, config->clock);
    *ret = a;
    return 0;
}

void auth_start(struct auth *a)
{
    config_start(a->config);
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
    config_free(a->config);
    verifier_free(a->verifier);
    tokens_free(a->tokens);
    authorizer_free(a->authorizer);
    free(a);
}

bool auth_is_ready(const struct auth *a)
{
    return config_is_ready(a->config);
}
