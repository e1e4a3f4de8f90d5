/* The rules of a kind as they are evaluated: parsed and checked once a kind, beside the shapes that
 * lead to them, and kept for the life of the process. Shared by admission's files only. Any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "admission/cel.h"
#include "openapi/shape.h"

/* A part of self that a rule reads: its names on the way down, ended by NULL. */
typedef const char *const *rule_part;

struct planned_rule {
    const struct rule *rule;
    const struct cel_node
        *expr; /* NULL: it does not compile, and a server with it does not start */
    const struct cel_node *message; /* of the messageExpression; NULL = none */
    bool uses_old;
    const rule_part *parts;
    size_t n_parts;
};

struct rule_plan {
    const struct shape *shape;
    const struct planned_rule *rules;
    size_t n_rules;
    const struct rule_branch *branches; /* only fields with rules somewhere below */
    size_t n_branches;
};
struct rule_branch {
    const struct field *field; /* an object, or a list or map of objects */
    const struct rule_plan *plan;
};

/* Told of each rule that does not compile. */
typedef void (*rule_mistake_fn)(void *ctx, const struct shape *shape, const struct rule *rule,
                                const char *what);

/* The plan of a kind, made when it is first asked for. Borrowed. */
const struct rule_plan *rule_plan_of(const struct kind *kind);
/* A plan in an arena; NULL when there is no rule. report may be NULL. */
const struct rule_plan *rule_plan_make(struct arena *arena, const struct shape *shape,
                                       rule_mistake_fn report, void *ctx);
