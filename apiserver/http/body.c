/* Two decoders (JSON, YAML) and one set of texts: Go's, since clients and tests match on them. */
#include "apiserver/http/body.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/yaml.h"
#include "openapi/gotype.h"
#include "openapi/kinds.h"
#include "openapi/wire.h"

#define FINDINGS_MAX 100
/* Bytes of the body that an error repeats. Source: docs/kubernetes-api.md 15. */
#define EXCERPT 30

const char *body_go_type(const cJSON *node)
{
    if (cJSON_IsString(node))
        return "string";
    if (cJSON_IsNumber(node))
        return "number";
    if (cJSON_IsBool(node))
        return "bool";
    return cJSON_IsArray(node) ? "array" : cJSON_IsObject(node) ? "object" : "null";
}

int body_check_size(const struct request *req, struct err *err)
{
    if (!req->body_too_large)
        return 0;
    return err_set(err, ERR_TOO_LARGE, "Request entity too large: limit is %zu", req->max_body);
}

/* <empty>, the first characters of something that looks like JSON, or hex. */
static void print_excerpt(struct str body, struct buf *out)
{
    size_t n = body.n < EXCERPT ? body.n : EXCERPT;
    if (!body.n)
        buf_puts(out, "<empty>");
    else if (*body.p == '{')
        buf_append(out, body.p, n);
    else
        for (size_t i = 0; i < n; i++)
            buf_printf(out, "%02x", (unsigned)(unsigned char)body.p[i]);
    if (body.n > n)
        buf_puts(out, " ...");
}

/* "duplicate field" for each path; YAML's findings already are texts, which a strict answer lists
 * under one head. */
static void add_findings(const struct pairs *duplicates, enum body_type type,
                         enum field_validation validation, struct pairs *findings)
{
    SCOPED(buf_fini) struct buf text = {0};
    bool is_one = type == BODY_YAML && validation == FIELD_VALIDATION_STRICT;
    if (is_one && duplicates->n)
        buf_puts(&text, "yaml: unmarshal errors:");
    for (size_t i = 0; i < duplicates->n; i++) {
        if (!is_one)
            buf_clear(&text);
        if (type == BODY_YAML)
            buf_printf(&text, "%s%s", is_one ? "\n  " : "", duplicates->v[i].name);
        else
            buf_printf(&text, "duplicate field \"%s\"", duplicates->v[i].name);
        if (!is_one)
            pairs_add(findings, buf_cstr(&text), "");
    }
    if (is_one && duplicates->n)
        pairs_add(findings, buf_cstr(&text), "");
}

static bool is_number_error(const struct err *err)
{
    return str_has_prefix(err_text(err), "json: cannot unmarshal number");
}

/* ---- protocol buffers ---- */

bool body_may_be_protobuf(const struct request *req)
{
    return req->route.kind && req->route.kind->is_builtin;
}

/* The scheme's name is part of the text that kube-apiserver answers. */
int body_unregistered(const char *kind, const char *version, struct err *err)
{
    return err_set(err, ERR_BAD_REQUEST,
                   "no kind \"%s\" is registered for version \"%s\" in scheme "
                   "\"pkg/runtime/scheme.go:111\"",
                   kind, version);
}

/* What an envelope says, or what stands for it when it says nothing. */
static char *text_or(struct str given, const char *otherwise)
{
    return given.n ? str_hold(given.p, given.n) : xstrdup(otherwise);
}

/* The tree of the envelope's content. Errors name kind and version, which the envelope has. */
static int read_content(const struct wire_envelope *e, const struct wire_message *message,
                        const char *version, const char *kind, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    int r =
        message ? wire_decode(message, e->raw, &tree, err) : body_unregistered(kind, version, err);
    if (r < 0)
        return r;
    json_set_str(tree, "apiVersion", version);
    json_set_str(tree, "kind", kind);
    *ret = steal(&tree);
    return 0;
}

/* The JSON error has a head that YAML's does not have, nor a number that is too large. */
static int parse(struct str body, enum body_type type, struct pairs *duplicates, cJSON **ret,
                 struct err *err)
{
    struct json_opts opts = {.flags = JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE |
                                      YAML_FIRST_DOCUMENT,
                             .duplicates = duplicates};
    if (type == BODY_YAML)
        return yaml_parse(body.p, body.n, &opts, ret, err);
    int r = json_parse(body.p, body.n, &opts, ret, err);
    return r == -ERR_BAD_REQUEST && !is_number_error(err)
               ? err_wrap(err, "couldn't get version/kind; json parse error")
               : r;
}

