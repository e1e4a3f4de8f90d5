/* Regular expressions in the syntax of RE2, matched in time linear in the text whatever pattern and
 * text are: a pattern becomes a program, and all its threads step over the text together (Thompson,
 * Pike). No captures. What RE2 knows and this does not is refused by name: classes of Unicode
 * (\pL), single bytes (\C), and case folding beyond ASCII. Pure; a compiled pattern is immutable,
 * so any thread. Sources: the syntax page of RE2; R. Cox, "Regular Expression Matching: the Virtual
 * Machine Approach". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "apiserver/base/arena.h"
#include "apiserver/base/str.h"

#define REGEX_TEXT_MAX 4096   /* bytes of a pattern */
#define REGEX_SIZE_MAX 5000   /* instructions of its program */
#define REGEX_REPEAT_MAX 1000 /* in x{n,m}, those within others multiplied. Source: RE2 */

struct regex;

/* NULL and *ret_mistake (static text) when the pattern is none, or not supported, or too large. */
const struct regex *regex_compile(struct arena *arena, struct str pattern,
                                  const char **ret_mistake);
/* The first match that begins at or behind from; of several there the one that a backtracking
 * matcher would find. The text should be UTF-8; other bytes count as U+FFFD. */
bool regex_find(const struct regex *re, struct str text, size_t from, size_t *ret_start,
                size_t *ret_end);
/* Whether there is a match anywhere; cheaper than to find it. */
bool regex_matches(const struct regex *re, struct str text);
/* Steps that matching a text takes at most. */
size_t regex_cost(const struct regex *re, size_t text_bytes);
