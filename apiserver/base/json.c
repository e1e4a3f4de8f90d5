/* JSON trees: building, access, ordering, equality and copies. Reading is in json_parse.c, printing
 * in json_print.c. Nothing here recurses, so a tree may be as deep as it likes. */
#include "apiserver/base/json.h"

#include <assert.h>

#include "apiserver/base/json_node.h"
#include "apiserver/base/mem.h"

/* Children are hung in front of what follows their parent, so the list never branches. */
void json_free(cJSON *tree)
{
    if (tree)
        tree->next = NULL;
    for (cJSON *node = tree, *next; node; node = next) {
        next = node->next;
        if (node->child && !(node->type & cJSON_IsReference)) {
            node->child->prev->next = next;
            next = node->child;
        }
        if (!(node->type & cJSON_IsReference))
            free(node->valuestring);
        if (!(node->type & cJSON_StringIsConst))
            free(node->string);
        free(node);
    }
}

void json_free_p(cJSON **tree)
{
    json_free(*tree);
    *tree = NULL;
}

/* ---- access ---- */

static cJSON *get(const cJSON *tree, const char *name, size_t n)
{
    cJSON *node;
    if (!cJSON_IsObject(tree))
        return NULL;
    cJSON_ArrayForEach(node, tree)
    {
        if (strncmp(node->string, name, n) == 0 && node->string[n] == '\0')
            return node;
    }
    return NULL;
}

cJSON *json_get(const cJSON *tree, const char *name)
{
    return get(tree, name, strlen(name));
}

cJSON *json_at(const cJSON *tree, const char *path)
{
    for (;;) {
        size_t n = strcspn(path, ".");
        cJSON *node = get(tree, path, n);
        if (!node || path[n] == '\0')
            return node;
        tree = node;
        path += n + 1;
    }
}

const char *json_str(const cJSON *tree, const char *path)
{
    const cJSON *node = json_at(tree, path);
    return cJSON_IsString(node) ? node->valuestring : NULL;
}

const char *json_str_or(const cJSON *tree, const char *path, const char *otherwise)
{
    const char *s = json_str(tree, path);
    return s ? s : otherwise;
}

bool json_bool_or(const cJSON *tree, const char *path, bool otherwise)
{
    const cJSON *node = json_at(tree, path);
    return cJSON_IsBool(node) ? cJSON_IsTrue(node) : otherwise;
}

int64_t json_i64_or(const cJSON *tree, const char *path, int64_t otherwise)
{
    int64_t v;
    return json_node_i64(json_at(tree, path), &v) == 0 ? v : otherwise;
}

bool json_has_str(const cJSON *list, const char *s)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item) && strcmp(item->valuestring, s) == 0)
            return true;
    }
    return false;
}

size_t json_len(const cJSON *node)
{
    size_t n = 0;
    const cJSON *child;
    if (cJSON_IsObject(node) || cJSON_IsArray(node))
        cJSON_ArrayForEach(child, node)
        {
            n++;
        }
    return n;
}

/* ---- numbers ---- */

/* A decimal text taken apart: 0.d1 d2 d3... times ten to the exponent, d1 and the last digit not
 * zero. */
struct decimal {
    bool negative;
    const char *first, *end; /* digits, perhaps a point among them; empty for zero */
    int64_t exponent;
};

static int64_t read_exponent(const char *s)
{
    bool negative = *s == '-';
    int64_t v = 0;
    if (*s == '-' || *s == '+')
        s++;
    for (; *s && v < INT64_MAX / 100; s++) /* what is cut off is far from any number of digits */
        v = v * 10 + (*s - '0');
    return negative ? -v : v;
}

static struct decimal decimal_of(const char *text)
{
    struct decimal d = {.negative = *text == '-'};
    const char *from = text + d.negative, *end = from + strcspn(from, "eE");
    const char *point = memchr(from, '.', (size_t)(end - from));
    if (*end)
        d.exponent = read_exponent(end + 1);
    d.exponent += (point ? point : end) - from;
    while (from < end && (*from == '0' || *from == '.'))
        d.exponent -= *from++ == '0';
    while (end > from && (end[-1] == '0' || end[-1] == '.'))
        end--;
    if (from == end)
        return (struct decimal){.first = from, .end = from};
    d.first = from;
    d.end = end;
    return d;
}

