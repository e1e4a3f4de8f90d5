/* Query parameters as options of a verb, converted and validated with kube-apiserver's texts.
 * Source: docs/kubernetes-api.md 16, 18.1, 21, 22.1, 23, 24.2. Pure; any thread. */
#pragma once

#include "apiserver/http/request.h"
#include "apiserver/registry/registry.h"

struct list_options { /* strings are those of the query, NULL = not given */
    const char *label_selector, *field_selector;
    const char *resource_version, *match, *continue_token;
    int64_t limit, timeout_s; /* 0 = not given */
    bool is_watch, bookmarks;
    bool has_initial, initial; /* sendInitialEvents */
};
/* Converts and validates. Errors: ERR_BAD_REQUEST (numbers), ERR_INVALID (combinations). */
int params_list(const struct pairs *params, bool is_watch, struct list_options *ret,
                struct err *err);
/* The version that a list must have. Errors: ERR_BAD_REQUEST. */
int params_list_version(const struct list_options *o, struct read_version *ret, struct err *err);
/* resourceVersion of GET and watch: "" and NULL are the latest. Errors: ERR_UNKNOWN with Go's
 * text. */
int params_version(const char *text, struct read_version *ret, struct err *err);
/* The two selectors, that of a name in the path (may be "") included. Errors: ERR_BAD_REQUEST. */
int params_selector(const struct kind *kind, const struct list_options *o, const char *path_name,
                    struct selector **ret, struct err *err);

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
/* Go's duration (300ms, 1m30s) in ms. -1 with Go's text in err. */
int params_duration(const char *text, int64_t *ret_ms, struct err *err);
