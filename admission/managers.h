/* The managers of an object's fields: metadata.managedFields read, changed by one write, and
 * written again. An entry is a manager by name, operation and subresource (and version, unless it
 * applied), the set of fields it owns, and the time of its last change. Entries borrow from the
 * arena. One thread at a time. Source: docs/kubernetes-api.md
 * 28, 29; apimachinery's managedfields. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/buf.h"
#include "openapi/merge.h"
#include "openapi/shape.h"

struct manager {
    const char *name, *version, *subresource; /* never NULL */
    const char *time;                         /* RFC 3339; NULL = none */
    const struct fieldset *fields;
    bool is_applier; /* operation Apply, else Update */
    /* The fields as they were read, and their text: printed again while they are the same. */
    const struct fieldset *fields_read;
    struct scan_piece text;
};
struct managers { /* starts as {0}; managers_fini */
    struct arena arena;
    struct manager *v;
    size_t n, cap;
};
void managers_fini(struct managers *m);

/* A client asks to forget all managers by [] or [{}]. */
bool managers_is_reset(const cJSON *list);
/* list is a tree, or the raw text of a stored one, which must outlive m. Entries of one manager
 * twice: the later one counts. as_client: the list comes with a request, and is put in our form.
 * -1 = the list makes no sense; m is then empty. */
int managers_read(struct managers *m, const cJSON *list, bool as_client);
/* The list in its order (appliers first, then by time), as JSON; the same bytes for the same
 * managers. */
void managers_print(struct managers *m, struct buf *out);

/* The one that writes: group and version of the object, and the endpoint. */
struct manager_id {
    const char *name, *version, *subresource;
    bool is_applier;
};
struct manager *managers_find(const struct managers *m, const struct manager_id *id);
struct manager *managers_get(struct managers *m, const struct manager_id *id); /* made if absent */
void managers_drop_empty(struct managers *m); /* those that own nothing */
/* Whether each manager wrote by that version; else nobody can say what their fields are. */
bool managers_know_version(const struct managers *m, const char *version);
/* Fields as another table had them, see merge_adapt. */
void managers_adapt(struct managers *m, const struct shape *shape);

/* What a write of the endpoint cannot change, by its own path: "status" for an object with that
 * subresource, metadata and spec for the subresource. NULL = nothing. */
const struct fieldset *managers_reset_fields(struct arena *arena, const struct kind *kind,
                                             const char *subresource);
/* The fields that never have an owner: name, uid and what else the server sets. */
const struct fieldset *managers_unowned_fields(void);

/* A write that changed the object as compared: the writer owns what it added and modified, others
 * lose that and what is gone. Of an object without managers nothing is recorded; that is the
 * caller's to decide. now is the time as text. Source: docs/kubernetes-api.md 29.3. */
void managers_record(struct managers *m, const struct manager_id *writer,
                     const struct comparison *c, const struct fieldset *reset, const char *now);
/* Entries of operation Update; more are joined to ancient-changes. */
#define MANAGERS_UPDATERS_MAX 10
void managers_limit(struct managers *m);

/* Two lists that differ in nothing but times. */
bool managers_equal_but_time(const struct managers *a, const struct managers *b);
