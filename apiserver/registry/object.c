/* A stored object. Its bytes are walked once (scan.h) to fill the index; the index' strings live
 * behind the struct in the same block, so an object costs its bytes and two allocations. */
#include "apiserver/registry/object.h"

#include <assert.h>
#include <inttypes.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/scan.h"
#include "openapi/kinds.h"

/* What the walk finds; pieces point into the bytes. Strings are as they stand between their
 * quotes. */
struct index {
    struct scan_piece api_version, kind, name, namespace_name, uid;
    struct scan_piece *labels;   /* key, value, key, value, ... */
    size_t n_labels, cap_labels; /* pieces */
    size_t splice_at;
    bool has_splice, is_terminating;
    const char *start;
};

static void index_fini(struct index *x)
{
    free(x->labels);
}

/* The string at s without its quotes; an empty piece for null. */
static bool string_value(struct scan *s, struct scan_piece *ret)
{
    struct scan_piece v;
    if (!scan_value(s, &v))
        return false;
    if (v.n == 4 && memcmp(v.p, "null", 4) == 0) {
        *ret = (struct scan_piece){v.p, 0};
        return true;
    }
    if (v.n < 2 || *v.p != '"')
        return false;
    *ret = (struct scan_piece){v.p + 1, v.n - 2};
    return true;
}

static void add_label_piece(struct index *x, struct scan_piece piece)
{
    if (x->n_labels == x->cap_labels) {
        x->cap_labels = x->cap_labels ? 2 * x->cap_labels : 16;
        x->labels = xreallocarray(x->labels, x->cap_labels, sizeof *x->labels);
    }
    x->labels[x->n_labels++] = piece;
}

static bool index_labels(struct index *x, struct scan *s)
{
    if (!scan_enter(s, '{'))
        return scan_value(s, NULL); /* null */
    bool is_first = true, failed = false;
    struct scan_piece key, value;
    while (scan_member(s, &is_first, &key, &failed)) {
        if (!string_value(s, &value))
            return false;
        add_label_piece(x, key);
        add_label_piece(x, value);
    }
    return !failed;
}

/* Members are sorted, so resourceVersion belongs before the first key that is greater. */
static void note_splice(struct index *x, struct scan_piece key)
{
    static const char name[] = "resourceVersion";
    size_t n = key.n < sizeof name - 1 ? key.n : sizeof name - 1;
    int order = memcmp(key.p, name, n);
    if (x->has_splice || order < 0 || (order == 0 && key.n <= sizeof name - 1))
        return;
    x->has_splice = true;
    x->splice_at = (size_t)(key.p - 1 - x->start);
}

static bool index_metadata(struct index *x, struct scan *s)
{
    if (!scan_enter(s, '{'))
        return false;
    bool is_first = true, failed = false;
    struct scan_piece key;
    while (scan_member(s, &is_first, &key, &failed)) {
        bool ok;
        note_splice(x, key);
        if (scan_key_is(key, "name"))
            ok = string_value(s, &x->name);
        else if (scan_key_is(key, "namespace"))
            ok = string_value(s, &x->namespace_name);
        else if (scan_key_is(key, "uid"))
            ok = string_value(s, &x->uid);
        else if (scan_key_is(key, "labels"))
            ok = index_labels(x, s);
        else
            ok = scan_value(s, NULL);
        if (scan_key_is(key, "deletionTimestamp"))
            x->is_terminating = true;
        if (!ok || scan_key_is(key, "resourceVersion"))
            return false;
    }
    return !failed;
}

static bool index_object(struct index *x, struct scan *s)
{
    if (!scan_enter(s, '{'))
        return false;
    bool is_first = true, failed = false;
    struct scan_piece key;
    while (scan_member(s, &is_first, &key, &failed)) {
        bool ok;
        if (scan_key_is(key, "metadata"))
            ok = index_metadata(x, s);
        else if (scan_key_is(key, "apiVersion"))
            ok = string_value(s, &x->api_version);
        else if (scan_key_is(key, "kind"))
            ok = string_value(s, &x->kind);
        else
            ok = scan_value(s, NULL);
        if (!ok)
            return false;
    }
    return !failed && scan_at_end(s) && x->name.n > 0 && x->uid.n > 0 && x->has_splice;
}

