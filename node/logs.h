/* What containers wrote, as the engine keeps it: a file of lines, each with its time, its stream
 * and whether it is whole. Here is what a client may ask of them, whose file it is, and which bytes
 * of it answer; reading is visit_log.c's part. Pure. Source: the kubelet's kuberuntime/logs, and
 * the CRI format of logs. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "apiserver/base/str.h"

struct log_options {
    bool follows, previous, timestamps;
    bool streams[2];  /* stdout, stderr */
    int64_t tail;     /* lines; -1 = all */
    int64_t limit;    /* bytes; -1 = none */
    int64_t since_ns; /* unix; lines before are left out; INT64_MIN = none are */
};
/* From the query. Errors: ERR_INVALID. */
int log_options_read(const struct pairs *query, int64_t now_unix_ms, struct log_options *ret,
                     struct err *err);
/* The engine's id of the container whose output is asked for, by the Pod's status. Errors:
 * ERR_NOT_FOUND there is no such container, ERR_BAD_REQUEST it has no output. */
int log_choose(const cJSON *pod, const char *container, bool previous, char **ret_id,
               struct err *err);

/* Bytes; the engine cuts at 8 KiB, longer is not its own. */
#define LOG_LINE_MAX ((size_t)64 << 10)

struct log_reader { /* starts with options and skip; log_reader_fini */
    struct log_options options;
    int64_t skip;    /* lines that are left out, for the tail */
    struct buf line; /* that is not whole */
    int64_t lines;   /* that ended */
    bool is_inside;  /* a line of the container's, which comes in parts */
    int64_t printed; /* bytes */
    bool is_full;    /* the limit is reached */
};
void log_reader_fini(struct log_reader *r);
/* Bytes of the file, in order and in any pieces; what answers is appended to out. */
void log_read(struct log_reader *r, const char *p, size_t n, struct buf *out);
