/* The managers of an object's fields; see managers.h. */
#include "admission/managers.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

void managers_fini(struct managers *m)
{
    arena_fini(&m->arena);
    *m = (struct managers){0};
}

/* ---- who is who ---- */

static struct manager_id id_of(const struct manager *m)
{
    return (struct manager_id){m->name, m->version, m->subresource, m->is_applier};
}

/* An applier is the same one whatever version it used. */
static int compare_ids(const struct manager_id *a, const struct manager_id *b)
{
    if (a->is_applier != b->is_applier)
        return a->is_applier ? -1 : 1;
    int order = strcmp(a->name, b->name);
    if (order == 0 && !a->is_applier)
        order = strcmp(a->version, b->version);
    return order ? order : strcmp(a->subresource, b->subresource);
}

static struct manager *append(struct managers *m, const struct manager *entry)
{
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 8;
        struct manager *v = arena_alloc(&m->arena, cap * sizeof *v);
        if (m->n)
            memcpy(v, m->v, m->n * sizeof *v);
        m->v = v;
        m->cap = cap;
    }
    m->v[m->n] = *entry;
    return &m->v[m->n++];
}

struct manager *managers_find(const struct managers *m, const struct manager_id *id)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct manager_id other = id_of(&m->v[i]);
        if (compare_ids(&other, id) == 0)
            return &m->v[i];
    }
    return NULL;
}

struct manager *managers_get(struct managers *m, const struct manager_id *id)
{
    struct manager *found = managers_find(m, id);
    const struct manager entry = {.name = id->name,
                                  .version = id->version,
                                  .subresource = id->subresource,
                                  .is_applier = id->is_applier};
    return found ? found : append(m, &entry);
}

void managers_drop_empty(struct managers *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i].fields)
            m->v[n++] = m->v[i];
    m->n = n;
}

bool managers_know_version(const struct managers *m, const char *version)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->v[i].version, version) != 0)
            return false;
    return true;
}

void managers_adapt(struct managers *m, const struct shape *shape)
{
    for (size_t i = 0; i < m->n; i++)
        m->v[i].fields = merge_adapt(&m->arena, m->v[i].fields, shape);
}

/* ---- reading ---- */

bool managers_is_reset(const cJSON *list)
{
    const cJSON *member;
    if (!cJSON_IsArray(list) || !list->child || list->child->next)
        return false;
    cJSON_ArrayForEach(member, list->child)
    {
        bool is_zero =
            cJSON_IsNull(member) || (cJSON_IsString(member) && member->valuestring[0] == '\0');
        if (!is_zero)
            return false;
    }
    return true;
}

/* In UTC and whole seconds, as metav1.Time is printed; NULL for none and for what is no time. */
static const char *read_time(struct arena *arena, const char *text, bool as_client)
{
    int64_t unix_ms;
    char out[CLOCK_TEXT_SIZE];
    if (!text || !as_client)
        return text;
    if (clock_parse_rfc3339(text, &unix_ms) < 0)
        return NULL;
    clock_print_rfc3339(unix_ms / 1000, out);
    return arena_strdup(arena, out);
}

struct reading {
    struct managers *m;
    struct scan s;
    bool as_client;
    const char *operation, *fields_type;
};

static bool read_fields(struct reading *r, struct manager *ret)
{
    const char *from = r->s.p;
    if (fieldset_parse(&r->m->arena, &r->s, r->as_client, &ret->fields) < 0)
        return false;
    ret->text = (struct scan_piece){from, (size_t)(r->s.p - from)};
    ret->fields_read = r->as_client ? NULL : ret->fields;
    return true;
}

/* The string of a member, NULL for null; the entry's own members are strings but for fieldsV1. */
static bool read_string(struct reading *r, const char **ret)
{
    struct scan_piece value;
    if (!scan_value(&r->s, &value))
        return false;
    bool is_string = value.n >= 2 && *value.p == '"';
    *ret =
        is_string ? scan_text(&r->m->arena, (struct scan_piece){value.p + 1, value.n - 2}) : NULL;
    return *ret || (!is_string && value.p[0] == 'n');
}

static bool read_member(struct reading *r, struct scan_piece key, struct manager *ret)
{
    const struct {
        const char *name, **to;
    } strings[] = {
        {"apiVersion", &ret->version}, {"fieldsType", &r->fields_type},    {"manager", &ret->name},
        {"operation", &r->operation},  {"subresource", &ret->subresource}, {"time", &ret->time}};
    if (scan_key_is(key, "fieldsV1"))
        return read_fields(r, ret);
    for (size_t i = 0; i < ARRAY_LEN(strings); i++)
        if (scan_key_is(key, strings[i].name))
            return read_string(r, strings[i].to);
    return scan_value(&r->s, NULL);
}

