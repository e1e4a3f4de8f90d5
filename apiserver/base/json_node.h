/* What the JSON and YAML readers and printers share below json.h: nodes, numbers as text, look-up
 * of an object's members while it is being read, and a stack for walking trees without recursion.
 * Only base/json*.c and base/yaml*.c include it. Any thread, one tree one thread. */
#pragma once

#include "apiserver/base/json.h"

#define JSON_EXACT_INT ((int64_t)1 << 53) /* a double holds every integer up to here */

cJSON *json_node_new(int type);
/* O(1). child must have its ->string set if parent is an object. */
void json_node_append(cJSON *parent, cJSON *child);
/* Frees value and children, leaves links and ->string; the type becomes cJSON_Invalid. */
void json_node_clear(cJSON *node);
/* Makes node the number written as text[0..n), which must be a JSON number; false when a double
 * overflows. */
bool json_node_set_number(cJSON *node, const char *text, size_t n, bool is_int);
/* Makes node a string, taking the text over. */
void json_node_set_string(cJSON *node, char *take_text);

#define JSON_NUMBER_SIZE 48
/* The number as text: either node's own or written into space. "null" for NaN and infinities, which
 * JSON lacks. */
const char *json_node_number(const cJSON *node, char space[JSON_NUMBER_SIZE]);

/* The members of one object by name, so that finding a repeated key is not quadratic. Starts as
 * {0}. */
struct json_keys {
    struct json_key *slots; /* NULL while the object is small */
    size_t cap, n;
};
cJSON *json_keys_find(const struct json_keys *k, const cJSON *object, const char *name);
/* node was just appended to object. */
void json_keys_add(struct json_keys *k, const cJSON *object, cJSON *node);
void json_keys_fini(struct json_keys *k);

/* Stack of nodes; starts as {0}. */
union json_ref {
    const cJSON *seen;
    cJSON *owned;
};
struct json_stack {
    union json_ref *v;
    size_t n, cap;
};
void json_stack_push(struct json_stack *s, union json_ref ref);
void json_stack_fini(struct json_stack *s);
