/* Expressions in the Common Expression Language, as the rules of the kinds' tables are written:
 * parsed into a tree, evaluated over JSON. The language core, the standard macros and functions and
 * Kubernetes's string functions; no protobuf messages, no container names, no accessors of times.
 * Trees and values live in the arena they were made in, and may point into the JSON that was given.
 * Text, depth, tree, steps and so memory have ceilings. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/arena.h"
#include "apiserver/base/err.h"
#include "apiserver/base/str.h"
#include "openapi/shape.h"

#define CEL_TEXT_MAX 16384    /* bytes of an expression */
#define CEL_NODES_MAX 4000    /* of its tree */
#define CEL_DEPTH_MAX 200     /* of its tree */
#define CEL_STEPS_MAX 1000000 /* of one evaluation. Source: Kubernetes's per-call cost limit */

/* The error of an expression that needs more steps than it may. */
#define CEL_TOO_COSTLY "operation cancelled: actual cost limit exceeded"

enum cel_type {
    CEL_ERROR,
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_UINT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_BYTES,
    CEL_LIST,
    CEL_MAP,
    CEL_TYPE,
    CEL_TIMESTAMP,
    CEL_DURATION,
};

struct cel_value {
    enum cel_type type;
    union {
        bool b;
        int64_t i; /* also a duration, ns */
        uint64_t u;
        double d;
        struct str s; /* string, bytes */
        struct {
            const struct cel_value *v; /* of a map: key, value, key, value ... */
            size_t n;                  /* values */
        } items;
        struct {
            int64_t s; /* unix time */
            int32_t ns;
        } at;
        enum cel_type named; /* of a type */
        const char *error;
    };
    /* A list or map that still is JSON; items are empty then. Its members' types, where known. */
    const cJSON *node;
    const struct shape *shape; /* of the object, or of the objects in it */
    enum field_type item;      /* of a list or map with a row */
    bool has_item;
};

struct cel_node;
struct cel_variable {
    const char *name; /* NULL ends a list */
    struct cel_value value;
};

/* vars: NULL-terminated names that the expression may use. Errors: ERR_BAD_REQUEST, with the place.
 */
int cel_parse(struct arena *arena, const char *text, const char *const *vars,
              const struct cel_node **ret, struct err *err);
bool cel_uses(const struct cel_node *expr, const char *variable);
/* Never fails: what went wrong is a value of type CEL_ERROR. */
struct cel_value cel_eval(struct arena *arena, const struct cel_node *expr,
                          const struct cel_variable *vars, uint64_t steps_max);
/* The tree as a value; shape says which numbers are doubles, NULL = as they are written. */
struct cel_value cel_from_json(const cJSON *node, const struct shape *shape);
