/* Objects in other forms: rows of a Table and PartialObjectMetadata. Text is appended piece by
 * piece, so that a list of any length never is a tree as a whole. Source:
 * docs/kubernetes-api.md 24.8, 26. Any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "openapi/shape.h"

/* Where columns and cells come from. */
struct table_view {
    const struct kind *kind;
    cJSON *(*definitions)(const struct kind *kind);
    cJSON *(*cells)(const struct kind *kind, const cJSON *object, int64_t now_unix_ms);
};
struct table_view table_view_of(const struct kind *kind); /* the kind's own columns */

enum table_include { TABLE_METADATA, TABLE_OBJECT, TABLE_NONE };
/* The query's includeObject (NULL when absent). Errors: ERR_BAD_REQUEST. */
int table_parse_include(const char *text, enum table_include *ret, struct err *err);

struct table_style {
    struct table_view view;
    const char *api_version; /* meta.k8s.io/v1 or meta.k8s.io/v1beta1 */
    enum table_include include;
    int64_t now_unix_ms;
};
/* Everything up to the rows; metadata is the JSON text of the list's metadata. Without columns
 * columnDefinitions is null. */
void table_print_head(const struct table_style *style, bool has_columns, const char *metadata,
                      struct buf *out);
void table_print_row(const struct table_style *style, const cJSON *object, struct buf *out);
void table_print_tail(struct buf *out);

/* {"kind":"PartialObjectMetadata",...} of an object. */
void table_print_partial(const char *api_version, const cJSON *object, struct buf *out);
/* The object of a bookmark, as the kind, and its transformed forms. */
void table_print_bookmark(const struct kind *kind, int64_t rev, bool is_initial_end,
                          struct buf *out);
void table_print_bookmark_partial(const char *api_version, int64_t rev, bool is_initial_end,
                                  struct buf *out);
void table_print_bookmark_table(const struct table_style *style, bool has_columns, int64_t rev,
                                bool is_initial_end, struct buf *out);
