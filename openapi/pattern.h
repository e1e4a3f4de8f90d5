/* Regular expressions of the tables: compiled once a process, with the meaning they have in Go. Any
 * thread. */
#pragma once

#include <stdbool.h>

/* Whether text contains a match. pattern is static text of a table. */
bool pattern_matches(const char *pattern, const char *text);
bool pattern_is_valid(const char *pattern);

/* What a quantity looks like. Source: the pattern that generated CustomResourceDefinitions
 * publish. */
#define PATTERN_QUANTITY                                                                           \
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+("   \
    "\\.[0-9]*)?)|(\\.[0-9]+))))?$"
