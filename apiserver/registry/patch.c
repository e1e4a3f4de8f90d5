/* An operation finds the parent of its path, then works on one member or item there. Trees are
 * walked, never re-parsed; merging goes down one frame a level of the patch, which json.h bounds
 * when it parses. */
#include "apiserver/registry/patch.h"

#include "apiserver/base/json_members.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

struct place { /* where a path leads: a member of an object or an item of a list */
    cJSON *parent;
    char *token; /* unescaped last segment, owned; NULL = the whole document */
};

static void place_fini(struct place *p)
{
    free(p->token);
    *p = (struct place){0};
}

/* ~1 is '/', ~0 is '~'. */
static char *unescape(const char *s, size_t n)
{
    char *out = xmalloc(n + 1), *to = out;
    for (size_t i = 0; i < n; i++) {
        bool is_escape = s[i] == '~' && i + 1 < n && (s[i + 1] == '0' || s[i + 1] == '1');
        *to++ = !is_escape ? s[i] : s[i + 1] == '0' ? '~' : '/';
        i += is_escape;
    }
    *to = '\0';
    return out;
}

/* Which of n places a token means; below zero is counted from behind, as kube-apiserver's library
 * does. -1 = none. */
static int64_t index_of(const char *token, size_t n)
{
    int64_t i;
    if (str_to_i64(token, &i) < 0 || i >= (int64_t)n || i < -(int64_t)n)
        return -1;
    return i < 0 ? i + (int64_t)n : i;
}

static cJSON *item_at(cJSON *list, int64_t i)
{
    cJSON *item = list->child;
    while (item && i-- > 0)
        item = item->next;
    return item;
}

static cJSON *child_of(cJSON *parent, const char *token)
{
    if (cJSON_IsObject(parent))
        return json_get(parent, token);
    int64_t i = cJSON_IsArray(parent) ? index_of(token, json_len(parent)) : -1;
    return i < 0 ? NULL : item_at(parent, i);
}

/* False when the way to the parent does not exist or leads through a scalar. */
static bool find_place(cJSON *doc, const char *path, struct place *ret)
{
    const char *at = strchr(path, '/');
    struct place p = {.parent = doc};
    if (!at) {
        *ret = p;
        return !*path; /* the whole document */
    }
    for (;;) {
        const char *end = strchrnul(++at, '/');
        p.token = unescape(at, (size_t)(end - at));
        if (!*end)
            break;
        p.parent = child_of(p.parent, p.token);
        place_fini(&(struct place){.token = p.token});
        at = end;
        if (!p.parent)
            return false;
    }
    *ret = p;
    if (cJSON_IsObject(p.parent) || cJSON_IsArray(p.parent))
        return true;
    place_fini(ret);
    return false;
}

static bool add_to_list(cJSON *list, const char *token, cJSON *take_value)
{
    size_t n = json_len(list);
    int64_t i = strcmp(token, "-") == 0 ? (int64_t)n : index_of(token, n + 1);
    if (i < 0) {
        json_free(take_value);
        return false;
    }
    json_insert(list, (size_t)i, take_value);
    return true;
}

/* Takes value in every case. The whole document can only be replaced. */
static bool add(cJSON *doc, const char *path, cJSON *take_value)
{
    struct place p;
    bool is_done = true;
    if (!find_place(doc, path, &p)) {
        json_free(take_value);
        return false;
    }
    if (!p.token) {
        json_free(take_value);
        is_done = false;
    } else if (cJSON_IsObject(p.parent)) {
        json_set(p.parent, p.token, take_value);
    } else {
        is_done = add_to_list(p.parent, p.token, take_value);
    }
    place_fini(&p);
    return is_done;
}

/* The value taken out; NULL when there is none, or it is the whole document. */
static cJSON *take_out(cJSON *doc, const char *path)
{
    struct place p;
    cJSON *value = NULL;
    if (!find_place(doc, path, &p))
        return NULL;
    if (p.token && (value = child_of(p.parent, p.token)))
        value = json_detach_item(p.parent, value);
    place_fini(&p);
    return value;
}