/* Go decodes apiVersion and kind into a struct of two strings first. */
static int check_head_types(const cJSON *tree, struct err *err)
{
    static const char *const names[] = {"apiVersion", "kind"};
    if (!cJSON_IsObject(tree) && !cJSON_IsNull(tree))
        return err_set(err, ERR_BAD_REQUEST,
                       "couldn't get version/kind; json parse error: json: cannot unmarshal %s "
                       "into Go value of type struct { "
                       "APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
                       "\"json:\\\"kind,omitempty\\\"\" }",
                       body_go_type(tree));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const cJSON *member = json_get(tree, names[i]);
        if (member && !cJSON_IsString(member) && !cJSON_IsNull(member))
            return err_set(err, ERR_BAD_REQUEST,
                           "couldn't get version/kind; json parse error: json: cannot unmarshal %s "
                           "into Go struct field .%s "
                           "of type string",
                           body_go_type(member), names[i]);
    }
    return 0;
}

int body_check_head(const cJSON *tree, struct err *err)
{
    if (check_head_types(tree, err) < 0)
        return -err->code;
    const char *version = json_str_or(tree, "apiVersion", ""), *slash = strchr(version, '/');
    if (slash && strchr(slash + 1, '/'))
        return err_set(err, ERR_BAD_REQUEST, "unexpected GroupVersion string: %s", version);
    return 0;
}

static bool lacks_kind(const cJSON *tree)
{
    return *json_str_or(tree, "kind", "") == '\0';
}

int body_check_type_meta(const cJSON *tree, struct str text, struct err *err)
{
    if (body_check_head(tree, err) < 0)
        return -err->code;
    if (lacks_kind(tree))
        return err_set(err, ERR_BAD_REQUEST, "Object 'Kind' is missing in '%.*s'",
                       (int)(text.n > INT32_MAX ? INT32_MAX : text.n), text.p);
    return 0;
}

/* It says what it is, and is not. */
static int not_handled(const char *given_kind, const char *given_version, const struct kind *kind,
                       struct err *err)
{
    SCOPED_FREE char *why = xstrdup(err_text(err));
    return err_set(err, ERR_BAD_REQUEST, "%s in version \"%s\" cannot be handled as a %s: %s",
                   given_kind, given_version, kind->kind, why);
}

static int unrecognized(const struct request *req, const struct kind *kind, struct err *err)
{
    if (is_number_error(err))
        return not_handled(kind->kind, kind->version, kind, err);
    SCOPED(buf_fini) struct buf excerpt = {0};
    print_excerpt(buf_str(&req->body), &excerpt);
    SCOPED_FREE char *why = xstrdup(err_text(err));
    return err_set(err, ERR_BAD_REQUEST,
                   "the object provided is unrecognized (must be of type %s): %s (%s)", kind->kind,
                   why, buf_cstr(&excerpt));
}

/* Who reads leniently takes the URL's kind for one that is missing, and misses it later, in the
 * JSON that YAML has become. */
static int kind_ignored(const cJSON *tree, struct str body, enum body_type type,
                        const struct kind *kind, struct err *err)
{
    const char *given = json_str_or(tree, "apiVersion", ""), *slash = strchr(given, '/');
    const char *version = slash ? slash + 1 : given;
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(json_free_p) cJSON *sorted = type == BODY_YAML ? json_copy(tree) : NULL;
    json_sort(sorted);
    if (sorted)
        json_print(sorted, &text);
    else
        buf_append(&text, body.p, body.n);
    body_check_type_meta(tree, buf_str(&text), err);
    return not_handled(kind->kind, *version ? version : kind->version, kind, err);
}

