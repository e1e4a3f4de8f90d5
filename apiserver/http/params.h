/* Query parameters as options of a verb, converted and validated with kube-apiserver's texts.
 * Source: docs/kubernetes-api.md 16, 18.1, 21, 22.1, 23, 24.2. Pure; any thread. */
#pragma once

#include "apiserver/http/request.h"
#include "apiserver/registry/registry.h"

struct list_options { /* strings are those of the query, NULL = not given */
    const char *resource_version, *match, *continue_token;
    struct selector *selector; /* that of a name in the path included; list_options_fini */
    int64_t limit, timeout_s;  /* 0 = not given */
    bool bookmarks;
    bool has_initial, initial; /* sendInitialEvents */
};
void list_options_fini(struct list_options *o);
/* Converts and validates, in kube-apiserver's order. is_watch: by the rules of watches. Errors:
 * ERR_BAD_REQUEST (numbers, selectors), ERR_INVALID (combinations). */
int params_list(const struct request *req, bool is_watch, struct list_options *ret,
                struct err *err);
/* No version is named, or "0". */
bool params_from_any(const struct list_options *o);
/* The version that a list must have; one that is read in pages, asked for or not, has exactly the
 * version that is named. Errors: ERR_BAD_REQUEST. */
int params_list_version(const struct list_options *o, bool is_paged, struct read_version *ret,
                        struct err *err);
/* resourceVersion of GET and watch: "" and NULL are the latest. Errors: ERR_UNKNOWN with Go's
 * text. */
int params_version(const char *text, struct read_version *ret, struct err *err);
/* dryRun, fieldManager, fieldValidation, force of a write. options_kind is CreateOptions,
 * UpdateOptions or PatchOptions. */
int params_write(struct request *req, const char *options_kind, struct write_options *ret,
                 struct err *err);
/* The same for apply, which needs a fieldManager and may be forced. */
int params_apply(struct request *req, struct write_options *ret, bool *ret_force, struct err *err);

/* DeleteOptions from the body when there is one, else from the query. *ret_tree owns strings of
 * ret: json_free. orphan_dependents false makes a 202 of a delete that waits. */
int params_delete(struct request *req, struct delete_options *ret, cJSON **ret_tree,
                  struct err *err);

/* A number of the query; 0 when it is not there. Errors: ERR_BAD_REQUEST with Go's text. */
int params_int(const struct pairs *params, const char *name, int64_t *ret, struct err *err);
#define MS_NS 1000000 /* nanoseconds in a millisecond */
/* Go's duration (300ms, 1m30s) in ns. -1 with Go's text in err. */
int params_duration(const char *text, int64_t *ret_ns, struct err *err);
