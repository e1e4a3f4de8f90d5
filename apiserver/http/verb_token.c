/* POST .../serviceaccounts/NAME/token: a token for the account, for a while, as long as the account
 * (and, when it is bound to one, the Pod) is there. Source: the Kubernetes API reference,
 * TokenRequest. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/judge.h"
#include "apiserver/http/node_access.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"
#include "openapi/kinds/builtin.h"

#define USUAL_S 3600
#define LEAST_S 600
#define MOST_S ((int64_t)48 * 3600)

static int read_account(struct pipeline *p, const struct request *req, struct object **ret,
                        struct err *err)
{
    const struct route *r = &req->route;
    return registry_get(p->config.registry, r->kind, r->namespace_name, r->name,
                        (struct read_version){READ_LATEST, 0}, req->deadline_ms, ret, err);
}

static int refuse(const char *field, const char *text, struct err *err)
{
    SCOPED(err_fini) struct err causes = {0};
    err_cause(&causes, "FieldValueInvalid", field, "Invalid value: %s", text);
    return err_invalid(&causes, "authentication.k8s.io", "TokenRequest", "", err);
}

/* A Pod has the tokens of its own account only. */
static int check_account(const struct object *pod, const char *account, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(pod);
    if (strcmp(json_str_or(tree, "spec.serviceAccountName", "default"), account) == 0)
        return 0;
    return err_set(err, ERR_BAD_REQUEST,
                   "cannot bind token for serviceaccount \"%s\" to pod running with different "
                   "serviceaccount name.",
                   account);
}

/* The Pod that the token dies with, if it names one. */
static int read_bound(struct pipeline *p, const struct request *req, const cJSON *spec,
                      struct object **ret, struct err *err)
{
    const cJSON *ref = json_get(spec, "boundObjectRef");
    const char *uid = json_str_or(ref, "uid", "");
    if (!cJSON_IsObject(ref))
        return 0;
    if (strcmp(json_str_or(ref, "kind", ""), "Pod") != 0)
        return refuse("spec.boundObjectRef.kind", "only Pods can be bound to here", err);
    int rc = registry_get(p->config.registry, &kind_pod, req->route.namespace_name,
                          json_str_or(ref, "name", ""), (struct read_version){READ_LATEST, 0},
                          req->deadline_ms, ret, err);
    if (rc == 0 && *uid && strcmp(uid, (*ret)->uid) != 0)
        return err_set(err, ERR_CONFLICT, "the UID in the bound object reference does not match");
    return rc < 0 ? rc : check_account(*ret, req->route.name, err);
}

/* Nodes may less than others who may have tokens. */
static int check_node(const struct request *req, const struct object *account,
                      const struct object *pod, const cJSON *spec, struct err *err)
{
    return req->guard ? node_access_token(req->guard, account, pod, spec, err) : 0;
}

static void answer(struct pipeline *p, const struct object *account, const struct object *pod,
                   cJSON *tree)
{
    const cJSON *audiences = json_at(tree, "spec.audiences");
    int64_t asked_s = json_i64_or(tree, "spec.expirationSeconds", USUAL_S);
    int64_t life_s = asked_s < MOST_S ? asked_s : MOST_S, now_s = clock_unix_s(p->config.clock);
    char at[CLOCK_TEXT_SIZE];
    SCOPED_FREE char *token = judge_token(p->config.judge, account, pod,
                                          json_len(audiences) ? audiences : NULL, now_s, life_s);
    clock_print_rfc3339(now_s + life_s, at);
    json_set_at(tree, "spec.expirationSeconds", json_int(life_s));
    json_set_at(tree, "status.token", json_string(token));
    json_set_at(tree, "status.expirationTimestamp", json_string(at));
}

int verb_token(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    struct negotiated form;
    struct write_options options;
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(object_unref_p) struct object *account = NULL, *pod = NULL;
    if (handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        params_write(req, "CreateOptions", &options, err) < 0 ||
        body_decode_options(req, "authentication.k8s.io/v1", "TokenRequest", NULL, &tree, err) <
            0 ||
        read_account(p, req, &account, err) < 0 ||
        read_bound(p, req, json_get(tree, "spec"), &pod, err) < 0 ||
        check_node(req, account, pod, json_get(tree, "spec"), err) < 0)
        return -(int)err->code;
    if (json_i64_or(tree, "spec.expirationSeconds", USUAL_S) < LEAST_S)
        return refuse("spec.expirationSeconds", "may not specify a duration less than 10 minutes",
                      err);
    answer(p, account, pod, tree);
    json_set_str(tree, "apiVersion", "authentication.k8s.io/v1");
    json_set_str(tree, "kind", "TokenRequest");
    respond_tree(resp, 201, &form, steal(&tree));
    return 0;
}