static bool same_digits(struct decimal a, struct decimal b)
{
    for (;;) {
        a.first += a.first < a.end && *a.first == '.';
        b.first += b.first < b.end && *b.first == '.';
        if (a.first == a.end || b.first == b.end)
            return a.first == a.end && b.first == b.end;
        if (*a.first++ != *b.first++)
            return false;
    }
}

static bool same_number(const cJSON *a, const cJSON *b)
{
    char space_a[JSON_NUMBER_SIZE], space_b[JSON_NUMBER_SIZE];
    if (!a->valuestring && !b->valuestring)
        return a->valuedouble == b->valuedouble;
    struct decimal x = decimal_of(json_node_number(a, space_a));
    struct decimal y = decimal_of(json_node_number(b, space_b));
    return x.negative == y.negative && x.exponent == y.exponent && same_digits(x, y);
}

/* All digits lie before the point, and value and sign fit. */
static int decimal_to_i64(struct decimal d, int64_t *ret)
{
    char text[32] = "-";
    size_t n = d.negative;
    if (d.exponent < 0 || d.exponent > 19)
        return -1;
    for (const char *c = d.first; c < d.end; c++) {
        if (*c == '.')
            continue;
        if (n == (size_t)d.exponent + d.negative)
            return -1;
        text[n++] = *c;
    }
    while (n < (size_t)d.exponent + d.negative)
        text[n++] = '0';
    if (n == d.negative)
        text[n++] = '0';
    text[n] = '\0';
    return str_to_i64(text, ret);
}

int json_node_i64(const cJSON *node, int64_t *ret)
{
    char space[JSON_NUMBER_SIZE];
    if (!cJSON_IsNumber(node))
        return -1;
    const char *text = json_node_number(node, space);
    if (str_to_i64(text, ret) == 0)
        return 0;
    return *text == 'n' ? -1 : decimal_to_i64(decimal_of(text), ret);
}

bool json_node_is_int(const cJSON *node)
{
    char space[JSON_NUMBER_SIZE];
    return cJSON_IsNumber(node) && !strpbrk(json_node_number(node, space), ".eEn");
}

/* ---- building ---- */

cJSON *json_object(void)
{
    return json_node_new(cJSON_Object);
}

cJSON *json_array(void)
{
    return json_node_new(cJSON_Array);
}

cJSON *json_string(const char *s)
{
    cJSON *node = json_node_new(cJSON_String);
    node->valuestring = xstrdup(s);
    return node;
}

cJSON *json_int(int64_t v)
{
    SCOPED(buf_fini) struct buf text = {0};
    cJSON *node = json_node_new(cJSON_Number);
    buf_printf(&text, "%lld", (long long)v);
    json_node_set_number(node, text.data, text.len, true);
    return node;
}

cJSON *json_boolean(bool v)
{
    return json_node_new(v ? cJSON_True : cJSON_False);
}

cJSON *json_raw(char *take_text)
{
    cJSON *node = json_node_new(cJSON_Raw);
    node->valuestring = take_text;
    return node;
}

cJSON *json_null(void)
{
    return json_node_new(cJSON_NULL);
}

static void set_name(cJSON *node, char *take_name)
{
    if (!(node->type & cJSON_StringIsConst))
        free(node->string);
    node->type &= ~cJSON_StringIsConst;
    node->string = take_name;
}

/* Takes node out of its container, which keeps the rest. */
static void unlink_node(cJSON *container, cJSON *node)
{
    cJSON *first = container->child;
    if (node == first)
        container->child = node->next;
    else
        node->prev->next = node->next;
    if (node->next)
        node->next->prev = node->prev;
    else if (node != first)
        first->prev = node->prev;
    node->next = node->prev = NULL;
}

/* Puts take where old is and frees old. */
static void replace_node(cJSON *container, cJSON *old, cJSON *take)
{
    bool was_first = container->child == old;
    take->next = old->next;
    take->prev = old->prev == old ? take : old->prev;
    if (take->next)
        take->next->prev = take;
    else if (!was_first)
        container->child->prev = take;
    if (was_first)
        container->child = take;
    else
        take->prev->next = take;
    json_free(old);
}