static int decode_protobuf(const struct request *req, const struct kind *kind, cJSON **ret,
                           struct err *err)
{
    struct wire_envelope e;
    SCOPED(json_free_p) cJSON *tree = NULL;
    if (wire_open(buf_str(&req->body), &e, err) < 0)
        return unrecognized(req, kind, err);
    SCOPED_FREE char *expected = kind_api_version(kind);
    SCOPED_FREE char *version = text_or(e.api_version, expected);
    SCOPED_FREE char *given = text_or(e.kind, kind->kind);
    const char *slash = strchr(version, '/');
    if (read_content(&e, wire_find(version, given), version, given, &tree, err) < 0)
        return err->code == ERR_BAD_REQUEST
                   ? not_handled(given, slash ? slash + 1 : version, kind, err)
                   : -(int)err->code;
    if (gotype_check_version(tree, expected, err) < 0)
        return -(int)err->code;
    *ret = steal(&tree);
    return 0;
}

int body_decode_object(const struct request *req, const struct kind *kind,
                       enum field_validation validation, struct pairs *findings, cJSON **ret,
                       struct err *err)
{
    enum body_type type;
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(pairs_fini) struct pairs duplicates = {0};
    if (body_check_size(req, err) < 0 ||
        negotiate_body(&req->headers, body_may_be_protobuf(req), &type, err) < 0)
        return -err->code;
    if (type == BODY_PROTOBUF)
        return decode_protobuf(req, kind, ret, err);
    struct str body = buf_str(&req->body);
    if (parse(body, type, &duplicates, &tree, err) < 0 || body_check_head(tree, err) < 0)
        return err->code == ERR_BAD_REQUEST ? unrecognized(req, kind, err) : -(int)err->code;
    if (lacks_kind(tree) && validation == FIELD_VALIDATION_IGNORE && !kind->is_builtin)
        return kind_ignored(tree, body, type, kind, err);
    if (body_check_type_meta(tree, body, err) < 0)
        return unrecognized(req, kind, err);
    /* Of ours admission says it, after what else there is to say. */
    SCOPED_FREE char *expected = kind_api_version(kind);
    if (kind->is_builtin && gotype_check_version(tree, expected, err) < 0)
        return -err->code;
    add_findings(&duplicates, type, validation, findings);
    *ret = steal(&tree);
    return 0;
}

/* Options carry any version; an envelope without a kind is what was asked for. */
static int read_options(struct str body, const char *api_version, const char *kind, cJSON **ret,
                        struct err *err)
{
    struct wire_envelope e;
    int r = wire_open(body, &e, err);
    if (r < 0)
        return r;
    SCOPED_FREE char *given = text_or(e.kind, kind);
    SCOPED_FREE char *version = text_or(e.api_version, api_version);
    if (strcmp(given, kind) != 0)
        return body_unregistered(given, version, err);
    return read_content(&e, wire_find(NULL, kind), version, kind, ret, err);
}

int body_decode_options(const struct request *req, const char *api_version, const char *kind,
                        struct pairs *findings, cJSON **ret, struct err *err)
{
    enum body_type type;
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(pairs_fini) struct pairs duplicates = {0};
    if (body_check_size(req, err) < 0 ||
        negotiate_body(&req->headers, body_may_be_protobuf(req), &type, err) < 0)
        return -err->code;
    if (type == BODY_PROTOBUF)
        return read_options(buf_str(&req->body), api_version, kind, ret, err);
    if (parse(buf_str(&req->body), type, &duplicates, &tree, err) < 0 ||
        body_check_head(tree, err) < 0)
        return -err->code;
    const char *given = json_str_or(tree, "kind", "");
    const char *version = json_str_or(tree, "apiVersion", "");
    bool is_default = !*version || strcmp(version, "/") == 0;
    if (*given && strcmp(given, kind) != 0)
        return body_unregistered(given, is_default ? api_version : version, err);
    if (findings)
        add_findings(&duplicates, type, FIELD_VALIDATION_WARN, findings);
    *ret = steal(&tree);
    return 0;
}

static void add_patch_findings(const struct pairs *duplicates, enum body_type type,
                               struct pairs *findings)
{
    for (size_t i = 0; i < duplicates->n; i++) {
        SCOPED_FREE char *text =
            xasprintf("%sduplicate field \"%s\"", type == BODY_JSON_PATCH ? "json patch " : "",
                      duplicates->v[i].name);
        pairs_add(findings, text, "");
    }
}

static bool is_patch_member(const char *name)
{
    static const char *const known[] = {"op", "path", "from", "value"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(name, known[i]) == 0)
            return true;
    return false;
}

