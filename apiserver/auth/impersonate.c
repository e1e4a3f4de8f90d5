/* Source: the Kubernetes documentation, user impersonation: which header needs the verb impersonate
 * on what, and the groups that somebody who is named without any belongs to. */
#include "apiserver/auth/impersonate.h"

#include <string.h>
#include <strings.h>

#include "apiserver/base/mem.h"

#define PREFIX "Impersonate-"
#define VALUES_MAX 200 /* each costs a review */
#define ACCOUNT_PREFIX "system:serviceaccount:"
#define AUTHENTICATION "authentication.k8s.io"

bool impersonate_is_wanted(const struct pairs *headers)
{
    for (size_t i = 0; i < headers->n; i++)
        if (strncasecmp(headers->v[i].name, PREFIX, strlen(PREFIX)) == 0)
            return true;
    return false;
}

/* ---- whom the headers name ---- */

/* "system:serviceaccount:NAMESPACE:NAME": where the namespace ends; NULL when it is none. */
static const char *account_colon(const char *name)
{
    const char *rest = str_has_prefix(name, ACCOUNT_PREFIX) ? name + strlen(ACCOUNT_PREFIX) : NULL;
    const char *colon = rest ? strchr(rest, ':') : NULL;
    return colon && colon > rest && colon[1] && !strchr(colon + 1, ':') ? colon : NULL;
}

static char *account_namespace(const char *name)
{
    const char *start = name + strlen(ACCOUNT_PREFIX);
    return xstrndup(start, (size_t)(account_colon(name) - start));
}

static int read_headers(const struct pairs *headers, struct user *u, struct err *err)
{
    const char *name = pairs_get_ci(headers, PREFIX "User"),
               *uid = pairs_get_ci(headers, PREFIX "Uid");
    if (!name || !*name)
        return err_set(err, ERR_BAD_REQUEST, "impersonation without a user");
    u->name = xstrdup(name);
    u->uid = xstrdup(uid ? uid : "");
    user_take_extra(u, headers, PREFIX "Extra-");
    size_t n = u->extra.n;
    for (size_t i = 0; i < headers->n; i++) {
        if (strcasecmp(headers->v[i].name, PREFIX "Group") != 0)
            continue;
        strv_add(&u->groups, xstrdup(headers->v[i].value));
        n++;
    }
    return n > VALUES_MAX
               ? err_set(err, ERR_BAD_REQUEST, "impersonation with more than %d values", VALUES_MAX)
               : 0;
}

/* ---- may they? ---- */

struct asking {
    struct authorizer *authorizer;
    const struct user *user;
};

static int ask(const struct asking *q, struct access access, struct err *err)
{
    access.verb = "impersonate";
    access.is_resource = true;
    return authorizer_check(q->authorizer, q->user, &access, err);
}

static int ask_for_name(const struct asking *q, const char *name, struct err *err)
{
    const char *colon = account_colon(name);
    if (!colon)
        return ask(q, (struct access){.resource = "users", .name = name}, err);
    SCOPED_FREE char *namespace_name = account_namespace(name);
    return ask(q,
               (struct access){.resource = "serviceaccounts",
                               .namespace_name = namespace_name,
                               .name = colon + 1},
               err);
}

static int ask_for_all(const struct asking *q, const struct user *as, struct err *err)
{
    int rc = ask_for_name(q, as->name, err);
    if (rc == 0 && *as->uid)
        rc = ask(q,
                 (struct access){
                     .group = AUTHENTICATION, .version = "v1", .resource = "uids", .name = as->uid},
                 err);
    for (char **g = as->groups; rc == 0 && g && *g; g++)
        rc = ask(q, (struct access){.resource = "groups", .name = *g}, err);
    for (size_t i = 0; rc == 0 && i < as->extra.n; i++)
        rc = ask(q,
                 (struct access){.group = AUTHENTICATION,
                                 .version = "v1",
                                 .resource = "userextras",
                                 .subresource = as->extra.v[i].name,
                                 .name = as->extra.v[i].value},
                 err);
    return rc;
}

/* ---- groups that come with the name ---- */

static void add_groups(struct user *u)
{
    if (!u->groups && account_colon(u->name)) {
        SCOPED_FREE char *namespace_name = account_namespace(u->name);
        strv_add(&u->groups, xstrdup("system:serviceaccounts"));
        strv_add(&u->groups, xasprintf("system:serviceaccounts:%s", namespace_name));
    }
    if (strcmp(u->name, "system:anonymous") == 0)
        strv_add(&u->groups, xstrdup("system:unauthenticated"));
    user_join_common(u);
}

int impersonate(struct authorizer *a, struct pairs *headers, struct user *user, struct err *err)
{
    SCOPED(user_fini) struct user as = {0};
    int rc = read_headers(headers, &as, err);
    if (rc == 0)
        rc = ask_for_all(&(struct asking){a, user}, &as, err);
    if (rc < 0)
        return rc;
    pairs_remove_prefix_ci(headers, PREFIX);
    add_groups(&as);
    user_fini(user);
    *user = steal(&as);
    return 0;
}
