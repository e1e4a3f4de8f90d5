/* Regular expressions of the tables: compiled once a process, matched under limits, with the
 * meaning they have in Go (no newline before the end, UTF-8). Any thread. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/str.h"

/* Whether text contains a match. pattern is static text of a table. A match that costs too much
 * counts as none. */
bool pattern_matches(const char *pattern, const char *text);
bool pattern_is_valid(const char *pattern);
/* The same of a pattern that is compiled for this one match, both of any origin: 1 or 0; -1 when
 * the pattern is invalid or too long, or the match costs too much. */
int pattern_matches_once(struct str pattern, struct str text);
#define PATTERN_LENGTH_MAX 1000 /* bytes */

/* What a quantity looks like. Source: the pattern that generated CustomResourceDefinitions publish.
 */
#define PATTERN_QUANTITY                                                                           \
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+("   \
    "\\.[0-9]*)?)|(\\.[0-9]+))))?$"
