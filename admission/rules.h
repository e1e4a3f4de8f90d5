/* The rules of the kinds' tables, as text in CEL. Any thread. */
#pragma once

#include <stddef.h>

#include "openapi/shape.h"

/* Looks for rules that could not be evaluated: they do not parse, or stand where nobody looks.
 * Reports each as a text; returns how many. Called at start: a server with such a rule does not
 * start. */
size_t rules_check(void (*report)(void *ctx, const char *text), void *ctx);
/* The same of one kind. */
size_t rules_check_kind(const struct kind *kind, void (*report)(void *ctx, const char *text),
                        void *ctx);