static bool replace_whole(cJSON **doc, cJSON *take_value)
{
    bool fits = cJSON_IsObject(take_value) || cJSON_IsArray(take_value);
    json_free(fits ? *doc : take_value);
    if (fits)
        *doc = take_value;
    return fits;
}

static bool replace(cJSON **doc, const char *path, cJSON *take_value)
{
    struct place p;
    if (!*path)
        return replace_whole(doc, take_value);
    if (!find_place(*doc, path, &p)) {
        json_free(take_value);
        return false;
    }
    cJSON *old = p.token && cJSON_IsArray(p.parent) ? child_of(p.parent, p.token) : NULL;
    bool is_list = p.token && cJSON_IsArray(p.parent);
    if (old)
        json_replace_item(p.parent, old, take_value);
    else if (is_list)
        json_free(take_value);
    place_fini(&p);
    return is_list ? old != NULL : add(*doc, path, take_value);
}

static size_t printed_size(const cJSON *tree)
{
    SCOPED(buf_fini) struct buf text = {.max = PATCH_COPY_MAX + 1};
    json_print(tree, &text);
    return buf_failed(&text) ? PATCH_COPY_MAX + 1 : text.len;
}

struct operation {
    const char *op, *path, *from; /* "" and NULL when absent */
    const cJSON *value;           /* NULL = null */
};

/* A member that an object has not is copied as null, as kube-apiserver's library does. */
static bool copy(cJSON *doc, const struct operation *o, size_t *copied)
{
    struct place p;
    if (!find_place(doc, o->from, &p))
        return false;
    const cJSON *value = p.token ? child_of(p.parent, p.token) : NULL;
    bool may_miss = p.token && cJSON_IsObject(p.parent);
    place_fini(&p);
    if (!value)
        return may_miss && add(doc, o->path, json_null());
    *copied += printed_size(value);
    return *copied <= PATCH_COPY_MAX && add(doc, o->path, json_copy(value));
}

static bool move(cJSON *doc, const struct operation *o)
{
    cJSON *value = take_out(doc, o->from);
    return value && add(doc, o->path, value);
}

static bool test(cJSON *doc, const struct operation *o)
{
    struct place p;
    if (!find_place(doc, o->path, &p))
        return false;
    const cJSON *value = p.token ? child_of(p.parent, p.token) : doc;
    bool may_miss = p.token && cJSON_IsObject(p.parent);
    place_fini(&p);
    if (!value || cJSON_IsNull(value))
        return (value || may_miss) && (!o->value || cJSON_IsNull(o->value));
    return o->value && json_equal(value, o->value);
}

static bool remove_value(cJSON *doc, const char *path)
{
    cJSON *value = take_out(doc, path);
    json_free(value);
    return value != NULL;
}

static cJSON *value_of(const struct operation *o)
{
    return o->value ? json_copy(o->value) : json_null();
}

static bool apply(cJSON **doc, const struct operation *o, size_t *copied)
{
    if (!o->path)
        return false;
    if (strcmp(o->op, "add") == 0)
        return add(*doc, o->path, value_of(o));
    if (strcmp(o->op, "remove") == 0)
        return remove_value(*doc, o->path);
    if (strcmp(o->op, "replace") == 0)
        return replace(doc, o->path, value_of(o));
    if (strcmp(o->op, "test") == 0)
        return test(*doc, o);
    if (!o->from)
        return false;
    if (strcmp(o->op, "move") == 0)
        return move(*doc, o);
    return strcmp(o->op, "copy") == 0 && copy(*doc, o, copied);
}

