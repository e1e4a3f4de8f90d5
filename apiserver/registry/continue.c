/* Continue tokens. On the wire the start is the last key and a NUL, as kube-apiserver has it. Our
 * strings end at NUL and no key has a byte below a blank in it, so inside it is \001. */
#include "apiserver/registry/continue.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

#define VERSION_TEXT "meta.k8s.io/v1"
#define TOKEN_MAX ((size_t)4 << 10) /* bytes; a key has at most about 600 */

void continue_point_fini(struct continue_point *p)
{
    free(p->start);
    *p = (struct continue_point){0};
}

static int invalid(struct err *err, const char *why)
{
    return err_set(err, ERR_BAD_REQUEST, "invalid continue token: continue key is not valid: %s",
                   why);
}

static int decode(const char *token, struct buf *out, struct err *err)
{
    size_t n = strlen(token), good;
    if (n > TOKEN_MAX)
        return invalid(err, "too long");
    if (buf_unbase64url(out, token, n, &good))
        return 0;
    SCOPED_FREE char *why = xasprintf("illegal base64 data at input byte %zu", good);
    return invalid(err, why);
}

/* Makes every escape \u000X with X = from one with X = to. */
static void swap_escape(char *text, char from, char to)
{
    static const char escape[] = "\\u000";
    for (char *p = text; (p = strstr(p, escape)) != NULL;) {
        p += strlen(escape);
        if (*p == from)
            *p = to;
    }
}

char *continue_print(int64_t rev, const char *start)
{
    SCOPED(buf_fini) struct buf json = {0}, token = {0};
    buf_printf(&json, "{\"v\":\"" VERSION_TEXT "\",\"rv\":%lld,\"start\":", (long long)rev);
    buf_json_string(&json, start, strlen(start));
    buf_putc(&json, '}');
    swap_escape(json.data, '1', '0');
    buf_base64url(&token, buf_cstr(&json), json.len);
    return buf_take(&token, NULL);
}

/* ---- contents ---- */

static const char *type_word(const cJSON *node)
{
    return cJSON_IsString(node)   ? "string"
           : cJSON_IsNumber(node) ? "number"
           : cJSON_IsBool(node)   ? "bool"
           : cJSON_IsArray(node)  ? "array"
                                  : "object";
}

/* Go's complaint about the first member of another type than the token's struct has. */
static int check_types(const cJSON *tree, struct err *err)
{
    static const struct {
        const char *name, *type;
    } members[] = {{"rv", "int64"}, {"start", "string"}, {"v", "string"}};
    if (!cJSON_IsObject(tree) && !cJSON_IsNull(tree)) {
        SCOPED_FREE char *why =
            xasprintf("json: cannot unmarshal %s into Go value of type storage.continueToken",
                      type_word(tree));
        return invalid(err, why);
    }
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const cJSON *node = json_get(tree, members[i].name);
        int64_t ignored;
        bool is_int = strcmp(members[i].type, "int64") == 0;
        if (!node || cJSON_IsNull(node) ||
            (is_int ? json_node_i64(node, &ignored) == 0 : cJSON_IsString(node)))
            continue;
        SCOPED_FREE char *why =
            xasprintf("json: cannot unmarshal %s into Go struct field continueToken.%s of type %s",
                      type_word(node), members[i].name, members[i].type);
        return invalid(err, why);
    }
    return 0;
}

/* A start that names a place outside, or that is written in another way than it is meant. */
static bool is_clean_path(const char *s)
{
    if (*s == '/')
        s++;
    while (*s) {
        size_t n = strcspn(s, "/");
        bool is_dots = (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.');
        if (n == 0 || is_dots || (s[n] == '/' && s[n + 1] == '\0'))
            return false;
        s += n + (s[n] == '/');
    }
    return true;
}

static int check_contents(const cJSON *tree, struct err *err)
{
    const char *version = json_str_or(tree, "v", ""), *start = json_str_or(tree, "start", "");
    if (strcmp(version, VERSION_TEXT) != 0) {
        SCOPED_FREE char *why =
            xasprintf("server does not recognize this encoded version %s", version);
        return invalid(err, why);
    }
    if (json_i64_or(tree, "rv", 0) == 0)
        return invalid(err, "incorrect encoded start resourceVersion (version " VERSION_TEXT ")");
    if (*start == '\0')
        return invalid(err, "encoded start key empty (version " VERSION_TEXT ")");
    return is_clean_path(start) ? 0 : invalid(err, start);
}

int continue_parse(const char *token, struct continue_point *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf json = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(err_fini) struct err e = {0};
    const struct json_opts opts = {.flags = JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE,
                                   .max_depth = 100};
    int rc = decode(token, &json, err);
    if (rc < 0)
        return rc;
    if (json.len > 0)
        swap_escape(json.data, '0', '1');
    if (json_parse(buf_cstr(&json), json.len, &opts, &tree, &e) < 0)
        return invalid(err, err_text(&e));
    if ((rc = check_types(tree, err)) < 0 || (rc = check_contents(tree, err)) < 0)
        return rc;
    const char *start = json_str(tree, "start");
    *ret = (struct continue_point){
        .rev = json_i64_or(tree, "rv", 0),
        .start = xstrdup(*start == '/' ? start + 1 : start),
    };
    return 0;
}
