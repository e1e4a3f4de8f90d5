/* Types of apply; see merge_type.h. Source: kube-openapi's schemaconv, which makes these types of
 * OpenAPI documents, and structured-merge-diff's typed helpers. */
#include "openapi/merge_type.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/kinds/apimachinery.h"
#include "openapi/walk.h"

/* ---- types ---- */

void merge_type_root(struct merge_type *t, const struct shape *shape)
{
    t->space = (struct field){.type = F_OBJECT, .of = shape};
    t->f = &t->space;
}

bool merge_is_open(const struct field *f)
{
    return !f || f->type == F_ANY || f->type == F_QUANTITY || f->type == F_INT_OR_STRING;
}

static enum atom atom_of_value(const cJSON *value)
{
    if (cJSON_IsArray(value))
        return ATOM_LIST;
    return !value || cJSON_IsObject(value) || cJSON_IsNull(value) ? ATOM_MAP : ATOM_SCALAR;
}

enum atom merge_atom(const struct field *f, const cJSON *value)
{
    if (merge_is_open(f))
        return atom_of_value(value);
    switch (f->type) {
    case F_OBJECT:
    case F_MAP:
    case F_EMPTY:
    case F_META:
        return ATOM_MAP;
    case F_LIST:
        return ATOM_LIST;
    default:
        return ATOM_SCALAR;
    }
}

bool merge_is_atomic(const struct field *f, enum atom atom)
{
    if (atom == ATOM_MAP)
        return f && f->is_atomic;
    return atom == ATOM_LIST &&
           (!f || f->type != F_LIST || (f->list != LIST_SET && f->list != LIST_MAP));
}

static const struct shape *shape_of(const struct field *f)
{
    const struct shape *s = f->type == F_META ? &shape_object_meta : f->of;
    return s && s->fields && s->fields->name ? s : NULL;
}

enum member_status merge_member_type(const struct field *f, const char *name,
                                     struct merge_type *ret)
{
    ret->f = NULL;
    if (f && f->type == F_MAP) {
        merge_item_type(f, ret);
        return MEMBER_FREE;
    }
    const struct shape *shape =
        f && (f->type == F_OBJECT || f->type == F_META) ? shape_of(f) : NULL;
    if (!shape)
        return MEMBER_FREE;
    ret->f = shape_field(shape, name);
    return ret->f ? MEMBER_NAMED : MEMBER_UNKNOWN;
}

void merge_item_type(const struct field *list, struct merge_type *ret)
{
    if (!list || (list->type != F_LIST && list->type != F_MAP)) {
        ret->f = NULL;
        return;
    }
    ret->space = walk_item_field(list);
    ret->f = &ret->space;
}

/* ---- members ---- */

static int compare_names(const void *a, const void *b)
{
    const cJSON *const *x = a, *const *y = b;
    return strcmp((*x)->string, (*y)->string);
}

static bool is_sorted(const cJSON *object)
{
    for (const cJSON *m = object->child; m && m->next; m = m->next)
        if (strcmp(m->string, m->next->string) >= 0)
            return false;
    return true;
}

struct members merge_members(struct arena *arena, const cJSON *object)
{
    struct members m = {0};
    if (!cJSON_IsObject(object))
        return m;
    if (is_sorted(object)) {
        m.next = object->child;
        return m;
    }
    const cJSON *member;
    m.n = json_len(object);
    m.v = arena_alloc(arena, m.n * sizeof *m.v);
    m.n = 0;
    cJSON_ArrayForEach(member, object) m.v[m.n++] = member;
    qsort(m.v, m.n, sizeof *m.v, compare_names);
    return m;
}

const cJSON *members_next(struct members *m)
{
    const cJSON *member = m->v ? (m->i < m->n ? m->v[m->i++] : NULL) : m->next;
    if (!m->v && member)
        m->next = member->next;
    return member;
}

/* ---- items of keyed lists ---- */

static const char *default_of_key(const struct field *list, const char *key)
{
    const struct field *f = list->item == F_OBJECT && list->of ? shape_field(list->of, key) : NULL;
    return f ? f->dflt : NULL;
}

static void print_key_names(const struct field *list, struct buf *out)
{
    buf_puts(out, "associative list with keys has an element that omits all key fields [");
    for (const char *const *key = list->keys; *key; key++) {
        if (key != list->keys)
            buf_putc(out, ' ');
        buf_go_quote(out, *key, strlen(*key));
    }
    buf_puts(out, "] (and doesn't have default values for any key fields)");
}