static bool read_entry(struct reading *r)
{
    struct manager new = {0};
    struct scan_piece key;
    bool is_first = true, failed = false;
    r->operation = r->fields_type = NULL;
    if (!scan_enter(&r->s, '{'))
        return false;
    while (scan_member(&r->s, &is_first, &key, &failed))
        if (!read_member(r, key, &new))
            return false;
    new.is_applier = str_equal(r->operation, "Apply");
    if (failed || (!new.is_applier && !str_equal(r->operation, "Update")) || !new.version ||
        !*new.version || !str_equal(r->fields_type, "FieldsV1"))
        return false;
    new.name = new.name ? new.name : "";
    new.subresource = new.subresource ? new.subresource : "";
    new.time = read_time(&r->m->arena, new.time, r->as_client);
    append(r->m, &new);
    return true;
}

static bool read_list(struct reading *r)
{
    bool is_first = true, failed = false;
    if (!scan_enter(&r->s, '['))
        return false;
    while (scan_item(&r->s, &is_first, &failed))
        if (!read_entry(r))
            return false;
    return !failed;
}

static int compare_for_sort(const void *a, const void *b)
{
    const struct manager *x = *(const struct manager *const *)a,
                         *y = *(const struct manager *const *)b;
    const struct manager_id id_x = id_of(x), id_y = id_of(y);
    int order = compare_ids(&id_x, &id_y);
    return order ? order : x < y ? -1 : x > y;
}

/* Keeps of each manager the last entry. By sorting, since a client's list may be long. */
static void drop_repeated(struct managers *m)
{
    SCOPED_FREE struct manager **sorted = xcalloc(m->n + 1, sizeof *sorted);
    SCOPED_FREE bool *is_repeated = xcalloc(m->n + 1, sizeof *is_repeated);
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        sorted[i] = &m->v[i];
    qsort(sorted, m->n, sizeof(struct manager *), compare_for_sort);
    for (size_t i = 0; i + 1 < m->n; i++) {
        const struct manager_id a = id_of(sorted[i]), b = id_of(sorted[i + 1]);
        is_repeated[sorted[i] - m->v] = compare_ids(&a, &b) == 0;
    }
    for (size_t i = 0; i < m->n; i++)
        if (!is_repeated[i])
            m->v[n++] = m->v[i];
    m->n = n;
}

int managers_read(struct managers *m, const cJSON *list, bool as_client)
{
    struct reading r = {.m = m, .as_client = as_client};
    SCOPED(buf_fini) struct buf printed = {0};
    const char *text = cJSON_IsRaw(list) ? list->valuestring : NULL;
    if (!list)
        return 0;
    if (!text) {
        json_print(list, &printed);
        text = arena_strndup(&m->arena, buf_cstr(&printed), printed.len);
    }
    r.s = (struct scan){text, text + strlen(text)};
    if (!read_list(&r)) {
        m->n = 0;
        return -1;
    }
    if (as_client)
        drop_repeated(m);
    return 0;
}

/* ---- writing ---- */

static int64_t seconds(const struct manager *m)
{
    int64_t unix_ms;
    return m->time && clock_parse_rfc3339(m->time, &unix_ms) == 0 ? unix_ms / 1000 : 0;
}

/* Source: docs/kubernetes-api.md 29.1; apimachinery's sortEncodedManagedFields. */
static int compare_for_print(const void *a, const void *b)
{
    const struct manager *x = a, *y = b;
    if (x->is_applier != y->is_applier)
        return x->is_applier ? -1 : 1;
    int64_t at_x = seconds(x), at_y = seconds(y);
    if (at_x != at_y)
        return at_x < at_y ? -1 : 1;
    int order = strcmp(x->name, y->name);
    if (order == 0)
        order = strcmp(x->version, y->version);
    return order ? order : strcmp(x->subresource, y->subresource);
}

static void sort(struct managers *m)
{
    for (size_t i = 1; i < m->n; i++)
        if (compare_for_print(&m->v[i - 1], &m->v[i]) > 0) {
            qsort(m->v, m->n, sizeof *m->v, compare_for_print);
            return;
        }
}

static void print_member(const char *name, const char *value, struct buf *out)
{
    buf_printf(out, ",\"%s\":", name);
    buf_json_string(out, value, strlen(value));
}

