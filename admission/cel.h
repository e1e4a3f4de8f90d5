/* Expressions in the Common Expression Language, as the rules of the kinds' tables are written:
 * parsed into a tree, evaluated over JSON. What is there of the language and of Kubernetes's
 * libraries, and what is not: docs/design.md, "Rules". Trees and values live in the arena they were
 * made in, and may point into the JSON that was given. Text, depth, tree, steps and so memory have
 * ceilings. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/arena.h"
#include "apiserver/base/err.h"
#include "apiserver/base/str.h"
#include "openapi/shape.h"

struct regex;

#define CEL_TEXT_MAX 16384    /* bytes of an expression */
#define CEL_NODES_MAX 4000    /* of its tree */
#define CEL_DEPTH_MAX 200     /* of its tree */
#define CEL_STEPS_MAX 1000000 /* of one evaluation. Source: Kubernetes's per-call cost limit */
/* What an evaluation allocates is paid with steps as well, so it never takes more than this. */
#define CEL_STEP_BYTES 32
#define CEL_MEMORY_MAX ((size_t)CEL_STEPS_MAX * CEL_STEP_BYTES)

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
    CEL_OPTIONAL,
    CEL_IP,
    CEL_CIDR,
    CEL_TYPES
};

/* An address of four or sixteen bytes; and of a CIDR, how many of its bits are the network's. */
struct cel_address {
    uint8_t bytes[16];
    uint8_t size, prefix;
};
#define CEL_NO_PREFIX 255 /* a mere address */

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
        enum cel_type named;           /* of a type */
        const struct cel_value *inner; /* of an optional; NULL = none */
        const struct cel_address *address;
        const char *error;
    };
    /* A list or map that still is JSON; items are empty then. Its members' types, where known. */
    const cJSON *node;
    union {
        const struct shape *shape; /* of the object, or of the objects in it */
        const struct regex *regex; /* of a string that is a pattern in an expression */
    };
    enum field_type item; /* of a list or map with a row */
    bool has_item;
};

struct cel_node;
struct cel_variable {
    const char *name; /* NULL ends a list */
    struct cel_value value;
};

/* vars: NULL-terminated names that the expression may use. Errors: ERR_BAD_REQUEST, with the
 * place. */
int cel_parse(struct arena *arena, const char *text, const char *const *vars,
              const struct cel_node **ret, struct err *err);
/* Whether the expression reads a variable of cel_parse's list. */
bool cel_uses(const struct cel_node *expr, const char *variable);
/* Calls found for every part of the variable that the expression reads: the names behind it, as
 * they are written, for as long as members of members are taken. */
typedef void cel_part_fn(void *ctx, const char *const *names, size_t n);
void cel_each_part(const struct cel_node *expr, const char *variable, cel_part_fn *found,
                   void *ctx);
/* What is known of an object before there is one: the type of a variable for cel_check. A variable
 * of type CEL_ERROR is anything. */
struct cel_value cel_typed(const struct shape *shape);
/* Whether members, operators and functions fit the types of the variables, and the result may be of
 * a type. Errors: ERR_BAD_REQUEST. */
int cel_check(struct arena *arena, const struct cel_node *expr, const struct cel_variable *vars,
              enum cel_type result, struct err *err);
/* Never fails: what went wrong is a value of type CEL_ERROR. *ret_taken: steps; may be NULL. */
struct cel_value cel_eval(struct arena *arena, const struct cel_node *expr,
                          const struct cel_variable *vars, uint64_t steps_max, uint64_t *ret_taken);
/* The tree as a value; shape says which numbers are doubles, NULL = as they are written. */
struct cel_value cel_from_json(const cJSON *node, const struct shape *shape);
/* An optional; inner NULL = without value. */
struct cel_value cel_optional(struct arena *arena, const struct cel_value *inner);
/* The member of a table that a name in an expression means: names that are none in CEL are written
 * escaped. Source: Kubernetes, "Validation rules", on escaping. */
const char *cel_member_name(struct arena *arena, const char *name);
