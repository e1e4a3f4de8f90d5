/* What is stored and what is applied, made one; and a tree without some of its fields. New trees
 * are copies, since a stored one is shared. Source: structured-merge-diff's mergingWalker and
 * removingWalker. */
#include "openapi/merge.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "openapi/merge_type.h"

/* ---- merging ---- */

static cJSON *merge_value(struct arena *arena, const struct field *f, const cJSON *live,
                          const cJSON *applied);

static cJSON *merge_maps(struct arena *arena, const struct field *f, const cJSON *live,
                         const cJSON *applied)
{
    cJSON *out = json_object();
    struct members lives = merge_members(arena, live), applieds = merge_members(arena, applied);
    const cJSON *a = members_next(&lives), *b = members_next(&applieds);
    while (a || b) {
        int order = !a ? 1 : !b ? -1 : strcmp(a->string, b->string);
        const char *name = order <= 0 ? a->string : b->string;
        struct merge_type type;
        (void)merge_member_type(f, name, &type);
        json_add(out, name,
                 merge_value(arena, type.f, order <= 0 ? a : NULL, order >= 0 ? b : NULL));
        if (order <= 0)
            a = members_next(&lives);
        if (order >= 0)
            b = members_next(&applieds);
    }
    return out;
}

/* One of two keyed lists: its items by their steps, and those steps and items in the list's
 * order. */
struct side {
    const struct keyed_item *by_step;
    const char **steps;
    const cJSON **nodes;
    size_t n, i;
};

static struct side side_of(struct arena *arena, const cJSON *list, const struct field *f)
{
    struct side s = {0};
    s.by_step = merge_keyed_items(arena, list, f, &s.n);
    s.steps = arena_alloc(arena, s.n * sizeof *s.steps);
    s.nodes = arena_alloc(arena, s.n * sizeof *s.nodes);
    for (size_t i = 0; i < s.n; i++) {
        s.steps[s.by_step[i].at] = s.by_step[i].step.text;
        s.nodes[s.by_step[i].at] = s.by_step[i].node;
    }
    return s;
}

/* The first item of that step; *ret_repeats tells how many there are. */
static const struct keyed_item *side_find(const struct side *s, const char *step,
                                          size_t *ret_repeats)
{
    size_t from = 0, to = s->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(s->by_step[middle].step.text, step) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == s->n || strcmp(s->by_step[from].step.text, step) != 0)
        return NULL;
    *ret_repeats = merge_repeats(s->by_step, from, s->n);
    return &s->by_step[from];
}

struct list_merge {
    struct arena *arena;
    const struct field *item_type;
    struct side live, applied;
    bool *is_taken;      /* by place in applied */
    const char **shared; /* steps in both, in applied's order; ended by NULL */
    cJSON *out;
};

static bool is_applied(const struct list_merge *m, const char *step, size_t *ret_at)
{
    size_t ignored;
    const struct keyed_item *item = side_find(&m->applied, step, &ignored);
    if (item)
        *ret_at = item->at;
    return item != NULL;
}

/* Repeated items of the stored list have no part in the new one. */
static void take_applied(struct list_merge *m, size_t at)
{
    const char *step = m->applied.steps[at];
    size_t repeats = 0;
    const struct keyed_item *item = side_find(&m->live, step, &repeats);
    m->is_taken[at] = true;
    json_push(m->out, merge_value(m->arena, m->item_type, repeats == 1 ? item->node : NULL,
                                  m->applied.nodes[at]));
    if (*m->shared && strcmp(*m->shared, step) == 0)
        m->shared++;
}

/* Looks at the next item of the stored list; true when that was all for this round. Items of both
 * lists come in applied's order, those of the stored list alone keep to the neighbours they had. */
static bool step_live(struct list_merge *m)
{
    const char *step = m->live.steps[m->live.i];
    size_t at = 0;
    bool is_shared = is_applied(m, step, &at), has_applied = m->applied.i < m->applied.n;
    if (has_applied && strcmp(step, m->applied.steps[m->applied.i]) == 0) {
        m->live.i++;
        take_applied(m, m->applied.i++);
        return true;
    }
    if (has_applied && is_shared && *m->shared && strcmp(*m->shared, step) != 0) {
        m->live.i++;
        return true;
    }
    if (!is_shared) {
        json_push(m->out, json_copy(m->live.nodes[m->live.i++]));
        return true;
    }
    if (m->is_taken[at])
        m->live.i++;
    return false;
}

