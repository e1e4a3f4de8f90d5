/* The error value. A function that can fail returns 0, or the negative of the code it put into its
 * struct err; the value becomes a Kubernetes Status without guessing (apiserver/http/status.c). A
 * function returns an error or logs it, never both. A struct err starts as {0}, belongs to one
 * thread and is emptied by err_fini. Every function here takes err == NULL for a caller who only
 * wants the code. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum err_code {
    ERR_NONE = 0,
#define ERR_ROW(code, status, reason) code,
#include "apiserver/base/err_codes.h"
#undef ERR_ROW
    ERR_CODES
};

/* One entry of Status.details.causes. All strings are owned by the struct err. */
struct err_cause {
    char *reason;  /* FieldValueRequired, ... (metav1.CauseType) */
    char *field;   /* spec.containers[0].name; "" when it belongs to no field */
    char *message; /* without the field path: "Required value" */
};

struct err {
    enum err_code code;
    char *message;
    struct err_cause *causes;
    size_t n_causes, causes_bytes; /* how many; their bytes together, which have a ceiling too */
    /* Status.details; NULL or 0 = absent */
    char *name, *group, *kind, *uid;
    int retry_after_s;
    char *continue_token; /* Status.metadata.continue of an expired list */
    bool has_details;     /* print "details": {} even when nothing is in it */
};

/* Set code and message, dropping what was there. Returns -code. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Put "text: " before the message, keeping the code and all details. Returns -code. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add a cause; the code becomes ERR_INVALID if none was set. Strings are copied; field may be NULL.
 * At most ERR_CAUSES_MAX causes are kept, further ones are counted away silently. Returns -code. */
int err_cause(struct err *err, const char *reason, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
#define ERR_CAUSES_MAX 1000
/* Set Status.details (each may be NULL). Returns -code. */
int err_details(struct err *err, const char *group, const char *kind, const char *name,
                const char *uid);
/* Makes the Invalid error of the causes: `Kind.group "name" is invalid: field: message`, several in
 * brackets, each text once; group may be "". causes is {0} afterwards. Returns -ERR_INVALID, or 0
 * when there are no causes. Source: apimachinery's NewInvalid. */
int err_invalid(struct err *causes, const char *group, const char *kind, const char *name,
                struct err *err);
/* Move from into to (dropping what to held); from is {0} afterwards. Returns -code. */
int err_move(struct err *to, struct err *from);
void err_fini(struct err *err); /* frees, leaves {0} */

int err_status(enum err_code code);         /* HTTP status; 200 for ERR_NONE */
const char *err_reason(enum err_code code); /* Status.reason, "" when it has none */
const char *err_name(enum err_code code);   /* "ERR_CONFLICT", for logs */
/* The code for an HTTP status and Status.reason received from another API server; ERR_UNKNOWN when
 * unknown. */
enum err_code err_from_status(int status, const char *reason);
/* The message, never NULL. Valid as long as err is unchanged. */
const char *err_text(const struct err *err);