/* Members by name, as everything that is stored. */
static void print_entry(const struct manager *m, struct buf *out)
{
    buf_puts(out, "{\"apiVersion\":");
    buf_json_string(out, m->version, strlen(m->version));
    buf_puts(out, ",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
    if (m->fields_read && m->fields_read == m->fields)
        buf_append(out, m->text.p, m->text.n);
    else
        fieldset_print(m->fields, out);
    if (m->name[0])
        print_member("manager", m->name, out);
    print_member("operation", m->is_applier ? "Apply" : "Update", out);
    if (m->subresource[0])
        print_member("subresource", m->subresource, out);
    if (m->time)
        print_member("time", m->time, out);
    buf_putc(out, '}');
}

void managers_print(struct managers *m, struct buf *out)
{
    sort(m);
    buf_putc(out, '[');
    for (size_t i = 0; i < m->n; i++) {
        if (i > 0)
            buf_putc(out, ',');
        print_entry(&m->v[i], out);
    }
    buf_putc(out, ']');
}

/* ---- fields of nobody ---- */

const struct fieldset *managers_reset_fields(struct arena *arena, const struct kind *kind,
                                             const char *subresource)
{
    static const char *const status[] = {"status", NULL}, *const metadata[] = {"metadata", NULL},
                             *const spec[] = {"spec", NULL};
    if (!kind->has_status)
        return NULL;
    if (strcmp(subresource, "status") != 0)
        return fieldset_of_path(arena, status);
    return fieldset_union(arena, fieldset_of_path(arena, metadata), fieldset_of_path(arena, spec));
}

/* Source: docs/kubernetes-api.md 29.3; apimachinery's stripMetaManager. */
const struct fieldset *managers_unowned_fields(void)
{
    static struct fieldset_item in_metadata[] = {
        {.text = "clusterName", .kind = STEP_FIELD, .is_member = true},
        {.text = "creationTimestamp", .kind = STEP_FIELD, .is_member = true},
        {.text = "generation", .kind = STEP_FIELD, .is_member = true},
        {.text = "managedFields", .kind = STEP_FIELD, .is_member = true},
        {.text = "name", .kind = STEP_FIELD, .is_member = true},
        {.text = "namespace", .kind = STEP_FIELD, .is_member = true},
        {.text = "resourceVersion", .kind = STEP_FIELD, .is_member = true},
        {.text = "selfLink", .kind = STEP_FIELD, .is_member = true},
        {.text = "uid", .kind = STEP_FIELD, .is_member = true},
    };
    static const struct fieldset metadata = {.v = in_metadata, .n = ARRAY_LEN(in_metadata)};
    static struct fieldset_item at_top[] = {
        {.text = "apiVersion", .kind = STEP_FIELD, .is_member = true},
        {.text = "kind", .kind = STEP_FIELD, .is_member = true},
        {.text = "metadata", .kind = STEP_FIELD, .is_member = true, .inside = &metadata},
    };
    static const struct fieldset top = {.v = at_top, .n = ARRAY_LEN(at_top)};
    return &top;
}

/* ---- the update rule ---- */

void managers_record(struct managers *m, const struct manager_id *writer,
                     const struct comparison *c, const struct fieldset *reset, const char *now)
{
    struct arena *a = &m->arena;
    const struct fieldset *removed = fieldset_exclude(a, c->removed, reset);
    const struct fieldset *changed =
        fieldset_exclude(a, fieldset_union(a, c->modified, c->added), reset);
    const struct fieldset *lost = fieldset_union(a, changed, removed);
    for (size_t i = 0; lost && i < m->n; i++)
        m->v[i].fields = fieldset_difference(a, m->v[i].fields, lost);
    const struct fieldset *own = fieldset_difference(a, changed, managers_unowned_fields());
    if (own) {
        struct manager *entry = managers_get(m, writer);
        entry->fields = fieldset_union(a, entry->fields, own);
        entry->time = now;
    }
    managers_drop_empty(m);
}

static int compare_by_age(const void *a, const void *b)
{
    const struct manager *x = *(const struct manager *const *)a,
                         *y = *(const struct manager *const *)b;
    int64_t at_x = seconds(x), at_y = seconds(y);
    const struct manager_id id_x = id_of(x), id_y = id_of(y);
    return at_x != at_y ? (at_x < at_y ? -1 : 1) : compare_ids(&id_x, &id_y);
}

static void take_over(struct managers *m, struct manager *to, struct manager *from)
{
    to->fields = fieldset_union(&m->arena, to->fields, from->fields);
    from->fields = NULL;
}

/* The entry is that of many from now on; an earlier one of that name goes into it. */
static void make_ancient(struct managers *m, struct manager *entry)
{
    entry->name = "ancient-changes";
    entry->subresource = "";
    const struct manager_id id = id_of(entry);
    for (size_t i = 0; i < m->n; i++) {
        const struct manager_id other = id_of(&m->v[i]);
        if (&m->v[i] != entry && compare_ids(&other, &id) == 0)
            take_over(m, entry, &m->v[i]);
    }
}

/* The oldest entries become one, with the time of the newest in it. Source: apimachinery's
 * capUpdateManagers; all entries are of one version here. */
void managers_limit(struct managers *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += !m->v[i].is_applier;
    if (n <= MANAGERS_UPDATERS_MAX)
        return;
    struct manager **updaters = arena_alloc(&m->arena, n * sizeof(struct manager *));
    n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (!m->v[i].is_applier)
            updaters[n++] = &m->v[i];
    qsort(updaters, n, sizeof(struct manager *), compare_by_age);
    for (size_t i = 1; i <= n - MANAGERS_UPDATERS_MAX; i++) {
        updaters[0]->time = updaters[i]->time;
        take_over(m, updaters[0], updaters[i]);
    }
    make_ancient(m, updaters[0]);
    managers_drop_empty(m);
}

bool managers_equal_but_time(const struct managers *a, const struct managers *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct manager *x = &a->v[i], *y = &b->v[i];
        if (x->is_applier != y->is_applier || strcmp(x->name, y->name) != 0 ||
            strcmp(x->version, y->version) != 0 || strcmp(x->subresource, y->subresource) != 0 ||
            !fieldset_equal(x->fields, y->fields))
            return false;
    }
    return true;
}
