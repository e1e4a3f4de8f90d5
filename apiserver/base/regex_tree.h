/* The inside of apiserver/base/regex, shared by its files only: a pattern as a tree. */
#pragma once

#include <stdint.h>

#include "apiserver/base/regex.h"

enum regex_kind {
    REGEX_EMPTY,
    REGEX_CLASS,  /* one character out of a set */
    REGEX_ASSERT, /* something about a place between characters */
    REGEX_THEN,   /* left, then right */
    REGEX_EITHER, /* left, or else right */
    REGEX_REPEAT, /* left, at least min times and at most max */
};

enum regex_assert {
    REGEX_TEXT_START,
    REGEX_TEXT_END,
    REGEX_LINE_START,
    REGEX_LINE_END,
    REGEX_WORD_EDGE,
    REGEX_NO_WORD_EDGE,
};

struct regex_range {
    uint32_t from, to; /* inclusive */
};

struct regex_class {
    struct regex_range *v; /* in any order */
    size_t n, cap;
    bool is_negated;
};

struct regex_node {
    enum regex_kind kind;
    struct regex_class set;
    enum regex_assert assert;
    const struct regex_node *left, *right;
    int min, max; /* max: -1 = without end */
    int copies;   /* that counts make of one part of it: those of counts within counts multiplied */
    bool is_lazy;
};

/* The tree of a pattern; NULL and *ret_mistake when it has none. */
const struct regex_node *regex_parse(struct arena *arena, struct str pattern,
                                     const char **ret_mistake);
