/* The fields that a tree sets, and sets of fields held against a table. Source:
 * structured-merge-diff's toFieldSetWalker, Set.EnsureNamedFieldsAreMembers and
 * reconcileWithSchemaWalker. */
#include <string.h>

#include "apiserver/base/json.h"
#include "openapi/merge.h"
#include "openapi/merge_type.h"

/* ---- leaves ---- */

/* Of one place, as in merge_compare.c. */
struct found {
    bool is_member;
    const struct fieldset *inside;
    bool is_emptied; /* had an inside, of which nothing is left */
};

static struct found leaves_of(struct arena *arena, const struct field *f, const cJSON *value,
                              const struct fieldset *without);

static void add(struct arena *arena, struct fieldset *set, struct fieldset_item step,
                const struct found *child)
{
    step.is_member = child->is_member;
    step.inside = child->inside;
    fieldset_add(arena, set, step);
}

static struct found leaves_of_map(struct arena *arena, const struct field *f, const cJSON *value,
                                  const struct fieldset *without)
{
    struct fieldset *set = fieldset_new(arena);
    size_t kept = 0;
    const cJSON *member;
    if (!cJSON_IsObject(value))
        return (struct found){0};
    cJSON_ArrayForEach(member, value)
    {
        struct merge_type type;
        const struct fieldset_item *gone = fieldset_find(without, STEP_FIELD, member->string);
        if (gone && gone->is_member)
            continue;
        enum member_status status = merge_member_type(f, member->string, &type);
        struct found child = leaves_of(arena, type.f, member, gone ? gone->inside : NULL);
        bool is_empty_map = cJSON_IsObject(member) && !member->child;
        child.is_member |=
            cJSON_IsNull(member) || is_empty_map || child.is_emptied || status != MEMBER_NAMED;
        add(arena, set, (struct fieldset_item){.kind = STEP_FIELD, .text = member->string}, &child);
        kept++;
    }
    return (struct found){.inside = fieldset_finish(arena, set),
                          .is_emptied = value->child && kept == 0};
}

/* Repeated items are one field without parts. */
static struct found leaves_of_keyed_list(struct arena *arena, const struct field *f,
                                         const cJSON *value, const struct fieldset *without)
{
    struct fieldset *set = fieldset_new(arena);
    struct merge_type type;
    size_t n, kept = 0;
    const struct keyed_item *v = merge_keyed_items(arena, value, f, &n);
    merge_item_type(f, &type);
    for (size_t i = 0, repeats; i < n; i += repeats) {
        const struct fieldset_item *gone = fieldset_find(without, v[i].step.kind, v[i].step.text);
        repeats = merge_repeats(v, i, n);
        if (gone && gone->is_member)
            continue;
        struct found child = {0};
        if (repeats == 1)
            child = leaves_of(arena, type.f, v[i].node, gone ? gone->inside : NULL);
        child.is_member = true;
        add(arena, set, v[i].step, &child);
        kept++;
    }
    return (struct found){.inside = fieldset_finish(arena, set),
                          .is_emptied = value && value->child && kept == 0};
}

static struct found leaves_of(struct arena *arena, const struct field *f, const cJSON *value,
                              const struct fieldset *without)
{
    enum atom atom = merge_atom(f, value);
    if (atom == ATOM_SCALAR || merge_is_atomic(f, atom))
        return (struct found){.is_member = true};
    return atom == ATOM_MAP ? leaves_of_map(arena, f, value, without)
                            : leaves_of_keyed_list(arena, f, value, without);
}

const struct fieldset *merge_leaves(struct arena *arena, const cJSON *tree,
                                    const struct shape *shape, const struct fieldset *without)
{
    struct merge_type root;
    merge_type_root(&root, shape);
    return leaves_of(arena, root.f, tree, without).inside;
}

/* ---- sets and tables ---- */

/* The type of what a step leads to; false when the table says nothing of it. */
static bool step_type(const struct field *f, const struct fieldset_item *step,
                      struct merge_type *ret, bool *ret_named)
{
    bool is_map = merge_atom(f, NULL) == ATOM_MAP && !merge_is_open(f);
    *ret_named = false;
    if (step->kind != STEP_FIELD) {
        merge_item_type(is_map ? NULL : f, ret);
        return ret->f != NULL;
    }
    if (!is_map)
        return false;
    enum member_status status = merge_member_type(f, step->text, ret);
    *ret_named = status == MEMBER_NAMED;
    return ret->f != NULL;
}

static const struct fieldset *named(struct arena *arena, const struct fieldset *set,
                                    const struct field *f)
{
    if (!set)
        return NULL;
    struct fieldset *out = fieldset_new(arena);
    for (size_t i = 0; i < set->n; i++) {
        struct fieldset_item item = set->v[i];
        struct merge_type type;
        bool is_named = false;
        bool is_known = step_type(f, &item, &type, &is_named);
        item.is_member |= is_named && item.inside;
        if (is_known)
            item.inside = named(arena, item.inside, type.f);
        fieldset_add(arena, out, item);
    }
    return fieldset_finish(arena, out);
}

const struct fieldset *merge_named(struct arena *arena, const struct fieldset *set,
                                   const struct shape *shape)
{
    struct merge_type root;
    merge_type_root(&root, shape);
    return named(arena, set, root.f);
}

static bool is_atomic(const struct field *f)
{
    return !merge_is_open(f) && merge_is_atomic(f, merge_atom(f, NULL));
}

static const struct fieldset *adapted(struct arena *arena, const struct fieldset *set,
                                      const struct field *f);

static struct fieldset_item adapted_item(struct arena *arena, struct fieldset_item item,
                                         const struct field *f)
{
    struct merge_type type;
    bool ignored;
    if (!item.inside || !step_type(f, &item, &type, &ignored))
        return item;
    bool is_whole = is_atomic(type.f);
    item.is_member |= is_whole;
    item.inside = is_whole ? NULL : adapted(arena, item.inside, type.f);
    return item;
}

/* The set itself when nothing has to change, which is nearly always. */
static const struct fieldset *adapted(struct arena *arena, const struct fieldset *set,
                                      const struct field *f)
{
    struct fieldset *out = NULL;
    for (size_t i = 0; i < set->n; i++) {
        struct fieldset_item item = adapted_item(arena, set->v[i], f);
        if (!out && item.inside == set->v[i].inside)
            continue;
        if (!out) {
            out = fieldset_new(arena);
            for (size_t k = 0; k < i; k++)
                fieldset_add(arena, out, set->v[k]);
        }
        fieldset_add(arena, out, item);
    }
    return out ? fieldset_finish(arena, out) : set;
}

const struct fieldset *merge_adapt(struct arena *arena, const struct fieldset *set,
                                   const struct shape *shape)
{
    struct merge_type root;
    merge_type_root(&root, shape);
    return set ? adapted(arena, set, root.f) : NULL;
}
