/* Regular expressions of the tables: compiled once a process, matched under limits, with the
 * meaning they have in Go (no newline before the end, UTF-8). Any thread. */
#pragma once

#include <stdbool.h>

/* Whether text contains a match. pattern is static text of a table. A match that costs too much
 * counts as none. */
bool pattern_matches(const char *pattern, const char *text);
bool pattern_is_valid(const char *pattern);

/* What a quantity looks like. Source: the pattern that generated CustomResourceDefinitions publish.
 */
#define PATTERN_QUANTITY                                                                           \
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+("   \
    "\\.[0-9]*)?)|(\\.[0-9]+))))?$"