static bool is_of_kind(const struct index *x, const struct kind *k)
{
    size_t group_n = strlen(k->group), version_n = strlen(k->version), slash = group_n > 0;
    struct scan_piece v = x->api_version;
    return scan_key_is(x->kind, k->kind) && v.n == group_n + slash + version_n &&
           memcmp(v.p, k->group, group_n) == 0 && (!slash || v.p[group_n] == '/') &&
           memcmp(v.p + group_n + slash, k->version, version_n) == 0;
}

/* Copies the string behind *end and moves *end on; escapes (rare in what is indexed) are undone by
 * the parser. */
static char *put_string(char **end, struct scan_piece piece)
{
    char *to = *end;
    size_t n = piece.n;
    if (n > 0 && memchr(piece.p, '\\', n)) {
        SCOPED(json_free_p) cJSON *string = NULL;
        if (json_parse(piece.p - 1, n + 2, NULL, &string, NULL) == 0 && cJSON_IsString(string)) {
            size_t plain_n = strlen(string->valuestring);
            n = plain_n < n ? plain_n : n; /* an escape is never shorter than what it stands for */
            memcpy(to, string->valuestring, n);
            to[n] = '\0';
            *end += n + 1;
            return to;
        }
    }
    if (n > 0)
        memcpy(to, piece.p, n);
    to[n] = '\0';
    *end += n + 1;
    return to;
}

static struct object *object_alloc(const struct index *x)
{
    size_t n_pairs = x->n_labels / 2;
    size_t size = sizeof(struct object) + n_pairs * sizeof(struct pair);
    size_t strings = x->name.n + x->namespace_name.n + x->uid.n + 3;
    for (size_t i = 0; i < x->n_labels; i++)
        strings += x->labels[i].n + 1;
    struct object *o = xcalloc(1, size + strings);
    char *end = (char *)o + size;
    o->name = put_string(&end, x->name);
    o->namespace_name = put_string(&end, x->namespace_name);
    o->uid = put_string(&end, x->uid);
    o->labels.v = n_pairs ? (struct pair *)(void *)(o + 1) : NULL;
    o->labels.n = n_pairs;
    for (size_t i = 0; i < n_pairs; i++) {
        o->labels.v[i].name = put_string(&end, x->labels[2 * i]);
        o->labels.v[i].value = put_string(&end, x->labels[2 * i + 1]);
    }
    return o;
}

/* A boolean that is not there is false. */
static const char *absent_text(const struct kind *kind, const char *path)
{
    const struct shape *shape = kind->shape;
    const struct field *f = NULL;
    SCOPED_FREE char *copy = xstrdup(path);
    for (char *rest = copy, *name; (name = strsep(&rest, ".")) != NULL;) {
        f = shape_field(shape, name);
        shape = f ? f->of : NULL;
    }
    return f && f->type == F_BOOL ? "false" : "";
}

static char *field_text(const struct kind *kind, const cJSON *tree, const char *path)
{
    const cJSON *value = json_at(tree, path);
    if (cJSON_IsString(value))
        return xstrdup(value->valuestring);
    return value && !cJSON_IsObject(value) ? json_to_str(value) : xstrdup(absent_text(kind, path));
}

/* What field selectors look at. Kinds that know only name and namespace cost nothing. */
static char **field_values(const struct kind *kind, const char *json, size_t len)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    char **values = NULL;
    if (!kind->field_labels || json_parse(json, len, NULL, &tree, NULL) < 0)
        return NULL;
    for (const char *const *path = kind->field_labels; *path; path++)
        strv_add(&values, field_text(kind, tree, *path));
    return values;
}

