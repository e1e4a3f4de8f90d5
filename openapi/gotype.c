/* See gotype.h. Source of the types: apimachinery's ObjectMeta, OwnerReference, ManagedFieldsEntry;
 * autoscaling/v1. */
#include "openapi/gotype.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/gotime.h"

enum go_type {
    GO_STRING,
    GO_INT32,
    GO_INT64,
    GO_BOOL,
    GO_TIME,
    GO_STRING_MAP,
    GO_STRINGS,
    GO_STRUCT,
    GO_STRUCTS,
    GO_ANY
};
struct go_field {
    const char *name;
    enum go_type type;
    const char *type_name;         /* in texts; of the items for GO_STRUCTS */
    const char *struct_name;       /* GO_STRUCT, GO_STRUCTS: v1.OwnerReference without v1. */
    const struct go_field *fields; /* GO_STRUCT, GO_STRUCTS */
};

/* By name: Go meets them in that order. */
static const struct go_field owner_fields[] = {
    {"apiVersion", GO_STRING, "string"},
    {"blockOwnerDeletion", GO_BOOL, "bool"},
    {"controller", GO_BOOL, "bool"},
    {"kind", GO_STRING, "string"},
    {"name", GO_STRING, "string"},
    {"uid", GO_STRING, "types.UID"},
    {0},
};
static const struct go_field manager_fields[] = {
    {"apiVersion", GO_STRING, "string"},
    {"fieldsType", GO_STRING, "string"},
    {"fieldsV1", GO_ANY, NULL},
    {"manager", GO_STRING, "string"},
    {"operation", GO_STRING, "v1.ManagedFieldsOperationType"},
    {"subresource", GO_STRING, "string"},
    {"time", GO_TIME, NULL},
    {0},
};
static const struct go_field metadata_fields[] = {
    {"annotations", GO_STRING_MAP, "map[string]string"},
    {"creationTimestamp", GO_TIME, NULL},
    {"deletionGracePeriodSeconds", GO_INT64, "int64"},
    {"deletionTimestamp", GO_TIME, NULL},
    {"finalizers", GO_STRINGS, "[]string"},
    {"generateName", GO_STRING, "string"},
    {"generation", GO_INT64, "int64"},
    {"labels", GO_STRING_MAP, "map[string]string"},
    {"managedFields", GO_STRUCTS, "v1.ManagedFieldsEntry", "ManagedFieldsEntry", manager_fields},
    {"name", GO_STRING, "string"},
    {"namespace", GO_STRING, "string"},
    {"ownerReferences", GO_STRUCTS, "v1.OwnerReference", "OwnerReference", owner_fields},
    {"resourceVersion", GO_STRING, "string"},
    {"selfLink", GO_STRING, "string"},
    {"uid", GO_STRING, "types.UID"},
    {0},
};

static const struct go_field scale_spec_fields[] = {{"replicas", GO_INT32, "int32"}, {0}};
static const struct go_field scale_status_fields[] = {
    {"replicas", GO_INT32, "int32"}, {"selector", GO_STRING, "string"}, {0}};
static const struct go_field scale_fields[] = {
    {"metadata", GO_STRUCT, "v1.ObjectMeta", "ObjectMeta", metadata_fields},
    {"spec", GO_STRUCT, "v1.ScaleSpec", "ScaleSpec", scale_spec_fields},
    {"status", GO_STRUCT, "v1.ScaleStatus", "ScaleStatus", scale_status_fields},
    {0},
};

static const char *json_word(const cJSON *node)
{
    return cJSON_IsString(node)   ? "string"
           : cJSON_IsNumber(node) ? "number"
           : cJSON_IsBool(node)   ? "bool"
           : cJSON_IsArray(node)  ? "array"
                                  : "object";
}

/* json: cannot unmarshal WHAT into Go struct field WHERE of type TYPE; owned. */
static char *type_error(const cJSON *node, const char *where, const char *type)
{
    return xasprintf("json: cannot unmarshal %s into Go struct field %s of type %s",
                     json_word(node), where, type);
}