/* Members and items that are passed on the way to the place. */
static size_t steps_to(cJSON *doc, const char *path)
{
    size_t n = json_len(doc);
    for (const char *at = path ? strchr(path, '/') : NULL; at && doc;) {
        const char *end = strchrnul(++at, '/');
        SCOPED_FREE char *token = unescape(at, (size_t)(end - at));
        doc = child_of(doc, token);
        n += json_len(doc);
        at = *end ? end : NULL;
    }
    return n;
}

/* A long list is walked through with each operation, so many of them are dear. */
static int check_steps(cJSON *doc, const struct operation *o, size_t *steps, struct err *err)
{
    *steps += steps_to(doc, o->path) + steps_to(doc, o->from);
    if (*steps <= PATCH_STEPS_MAX)
        return 0;
    return err_set(err, ERR_TOO_LARGE,
                   "Request entity too large: the operations of the JSON patch pass more than %d "
                   "items",
                   PATCH_STEPS_MAX);
}

static int check_size(const cJSON *patch, struct err *err)
{
    size_t n = json_len(patch);
    if (n <= PATCH_OPERATIONS_MAX)
        return 0;
    return err_set(
        err, ERR_TOO_LARGE,
        "Request entity too large: The allowed maximum operations in a JSON patch is %d, got %zu",
        PATCH_OPERATIONS_MAX, n);
}

int patch_json(const cJSON *doc, const cJSON *patch, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *work = json_copy(doc);
    const cJSON *item;
    size_t copied = 0, steps = 0;
    if (check_size(patch, err) < 0)
        return -ERR_TOO_LARGE;
    cJSON_ArrayForEach(item, patch)
    {
        struct operation o = {.op = json_str_or(item, "op", ""),
                              .path = json_str(item, "path"),
                              .from = json_str(item, "from"),
                              .value = json_get(item, "value")};
        if (check_steps(work, &o, &steps, err) < 0)
            return -ERR_TOO_LARGE;
        if (apply(&work, &o, &copied))
            continue;
        err_set(err, ERR_INVALID, "the server rejected our request due to an error in our request");
        return err_details(err, NULL, NULL, NULL, NULL);
    }
    *ret = steal(&work);
    return 0;
}

static cJSON *ensure_object(struct json_members *m, const char *name)
{
    cJSON *present = json_members_get(m, name);
    if (cJSON_IsObject(present))
        return present;
    cJSON *made = json_object();
    json_members_set(m, name, made);
    return made;
}

/* Members of patch go into target, which is an object. */
static void merge_into(cJSON *target, const cJSON *patch)
{
    SCOPED(json_members_fini)
    struct json_members members = json_members_of(target, json_len(patch));
    const cJSON *member;
    cJSON_ArrayForEach(member, patch)
    {
        if (cJSON_IsNull(member))
            json_members_remove(&members, member->string);
        else if (cJSON_IsObject(member))
            merge_into(ensure_object(&members, member->string), member);
        else
            json_members_set(&members, member->string, json_copy(member));
    }
}

void patch_merge(const cJSON *doc, const cJSON *patch, cJSON **ret)
{
    cJSON *work = cJSON_IsObject(doc) ? json_copy(doc) : json_object();
    merge_into(work, patch);
    *ret = work;
}

/* ---- managers ---- */

/* Conservative: the text anywhere in the patch. */
static bool names_managers(const cJSON *patch)
{
    SCOPED(buf_fini) struct buf text = {0};
    json_print(patch, &text);
    return strstr(buf_cstr(&text), "managedFields") != NULL;
}

const cJSON *patch_expand(const cJSON *doc, const cJSON *patch, cJSON **space)
{
    const cJSON *raw = json_at(doc, "metadata.managedFields");
    cJSON *list = NULL;
    if (!cJSON_IsRaw(raw) || !names_managers(patch) ||
        json_parse_str(raw->valuestring, &list, NULL) < 0)
        return doc;
    *space = json_copy(doc);
    json_set(json_get(*space, "metadata"), "managedFields", list);
    return *space;
}
