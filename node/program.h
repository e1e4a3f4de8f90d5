/* Other people's programs, run to their end for what they write. */
#pragma once

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

/* The path of a program in the usual folders; the caller's, NULL = there is none. */
char *program_find(const char *name);
/* Appends its output, at most ret->max bytes; what it says on stderr is ours to say. argv and env
 * end with NULL. Errors: ERR_INVALID it cannot be run, fails, or writes too much. */
int program_output(const char *path, char *const *argv, char *const *env, struct buf *ret,
                   struct err *err);