static char *check_int(const cJSON *node, const char *where, const struct go_field *f)
{
    int64_t v = 0;
    if (!cJSON_IsNumber(node))
        return type_error(node, where, f->type_name);
    bool fits = json_node_is_int(node) && json_node_i64(node, &v) == 0;
    if (fits && (f->type == GO_INT64 || (v >= INT32_MIN && v <= INT32_MAX)))
        return NULL;
    SCOPED_FREE char *number = json_to_str(node);
    return xasprintf("json: cannot unmarshal number %s into Go struct field %s of type %s", number,
                     where, f->type_name);
}

static char *check_time(const cJSON *node, const char *where)
{
    if (!cJSON_IsString(node))
        return type_error(node, where, "string");
    return gotime_check_rfc3339(node->valuestring);
}

/* Where a struct is: its name, and the way to it from the outermost, which ends with a dot. */
struct go_place {
    const char *struct_name, *way;
    bool is_for_times; /* they alone are looked at */
};

static char *check_struct(const cJSON *node, const struct go_field *fields, struct go_place place);

/* Every item or member a string; a null counts as "". Of members the first by name is told. */
static char *check_strings(const cJSON *node, const char *where)
{
    const cJSON *item, *wrong = NULL;
    cJSON_ArrayForEach(item, node)
    {
        if (cJSON_IsString(item) || cJSON_IsNull(item))
            continue;
        if (!wrong || (item->string && strcmp(item->string, wrong->string) < 0))
            wrong = item;
    }
    return wrong ? type_error(wrong, where, "string") : NULL;
}

static char *check_structs(const cJSON *node, const struct go_field *f, const char *where,
                           struct go_place inner)
{
    SCOPED_FREE char *list_type = xasprintf("[]%s", f->type_name);
    if (!cJSON_IsArray(node))
        return type_error(node, where, list_type);
    const cJSON *item;
    cJSON_ArrayForEach(item, node)
    {
        if (cJSON_IsNull(item))
            continue;
        if (!cJSON_IsObject(item) && inner.is_for_times)
            continue;
        if (!cJSON_IsObject(item))
            return type_error(item, where, f->type_name);
        char *why = check_struct(item, f->fields, inner);
        if (why)
            return why;
    }
    return NULL;
}

static char *check_member(const cJSON *node, const struct go_field *f, struct go_place place)
{
    SCOPED_FREE char *where = xasprintf("%s.%s%s", place.struct_name, place.way, f->name);
    SCOPED_FREE char *way = xasprintf("%s%s.", place.way, f->name);
    const struct go_place inner = {f->struct_name, way, place.is_for_times};
    if (place.is_for_times && f->type == GO_TIME)
        return check_time(node, where);
    if (place.is_for_times)
        return f->type == GO_STRUCTS && cJSON_IsArray(node) ? check_structs(node, f, where, inner)
                                                            : NULL;
    switch (f->type) {
    case GO_STRING:
        return cJSON_IsString(node) ? NULL : type_error(node, where, f->type_name);
    case GO_BOOL:
        return cJSON_IsBool(node) ? NULL : type_error(node, where, f->type_name);
    case GO_INT32:
    case GO_INT64:
        return check_int(node, where, f);
    case GO_TIME:
        return check_time(node, where);
    case GO_STRING_MAP:
        return cJSON_IsObject(node) ? check_strings(node, where)
                                    : type_error(node, where, f->type_name);
    case GO_STRINGS:
        return cJSON_IsArray(node) ? check_strings(node, where)
                                   : type_error(node, where, f->type_name);
    case GO_STRUCT:
        return cJSON_IsObject(node) ? check_struct(node, f->fields, inner)
                                    : type_error(node, where, f->type_name);
    case GO_STRUCTS:
        return check_structs(node, f, where, inner);
    case GO_ANY:
        return NULL;
    }
    return NULL;
}

