/* Kinds of Kubernetes itself as protocol buffers: tables of messages (wire.gen.c, made by
 * hack/gen-wire.go) and the two visitors over them, from bytes to the tree that the same object's
 * JSON gives and back. Source: k8s.io/api; Go's decoder for what is broken. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/err.h"
#include "apiserver/base/str.h"

struct buf;

enum wire_type {
    WIRE_STRING,
    WIRE_BYTES, /* base64 in JSON */
    WIRE_BOOL,
    WIRE_INT32,
    WIRE_INT64,
    WIRE_MESSAGE, /* of = its table */
    /* Messages with another form in JSON: */
    WIRE_TIME, /* RFC 3339, seconds */
    WIRE_MICRO_TIME,
    WIRE_QUANTITY,
    WIRE_INT_OR_STRING,
    WIRE_RAW,     /* JSON as bytes */
    WIRE_STRINGS, /* a list of texts */
};

enum wire_flags {
    WIRE_POINTER = 1, /* an empty value is another thing than none */
    WIRE_ALWAYS = 2,  /* JSON has it even when it is empty */
    WIRE_REPEATED = 4,
    WIRE_MAP = 8,     /* by text */
    WIRE_INLINE = 16, /* its members are members of the object around it */
};

struct wire_message;
struct wire_field {
    int number;
    const char *name; /* in JSON; "" of what is inline */
    enum wire_type type;
    unsigned flags; /* enum wire_flags */
    const struct wire_message *of;
};
struct wire_message { /* none is part of itself: walks over tables end */
    const char *name;
    const struct wire_field *fields; /* ended by an empty row */
};
struct wire_root {
    const char *api_version, *kind;
    const struct wire_message *message;
};
extern const struct wire_root wire_roots[]; /* ended by an empty row */

/* The message of a kind; any kind of that name when api_version is NULL. NULL when there is
 * none. */
const struct wire_message *wire_find(const char *api_version, const char *kind);

/* What an object travels in: four magic bytes and a message with its kind. Borrows from the
 * bytes. */
struct wire_envelope {
    struct str api_version, kind, raw;
};
/* Errors: ERR_BAD_REQUEST with Go's text. */
int wire_open(struct str bytes, struct wire_envelope *ret, struct err *err);

/* Values in one tree; more is ERR_TOO_LARGE. */
#define WIRE_NODES_MAX 1000000
/* The members that Go's JSON would have (no null), without apiVersion and kind. ret is owned by the
 * caller. Errors: ERR_BAD_REQUEST with Go's text; ERR_TOO_LARGE. */
int wire_decode(const struct wire_message *m, struct str raw, cJSON **ret, struct err *err);
