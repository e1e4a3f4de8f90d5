/* Does a tree fit its table, as apply means it? Looser than validation: times and quantities are
 * any scalar, null is anything; and stricter: what the table does not know is refused. Each text is
 * one that clients of kube-apiserver know. Source: structured-merge-diff's validate. */
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/fieldpath.h"
#include "openapi/goprint.h"
#include "openapi/merge.h"
#include "openapi/merge_type.h"

#define TEXT_MAX ((size_t)64 << 10) /* bytes of all failures; what is beyond is not told */

struct check {
    struct arena arena;
    struct buf text; /* of the failures, a line each */
    size_t n;
    bool may_repeat;
};

static void fail(struct check *c, const struct fieldpath *at, const char *why)
{
    if (c->n++ >= MERGE_ERRORS_MAX)
        return;
    SCOPED(buf_fini) struct buf path = {0};
    fieldpath_print(at, &path);
    buf_printf(&c->text, "%s%s%s%s", c->n > 1 ? "\n" : "", buf_cstr(&path), path.len ? ": " : "",
               why);
}

/* "expected boolean, got &{yes}": Go shows the value inside of its wrapper. */
static void fail_type(struct check *c, const struct fieldpath *at, const char *expected,
                      const cJSON *value)
{
    SCOPED(buf_fini) struct buf why = {.max = TEXT_MAX};
    buf_printf(&why, "expected %s, got &{", expected);
    goprint_value(value, &why);
    buf_putc(&why, '}');
    fail(c, at, buf_cstr(&why));
}

static void fail_string(struct check *c, const struct fieldpath *at, const cJSON *value)
{
    SCOPED(buf_fini) struct buf why = {.max = TEXT_MAX};
    buf_puts(&why, "expected string, got &value.valueUnstructured{Value:");
    goprint_syntax(value, &why);
    buf_putc(&why, '}');
    fail(c, at, buf_cstr(&why));
}

static void check_scalar(struct check *c, const struct field *f, const cJSON *value,
                         const struct fieldpath *at)
{
    bool is_container = cJSON_IsObject(value) || cJSON_IsArray(value);
    switch (f ? f->type : F_ANY) {
    case F_STRING:
        if (!cJSON_IsString(value))
            fail_string(c, at, value);
        break;
    case F_BOOL:
        if (!cJSON_IsBool(value))
            fail_type(c, at, "boolean", value);
        break;
    case F_INT32:
    case F_INT64:
    case F_NUMBER:
        if (!cJSON_IsNumber(value)) {
            SCOPED_FREE char *why =
                xasprintf("expected numeric (int or float), got %s", goprint_type(value));
            fail(c, at, why);
        }
        break;
    default:
        if (is_container)
            fail_type(c, at, "any scalar", value);
    }
}

static void check_value(struct check *c, const struct field *f, const cJSON *value,
                        const struct fieldpath *at, unsigned depth);

/* A member that the table does not know ends the look at this object, as it does in Go. */
static void check_map(struct check *c, const struct field *f, const cJSON *value,
                      const struct fieldpath *at, unsigned depth)
{
    const cJSON *member;
    if (!cJSON_IsObject(value)) {
        fail_type(c, at, "map", value);
        return;
    }
    cJSON_ArrayForEach(member, value)
    {
        const struct fieldpath here = {.up = at, .kind = STEP_FIELD, .text = member->string};
        struct merge_type type;
        if (merge_member_type(f, member->string, &type) == MEMBER_UNKNOWN) {
            fail(c, &here, "field not declared in schema");
            return;
        }
        check_value(c, type.f, member, &here, depth);
    }
}

/* False when the item ends the look at this list. */
static bool check_keys(struct check *c, const struct field *f, const cJSON *item, size_t index,
                       const struct fieldpath *at)
{
    SCOPED(buf_fini) struct buf space = {0};
    const char *problem = merge_item_problem(item, f, &space);
    if (!problem)
        return true;
    SCOPED_FREE char *why = xasprintf("element %zu: %s", index, problem);
    fail(c, at, why);
    return false;
}

static void check_repeats(struct check *c, const struct field *f, const cJSON *list,
                          const struct fieldpath *at)
{
    size_t n;
    const struct keyed_item *v = merge_keyed_items(&c->arena, list, f, &n);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || merge_compare_steps(&v[i - 1], &v[i]) != 0)
            continue;
        const struct fieldpath step = {.kind = v[i].step.kind, .text = v[i].step.text};
        SCOPED(buf_fini) struct buf why = {0};
        buf_puts(&why, "duplicate entries for key ");
        fieldpath_print(&step, &why);
        fail(c, at, buf_cstr(&why));
    }
}

static void check_list(struct check *c, const struct field *f, const cJSON *value,
                       const struct fieldpath *at, unsigned depth)
{
    struct merge_type type;
    size_t index = 0;
    const cJSON *item;
    if (!cJSON_IsArray(value)) {
        fail_type(c, at, "list", value);
        return;
    }
    bool is_keyed = !merge_is_atomic(f, ATOM_LIST);
    merge_item_type(f, &type);
    cJSON_ArrayForEach(item, value)
    {
        struct fieldpath here = {.up = at, .kind = STEP_INDEX, .index = index};
        if (is_keyed && !check_keys(c, f, item, index, at))
            return;
        if (is_keyed && !c->may_repeat) {
            struct fieldset_item step = merge_item_step(&c->arena, item, f);
            here = (struct fieldpath){.up = at, .kind = step.kind, .text = step.text};
        }
        check_value(c, type.f, item, &here, depth);
        index++;
    }
    if (is_keyed && !c->may_repeat)
        check_repeats(c, f, value, at);
}

static void check_value(struct check *c, const struct field *f, const cJSON *value,
                        const struct fieldpath *at, unsigned depth)
{
    if (cJSON_IsNull(value) || cJSON_IsRaw(value)) /* what is raw comes from us */
        return;
    if (depth >= MERGE_DEPTH_MAX) {
        fail(c, at, "exceeded max depth");
        return;
    }
    switch (merge_atom(f, value)) {
    case ATOM_MAP:
        check_map(c, f, value, at, depth + 1);
        break;
    case ATOM_LIST:
        check_list(c, f, value, at, depth + 1);
        break;
    case ATOM_SCALAR:
        check_scalar(c, f, value, at);
    }
}

static void print_failures(const struct check *c, struct buf *out)
{
    if (c->n == 1) {
        buf_puts(out, buf_cstr(&c->text));
        return;
    }
    buf_puts(out, "errors:\n  ");
    for (const char *p = buf_cstr(&c->text); *p; p++) {
        buf_putc(out, *p);
        if (*p == '\n')
            buf_puts(out, "  ");
    }
}

bool merge_fits(const cJSON *tree, const struct shape *shape, bool may_repeat, struct buf *why)
{
    struct check c = {.text = {.max = TEXT_MAX}, .may_repeat = may_repeat};
    struct merge_type root;
    merge_type_root(&root, shape);
    check_value(&c, root.f, tree, NULL, 0);
    bool fits = c.n == 0;
    if (!fits && why)
        print_failures(&c, why);
    arena_fini(&c.arena);
    buf_fini(&c.text);
    return fits;
}
