/* What a kind is, as data: fields, shapes, rules, columns, kinds. No functions here; the visitors
 * over these tables are the other files of this folder. Tables are static const and end with a row
 * whose name is NULL. Adding a field touches one row; adding a kind, one file in openapi/kinds and
 * one line in kinds.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_type {
    F_OBJECT, /* of = its shape */
    F_LIST,   /* item = type of its items, of = their shape when item is F_OBJECT */
    F_MAP,    /* string keys; item and of as for F_LIST */
    F_STRING,
    F_BOOL,
    F_INT32,
    F_INT64,
    F_NUMBER,        /* any JSON number */
    F_TIME,          /* string, format date-time */
    F_QUANTITY,      /* int-or-string with the quantity pattern */
    F_INT_OR_STRING, /* x-kubernetes-int-or-string */
    F_ANY,           /* x-kubernetes-preserve-unknown-fields: nothing below is pruned or checked */
    F_EMPTY,         /* type object without declared members: everything below is pruned */
    F_META,          /* ObjectMeta of a top-level object; checked by admission, not by the table */
};

enum field_flags {
    FIELD_REQUIRED = 1,
    FIELD_STATUS = 2, /* belongs to the status subresource */
};

enum list_type {
    LIST_ATOMIC,
    LIST_SET,
    LIST_MAP,
    LIST_UNDECLARED
}; /* undeclared behaves as atomic and prints nothing */

struct shape;
struct field {
    const char *name;
    enum field_type type;
    unsigned flags; /* enum field_flags */
    const struct shape *of;
    enum field_type item;
    const char *dflt; /* JSON text, or NULL */
    const char *const
        *oneof; /* NULL-terminated, in the order in which errors print them; or NULL */
    bool has_min, has_max;
    int64_t min, max;             /* inclusive; numbers */
    int64_t min_length;           /* characters; 0 = no bound */
    int64_t max_length;           /* characters; 0 = no bound */
    int64_t min_items, max_items; /* lists; 0 = no bound */
    const char *pattern;          /* RE2/ECMA text as published; strings */
    enum list_type list;          /* F_LIST */
    const char *const *keys;      /* LIST_MAP: NULL-terminated key names */
    const char *merge_key;        /* F_LIST, in strategic merge patches: items are merged by it;
                                     "" = values as a set; NULL = the list is replaced */
    bool is_atomic;               /* F_OBJECT and F_MAP: x-kubernetes-map-type: atomic */
    bool items_atomic;            /* F_LIST of objects: its items are atomic */
    const char *doc;              /* our own words; every field has them */
};

/* A rule between fields: CEL text, published as x-kubernetes-validations. */
struct rule {
    const char *rule;    /* CEL over self, and oldSelf: then it only runs where there was a value */
    const char *message; /* what the user reads */
    const char *message_expression; /* CEL for it, over the same; NULL = message alone */
    const char *reason;   /* FieldValueInvalid (also NULL), -Forbidden, -Required or -Duplicate */
    const char *field;    /* path below the shape that the cause names, NULL = the shape itself */
    bool is_old_optional; /* oldSelf is an optional, and the rule runs without one too */
    bool is_added; /* not of the CRDs that this API stands for: the documents do not show it, so
                      that they stay theirs, and nobody is told when it was not looked at */
};

struct shape {
    const char *name; /* of the Go/OpenAPI type, like Container; for error texts and docs */
    const char
        *ref; /* component name when it is published as a definition of its own; NULL = inlined */
    const char *doc;
    const struct field *fields; /* ended by an empty row */
    const struct rule *rules;   /* ended by an empty row; or NULL */
};

enum column_type { COL_STRING, COL_INTEGER, COL_NUMBER, COL_BOOLEAN, COL_DATE };
/* What a cell shows: the value at the path, or what has to be worked out. */
enum cell {
    CELL_VALUE,
    CELL_COUNT,     /* how many members or items the value has */
    CELL_LAST_SEEN, /* of an Event */
    CELL_REFERENCE, /* kind/name of the object that the path's name belongs to */
    CELL_LABELS,    /* a=b,c=d */
    CELL_NODE_STATUS,
    CELL_POD_READY,
    CELL_POD_STATUS,
    CELL_POD_RESTARTS,
    CELL_PHASE,        /* the value, or that the object is being deleted */
    CELL_ACCESS_MODES, /* RWO,RWX */
    CELL_CLAIM,        /* namespace/name of what the path's name belongs to */
};
struct column { /* besides Name, which is always first */
    const char *name;
    enum column_type type;
    enum cell cell;
    const char *path; /* .spec.replicas or .status.conditions[?(@.type=='Ready')].status */
    int priority;
    const char *doc; /* NULL = kube-apiserver's text for JSONPath columns */
};

struct scale_paths { /* dotted, without the leading dot */
    const char *spec_replicas, *status_replicas, *selector;
};

/* An annotation that this server acts on: a duration, checked at the door. */
struct duration_annotation {
    const char *key;
    int64_t min_ms, max_ms;
    const char *range; /* the same in words, for the error */
};

/* Another endpoint of a kind's objects, below their names. */
struct subresource {
    const char *name;
    const char *const *verbs;           /* NULL-terminated, in the order of discovery */
    const char *group, *version, *kind; /* of what it takes and answers */
};

