/* Sets of field paths; see fieldset.h. Two sets are combined by one walk over both, item by item in
 * their common order; the parts that only one of them has are shared, not copied. Source of the
 * meaning of each operation: structured-merge-diff's fieldpath.Set. */
#include "openapi/fieldset.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

/* ---- order ---- */

static int compare_items(const struct fieldset_item *a, const struct fieldset_item *b)
{
    return a->kind != b->kind ? a->kind - b->kind : strcmp(a->text, b->text);
}

static int compare_for_sort(const void *a, const void *b)
{
    return compare_items(a, b);
}

/* ---- making ---- */

struct fieldset *fieldset_new(struct arena *arena)
{
    return arena_alloc(arena, sizeof(struct fieldset));
}

void fieldset_add(struct arena *arena, struct fieldset *set, struct fieldset_item item)
{
    if (!item.is_member && !item.inside)
        return;
    if (set->n == set->cap) {
        size_t cap = set->cap ? 2 * set->cap : 4;
        struct fieldset_item *v = arena_alloc(arena, cap * sizeof *v);
        if (set->n)
            memcpy(v, set->v, set->n * sizeof *v);
        set->v = v;
        set->cap = cap;
    }
    set->v[set->n++] = item;
}

static bool is_in_order(const struct fieldset *set)
{
    for (size_t i = 1; i < set->n; i++)
        if (compare_items(&set->v[i - 1], &set->v[i]) >= 0)
            return false;
    return true;
}

static void join_equal(struct arena *arena, struct fieldset *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        struct fieldset_item *last = n ? &set->v[n - 1] : NULL;
        if (!last || compare_items(last, &set->v[i]) != 0) {
            set->v[n++] = set->v[i];
            continue;
        }
        last->is_member |= set->v[i].is_member;
        last->inside = fieldset_union(arena, last->inside, set->v[i].inside);
    }
    set->n = n;
}

const struct fieldset *fieldset_finish(struct arena *arena, struct fieldset *set)
{
    if (!set || set->n == 0)
        return NULL;
    if (!is_in_order(set)) {
        qsort(set->v, set->n, sizeof *set->v, compare_for_sort);
        join_equal(arena, set);
    }
    return set;
}

const struct fieldset *fieldset_of_path(struct arena *arena, const char *const *names)
{
    struct fieldset *set = fieldset_new(arena);
    const struct fieldset *inside = names[1] ? fieldset_of_path(arena, names + 1) : NULL;
    fieldset_add(arena, set,
                 (struct fieldset_item){
                     .kind = STEP_FIELD, .text = *names, .inside = inside, .is_member = !inside});
    return set;
}

/* ---- texts ---- */

static void print_string(const char *s, struct buf *out)
{
    size_t from = out->len;
    buf_json_string(out, s, strlen(s));
    if (!strpbrk(s, "<>&"))
        return;
    SCOPED_FREE char *plain = xstrdup(buf_cstr(out) + from);
    out->len = from;
    for (const char *p = plain; *p; p++) {
        if (*p == '<' || *p == '>' || *p == '&')
            buf_printf(out, "\\u%04x", *p);
        else
            buf_putc(out, *p);
    }
}

static void print_object(const cJSON *object, struct buf *out)
{
    SCOPED(json_free_p) cJSON *sorted = json_copy(object);
    const cJSON *member;
    json_sort(sorted);
    buf_putc(out, '{');
    cJSON_ArrayForEach(member, sorted)
    {
        if (member != sorted->child)
            buf_putc(out, ',');
        print_string(member->string, out);
        buf_putc(out, ':');
        fieldset_value_print(member, out);
    }
    buf_putc(out, '}');
}

void fieldset_value_print(const cJSON *value, struct buf *out)
{
    int64_t whole;
    if (cJSON_IsString(value))
        print_string(value->valuestring, out);
    else if (cJSON_IsObject(value))
        print_object(value, out);
    else if (cJSON_IsNumber(value) && json_node_i64(value, &whole) == 0)
        buf_printf(out, "%lld", (long long)whole);
    else
        json_print(value, out);
}

/* ---- FieldsV1 ---- */

#define STEP_DEPTH_MAX 8 /* of the JSON in one step; keys and values are scalars really */

/* A step's JSON in the form that compares; NULL when it is none. */
static const char *rewrite(struct arena *arena, char kind, const char *text)
{
    const struct json_opts opts = {.max_depth = STEP_DEPTH_MAX};
    SCOPED(json_free_p) cJSON *value = NULL;
    SCOPED(buf_fini) struct buf out = {0};
    if (json_parse(text, strlen(text), &opts, &value, NULL) < 0 ||
        (kind == STEP_KEYS && !cJSON_IsObject(value)))
        return NULL;
    fieldset_value_print(value, &out);
    return arena_strdup(arena, buf_cstr(&out));
}

