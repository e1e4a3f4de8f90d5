/* Walks over the bytes of a JSON document without building a tree: the cache indexes every stored
 * object with it, in one pass over memory. It checks the syntax of what it walks over (not UTF-8,
 * which was checked when the object was written). Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "apiserver/base/arena.h"

struct scan { /* starts as {text, end} */
    const char *p, *end;
};
/* A piece of the document: from its first to behind its last byte. */
struct scan_piece {
    const char *p;
    size_t n;
};

/* Steps over one value of any type, at most SCAN_DEPTH_MAX deep; false when it is broken. */
bool scan_value(struct scan *s, struct scan_piece *ret);
#define SCAN_DEPTH_MAX 10000
/* Members of an object: scan_enter steps over '{', then scan_member gives each key (as it stands
 * between its quotes) with s at the member's value, which the caller steps over. It returns false
 * behind the last one ('}' is eaten then) and when the document is broken, which *failed tells. */
bool scan_enter(struct scan *s, char open);
bool scan_member(struct scan *s, bool *is_first, struct scan_piece *ret_key, bool *failed);
/* Items of a list, in the same manner. */
bool scan_item(struct scan *s, bool *is_first, bool *failed);
/* True when nothing but blanks is left. */
bool scan_at_end(struct scan *s);
bool scan_key_is(struct scan_piece key, const char *name);
/* A piece of a string (a key, or a value without its quotes) as text of its own; NULL when it is no
 * string, or has a NUL. */
const char *scan_text(struct arena *arena, struct scan_piece piece);