static void note_shared(struct list_merge *m)
{
    size_t n = 0, ignored;
    m->shared = arena_alloc(m->arena, (m->applied.n + 1) * sizeof *m->shared);
    for (size_t i = 0; i < m->applied.n; i++)
        if (side_find(&m->live, m->applied.steps[i], &ignored))
            m->shared[n++] = m->applied.steps[i];
}

static cJSON *merge_keyed_lists(struct arena *arena, const struct field *f, const cJSON *live,
                                const cJSON *applied)
{
    struct merge_type type;
    struct list_merge m = {.arena = arena,
                           .live = side_of(arena, live, f),
                           .applied = side_of(arena, applied, f),
                           .out = json_array()};
    merge_item_type(f, &type);
    m.item_type = type.f;
    m.is_taken = arena_alloc(arena, m.applied.n * sizeof *m.is_taken);
    note_shared(&m);
    while (m.live.i < m.live.n || m.applied.i < m.applied.n) {
        if (m.live.i < m.live.n && step_live(&m))
            continue;
        if (m.applied.i < m.applied.n)
            take_applied(&m, m.applied.i++);
    }
    return m.out;
}

static bool is_empty(const cJSON *value)
{
    return !value->child;
}

static cJSON *merge_value(struct arena *arena, const struct field *f, const cJSON *live,
                          const cJSON *applied)
{
    if (!live || !applied)
        return json_copy(live ? live : applied);
    enum atom atom = merge_atom(f, applied);
    if (atom == ATOM_SCALAR || merge_is_atomic(f, atom) || (is_empty(live) && is_empty(applied)))
        return json_copy(applied);
    return atom == ATOM_MAP ? merge_maps(arena, f, live, applied)
                            : merge_keyed_lists(arena, f, live, applied);
}

cJSON *merge_apply(struct arena *arena, const cJSON *live, const cJSON *applied,
                   const struct shape *shape)
{
    struct merge_type root;
    merge_type_root(&root, shape);
    return merge_value(arena, root.f, live, applied);
}

/* ---- removing ---- */

/* An object or list of which nothing is left stays, empty: who owns it did not give it up. (The
 * real thing makes null of it, which its validation then refuses.) */
static cJSON *value_without(struct arena *arena, const struct field *f, const cJSON *value,
                            const struct fieldset *set);

static cJSON *map_without(struct arena *arena, const struct field *f, const cJSON *value,
                          const struct fieldset *set)
{
    cJSON *out = json_object();
    const cJSON *member;
    cJSON_ArrayForEach(member, value)
    {
        const struct fieldset_item *gone = fieldset_find(set, STEP_FIELD, member->string);
        struct merge_type type;
        if (gone && gone->is_member)
            continue;
        (void)merge_member_type(f, member->string, &type);
        json_add(out, member->string,
                 value_without(arena, type.f, member, gone ? gone->inside : NULL));
    }
    return out;
}

static cJSON *keyed_list_without(struct arena *arena, const struct field *f, const cJSON *value,
                                 const struct fieldset *set)
{
    cJSON *out = json_array();
    struct merge_type type;
    struct side items = side_of(arena, value, f);
    char kind = f->list == LIST_SET ? STEP_VALUE : STEP_KEYS;
    merge_item_type(f, &type);
    for (size_t i = 0; i < items.n; i++) {
        const struct fieldset_item *gone = fieldset_find(set, kind, items.steps[i]);
        if (gone && gone->is_member)
            continue;
        json_push(out, value_without(arena, type.f, items.nodes[i], gone ? gone->inside : NULL));
    }
    return out;
}

static cJSON *value_without(struct arena *arena, const struct field *f, const cJSON *value,
                            const struct fieldset *set)
{
    enum atom atom = merge_atom(f, value);
    if (!set || atom == ATOM_SCALAR || merge_is_atomic(f, atom) || is_empty(value))
        return json_copy(value);
    return atom == ATOM_MAP ? map_without(arena, f, value, set)
                            : keyed_list_without(arena, f, value, set);
}

cJSON *merge_without(struct arena *arena, const cJSON *tree, const struct shape *shape,
                     const struct fieldset *set)
{
    struct merge_type root;
    merge_type_root(&root, shape);
    return value_without(arena, root.f, tree, set);
}