static bool is_index(const char *text)
{
    int64_t ignored;
    return str_to_i64(text, &ignored) == 0;
}

/* One key of FieldsV1 as a step. 1 = a step, 0 = of a kind that nobody knows, -1 = nonsense. */
static int parse_step(struct arena *arena, struct scan_piece key, bool as_client,
                      struct fieldset_item *ret)
{
    if (key.n < 2 || key.p[1] != ':')
        return -1;
    const char *text = scan_text(arena, (struct scan_piece){key.p + 2, key.n - 2});
    *ret = (struct fieldset_item){.kind = key.p[0], .text = text};
    switch (key.p[0]) {
    case STEP_FIELD:
        return text ? 1 : -1;
    case STEP_INDEX:
        return text && is_index(text) ? 1 : -1;
    case STEP_KEYS:
    case STEP_VALUE:
        if (text && as_client)
            ret->text = rewrite(arena, key.p[0], text);
        return ret->text ? 1 : -1;
    default:
        return 0;
    }
}

struct parser {
    struct arena *arena;
    struct scan *s;
    bool as_client;
};

/* The next value is null; steps over it. */
static bool is_null(struct scan *s)
{
    struct scan at = *s;
    struct scan_piece value;
    if (!scan_value(&at, &value) || value.n != 4 || value.p[0] != 'n')
        return false;
    *s = at;
    return true;
}

/* What is inside of the next value; *ret_member tells whether its own path is in the set. */
static int parse_node(const struct parser *p, unsigned depth, bool *ret_member,
                      const struct fieldset **ret)
{
    struct fieldset *set = NULL;
    struct scan_piece key;
    bool is_first = true, failed = false;
    *ret_member = false;
    *ret = NULL;
    if (depth > FIELDSET_DEPTH_MAX)
        return -1;
    if (!scan_enter(p->s, '{')) {
        *ret_member = true;
        return is_null(p->s) ? 0 : -1;
    }
    while (scan_member(p->s, &is_first, &key, &failed)) {
        struct fieldset_item item;
        bool is_self = key.n == 1 && *key.p == '.';
        int step = is_self ? 0 : parse_step(p->arena, key, p->as_client, &item);
        *ret_member |= is_self;
        if (step < 0 || (step == 0 && !scan_value(p->s, NULL)) ||
            (step > 0 && parse_node(p, depth + 1, &item.is_member, &item.inside) < 0))
            return -1;
        if (step > 0 && !set)
            set = fieldset_new(p->arena);
        if (step > 0)
            fieldset_add(p->arena, set, item);
    }
    *ret = fieldset_finish(p->arena, set);
    *ret_member |= !*ret;
    return failed ? -1 : 0;
}

int fieldset_parse(struct arena *arena, struct scan *s, bool as_client, const struct fieldset **ret)
{
    const struct parser p = {.arena = arena, .s = s, .as_client = as_client};
    bool ignored;
    return parse_node(&p, 0, &ignored, ret);
}

static bool needs_escapes(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p < 0x20 || *p == '"' || *p == '\\' || *p >= 0x7f)
            return true;
    return false;
}

/* "f:name": with what JSON needs escaped. */
static void print_key(const struct fieldset_item *item, struct buf *out)
{
    const char head[] = {'"', item->kind, ':'};
    size_t n = strlen(item->text);
    if (!needs_escapes(item->text)) {
        buf_append(out, head, sizeof head);
        buf_append(out, item->text, n);
        buf_append(out, "\":", 2);
        return;
    }
    size_t from = out->len;
    buf_json_string(out, item->text, n);
    buf_append(out, "\":", 3); /* room for the letter and two colons */
    if (buf_failed(out))
        return;
    /* The text begins behind its quote: put the letter there and move the rest. */
    memmove(out->data + from + 3, out->data + from + 1, out->len - from - 4);
    memcpy(out->data + from, head, sizeof head);
    out->data[out->len - 1] = ':';
}

static void print_items(const struct fieldset *set, bool is_member, struct buf *out)
{
    buf_puts(out, is_member && set ? "{\".\":{}" : "{");
    for (size_t i = 0; set && i < set->n; i++) {
        if (i > 0 || is_member)
            buf_putc(out, ',');
        print_key(&set->v[i], out);
        if (set->v[i].inside)
            print_items(set->v[i].inside, set->v[i].is_member, out);
        else
            buf_puts(out, "{}");
    }
    buf_putc(out, '}');
}

void fieldset_print(const struct fieldset *set, struct buf *out)
{
    print_items(set, false, out);
}

/* ---- looking ---- */

