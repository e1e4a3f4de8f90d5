#include "apiserver/base/flags.h"

#include <float.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/duration.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

static size_t count(const struct flag_table *t)
{
    size_t n = 0;
    while (t->flags[n].name)
        n++;
    return n;
}

static void usage(const struct flag_table *t)
{
    printf("%s %s\n%s\n", t->program, t->version, t->about);
    for (const struct flag *f = t->flags; f->name; f++) {
        printf("  --%-32s %s%s%s%s\n", f->name, f->help, f->dflt ? " [" : "",
               f->dflt ? f->dflt : "", f->dflt ? "]" : "");
    }
    printf("  --%-32s %s\n  --%-32s %s\n", "version", "print the version", "help", "print this");
}

static char **split_list(const char *text)
{
    size_t n = 0;
    char **list = xcalloc(strlen(text) + 2, sizeof *list);
    for (const char *p = text; *p; p += *p == ',') {
        size_t len = strcspn(p, ",");
        if (len)
            list[n++] = xstrndup(p, len);
        p += len;
    }
    return list;
}

/* Finite and not negative. */
static bool number_of(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return *text && !*end && *ret >= 0 && *ret <= DBL_MAX;
}

static bool set_list(char *at, const char *value)
{
    char **old, **list = split_list(value);
    memcpy(&old, at, sizeof old);
    strv_free(old);
    memcpy(at, &list, sizeof list);
    return true;
}

/* False and a line on stderr when the value does not fit the flag. */
static bool set(const struct flag_table *t, const struct flag *f, char *at, const char *value)
{
    int64_t number;
    double decimal;
    switch (f->type) {
    case FLAG_STRING:
        memcpy(at, &value, sizeof value);
        return true;
    case FLAG_LIST:
        return set_list(at, value);
    case FLAG_INT:
        if (str_to_i64(value, &number) == 0 && number >= f->min && number <= f->max) {
            memcpy(at, &number, sizeof number);
            return true;
        }
        fprintf(stderr, "%s: --%s: \"%s\" is no number from %lld to %lld\n", t->program, f->name,
                value, (long long)f->min, (long long)f->max);
        return false;
    case FLAG_NUMBER:
        if (number_of(value, &decimal)) {
            memcpy(at, &decimal, sizeof decimal);
            return true;
        }
        fprintf(stderr, "%s: --%s: \"%s\" is no number of at least 0\n", t->program, f->name,
                value);
        return false;
    case FLAG_DURATION:
        if (duration_parse_ms(value, &number) == 0 && number >= f->min) {
            memcpy(at, &number, sizeof number);
            return true;
        }
        fprintf(stderr, "%s: --%s: \"%s\" is no duration like 20s or 5m%s\n", t->program, f->name,
                value, f->min ? " above 0" : "");
        return false;
    case FLAG_BOOL:
        if (str_to_bool(value, (bool *)at) == 0)
            return true;
        fprintf(stderr, "%s: --%s: \"%s\" is neither true nor false\n", t->program, f->name, value);
        return false;
    }
    return false;
}

/* What getopt_long returns for the flags in the order of the table, then these two. */
enum { FIRST_OPTION = 1000 };

static struct option *options_of(const struct flag_table *t, size_t n)
{
    struct option *options = xcalloc(n + 3, sizeof *options);
    for (size_t i = 0; i < n; i++) {
        bool is_switch = t->flags[i].type == FLAG_BOOL;
        options[i] =
            (struct option){t->flags[i].name, is_switch ? optional_argument : required_argument,
                            NULL, FIRST_OPTION + (int)i};
    }
    options[n] = (struct option){"help", no_argument, NULL, FIRST_OPTION + (int)n};
    options[n + 1] = (struct option){"version", no_argument, NULL, FIRST_OPTION + (int)n + 1};
    return options;
}

int flags_parse(const struct flag_table *t, int argc, char **argv, void *into, int *ret_status)
{
    size_t n = count(t);
    SCOPED_FREE struct option *options = options_of(t, n);
    int help = FIRST_OPTION + (int)n;
    for (const struct flag *f = t->flags; f->name; f++) {
        if (f->dflt)
            set(t, f, (char *)into + f->offset, f->dflt);
    }
    *ret_status = 2;
    optind = 0; /* GNU: from the start */
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 'h' || c >= help) {
            if (c == help + 1)
                printf("%s %s\n", t->program, t->version);
            else
                usage(t);
            *ret_status = 0;
            return -1;
        }
        if (c < FIRST_OPTION)
            return -1;
        const struct flag *f = &t->flags[c - FIRST_OPTION];
        if (!set(t, f, (char *)into + f->offset, optarg ? optarg : "true"))
            return -1;
    }
    if (optind < argc) {
        fprintf(stderr, "%s: \"%s\" is no flag (--help lists them)\n", t->program, argv[optind]);
        return -1;
    }
    return 0;
}