cJSON *json_detach_item(cJSON *container, cJSON *item)
{
    unlink_node(container, item);
    return item;
}

void json_replace_item(cJSON *container, cJSON *item, cJSON *take_value)
{
    set_name(take_value, item->string ? xstrdup(item->string) : NULL);
    replace_node(container, item, take_value);
}

void json_insert(cJSON *array, size_t index, cJSON *take_value)
{
    cJSON *after = array->child;
    while (after && index-- > 0)
        after = after->next;
    set_name(take_value, NULL);
    if (!after) {
        json_node_append(array, take_value);
        return;
    }
    take_value->next = after;
    take_value->prev = after->prev;
    if (after == array->child)
        array->child = take_value;
    else
        after->prev->next = take_value;
    after->prev = take_value;
}

void json_set(cJSON *object, const char *name, cJSON *take_value)
{
    assert(cJSON_IsObject(object) && take_value);
    cJSON *old = json_get(object, name);
    if (old == take_value)
        return;
    set_name(take_value, xstrdup(name));
    if (old)
        replace_node(object, old, take_value);
    else
        json_node_append(object, take_value);
}

void json_add(cJSON *object, const char *name, cJSON *take_value)
{
    set_name(take_value, xstrdup(name));
    json_node_append(object, take_value);
}

void json_set_str(cJSON *object, const char *name, const char *value)
{
    json_set(object, name, json_string(value));
}

void json_set_int(cJSON *object, const char *name, int64_t value)
{
    json_set(object, name, json_int(value));
}

void json_set_bool(cJSON *object, const char *name, bool value)
{
    json_set(object, name, json_boolean(value));
}

void json_push(cJSON *array, cJSON *take_value)
{
    assert(cJSON_IsArray(array) && take_value);
    set_name(take_value, NULL);
    json_node_append(array, take_value);
}

cJSON *json_detach(cJSON *object, const char *name)
{
    cJSON *node = json_get(object, name);
    if (node)
        unlink_node(object, node);
    return node;
}

void json_remove_node(cJSON *parent, cJSON *node)
{
    unlink_node(parent, node);
    json_free(node);
}

bool json_remove_str(cJSON *list, const char *s)
{
    cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item) && strcmp(item->valuestring, s) == 0) {
            json_remove_node(list, item);
            return true;
        }
    }
    return false;
}

void json_remove(cJSON *object, const char *name)
{
    json_free(json_detach(object, name));
}

cJSON *json_ensure_object(cJSON *object, const char *name)
{
    cJSON *node = json_get(object, name);
    if (!cJSON_IsObject(node)) {
        node = json_object();
        json_set(object, name, node);
    }
    return node;
}

void json_set_at(cJSON *tree, const char *path, cJSON *take_value)
{
    for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        SCOPED_FREE char *name = xstrndup(path, (size_t)(dot - path));
        tree = json_ensure_object(tree, name);
    }
    json_set(tree, path, take_value);
}

/* ---- order, equality, copies ---- */

static int compare_names(const void *a, const void *b)
{
    const union json_ref *x = a, *y = b;
    return strcmp(x->seen->string, y->seen->string);
}

/* The members of object, by name. */
static struct json_stack sorted_members(const cJSON *object)
{
    struct json_stack members = {0};
    bool is_sorted = true;
    for (cJSON *node = object->child; node; node = node->next) {
        is_sorted = is_sorted && (!node->next || strcmp(node->string, node->next->string) <= 0);
        json_stack_push(&members, (union json_ref){.owned = node});
    }
    if (!is_sorted)
        qsort(members.v, members.n, sizeof *members.v, compare_names);
    return members;
}

static void sort_object(cJSON *object)
{
    SCOPED(json_stack_fini) struct json_stack members = sorted_members(object);
    object->child = NULL;
    for (size_t i = 0; i < members.n; i++)
        json_node_append(object, members.v[i].owned);
}

void json_sort(cJSON *tree)
{
    SCOPED(json_stack_fini) struct json_stack todo = {0};
    json_stack_push(&todo, (union json_ref){.owned = tree});
    while (todo.n > 0) {
        cJSON *node = todo.v[--todo.n].owned, *child;
        if (cJSON_IsObject(node))
            sort_object(node);
        if (node)
            cJSON_ArrayForEach(child, node)
            {
                if (child->child)
                    json_stack_push(&todo, (union json_ref){.owned = child});
            }
    }
}

