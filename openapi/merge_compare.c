/* What distinguishes two trees, as sets of fields. Each place of the trees answers with what was
 * found there and below, so that a set has items only where something differs. Source:
 * structured-merge-diff's compareWalker. */
#include <string.h>

#include "apiserver/base/json.h"
#include "openapi/merge.h"
#include "openapi/merge_type.h"

enum { ADDED, MODIFIED, REMOVED, KINDS };

/* Of one place: is its own path in the set, and what of its inside is. */
struct found {
    bool is_member[KINDS];
    const struct fieldset *inside[KINDS];
};

struct walk {
    struct arena *arena;
    unsigned depth;
};

/* Of an object or a list while its children are looked at. */
struct gathering {
    struct arena *arena;
    struct fieldset *sets[KINDS]; /* made when first needed */
};

static void gather(struct gathering *g, char kind, const char *text, const struct found *child)
{
    for (int i = 0; i < KINDS; i++) {
        if (!child->is_member[i] && !child->inside[i])
            continue;
        if (!g->sets[i])
            g->sets[i] = fieldset_new(g->arena);
        fieldset_add(g->arena, g->sets[i],
                     (struct fieldset_item){.kind = kind,
                                            .text = text,
                                            .is_member = child->is_member[i],
                                            .inside = child->inside[i]});
    }
}

static void finish(struct gathering *g, struct found *ret)
{
    for (int i = 0; i < KINDS; i++)
        ret->inside[i] = fieldset_finish(g->arena, g->sets[i]);
}

static bool is_empty(const cJSON *value)
{
    return !value || !value->child;
}

/* Equal, members and items in the same order. False says little. */
static bool is_copy(const cJSON *a, const cJSON *b)
{
    if ((a->type & 0xff) != (b->type & 0xff))
        return false;
    if (cJSON_IsString(a))
        return strcmp(a->valuestring, b->valuestring) == 0;
    if (!a->child && !b->child)
        return json_equal(a, b);
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
        if ((a->string && strcmp(a->string, b->string) != 0) || !is_copy(a, b))
            return false;
    return a == b;
}

static void compare_leaf(const cJSON *old, const cJSON *new, struct found *ret)
{
    if (!old)
        ret->is_member[ADDED] = true;
    else if (!new)
        ret->is_member[REMOVED] = true;
    else if (!is_copy(old, new) && !json_equal(old, new))
        ret->is_member[MODIFIED] = true;
}

static void compare_value(struct walk *w, const struct field *f, const cJSON *old, const cJSON *new,
                          struct found *ret);

static void compare_maps(struct walk *w, const struct field *f, const cJSON *old, const cJSON *new,
                         struct found *ret)
{
    struct gathering g = {.arena = w->arena};
    struct members olds = merge_members(w->arena, old), news = merge_members(w->arena, new);
    const cJSON *a = members_next(&olds), *b = members_next(&news);
    while (a || b) {
        int order = !a ? 1 : !b ? -1 : strcmp(a->string, b->string);
        const char *name = order <= 0 ? a->string : b->string;
        struct found child = {0};
        struct merge_type type;
        (void)merge_member_type(f, name, &type);
        compare_value(w, type.f, order <= 0 ? a : NULL, order >= 0 ? b : NULL, &child);
        gather(&g, STEP_FIELD, name, &child);
        if (order <= 0)
            a = members_next(&olds);
        if (order >= 0)
            b = members_next(&news);
    }
    finish(&g, ret);
}

static bool repeats_equal(const struct keyed_item *a, const struct keyed_item *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!json_equal(a[i].node, b[i].node))
            return false;
    return true;
}

/* Items of one step: n_old of the old list, n_new of the new one. Repeated ones count as one field
 * that has no parts. */
