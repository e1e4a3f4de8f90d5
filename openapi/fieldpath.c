/* Texts of field paths; see fieldpath.h. Source of the forms: structured-merge-diff's
 * PathElement.String. */
#include "openapi/fieldpath.h"

#include <ctype.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/goprint.h"

/* ---- text ---- */

static void print_value(const cJSON *value, struct buf *out)
{
    if (cJSON_IsString(value))
        goprint_quoted(value->valuestring, out);
    else if (cJSON_IsNull(value))
        buf_puts(out, "null");
    else
        goprint_value(value, out);
}

/* name="main",port=80 */
static void print_keys(const cJSON *keys, struct buf *out)
{
    const cJSON *key;
    cJSON_ArrayForEach(key, keys)
    {
        buf_printf(out, "%s%s=", key == keys->child ? "" : ",", key->string);
        print_value(key, out);
    }
}

/* The text of a step is JSON that we wrote or checked; should it not parse, it is shown as it
 * is. */
static void print_step(const struct fieldpath *step, struct buf *out)
{
    SCOPED(json_free_p) cJSON *value = NULL;
    if (step->kind == STEP_FIELD) {
        buf_printf(out, ".%s", step->text);
        return;
    }
    if (step->kind == STEP_INDEX) {
        buf_printf(out, "[%zu]", step->index);
        return;
    }
    buf_putc(out, '[');
    if (json_parse_str(step->text, &value, NULL) < 0) {
        buf_puts(out, step->text);
    } else if (step->kind == STEP_KEYS) {
        print_keys(value, out);
    } else {
        buf_putc(out, '=');
        print_value(value, out);
    }
    buf_putc(out, ']');
}

void fieldpath_print(const struct fieldpath *path, struct buf *out)
{
    if (!path)
        return;
    fieldpath_print(path->up, out);
    print_step(path, out);
}

/* ---- order ---- */

static bool is_in_number(const char *text, size_t at)
{
    bool in_string = false;
    for (size_t i = 0; i < at; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
    }
    return !in_string && (isdigit((unsigned char)text[at]) || text[at] == '-' || text[at] == '.');
}

/* Like strcmp, but numbers of the JSON texts compare by their amount. */
static int compare_texts(const char *a, const char *b)
{
    size_t at = 0;
    while (a[at] && a[at] == b[at])
        at++;
    if (!is_in_number(a, at) && !is_in_number(b, at))
        return (unsigned char)a[at] - (unsigned char)b[at];
    while (at > 0 && is_in_number(a, at - 1))
        at--;
    double x = strtod(a + at, NULL), y = strtod(b + at, NULL);
    return x < y ? -1 : x > y ? 1 : strcmp(a + at, b + at);
}

/* Names, then keys, values, positions. */
static int rank(char kind)
{
    return kind == STEP_FIELD ? 0 : kind == STEP_KEYS ? 1 : kind == STEP_VALUE ? 2 : 3;
}

static int compare_steps(const void *a, const void *b)
{
    const struct fieldset_item *x = a, *y = b;
    if (x->kind != y->kind)
        return rank(x->kind) - rank(y->kind);
    return x->kind == STEP_FIELD ? strcmp(x->text, y->text) : compare_texts(x->text, y->text);
}

static void each_below(const struct fieldset *set, const struct fieldpath *up, fieldpath_fn *fn,
                       void *ctx)
{
    if (!set)
        return;
    SCOPED_FREE struct fieldset_item *items = xmemdup(set->v, set->n * sizeof *items);
    qsort(items, set->n, sizeof *items, compare_steps);
    for (int inside = 0; inside < 2; inside++)
        for (size_t i = 0; i < set->n; i++) {
            int64_t index = 0;
            if (items[i].kind == STEP_INDEX)
                (void)str_to_i64(items[i].text, &index);
            const struct fieldpath here = {
                .up = up, .kind = items[i].kind, .text = items[i].text, .index = (size_t)index};
            if (inside)
                each_below(items[i].inside, &here, fn, ctx);
            else if (items[i].is_member)
                fn(ctx, &here);
        }
}

void fieldpath_each(const struct fieldset *set, fieldpath_fn *fn, void *ctx)
{
    each_below(set, NULL, fn, ctx);
}