static void settle_float(cJSON *node)
{
    int64_t ignored;
    bool is_int64 = json_node_is_int(node) && json_node_i64(node, &ignored) == 0;
    if (is_int64 || !cJSON_IsNumber(node))
        return;
    free(node->valuestring);
    node->valuestring = NULL;
}

void json_settle_floats(cJSON *tree)
{
    SCOPED(json_stack_fini) struct json_stack todo = {0};
    settle_float(tree);
    json_stack_push(&todo, (union json_ref){.owned = tree});
    while (todo.n > 0) {
        cJSON *node = todo.v[--todo.n].owned, *child;
        cJSON_ArrayForEach(child, node)
        {
            settle_float(child);
            if (child->child)
                json_stack_push(&todo, (union json_ref){.owned = child});
        }
    }
}

static void push_pair(struct json_stack *todo, const cJSON *a, const cJSON *b)
{
    json_stack_push(todo, (union json_ref){.seen = a});
    json_stack_push(todo, (union json_ref){.seen = b});
}

static bool push_items(struct json_stack *todo, const cJSON *a, const cJSON *b)
{
    const cJSON *x = a->child, *y = b->child;
    for (; x && y; x = x->next, y = y->next)
        push_pair(todo, x, y);
    return !x && !y;
}

static bool push_members(struct json_stack *todo, const cJSON *a, const cJSON *b)
{
    SCOPED(json_stack_fini) struct json_stack x = sorted_members(a), y = sorted_members(b);
    if (x.n != y.n)
        return false;
    for (size_t i = 0; i < x.n; i++) {
        if (strcmp(x.v[i].seen->string, y.v[i].seen->string) != 0)
            return false;
        push_pair(todo, x.v[i].seen, y.v[i].seen);
    }
    return true;
}

/* Compares two nodes, leaving their children to the list. */
static bool same_node(struct json_stack *todo, const cJSON *a, const cJSON *b)
{
    if ((a->type & 0xff) != (b->type & 0xff))
        return false;
    if (cJSON_IsObject(a))
        return push_members(todo, a, b);
    if (cJSON_IsArray(a))
        return push_items(todo, a, b);
    if (cJSON_IsNumber(a))
        return same_number(a, b);
    bool has_text = cJSON_IsString(a) || cJSON_IsRaw(a);
    return !has_text || strcmp(a->valuestring, b->valuestring) == 0;
}

bool json_equal(const cJSON *a, const cJSON *b)
{
    if (!a || !b)
        return a == b;
    SCOPED(json_stack_fini) struct json_stack todo = {0};
    push_pair(&todo, a, b);
    while (todo.n > 0) {
        const cJSON *y = todo.v[--todo.n].seen, *x = todo.v[--todo.n].seen;
        if (!same_node(&todo, x, y))
            return false;
    }
    return true;
}

static cJSON *copy_node(const cJSON *from)
{
    cJSON *node = json_node_new(from->type & 0xff);
    node->valuestring = from->valuestring ? xstrdup(from->valuestring) : NULL;
    node->valuedouble = from->valuedouble;
    node->valueint = from->valueint;
    return node;
}

static void copy_children(struct json_stack *todo, const cJSON *from, cJSON *to)
{
    for (const cJSON *child = from->child; child; child = child->next) {
        cJSON *copy = copy_node(child);
        copy->string = child->string ? xstrdup(child->string) : NULL;
        json_node_append(to, copy);
        if (child->child) {
            json_stack_push(todo, (union json_ref){.seen = child});
            json_stack_push(todo, (union json_ref){.owned = copy});
        }
    }
}

cJSON *json_copy(const cJSON *tree)
{
    if (!tree)
        return NULL;
    SCOPED(json_stack_fini) struct json_stack todo = {0};
    cJSON *copy = copy_node(tree);
    copy_children(&todo, tree, copy);
    while (todo.n > 0) {
        cJSON *to = todo.v[--todo.n].owned;
        const cJSON *from = todo.v[--todo.n].seen;
        copy_children(&todo, from, to);
    }
    return copy;
}
