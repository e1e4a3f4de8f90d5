/* POST of a review: the answer is what was sent, with a status; nothing is stored. Source: the
 * Kubernetes API reference, authorization.k8s.io and authentication.k8s.io. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/judge.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"
#include "openapi/kinds/builtin.h"

struct review {
    struct pipeline *p;
    const struct request *req;
    cJSON *tree;
};

static int refuse_spec(const struct review *r, const char *field, struct err *err)
{
    SCOPED(err_fini) struct err causes = {0};
    const struct kind *k = r->req->route.kind;
    err_cause(&causes, "FieldValueInvalid", field,
              "Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be "
              "specified");
    return err_invalid(&causes, k->group, k->kind, "", err);
}

/* The spec as authorizers know it. of_self: it asks about who asks. */
static int make_spec(const struct review *r, bool of_self, cJSON **ret, struct err *err)
{
    const cJSON *given = json_get(r->tree, "spec");
    bool has_path = cJSON_IsObject(json_get(given, "nonResourceAttributes")),
         has_resource = cJSON_IsObject(json_get(given, "resourceAttributes"));
    if (has_path == has_resource)
        return refuse_spec(r, "spec.resourceAttributes", err);
    *ret = json_copy(given);
    if (!of_self)
        return 0;
    json_remove(*ret, "user");
    json_remove(*ret, "groups");
    auth_describe_user(&r->req->user, *ret);
    return 0;
}

static int review_access(const struct review *r, bool of_self, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *spec = NULL;
    int rc = make_spec(r, of_self, &spec, err);
    return rc < 0 ? rc : auth_review_access(r->p->config.auth, spec, ret, err);
}

static int of_self(const struct review *r, cJSON **ret, struct err *err)
{
    return review_access(r, true, ret, err);
}

static int of_subject(const struct review *r, cJSON **ret, struct err *err)
{
    return review_access(r, false, ret, err);
}

/* Of the namespace in the path, which the spec must name as well. */
static int of_subject_here(const struct review *r, cJSON **ret, struct err *err)
{
    const char *given = json_str_or(r->tree, "spec.resourceAttributes.namespace", "");
    if (strcmp(given, r->req->route.namespace_name) != 0)
        return err_set(err, ERR_BAD_REQUEST,
                       "spec.resourceAttributes.namespace must match namespace: %s",
                       r->req->route.namespace_name);
    return review_access(r, false, ret, err);
}

static int of_rules(const struct review *r, cJSON **ret, struct err *err)
{
    const char *namespace_name = json_str_or(r->tree, "spec.namespace", "");
    SCOPED(json_free_p) cJSON *spec = json_object();
    if (!*namespace_name)
        return err_set(err, ERR_BAD_REQUEST, "no namespace on request");
    auth_describe_user(&r->req->user, spec);
    return judge_rules(r->p->config.judge, spec, namespace_name, ret, err);
}

/* UserInfo: as the spec of a review has a user, but for the name of the name. */
static cJSON *user_info(const struct user *u)
{
    cJSON *info = json_object();
    auth_describe_user(u, info);
    json_set_str(info, "username", json_str_or(info, "user", ""));
    json_remove(info, "user");
    return info;
}

static int who_am_i(const struct review *r, cJSON **ret, struct err *err)
{
    (void)err;
    *ret = json_object();
    json_set(*ret, "userInfo", user_info(&r->req->user));
    return 0;
}

/* Through the door that every request's token comes through. */
static int whose_token(const struct review *r, cJSON **ret, struct err *err)
{
    SCOPED_FREE char *header = xasprintf("Bearer %s", json_str_or(r->tree, "spec.token", ""));
    SCOPED(pairs_fini) struct pairs headers = {0};
    SCOPED(user_fini) struct user u = {0};
    SCOPED(err_fini) struct err e = {0};
    cJSON *status = json_object();
    pairs_add(&headers, "Authorization", header);
    int rc = auth_identify(r->p->config.auth, &(struct credentials){.headers = &headers}, &u, &e);
    bool is_known = rc == 0 && !user_in_group(&u, "system:unauthenticated");
    (void)err;
    json_set_bool(status, "authenticated", is_known);
    if (!is_known)
        json_set_str(status, "error", "invalid bearer token");
    json_set(status, "user", is_known ? user_info(&u) : json_object());
    *ret = status;
    return 0;
}

static const struct {
    const struct kind *kind;
    int (*answer)(const struct review *r, cJSON **ret, struct err *err);
} answers[] = {
    {&kind_self_subject_access_review, of_self},
    {&kind_subject_access_review, of_subject},
    {&kind_local_subject_access_review, of_subject_here},
    {&kind_self_subject_rules_review, of_rules},
    {&kind_self_subject_review, who_am_i},
    {&kind_token_review, whose_token},
};

int verb_review(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    struct negotiated form;
    struct write_options options;
    SCOPED(pairs_fini) struct pairs findings = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    cJSON *status = NULL;
    int rc = -1;
    if (negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        handler_check_body(req, err) < 0 || params_write(req, "CreateOptions", &options, err) < 0 ||
        body_decode_object(req, req->route.kind, options.field_validation, &findings, &tree, err) <
            0)
        return -(int)err->code;
    const struct review r = {p, req, tree};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        if (answers[i].kind == req->route.kind)
            rc = answers[i].answer(&r, &status, err);
    if (rc < 0)
        return rc;
    json_set(tree, "status", status);
    respond_tree(resp, 201, &form, steal(&tree));
    return 0;
}