static void find_unknown_members(const cJSON *operations, struct pairs *findings)
{
    const cJSON *operation, *member;
    size_t i = 0;
    cJSON_ArrayForEach(operation, operations)
    {
        size_t index = i++;
        if (!cJSON_IsObject(operation))
            continue;
        cJSON_ArrayForEach(member, operation)
        {
            if (is_patch_member(member->string) || findings->n >= FINDINGS_MAX)
                continue;
            SCOPED_FREE char *text =
                xasprintf("json patch unknown field \"[%zu].%s\"", index, member->string);
            pairs_add(findings, text, "");
        }
    }
}

static int bad_operation(const cJSON *node, const char *into, struct err *err)
{
    return err_set(err, ERR_BAD_REQUEST,
                   "error decoding patch: json: cannot unmarshal %s into Go %s", body_go_type(node),
                   into);
}

/* Operations that do not decode, which is another thing than operations that cannot be carried
 * out. */
static int check_operations(const cJSON *operations, struct err *err)
{
    const cJSON *operation, *member;
    cJSON_ArrayForEach(operation, operations)
    {
        if (!cJSON_IsObject(operation) && !cJSON_IsNull(operation))
            return bad_operation(operation, "value of type handlers.jsonPatchOp", err);
        cJSON_ArrayForEach(member, operation)
        {
            SCOPED_FREE char *into =
                xasprintf("struct field jsonPatchOp.%s of type string", member->string);
            if (is_patch_member(member->string) && strcmp(member->string, "value") != 0 &&
                !cJSON_IsString(member) && !cJSON_IsNull(member))
                return bad_operation(member, into, err);
        }
    }
    return 0;
}

/* null is no operations for a JSON patch, and refused as a merge patch. */
int body_check_patch(const cJSON *tree, enum body_type type, struct err *err)
{
    bool is_list = type == BODY_JSON_PATCH;
    if (is_list && (cJSON_IsArray(tree) || cJSON_IsNull(tree)))
        return check_operations(tree, err);
    if (!is_list && cJSON_IsObject(tree))
        return 0;
    if (cJSON_IsNull(tree))
        return err_set(err, ERR_BAD_REQUEST, "Invalid JSON Patch");
    return err_set(err, ERR_BAD_REQUEST,
                   "error decoding patch: json: cannot unmarshal %s into Go value of type %s",
                   body_go_type(tree),
                   is_list ? "[]handlers.jsonPatchOp" : "map[string]interface {}");
}

int body_decode_patch(const struct request *req, enum body_type type, struct pairs *findings,
                      cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(pairs_fini) struct pairs duplicates = {0};
    struct json_opts opts = {.flags = JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE,
                             .duplicates = &duplicates};
    if (body_check_size(req, err) < 0)
        return -err->code;
    int r = json_parse(buf_cstr(&req->body), req->body.len, &opts, &tree, err);
    if (r < 0)
        return r == -ERR_BAD_REQUEST ? err_set(err, ERR_BAD_REQUEST, "invalid JSON patch") : r;
    add_patch_findings(&duplicates, type, findings);
    if (type == BODY_JSON_PATCH && cJSON_IsArray(tree))
        find_unknown_members(tree, findings);
    *ret = steal(&tree);
    return 0;
}

/* What does not look like JSON is read twice there, and is refused at the first time. */
static const char *apply_error_head(struct str body)
{
    size_t i = 0;
    while (i < body.n && strchr(" \t\r\n\v\f", body.p[i]))
        i++;
    return i < body.n && body.p[i] == '{' ? "error decoding patch: error converting YAML to JSON"
                                          : "error encoding patch";
}

int body_decode_apply(const struct request *req, struct pairs *findings, cJSON **ret,
                      struct err *err)
{
    const struct json_opts opts = {.flags = JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE |
                                            YAML_FIRST_DOCUMENT,
                                   .duplicates = findings};
    int r = yaml_parse(buf_cstr(&req->body), req->body.len, &opts, ret, err);
    if (r < 0)
        return r == -ERR_BAD_REQUEST ? err_wrap(err, "%s", apply_error_head(buf_str(&req->body)))
                                     : r;
    if (!*ret)
        *ret = json_null();
    return 0;
}