const char *merge_item_problem(const cJSON *item, const struct field *list, struct buf *keys_text)
{
    if (list->list == LIST_SET)
        return cJSON_IsObject(item)
                   ? "associative list without keys has an element that's a map type"
               : cJSON_IsArray(item) ? "not supported: associative list with lists as elements"
               : cJSON_IsNull(item)
                   ? "associative list without keys has an element that's an explicit null"
                   : NULL;
    if (cJSON_IsNull(item))
        return "associative list with keys may not have a null element";
    if (!cJSON_IsObject(item))
        return "associative list with keys may not have non-map elements";
    for (const char *const *key = list->keys; *key; key++)
        if (json_get(item, *key) || default_of_key(list, *key))
            return NULL;
    print_key_names(list, keys_text);
    return buf_cstr(keys_text);
}

static void print_key(const char *name, const cJSON *item, const struct field *list,
                      struct buf *out)
{
    const cJSON *value = json_get(item, name);
    const char *dflt = value ? NULL : default_of_key(list, name);
    if (!value && !dflt)
        return;
    buf_printf(out, "%s\"%s\":", buf_cstr(out)[out->len - 1] == '{' ? "" : ",", name);
    if (value)
        fieldset_value_print(value, out);
    else
        buf_puts(out, dflt);
}

/* Keys by name; lists have few, so the next one is looked for each time. */
static const char *key_after(const struct field *list, const char *before)
{
    const char *next = NULL;
    for (const char *const *key = list->keys; *key; key++)
        if ((!before || strcmp(*key, before) > 0) && (!next || strcmp(*key, next) < 0))
            next = *key;
    return next;
}

static bool is_plain(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f || strchr("\"\\<>&", *s))
            return false;
    return true;
}

/* {"name":"value"} of a list with one key that is a plain word, as nearly all are; else NULL. */
static const char *plain_step(struct arena *arena, const cJSON *item, const struct field *list)
{
    const cJSON *value =
        list->list == LIST_MAP && !list->keys[1] ? json_get(item, *list->keys) : NULL;
    if (!value || !cJSON_IsString(value) || !is_plain(value->valuestring))
        return NULL;
    size_t n = strlen(*list->keys), value_n = strlen(value->valuestring);
    char *text = arena_alloc(arena, n + value_n + sizeof "{\"\":\"\"}"), *p = text;
    p = mempcpy(p, "{\"", 2);
    p = mempcpy(p, *list->keys, n);
    p = mempcpy(p, "\":\"", 3);
    p = mempcpy(p, value->valuestring, value_n);
    memcpy(p, "\"}", 2);
    return text;
}

struct fieldset_item merge_item_step(struct arena *arena, const cJSON *item,
                                     const struct field *list)
{
    const char *plain = plain_step(arena, item, list);
    if (plain)
        return (struct fieldset_item){.kind = STEP_KEYS, .text = plain};
    SCOPED(buf_fini) struct buf text = {0};
    if (list->list == LIST_SET) {
        fieldset_value_print(item, &text);
    } else {
        buf_putc(&text, '{');
        for (const char *key = key_after(list, NULL); key; key = key_after(list, key))
            print_key(key, item, list, &text);
        buf_putc(&text, '}');
    }
    return (struct fieldset_item){.kind = list->list == LIST_SET ? STEP_VALUE : STEP_KEYS,
                                  .text = arena_strndup(arena, buf_cstr(&text), text.len)};
}

int merge_compare_steps(const struct keyed_item *a, const struct keyed_item *b)
{
    return strcmp(a->step.text, b->step.text);
}

static int compare_for_sort(const void *a, const void *b)
{
    const struct keyed_item *x = a, *y = b;
    int order = merge_compare_steps(x, y);
    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

struct keyed_item *merge_keyed_items(struct arena *arena, const cJSON *list, const struct field *f,
                                     size_t *ret_n)
{
    size_t n = 0, cap = cJSON_IsArray(list) ? json_len(list) : 0;
    struct keyed_item *v = arena_alloc(arena, cap * sizeof *v);
    SCOPED(buf_fini) struct buf ignored = {0};
    bool in_order = true;
    const cJSON *item;
    *ret_n = 0;
    if (!cap)
        return v;
    cJSON_ArrayForEach(item, list)
    {
        if (merge_item_problem(item, f, &ignored))
            continue;
        v[n] = (struct keyed_item){merge_item_step(arena, item, f), item, n};
        in_order &= n == 0 || merge_compare_steps(&v[n - 1], &v[n]) < 0;
        n++;
    }
    if (!in_order)
        qsort(v, n, sizeof *v, compare_for_sort);
    *ret_n = n;
    return v;
}

size_t merge_repeats(const struct keyed_item *v, size_t i, size_t n)
{
    size_t end = i + 1;
    while (end < n && merge_compare_steps(&v[i], &v[end]) == 0)
        end++;
    return end - i;
}
