/* The command line of a program as a table: one row a flag, with its bounds, default and help. Rows
 * fill a struct of the program's own. Long options only (--name value, --name=value); a bad value
 * ends in one line on stderr that names flag and value. At the start, one thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum flag_type {
    FLAG_STRING,   /* const char *, of argv or the table */
    FLAG_LIST,     /* char **, split at commas, ended by NULL; strv_free */
    FLAG_INT,      /* int64_t */
    FLAG_BOOL,     /* bool; given without a value it is true */
    FLAG_NUMBER,   /* double, at least 0 */
    FLAG_DURATION, /* int64_t, ms; written 20s or 5m */
};
struct flag {
    const char *name;
    enum flag_type type;
    size_t offset;    /* in the program's struct */
    const char *dflt; /* text, or NULL */
    int64_t min, max; /* FLAG_INT; min of FLAG_DURATION, ms */
    const char *help;
};
struct flag_table {
    const char *program, *version;
    const char *about;        /* for --help: what the program is and how it is called */
    const struct flag *flags; /* ended by a row without a name */
};
/* Defaults, then the command line, into the struct at into, which starts as {0}. 0 = go on, else
 * the program exits with *ret_status: after --help and --version 0, for a wrong line 2. */
int flags_parse(const struct flag_table *t, int argc, char **argv, void *into, int *ret_status);