int object_from_bytes(const struct kind *kind, char *take_json, size_t len, int64_t rev,
                      struct object **ret, struct err *err)
{
    SCOPED(index_fini) struct index x = {.start = take_json};
    struct scan s = {take_json, take_json + len};
    if (!index_object(&x, &s) || !is_of_kind(&x, kind)) {
        free(take_json);
        return err_set(err, ERR_INTERNAL,
                       "Internal error occurred: the stored bytes of revision %" PRId64
                       " are no %s",
                       rev, kind->kind);
    }
    struct object *o = object_alloc(&x);
    o->refs = 1;
    o->kind = kind;
    o->rev = rev;
    o->json = take_json;
    o->json_len = len;
    o->splice_at = x.splice_at;
    o->is_terminating = x.is_terminating;
    o->fields = field_values(kind, o->json, len);
    *ret = o;
    return 0;
}

struct object *object_ref(struct object *o)
{
    __atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
    return o;
}

void object_unref(struct object *o)
{
    if (!o || __atomic_sub_fetch(&o->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (o->origin) {
        object_unref(o->origin);
    } else {
        free(o->json);
        strv_free(o->fields);
    }
    free_counted(o);
}

void object_unref_p(struct object **o)
{
    object_unref(*o);
}

struct object *object_at_rev(struct object *o, int64_t rev)
{
    struct object *copy = xmalloc(sizeof *copy);
    struct object *origin = o->origin ? o->origin : o;
    /* Not *o as a whole: its reference count is being changed by others. */
    *copy = (struct object){.refs = 1,
                            .kind = o->kind,
                            .namespace_name = o->namespace_name,
                            .name = o->name,
                            .uid = o->uid,
                            .rev = rev,
                            .json = o->json,
                            .json_len = o->json_len,
                            .splice_at = o->splice_at,
                            .labels = o->labels,
                            .fields = o->fields,
                            .is_terminating = o->is_terminating,
                            .origin = object_ref(origin)};
    return copy;
}

void object_write(const struct object *o, struct buf *out)
{
    buf_append(out, o->json, o->splice_at);
    if (o->rev > 0) {
        buf_puts(out, "\"resourceVersion\":\"");
        buf_i64(out, o->rev);
        buf_puts(out, "\",");
    }
    buf_append(out, o->json + o->splice_at, o->json_len - o->splice_at);
}

static cJSON *parse(const struct buf *text)
{
    static const struct json_opts lenient = {.flags =
                                                 JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE};
    cJSON *tree = NULL;
    int r = json_parse(buf_cstr(text), text->len, &lenient, &tree, NULL);
    assert(r == 0 && tree); /* scan.h walked over the same bytes */
    (void)r;
    return tree;
}

cJSON *object_tree(const struct object *o)
{
    SCOPED(buf_fini) struct buf text = {0};
    object_write(o, &text);
    return parse(&text);
}

/* Takes the list out of the text and leaves null in its place; owned, NULL when there is none.
 * Quotes inside of strings have a backslash, and before this member (members are sorted) there are
 * only strings and maps of strings, so that the first match is the one. */
static char *take_managers(struct buf *text)
{
    static const char name[] = "\"managedFields\":[", in_place[] = "null";
    char *at = memmem(text->data, text->len, name, sizeof name - 1);
    if (!at)
        return NULL;
    char *from = at + sizeof name - 2, *to = from + sizeof in_place - 1;
    struct scan s = {from, text->data + text->len};
    struct scan_piece list;
    if (!scan_value(&s, &list) || s.p < to)
        return NULL;
    char *taken = xstrndup(list.p, list.n);
    size_t behind = (size_t)(s.p - text->data);
    memcpy(from, in_place, sizeof in_place - 1);
    memmove(to, text->data + behind, text->len - behind + 1);
    text->len -= (size_t)(s.p - to);
    return taken;
}

cJSON *object_tree_to_change(const struct object *o)
{
    SCOPED(buf_fini) struct buf text = {0};
    object_write(o, &text);
    char *managers = take_managers(&text);
    cJSON *tree = parse(&text);
    if (managers)
        json_set(json_get(tree, "metadata"), "managedFields", json_raw(managers));
    return tree;
}