/* What stands at a path of members when nothing is sent there; [] in it means every item. */
struct path_default {
    const char *path;  /* spec.containers[].imagePullPolicy; what is above the last member is not
                          made,  but for spec and status */
    const char *value; /* JSON */
    const char *from;  /* instead: the value of this member beside it; then 0 and "" are nothing,
                          and of objects each member is looked at by itself */
    bool is_alone;     /* only where there is nothing else but a name */
    bool is_first;     /* when the object is made, not later */
};

/* What must hold at a path of an object of Kubernetes itself, with kube-apiserver's own words. */
enum check_type {
    CHECK_REQUIRED,     /* there, and not empty; text: what is said besides, or NULL */
    CHECK_ENUM,         /* one of values */
    CHECK_LABEL,        /* a name */
    CHECK_SUBDOMAIN,    /* names with dots between */
    CHECK_PORT_NAME,    /* of a port */
    CHECK_PORT,         /* such a name, or a number that a port can have */
    CHECK_CONFIG_KEY,   /* of a ConfigMap or Secret */
    CHECK_CONFIG_KEYS,  /* of each member */
    CHECK_LABELS,       /* keys and values */
    CHECK_ENV_NAME,     /* of a variable */
    CHECK_RANGE,        /* from min to max */
    CHECK_NOT_NEGATIVE, /* a number */
    CHECK_MODE,         /* permission bits */
    CHECK_QUANTITIES,   /* members that are not negative */
    CHECK_SIZE,         /* a quantity above zero */
    CHECK_TRIMMED,      /* without blanks around */
    CHECK_NO_DOTS,      /* a path without .. */
    CHECK_RELATIVE,     /* and not from the root */
    CHECK_UNIQUE,       /* among the items of its list, and of those at the path other; with
                           values: these members of an item together */
    CHECK_REFERS,       /* to one of the values at the path other */
    CHECK_ONE_OF,       /* exactly one of the members values; text: what they are */
    CHECK_NAMED,        /* a list of more than one: each item has a name */
    CHECK_SOURCE,       /* of a variable: a value, or exactly one of the members values */
    CHECK_LIMITS,       /* requests are at most limits */
    CHECK_IMMUTABLE,    /* what it was */
    CHECK_FROZEN,       /* as it was, but for the paths values; text: what is said */
    CHECK_ALONE,        /* a list with the value text in it has no other */
};
struct path_check {
    const char *path; /* spec.containers[].name; [] every item, [-] the same without its number in
                         the text, [a.b] the member of that name */
    enum check_type check;
    const char *const *values; /* NULL-terminated */
    int64_t min, max;
    bool skips_zero; /* 0 is no value */
    const char *text;
    const char *other;            /* LIST[].MEMBER from the root */
    const char *when_path, *when; /* only where the text at that path is that; or NULL */
    const char *shown;            /* the field in the text instead of the path; or NULL */
};

/* A member of the object that has another name in the kind that it is stored as. */
struct rename {
    const char *shown, *stored;
};

enum name_form {
    NAME_SUBDOMAIN,
    NAME_LABEL,
    NAME_LABEL_1035 /* begins with a letter */,
    NAME_SEGMENT
};

struct kind {
    const char *group, *version, *kind, *list_kind, *plural, *singular;
    const char *const *short_names; /* NULL-terminated, or NULL */
    const char *const *categories;  /* NULL-terminated, or NULL */
    bool is_cluster_scoped;
    bool is_builtin;        /* of Kubernetes itself: shown as its own types are, and strategic merge
                               patches   are taken */
    bool is_read_only;      /* written by ourselves alone */
    bool is_review;         /* a question, answered to its POST; nothing is stored */
    const char *write_verb; /* who writes one needs this right to it as well: what is written gives
                               rights; or NULL */
    bool has_grace;         /* of a deletion: who runs the object ends it, then deletes it */
    enum name_form name_form;
    struct {
        const char *plain, *encoded; /* members: texts of the first are written into the second as
                                        base64 */
    } encodes;
    const struct kind *stored_as; /* its objects are those of that kind, in another form; or NULL */
    const struct rename *renames; /* what differs; ended by an empty row */
    const char *holders; /* path of a list that keeps a deleted object as finalizers do; or NULL */
    const struct subresource
        *subresources;                   /* besides those below; ended by an empty row, or NULL */
    const struct path_default *defaults; /* besides those of the shape; ended as above, or NULL */
    const struct path_check *checks;     /* besides the shape's; ended as above, or NULL */
    const char *const *field_labels; /* paths that field selectors know besides name and namespace;
                                        NULL-terminated, or NULL */
    bool has_status;
    bool has_activity;               /* the activity subresource: somebody uses the object */
    const struct scale_paths *scale; /* NULL = no scale subresource */
    const struct duration_annotation *durations; /* ended by an empty row; or NULL */
    const struct column *columns;                /* ended by an empty row; NULL = Age only */
    const struct shape *shape;                   /* apiVersion, kind, metadata, spec, status */
    const char *schema_name;                     /* io.x-k8s.agents.v1beta1.Sandbox */
    const char *doc;
};