static void compare_items(struct walk *w, const struct field *item_type,
                          const struct keyed_item *old, size_t n_old, const struct keyed_item *new,
                          size_t n_new, struct found *ret)
{
    if (n_old <= 1 && n_new <= 1) {
        compare_value(w, item_type, n_old ? old->node : NULL, n_new ? new->node : NULL, ret);
    } else if (n_old > 1 && n_new > 1) {
        ret->is_member[MODIFIED] = n_old != n_new || !repeats_equal(old, new, n_old);
    } else if (n_old > 1) {
        if (n_new)
            compare_value(w, item_type, NULL, new->node, ret);
        ret->is_member[REMOVED] = true;
    } else {
        if (n_old)
            compare_value(w, item_type, old->node, NULL, ret);
        ret->is_member[ADDED] = true;
    }
}

static void compare_keyed_lists(struct walk *w, const struct field *f, const cJSON *old,
                                const cJSON *new, struct found *ret)
{
    struct gathering g = {.arena = w->arena};
    struct merge_type type;
    size_t n_olds, n_news;
    if (old && new &&is_copy(old, new))
        return; /* as nearly always; the steps cost most */
    const struct keyed_item *olds = merge_keyed_items(w->arena, old, f, &n_olds),
                            *news = merge_keyed_items(w->arena, new, f, &n_news);
    merge_item_type(f, &type);
    for (size_t i = 0, k = 0; i < n_olds || k < n_news;) {
        int order = i == n_olds ? 1 : k == n_news ? -1 : merge_compare_steps(&olds[i], &news[k]);
        size_t n_old = order <= 0 ? merge_repeats(olds, i, n_olds) : 0;
        size_t n_new = order >= 0 ? merge_repeats(news, k, n_news) : 0;
        const struct fieldset_item *step = n_old ? &olds[i].step : &news[k].step;
        struct found child = {0};
        compare_items(w, type.f, olds + i, n_old, news + k, n_new, &child);
        gather(&g, step->kind, step->text, &child);
        i += n_old;
        k += n_new;
    }
    finish(&g, ret);
}

/* True when the place counts as a whole; so does what is too deep to be anybody's. */
static bool compare_as(struct walk *w, const struct field *f, enum atom atom, const cJSON *old,
                       const cJSON *new, struct found *ret)
{
    /* Nothing and {} differ, and so do null and []: no parts tell, so the place itself does. */
    bool is_leaf = atom == ATOM_SCALAR || merge_is_atomic(f, atom) ||
                   (is_empty(old) && is_empty(new)) || w->depth > MERGE_DEPTH_MAX;
    w->depth++;
    if (is_leaf)
        compare_leaf(old, new, ret);
    else if (atom == ATOM_MAP)
        compare_maps(w, f, old, new, ret);
    else
        compare_keyed_lists(w, f, old, new, ret);
    w->depth--;
    return is_leaf;
}

static void compare_value(struct walk *w, const struct field *f, const cJSON *old, const cJSON *new,
                          struct found *ret)
{
    enum atom atom = merge_atom(f, new ? new : old), other = merge_atom(f, old ? old : new);
    bool is_leaf = compare_as(w, f, atom, old, new, ret);
    if (other != atom) { /* one form became another one: what the old one had is gone as well */
        struct found as_other = {0};
        (void)compare_as(w, f, other, old, new, &as_other);
        for (int i = 0; i < KINDS; i++) {
            ret->is_member[i] |= as_other.is_member[i];
            ret->inside[i] = fieldset_union(w->arena, ret->inside[i], as_other.inside[i]);
        }
    }
    if (is_leaf)
        return;
    ret->is_member[ADDED] |= !old;
    ret->is_member[REMOVED] |= !new;
}

void merge_compare(struct arena *arena, const cJSON *old, const cJSON *new,
                   const struct shape *shape, struct comparison *ret)
{
    struct merge_type root;
    struct found found = {0};
    struct walk w = {.arena = arena};
    merge_type_root(&root, shape);
    compare_value(&w, root.f, old, new, &found);
    *ret = (struct comparison){.added = found.inside[ADDED],
                               .modified = found.inside[MODIFIED],
                               .removed = found.inside[REMOVED]};
}
