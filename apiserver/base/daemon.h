/* A program that runs as long as we do: started again when it ends by itself, ended with us however
 * we end. Any thread. */
#pragma once

#include <stdbool.h>

struct daemon_config {
    const char *name;     /* for the log and its thread; at most 15 bytes */
    char *const *argv;    /* [0] is looked for in PATH, unless it is a path */
    char *const *env;     /* NULL = ours */
    const char *log_file; /* what it prints since it was started last; readable by us alone */
    /* Asked before each start, on the child's thread: false = not yet, ask again in a second. NULL
     * = start. */
    bool (*may_start)(void *ctx);
    void *ctx;
};
struct daemon;
/* Strings are copied. It is not waited for until it is of use. */
struct daemon *daemon_start(const struct daemon_config *config);
void daemon_signal(struct daemon *c, int signal_number); /* nothing while none runs */
void daemon_stop(struct daemon *c); /* SIGTERM, then SIGKILL after 10 s; frees; NULL is fine */
/* The program of that name in PATH, or a path with a slash; NULL when there is none that can be
 * run. The caller's. */
char *daemon_find(const char *program);