/* The text of the first wrong member, owned; NULL when all are right. */
static char *check_struct(const cJSON *node, const struct go_field *fields, struct go_place place)
{
    for (const struct go_field *f = fields; f->name; f++) {
        const cJSON *member = json_get(node, f->name);
        bool is_given = member && !cJSON_IsNull(member) && !cJSON_IsRaw(member);
        char *why = is_given ? check_member(member, f, place) : NULL;
        if (why)
            return why;
    }
    return NULL;
}

static void settle_strings(cJSON *strings)
{
    for (cJSON *item = strings ? strings->child : NULL, *next; item; item = next) {
        next = item->next;
        if (cJSON_IsNull(item))
            json_replace_item(strings, item, json_string(""));
    }
}

/* As Go shows it again: in UTC, without a fraction. */
static void settle_time(cJSON *node, const char *name, const cJSON *member)
{
    int64_t ms;
    char text[CLOCK_TEXT_SIZE];
    if (!cJSON_IsString(member) || clock_parse_rfc3339(member->valuestring, &ms) < 0)
        return;
    clock_print_rfc3339((ms - (ms < 0 ? 999 : 0)) / 1000, text);
    json_set_str(node, name, text);
}

/* What Go makes of null: nothing of a member, and the empty text or struct of an item. */
static void settle_nulls(cJSON *node, const struct go_field *fields)
{
    for (const struct go_field *f = fields; f->name; f++) {
        cJSON *member = json_get(node, f->name);
        if (cJSON_IsNull(member) && f->type != GO_ANY)
            json_remove(node, f->name);
        else if (f->type == GO_TIME)
            settle_time(node, f->name, member);
        else if (f->type == GO_STRINGS || f->type == GO_STRING_MAP)
            settle_strings(member);
        else if (f->type == GO_STRUCTS && cJSON_IsArray(member))
            for (cJSON *item = member->child, *next; item; item = next) {
                next = item->next;
                if (cJSON_IsNull(item))
                    json_replace_item(member, item, json_object());
                else
                    settle_nulls(item, f->fields);
            }
    }
}

/* A time reads itself in Go, and what it does not like ends the reading; other errors are kept
 * until all is read. */
char *gotype_check_metadata(const cJSON *metadata)
{
    const struct go_place place = {.struct_name = "ObjectMeta", .way = ""};
    const struct go_place times = {.struct_name = "ObjectMeta", .way = "", .is_for_times = true};
    if (!cJSON_IsObject(metadata))
        return xasprintf("json: cannot unmarshal %s into Go value of type v1.ObjectMeta",
                         json_word(metadata));
    char *why = check_struct(metadata, metadata_fields, times);
    return why ? why : check_struct(metadata, metadata_fields, place);
}

void gotype_forget_unreadable(cJSON *metadata)
{
    const struct go_place place = {.struct_name = "ObjectMeta", .way = ""};
    for (const struct go_field *f = metadata_fields; f->name; f++) {
        const cJSON *member = json_get(metadata, f->name);
        if ((f->type != GO_TIME && f->type != GO_INT64) || !member || cJSON_IsNull(member))
            continue;
        SCOPED_FREE char *why = check_member(member, f, place);
        if (why)
            json_remove(metadata, f->name);
    }
}

void gotype_settle_metadata(cJSON *metadata)
{
    settle_nulls(metadata, metadata_fields);
}

char *gotype_check_scale(const cJSON *scale)
{
    const struct go_place place = {.struct_name = "Scale", .way = ""};
    return check_struct(scale, scale_fields, place);
}

int gotype_check_version(const cJSON *object, const char *expected, struct err *err)
{
    const char *given = json_str_or(object, "apiVersion", "");
    if (strcmp(given, expected) == 0)
        return 0;
    if (strcmp(given, "/") == 0)
        given = ""; /* no group and no version */
    return err_set(err, ERR_BAD_REQUEST,
                   "the API version in the data (%s) does not match the expected API version (%s)",
                   given, expected);
}
