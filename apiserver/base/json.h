/* The door to cJSON: strict parsing, exact printing, typed access, path walk. Nobody else includes
 * a cJSON function except for walking trees (cJSON_ArrayForEach, ->string, ->child, type tests)
 * that came from here.
 *
 * Strict means: exactly the given bytes, no trailing text, no raw control bytes, RFC 8259 numbers
 * only, bounded depth and size. \u0000 is held as STR_NUL. Numbers are exact: a number that a
 * double cannot hold to the last digit keeps its text in
 * ->valuestring of its cJSON_Number node, and json_print writes that text; so int64 values survive.
 * Nothing here recurses; visitors of trees do, hence JSON_DEPTH_MAX. Trees have one owner. Any
 * thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

#define JSON_DEPTH_MAX 10000 /* as Go's encoding/json */
/* Values in one text, about 100 bytes each; more is ERR_TOO_LARGE. */
#define JSON_NODES_MAX 4000000

enum json_flags {
    JSON_STRICT = 0,
    /* Broken UTF-8 and lone surrogates become U+FFFD, as Go's decoder does; otherwise they are
       errors. */
    JSON_REPLACE_BAD_UTF8 = 1,
    /* Of a repeated key the last value wins and its path goes to json_opts.duplicates; otherwise it
       is an error. */
    JSON_KEEP_LAST_DUPLICATE = 2,
};

struct json_opts {
    unsigned flags;     /* enum json_flags */
    unsigned max_depth; /* 0 = JSON_DEPTH_MAX */
    /* Paths of repeated keys, like spec.a or spec.list[0].b (at most 100 are reported); may be
     * NULL. */
    struct pairs *duplicates; /* name = path */
    unsigned max_nodes;       /* values in the text; 0 = JSON_NODES_MAX */
};

/* Parse exactly p[0..n). opts may be NULL (strict). ret is owned by the caller: json_free.
 * Errors: ERR_BAD_REQUEST with Go's text where there is one ("invalid character 'x' looking for
 * beginning of value", "unexpected end of JSON input", "exceeded max depth") and the offset. */
int json_parse(const char *p, size_t n, const struct json_opts *opts, cJSON **ret, struct err *err);
int json_parse_str(const char *s, cJSON **ret, struct err *err); /* strict, NUL-terminated */
void json_free(cJSON *tree);
void json_free_p(cJSON **tree); /* for SCOPED(json_free_p) cJSON *t = NULL; */

/* Compact text; integers in full, keys in tree order, `<`, `>`, `&` as they are. */
void json_print(const cJSON *tree, struct buf *out);
/* two blanks a level, no final newline */
void json_print_pretty(const cJSON *tree, struct buf *out);
char *json_to_str(const cJSON *tree); /* owned by the caller, never NULL */
/* every object's members by key, bytewise, at all depths */
void json_sort(cJSON *tree);
/* Deep equality; order of members does not matter, order of list items does; numbers compare by
 * value, exactly. */
bool json_equal(const cJSON *a, const cJSON *b);
cJSON *json_copy(const cJSON *tree); /* NULL for NULL */

/* Member of an object by exact (case-sensitive) name; NULL when absent or tree is no object.
 * json_at walks "spec.podTemplate.spec"; names with dots need json_get. const goes in as it comes
 * out by the caller's choice. */
cJSON *json_get(const cJSON *tree, const char *name);
cJSON *json_at(const cJSON *tree, const char *path);
/* Typed, NULL/default when absent or of another type; nothing is converted. */
const char *json_str(const cJSON *tree, const char *path); /* NULL when absent */
const char *json_str_or(const cJSON *tree, const char *path, const char *otherwise);
bool json_bool_or(const cJSON *tree, const char *path, bool otherwise);
int64_t json_i64_or(const cJSON *tree, const char *path, int64_t otherwise);
bool json_has_str(const cJSON *list, const char *s); /* an item is that string */
/* The node itself as an exact integer (2, 2.0 and 2e0 alike; see json_node_is_int). 0, or -1 when
 * it is no number, is no whole number or does not fit. */
int json_node_i64(const cJSON *node, int64_t *ret);
/* Numbers that are no int64 as they are written, at all depths: from here on the doubles that they
 * are, in the shortest digits. */
void json_settle_floats(cJSON *tree);
bool json_node_is_int(const cJSON *node); /* written without fraction or exponent */

/* Building. set replaces an existing member in place or appends; value is taken over. */
cJSON *json_object(void);
cJSON *json_array(void);
cJSON *json_string(const char *s);
cJSON *json_int(int64_t v);
cJSON *json_boolean(bool v);
cJSON *json_null(void);
/* Text that is JSON already and will only be printed, copied or compared as text: nothing looks
 * into it. */
cJSON *json_raw(char *take_text);
void json_set(cJSON *object, const char *name, cJSON *take_value);
/* a member known to be new: no look-up */
void json_add(cJSON *object, const char *name, cJSON *take_value);
void json_set_str(cJSON *object, const char *name, const char *value);
void json_set_int(cJSON *object, const char *name, int64_t value);
void json_set_bool(cJSON *object, const char *name, bool value);
void json_push(cJSON *array, cJSON *take_value);
void json_remove(cJSON *object, const char *name); /* nothing when absent */
bool json_remove_str(cJSON *list, const char *s);  /* the first item that is that string, if any */
void json_remove_node(cJSON *parent, cJSON *node); /* that very member or item of parent */
/* owned by the caller; NULL when absent */
cJSON *json_detach(cJSON *object, const char *name);
/* By place instead of name; item is a child of container. The detached one is owned by the
 * caller. */
cJSON *json_detach_item(cJSON *container, cJSON *item);
/* keeps a member's name */
void json_replace_item(cJSON *container, cJSON *item, cJSON *take_value);
/* at the end when index is too large */
void json_insert(cJSON *array, size_t index, cJSON *take_value);
/* the member, made {} when absent or no object */
cJSON *json_ensure_object(cJSON *object, const char *name);
/* Sets "a.b.c", making the objects on the way. */
void json_set_at(cJSON *tree, const char *path, cJSON *take_value);
size_t json_len(const cJSON *node); /* members or items; counts, so O(n) */
