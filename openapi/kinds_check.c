/* Looks for mistakes in the tables of the kinds: what the visitors take for granted is checked
 * here, at start and in tests. */
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/kinds/apimachinery.h"
#include "openapi/pattern.h"
#include "openapi/validate.h"

#define SHAPES_MAX 1000 /* different shapes below all kinds; far more than there are */

struct checker {
    void (*report)(void *ctx, const char *text);
    void *ctx;
    size_t mistakes;
    const struct shape *seen[SHAPES_MAX];
    size_t n_seen;
};

static void mistake(struct checker *c, const struct shape *shape, const struct field *f,
                    const char *what)
{
    SCOPED_FREE char *text =
        xasprintf("%s%s%s: %s", shape->name, f ? "." : "", f ? f->name : "", what);
    c->mistakes++;
    if (c->report)
        c->report(c->ctx, text);
}

static bool is_seen(struct checker *c, const struct shape *shape)
{
    for (size_t i = 0; i < c->n_seen; i++)
        if (c->seen[i] == shape)
            return true;
    if (c->n_seen < SHAPES_MAX)
        c->seen[c->n_seen++] = shape;
    return false;
}

static bool is_container(enum field_type type)
{
    return type == F_OBJECT || type == F_LIST || type == F_MAP || type == F_ANY ||
           type == F_EMPTY || type == F_META;
}

/* The default must be a value that the row itself accepts; an object's is {} as Go publishes it,
 * which says nothing. */
static void check_default(struct checker *c, const struct shape *shape, const struct field *f)
{
    cJSON *value = NULL;
    if (json_parse_str(f->dflt, &value, NULL) < 0) {
        mistake(c, shape, f, "default is no JSON");
        return;
    }
    if (f->type == F_OBJECT) {
        json_free(value);
        return;
    }
    const struct field rows[] = {*f, {0}};
    const struct shape alone = {.name = shape->name, .fields = rows};
    SCOPED(json_free_p) cJSON *tree = json_object();
    SCOPED(err_fini) struct err causes = {0};
    json_set(tree, f->name, value);
    if (validate_tree(tree, &alone, &(struct validate_opts){0}, &causes, NULL) < 0)
        mistake(c, shape, f, "default does not validate");
    if ((f->flags & FIELD_REQUIRED) && is_container(f->type))
        mistake(c, shape, f, "a required object has a default");
}

static void check_keys(struct checker *c, const struct shape *shape, const struct field *f)
{
    if (f->type != F_LIST || f->list != LIST_MAP) {
        if (f->keys)
            mistake(c, shape, f, "keys without a map list");
        return;
    }
    if (!f->keys || !f->keys[0] || f->item != F_OBJECT) {
        mistake(c, shape, f, "a map list needs keys and objects");
        return;
    }
    for (const char *const *key = f->keys; *key; key++) {
        const struct field *row = shape_field(f->of, *key);
        if (!row || is_container(row->type))
            mistake(c, shape, f, "a key is no scalar of the items");
        else if (!(row->flags & FIELD_REQUIRED) && !row->dflt)
            mistake(c, shape, f, "a key is neither required nor has a default");
        if (key > f->keys && strcmp(key[-1], *key) >= 0)
            mistake(c, shape, f, "keys are not in alphabetical order");
    }
}

static void check_constraints(struct checker *c, const struct shape *shape, const struct field *f)
{
    bool is_number = f->type == F_INT32 || f->type == F_INT64 || f->type == F_NUMBER;
    bool is_text = f->type == F_STRING || f->type == F_QUANTITY || f->type == F_INT_OR_STRING;
    if ((f->has_min || f->has_max) && !is_number)
        mistake(c, shape, f, "bounds on what is no number");
    if (f->has_min && f->has_max && f->min > f->max)
        mistake(c, shape, f, "minimum above maximum");
    if ((f->pattern || f->min_length || f->max_length) && !is_text)
        mistake(c, shape, f, "text rules on what is no text");
    if (f->pattern && !pattern_is_valid(f->pattern))
        mistake(c, shape, f, "pattern does not compile");
    if ((f->min_items || f->max_items) && f->type != F_LIST)
        mistake(c, shape, f, "item counts on what is no list");
    if (f->oneof && (f->type != F_STRING || !f->oneof[0]))
        mistake(c, shape, f, "choices need text and at least one word");
}

static void check_shape(struct checker *c, const struct shape *shape);

