/* Text in, text out: small trees are only made for one object's cells. */
#include "apiserver/http/table.h"

#include <inttypes.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/columns.h"
#include "openapi/kinds.h"

struct table_view table_view_of(const struct kind *kind)
{
    return (struct table_view){
        .kind = kind, .definitions = columns_definitions, .cells = columns_cells};
}

int table_parse_include(const char *text, enum table_include *ret, struct err *err)
{
    static const struct {
        const char *text;
        enum table_include include;
    } words[] = {{"", TABLE_METADATA},
                 {"Metadata", TABLE_METADATA},
                 {"Object", TABLE_OBJECT},
                 {"None", TABLE_NONE}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(text ? text : "", words[i].text) == 0) {
            *ret = words[i].include;
            return 0;
        }
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, text, strlen(text));
    return err_set(err, ERR_BAD_REQUEST,
                   "Unable to convert to Table as requested: includeObject: Invalid value: %s: "
                   "must be 'Metadata', "
                   "'Object', 'None', or empty",
                   buf_cstr(&quoted));
}

static void print_and_free(cJSON *take_tree, struct buf *out)
{
    json_print(take_tree, out);
    json_free(take_tree);
}

void table_print_head(const struct table_style *style, bool has_columns, const char *metadata,
                      struct buf *out)
{
    buf_printf(out,
               "{\"kind\":\"Table\",\"apiVersion\":\"%s\",\"metadata\":%s,\"columnDefinitions\":",
               style->api_version, metadata);
    if (has_columns)
        print_and_free(style->view.definitions(style->view.kind), out);
    else
        buf_puts(out, "null");
    buf_puts(out, ",\"rows\":[");
}

void table_print_tail(struct buf *out)
{
    buf_puts(out, "]}");
}

void table_print_row(const struct table_style *style, const cJSON *object, struct buf *out)
{
    buf_puts(out, "{\"cells\":");
    print_and_free(style->view.cells(style->view.kind, object, style->now_unix_ms), out);
    buf_puts(out, ",\"object\":");
    if (style->include == TABLE_OBJECT)
        json_print(object, out);
    else if (style->include == TABLE_METADATA)
        table_print_partial(style->api_version, object, out);
    else
        buf_puts(out, "null");
    buf_putc(out, '}');
}

static void print_partial_head(const char *api_version, struct buf *out)
{
    buf_printf(out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"%s\",\"metadata\":",
               api_version);
}

void table_print_partial(const char *api_version, const cJSON *object, struct buf *out)
{
    const cJSON *metadata = json_get(object, "metadata");
    print_partial_head(api_version, out);
    if (metadata)
        json_print(metadata, out);
    else
        buf_puts(out, "{}");
    buf_putc(out, '}');
}

static void print_bookmark_metadata(int64_t rev, bool is_initial_end, struct buf *out)
{
    buf_printf(out, "{\"resourceVersion\":\"%" PRId64 "\"", rev);
    if (is_initial_end)
        buf_puts(out, ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}");
    buf_putc(out, '}');
}

void table_print_bookmark(const struct kind *kind, int64_t rev, bool is_initial_end,
                          struct buf *out)
{
    SCOPED_FREE char *version = kind_api_version(kind);
    buf_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":", kind->kind, version);
    print_bookmark_metadata(rev, is_initial_end, out);
    buf_putc(out, '}');
}

void table_print_bookmark_partial(const char *api_version, int64_t rev, bool is_initial_end,
                                  struct buf *out)
{
    print_partial_head(api_version, out);
    print_bookmark_metadata(rev, is_initial_end, out);
    buf_putc(out, '}');
}

void table_print_bookmark_table(const struct table_style *style, bool has_columns, int64_t rev,
                                bool is_initial_end, struct buf *out)
{
    SCOPED(buf_fini) struct buf metadata = {0};
    SCOPED(json_free_p) cJSON *columns = style->view.definitions(style->view.kind);
    buf_printf(&metadata, "{\"resourceVersion\":\"%" PRId64 "\"}", rev);
    table_print_head(style, has_columns, buf_cstr(&metadata), out);
    buf_puts(out, "{\"cells\":[\"\"");
    for (size_t i = 1; i < json_len(columns); i++)
        buf_puts(out, ",null");
    buf_puts(out, "],\"object\":");
    table_print_bookmark_partial(style->api_version, rev, is_initial_end, out);
    buf_putc(out, '}');
    table_print_tail(out);
}