const struct fieldset_item *fieldset_find(const struct fieldset *set, char kind, const char *text)
{
    const struct fieldset_item wanted = {.kind = kind, .text = text};
    size_t from = 0, to = set ? set->n : 0;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare_items(&set->v[middle], &wanted);
        if (order == 0)
            return &set->v[middle];
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

bool fieldset_has_path(const struct fieldset *set, const char *const *names)
{
    const struct fieldset_item *item = NULL;
    for (; *names; names++) {
        item = fieldset_find(item ? item->inside : set, STEP_FIELD, *names);
        if (!item)
            return false;
    }
    return item && item->is_member;
}

bool fieldset_equal(const struct fieldset *a, const struct fieldset *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (compare_items(&a->v[i], &b->v[i]) != 0 || a->v[i].is_member != b->v[i].is_member ||
            !fieldset_equal(a->v[i].inside, b->v[i].inside))
            return false;
    return true;
}

/* ---- combining ---- */

/* What becomes of an item of a (never NULL) with its counterpart in b, which may be NULL. */
typedef struct fieldset_item combine_fn(struct arena *arena, const struct fieldset_item *a,
                                        const struct fieldset_item *b);

/* An item that keeps nothing is left out. A result that is a itself costs nothing. */
static const struct fieldset *combine(struct arena *arena, const struct fieldset *a,
                                      const struct fieldset *b, combine_fn *fn)
{
    struct fieldset *set = NULL;
    size_t k = 0;
    for (size_t i = 0; i < a->n; i++) {
        while (k < b->n && compare_items(&b->v[k], &a->v[i]) < 0)
            k++;
        bool is_in_both = k < b->n && compare_items(&b->v[k], &a->v[i]) == 0;
        struct fieldset_item item = fn(arena, &a->v[i], is_in_both ? &b->v[k] : NULL);
        bool is_same = item.is_member == a->v[i].is_member && item.inside == a->v[i].inside;
        if (!set && is_same)
            continue;
        if (!set) {
            set = fieldset_new(arena);
            set->v = arena_alloc(arena, a->n * sizeof *set->v);
            set->cap = a->n;
            memcpy(set->v, a->v, i * sizeof *set->v);
            set->n = i;
        }
        fieldset_add(arena, set, item);
    }
    return set ? fieldset_finish(arena, set) : a;
}

static struct fieldset_item keep_common(struct arena *arena, const struct fieldset_item *a,
                                        const struct fieldset_item *b)
{
    struct fieldset_item item = *a;
    item.is_member = a->is_member && b && b->is_member;
    item.inside = fieldset_intersection(arena, a->inside, b ? b->inside : NULL);
    return item;
}

static struct fieldset_item keep_different(struct arena *arena, const struct fieldset_item *a,
                                           const struct fieldset_item *b)
{
    struct fieldset_item item = *a;
    if (!b)
        return item;
    item.is_member = a->is_member && !b->is_member;
    item.inside = fieldset_difference(arena, a->inside, b->inside);
    return item;
}

static struct fieldset_item keep_not_below(struct arena *arena, const struct fieldset_item *a,
                                           const struct fieldset_item *b)
{
    struct fieldset_item item = *a;
    if (!b)
        return item;
    item.is_member = a->is_member && !b->is_member;
    item.inside = b->is_member ? NULL : fieldset_exclude(arena, a->inside, b->inside);
    return item;
}

const struct fieldset *fieldset_intersection(struct arena *arena, const struct fieldset *a,
                                             const struct fieldset *b)
{
    return a && b ? combine(arena, a, b, keep_common) : NULL;
}

const struct fieldset *fieldset_difference(struct arena *arena, const struct fieldset *a,
                                           const struct fieldset *b)
{
    return a && b ? combine(arena, a, b, keep_different) : a;
}

const struct fieldset *fieldset_exclude(struct arena *arena, const struct fieldset *a,
                                        const struct fieldset *b)
{
    return a && b ? combine(arena, a, b, keep_not_below) : a;
}

const struct fieldset *fieldset_union(struct arena *arena, const struct fieldset *a,
                                      const struct fieldset *b)
{
    if (!a || !b || a == b)
        return a ? a : b;
    struct fieldset *set = fieldset_new(arena);
    set->v = arena_alloc(arena, (a->n + b->n) * sizeof *set->v);
    set->cap = a->n + b->n;
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        int order = i == a->n ? 1 : k == b->n ? -1 : compare_items(&a->v[i], &b->v[k]);
        struct fieldset_item item = order <= 0 ? a->v[i] : b->v[k];
        if (order == 0) {
            item.is_member |= b->v[k].is_member;
            item.inside = fieldset_union(arena, a->v[i].inside, b->v[k].inside);
        }
        i += order <= 0;
        k += order >= 0;
        fieldset_add(arena, set, item);
    }
    return set;
}
