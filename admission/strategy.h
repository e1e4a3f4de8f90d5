/* What a table cannot say of a kind: the meaning of its rules. A rule's text and message stand in
 * the kind's table, where the published schema takes them from; here is the check, found by the
 * message, so that contract, text and check cannot part. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "openapi/shape.h"

struct rule_check {
    const char *message; /* of the rule in the table */
    /* self is the node that the rule stands on, old_self the stored one: NULL for rules that do not
     * look at it. */
    bool (*holds)(const cJSON *self, const cJSON *old_self);
};
struct strategy {
    const struct kind *kind;
    const struct rule_check *rules; /* ended by an empty row */
};
const struct strategy *strategy_find(const struct kind *kind); /* NULL = the kind has none */
/* The check of a rule; NULL when nobody wrote it, which a test forbids. */
const struct rule_check *strategy_rule(const struct kind *kind, const struct rule *rule);

extern const struct strategy strategy_sandbox;
