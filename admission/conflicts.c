/* Conflicts of apply and their texts. Source: docs/kubernetes-api.md 28.6; apimachinery's
 * NewConflictError. */
#include <stdlib.h>
#include <string.h>

#include "admission/apply_parts.h"
#include "apiserver/base/mem.h"
#include "openapi/fieldpath.h"

#define MESSAGE_MAX ((size_t)64 << 10) /* bytes; further fields are only among the causes */

void conflicts_add(struct conflicts *c, const struct manager *manager,
                   const struct fieldset *fields)
{
    if (!fields)
        return;
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 8;
        struct conflict *v = arena_alloc(c->arena, cap * sizeof *v);
        if (c->n)
            memcpy(v, c->v, c->n * sizeof *v);
        c->v = v;
        c->cap = cap;
    }
    c->v[c->n++] = (struct conflict){manager, fields};
}

void conflicts_allow(struct conflicts *c, const struct fieldset *allowed)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->v[i].fields = fieldset_difference(c->arena, c->v[i].fields, allowed);
        if (c->v[i].fields)
            c->v[n++] = c->v[i];
    }
    c->n = n;
}

/* By name, operation, version and subresource, as the text of the real thing's identifiers
 * sorts. */
static int compare(const void *a, const void *b)
{
    const struct manager *x = ((const struct conflict *)a)->manager,
                         *y = ((const struct conflict *)b)->manager;
    int order = strcmp(x->name, y->name);
    if (order == 0 && x->is_applier != y->is_applier)
        return x->is_applier ? -1 : 1;
    if (order == 0 && !x->is_applier)
        order = strcmp(x->version, y->version);
    return order ? order : strcmp(x->subresource, y->subresource);
}

static void print_manager(const struct manager *m, const char *version, struct buf *out)
{
    buf_go_quote(out, m->name, strlen(m->name));
    if (m->subresource[0]) {
        buf_puts(out, " with subresource ");
        buf_go_quote(out, m->subresource, strlen(m->subresource));
    }
    if (!m->is_applier)
        buf_printf(out, " using %s", version);
}

struct telling {
    struct err *causes;
    struct buf who, lines, first;
    size_t n;
};

static void tell_path(void *ctx, const struct fieldpath *path)
{
    struct telling *t = ctx;
    SCOPED(buf_fini) struct buf text = {0};
    fieldpath_print(path, &text);
    err_cause(t->causes, "FieldManagerConflict", buf_cstr(&text), "conflict with %s",
              buf_cstr(&t->who));
    if (t->n++ == 0)
        buf_printf(&t->first, "conflict with %s: %s", buf_cstr(&t->who), buf_cstr(&text));
    buf_printf(&t->lines, "\n- %s", buf_cstr(&text));
}

int conflicts_refuse(struct conflicts *c, const char *version, struct err *err)
{
    SCOPED(err_fini) struct err refusal = {0};
    struct telling t = {.causes = &refusal, .lines = {.max = MESSAGE_MAX}};
    if (c->n == 0)
        return 0;
    qsort(c->v, c->n, sizeof *c->v, compare);
    for (size_t i = 0; i < c->n; i++) {
        buf_clear(&t.who);
        print_manager(c->v[i].manager, version, &t.who);
        buf_printf(&t.lines, "%sconflicts with %s:", i ? "\n" : "", buf_cstr(&t.who));
        fieldpath_each(c->v[i].fields, tell_path, &t);
    }
    refusal.code = ERR_CONFLICT;
    refusal.message =
        t.n == 1 ? xasprintf("Apply failed with 1 conflict: %s", buf_cstr(&t.first))
                 : xasprintf("Apply failed with %zu conflicts: %s", t.n, buf_cstr(&t.lines));
    buf_fini(&t.who);
    buf_fini(&t.lines);
    buf_fini(&t.first);
    return err_move(err, &refusal);
}