static void check_field(struct checker *c, const struct shape *shape, const struct field *f)
{
    bool has_items = f->type == F_LIST || f->type == F_MAP;
    bool needs_shape = f->type == F_OBJECT || (has_items && f->item == F_OBJECT);
    if (!f->doc || !*f->doc)
        mistake(c, shape, f, "no text");
    if (needs_shape && !f->of)
        mistake(c, shape, f, "no shape");
    if (has_items && (f->item == F_LIST || f->item == F_MAP || f->item == F_META))
        mistake(c, shape, f, "items that a row cannot describe");
    if (f > shape->fields && strcmp(f[-1].name, f->name) >= 0)
        mistake(c, shape, f, "name is there already, or out of order");
    check_constraints(c, shape, f);
    check_keys(c, shape, f);
    if (f->dflt)
        check_default(c, shape, f);
    if (needs_shape && f->of)
        check_shape(c, f->of);
}

static void check_shape(struct checker *c, const struct shape *shape)
{
    if (is_seen(c, shape))
        return;
    if (!shape->doc || !*shape->doc)
        mistake(c, shape, NULL, "no text");
    for (const struct field *f = shape->fields; f && f->name; f++)
        check_field(c, shape, f);
    for (const struct rule *r = shape->rules; r && r->rule; r++)
        if (!*r->rule || !r->message || !*r->message)
            mistake(c, shape, NULL, "a rule without text or message");
}

/* Whether a path of columns or scale leads to a row: members, and filters and indexes on lists. */
static bool path_leads(const struct shape *shape, const char *path, bool may_be_container)
{
    if (strcmp(path, ".metadata.creationTimestamp") == 0)
        return true;
    const struct field *f = NULL;
    for (const char *p = path; *p;) {
        if (*p == '[') {
            const char *end = strchr(p, ']');
            if (!f || f->type != F_LIST || !end)
                return false;
            p = end + 1;
            continue;
        }
        p += *p == '.';
        size_t n = strcspn(p, ".[");
        SCOPED_FREE char *name = xstrndup(p, n);
        bool is_value = f && f->type == F_MAP; /* whatever its key */
        f = is_value ? f : shape_field(f ? f->of : shape, name);
        if (!f)
            return false;
        if (is_value && !p[n])
            return true;
        p += n;
    }
    return f && (may_be_container || !is_container(f->type));
}

static bool is_shared(const char *ref)
{
    for (const struct shape *const *s = shapes_shared; *s; s++)
        if (str_equal((*s)->ref, ref))
            return true;
    return false;
}

static void check_kind(struct checker *c, const struct kind *k)
{
    if (!k->shape) {
        mistake(c, &(struct shape){.name = k->kind}, NULL, "the kind has no shape");
        return;
    }
    if (!k->doc || !k->list_kind || !k->singular || !k->plural)
        mistake(c, k->shape, NULL, "the kind lacks a name or text");
    if (!str_equal(k->shape->ref, k->schema_name) || is_shared(k->schema_name))
        mistake(c, k->shape, NULL, "schema name and shape differ, or the name is taken");
    const struct field *status = shape_field(k->shape, "status"),
                       *metadata = shape_field(k->shape, "metadata");
    if (!k->is_review && k->has_status != (status && (status->flags & FIELD_STATUS)))
        mistake(c, k->shape, NULL, "status subresource without status, or the other way round");
    if (!metadata || metadata->type != F_META)
        mistake(c, k->shape, NULL, "no metadata");
    for (const struct column *col = k->columns; col && col->name; col++)
        if (!path_leads(k->shape, col->path, col->cell != CELL_VALUE))
            mistake(c, k->shape, NULL, "a column leads nowhere");
    const struct scale_paths *s = k->scale;
    if (s && !(path_leads(k->shape, s->spec_replicas, false) &&
               path_leads(k->shape, s->status_replicas, false) &&
               path_leads(k->shape, s->selector, false)))
        mistake(c, k->shape, NULL, "a scale path leads nowhere");
    check_shape(c, k->shape);
}

size_t kinds_check(void (*report)(void *ctx, const char *text), void *ctx)
{
    struct checker *c = xcalloc(1, sizeof *c);
    c->report = report;
    c->ctx = ctx;
    for (const struct kind *const *k = kinds_served; *k; k++)
        check_kind(c, *k);
    for (const struct shape *const *s = shapes_shared; *s; s++)
        check_shape(c, *s);
    size_t mistakes = c->mistakes;
    free(c);
    return mistakes;
}
