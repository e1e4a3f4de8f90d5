/* Shared types: metadata, Status, DeleteOptions, Scale. Structure as in kube-apiserver v1.37's own
 * OpenAPI documents; a required scalar's zero value is published as its default there, which
 * doc_schema.c adds. */
#include "openapi/kinds/apimachinery.h"

#define META "io.k8s.apimachinery.pkg.apis.meta.v1."
#define AUTOSCALING "io.k8s.api.autoscaling.v1."

#define API_VERSION                                                                                \
    {                                                                                              \
        .name = "apiVersion", .type = F_STRING, .doc = "Group and version of this object's form."  \
    }
#define KIND                                                                                       \
    {                                                                                              \
        .name = "kind", .type = F_STRING, .doc = "What this object is, in CamelCase."              \
    }

static const struct shape shape_time = {
    .name = "Time",
    .ref = META "Time",
    .doc = "A moment as RFC 3339 text, in whole seconds.",
};
static const struct shape shape_fields_v1 = {
    .name = "FieldsV1",
    .ref = META "FieldsV1",
    .doc = "A set of field paths as a tree: f: members by name, k: list items by keys, v: list "
           "items by value, i: by position, "
           "and . for the value itself.",
};
static const struct shape shape_patch = {
    .name = "Patch",
    .ref = META "Patch",
    .doc = "A change to an object, in the form that the request's media type names.",
};

static const struct field fields_managed_fields_entry[] = {
    {.name = "apiVersion",
     .type = F_STRING,
     .doc = "Version of the object that the field paths belong to."},
    {.name = "fieldsType",
     .type = F_STRING,
     .doc = "Form of the field set; FieldsV1 is the only one."},
    {.name = "fieldsV1", .type = F_ANY, .of = &shape_fields_v1, .doc = "The fields."},
    {.name = "manager", .type = F_STRING, .doc = "Who set the fields."},
    {.name = "operation", .type = F_STRING, .doc = "How the fields were set: Apply or Update."},
    {.name = "subresource",
     .type = F_STRING,
     .doc = "Subresource through which the fields were set; empty for the object."},
    {.name = "time",
     .type = F_TIME,
     .of = &shape_time,
     .doc = "When the set of fields or a value in it last changed."},
    {0},
};
static const struct shape shape_managed_fields_entry = {
    .name = "ManagedFieldsEntry",
    .ref = META "ManagedFieldsEntry",
    .fields = fields_managed_fields_entry,
    .doc = "The fields that one manager set in one way.",
};

static const struct field fields_owner_reference[] = {
    {.name = "apiVersion",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .doc = "Group and version of the owner."},
    {.name = "blockOwnerDeletion",
     .type = F_BOOL,
     .doc = "Whether a foreground deletion of the owner waits for this object to be gone."},
    {.name = "controller",
     .type = F_BOOL,
     .doc = "Whether this owner manages the object; one owner may."},
    {.name = "kind", .type = F_STRING, .flags = FIELD_REQUIRED, .doc = "Kind of the owner."},
    {.name = "name", .type = F_STRING, .flags = FIELD_REQUIRED, .doc = "Name of the owner."},
    {.name = "uid",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .dflt = "\"\"", /* so that one without has a key, for apply */
     .doc = "UID of the owner."},
    {0},
};
static const struct shape shape_owner_reference = {
    .name = "OwnerReference",
    .ref = META "OwnerReference",
    .fields = fields_owner_reference,
    .doc = "An object that this one belongs to. It is in the same namespace, or in none. This "
           "object goes when its owners are "
           "gone.",
};

static const struct field fields_object_meta[] = {
    {.name = "annotations",
     .type = F_MAP,
     .item = F_STRING,
     .doc = "Notes of tools and people; nothing selects by them."},
    {.name = "creationTimestamp",
     .type = F_TIME,
     .of = &shape_time,
     .doc = "When the object was made; set by the server."},
    {.name = "deletionGracePeriodSeconds",
     .type = F_INT64,
     .doc = "Seconds that the object may take to end; set by the server once it is being deleted."},
    {.name = "deletionTimestamp",
     .type = F_TIME,
     .of = &shape_time,
     .doc = "When the object's deletion was asked for; set by the server. It goes once no "
            "finalizers are left."},
    {.name = "finalizers",
     .type = F_LIST,
     .item = F_STRING,
     .list = LIST_SET,
     .merge_key = "",
     .doc = "What must be done before the object may go; each name is removed by whoever has done "
            "its part."},
    {.name = "generateName",
     .type = F_STRING,
     .doc = "When there is no name, the server makes one of this and five random characters."},
    {.name = "generation",
     .type = F_INT64,
     .doc = "Counts the changes of what is desired; set by the server."},
    {.name = "labels",
     .type = F_MAP,
     .item = F_STRING,
     .doc = "Short keys and values to select objects by."},
    {.name = "managedFields",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &shape_managed_fields_entry,
     .list = LIST_ATOMIC,
     .doc = "Who set which field; kept by the server for server-side apply."},
    {.name = "name",
     .type = F_STRING,
     .doc = "Name, unique among the kind in its namespace. Cannot be changed."},
    {.name = "namespace",
     .type = F_STRING,
     .doc = "Namespace that the object lives in. Cannot be changed."},
    {.name = "ownerReferences",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &shape_owner_reference,
     .list = LIST_MAP,
     .keys = (const char *const[]){"uid", NULL},
     .merge_key = "uid",
     .items_atomic = true,
     .doc = "Objects that this one belongs to; it is deleted when all of them are gone."},
    {.name = "resourceVersion",
     .type = F_STRING,
     .doc = "Changes with every write. Sent back on update, it makes the update fail if someone "
            "else wrote in between."},
    {.name = "selfLink", .type = F_STRING, .doc = "No longer used."},
    {.name = "uid", .type = F_STRING, .doc = "Unique for all time and places; set by the server."},
    {0},
};
const struct shape shape_object_meta = {
    .name = "ObjectMeta",
    .ref = META "ObjectMeta",
    .fields = fields_object_meta,
    .doc = "What every object has: name, namespace, labels, owners and what the server keeps.",
};

static const struct field fields_shard_info[] = {
    {.name = "selector",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .doc = "The shard selector of the request."},
    {0},
};
static const struct shape shape_shard_info = {
    .name = "ShardInfo",
    .ref = META "ShardInfo",
    .fields = fields_shard_info,
    .doc = "Which part of a collection a list is.",
};

static const struct field fields_list_meta[] = {
    {.name = "continue",
     .type = F_STRING,
     .doc = "There are more items; send this back as the parameter continue to get them. Means "
            "nothing to clients."},
    {.name = "remainingItemCount",
     .type = F_INT64,
     .doc = "How many items are left, when the server knows."},
    {.name = "resourceVersion",
     .type = F_STRING,
     .doc = "Version of the collection; a watch can start from it."},
    {.name = "selfLink", .type = F_STRING, .doc = "No longer used."},
    {.name = "shardInfo",
     .type = F_OBJECT,
     .of = &shape_shard_info,
     .doc = "Which part of the collection this is."},
    {0},
};
static const struct shape shape_list_meta = {
    .name = "ListMeta",
    .ref = META "ListMeta",
    .fields = fields_list_meta,
    .doc = "What every list has.",
};

static const struct field fields_preconditions[] = {
    {.name = "resourceVersion",
     .type = F_STRING,
     .doc = "The object must have this resourceVersion."},
    {.name = "uid", .type = F_STRING, .doc = "The object must have this UID."},
    {0},
};
static const struct shape shape_preconditions = {
    .name = "Preconditions",
    .ref = META "Preconditions",
    .fields = fields_preconditions,
    .doc = "What must be true of the object, or nothing is done.",
};

static const struct field fields_delete_options[] = {
    API_VERSION,
    {.name = "dryRun",
     .type = F_LIST,
     .item = F_STRING,
     .list = LIST_ATOMIC,
     .doc = "All: do everything but store the result. Nothing else is allowed."},
    {.name = "gracePeriodSeconds",
     .type = F_INT64,
     .doc = "Seconds that the object may take to end; 0 is at once."},
    {.name = "ignoreStoreReadErrorWithClusterBreakingPotential",
     .type = F_BOOL,
     .doc =
         "Delete what is stored even if it cannot be read any more, without regard to finalizers."},
    KIND,
    {.name = "orphanDependents",
     .type = F_BOOL,
     .doc = "Older form of propagationPolicy: true is Orphan, false Background."},
    {.name = "preconditions",
     .type = F_OBJECT,
     .of = &shape_preconditions,
     .doc = "What must be true before the deletion."},
    {.name = "propagationPolicy",
     .type = F_STRING,
     .doc = "What becomes of what belongs to the object: Orphan keeps it, Background deletes it "
            "afterwards, Foreground before."},
    {0},
};
static const struct shape shape_delete_options = {
    .name = "DeleteOptions",
    .ref = META "DeleteOptions",
    .fields = fields_delete_options,
    .doc = "How to delete.",
};

static const struct field fields_status_cause[] = {
    {.name = "field",
     .type = F_STRING,
     .doc = "Path of the field that is wrong, like spec.containers[0].name."},
    {.name = "message", .type = F_STRING, .doc = "What is wrong, for people."},
    {.name = "reason", .type = F_STRING, .doc = "What is wrong, for programs."},
    {0},
};
static const struct shape shape_status_cause = {
    .name = "StatusCause",
    .ref = META "StatusCause",
    .fields = fields_status_cause,
    .doc = "One of several things that went wrong.",
};

static const struct field fields_status_details[] = {
    {.name = "causes",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &shape_status_cause,
     .list = LIST_ATOMIC,
     .doc = "Each thing that went wrong."},
    {.name = "group", .type = F_STRING, .doc = "API group of the object."},
    {.name = "kind", .type = F_STRING, .doc = "Kind or resource of the object."},
    {.name = "name", .type = F_STRING, .doc = "Name of the object."},
    {.name = "retryAfterSeconds", .type = F_INT32, .doc = "Seconds to wait before trying again."},
    {.name = "uid", .type = F_STRING, .doc = "UID of the object."},
    {0},
};
static const struct shape shape_status_details = {
    .name = "StatusDetails",
    .ref = META "StatusDetails",
    .fields = fields_status_details,
    .doc = "What an answer is about.",
};

static const struct field fields_status[] = {
    API_VERSION,
    {.name = "code", .type = F_INT32, .doc = "The HTTP status code."},
    {.name = "details",
     .type = F_OBJECT,
     .of = &shape_status_details,
     .doc = "What the answer is about."},
    KIND,
    {.name = "message", .type = F_STRING, .doc = "What happened, for people."},
    {.name = "metadata",
     .type = F_OBJECT,
     .of = &shape_list_meta,
     .dflt = "{}",
     .doc = "As for lists."},
    {.name = "reason", .type = F_STRING, .doc = "Why it failed, as one word for programs."},
    {.name = "status", .type = F_STRING, .doc = "Success or Failure."},
    {0},
};
static const struct shape shape_status = {
    .name = "Status",
    .ref = META "Status",
    .fields = fields_status,
    .doc = "The answer of a request that returns no object.",
};

static const struct field fields_scale_spec[] = {
    {.name = "replicas", .type = F_INT32, .dflt = "0", .doc = "The number that is wanted."},
    {0},
};
static const struct shape shape_scale_spec = {
    .name = "ScaleSpec",
    .ref = AUTOSCALING "ScaleSpec",
    .fields = fields_scale_spec,
    .doc = "The number that is wanted.",
};
static const struct field fields_scale_status[] = {
    {.name = "replicas",
     .type = F_INT32,
     .flags = FIELD_REQUIRED,
     .doc = "The number that is there."},
    {.name = "selector", .type = F_STRING, .doc = "Label selector of what is counted, as text."},
    {0},
};
static const struct shape shape_scale_status = {
    .name = "ScaleStatus",
    .ref = AUTOSCALING "ScaleStatus",
    .fields = fields_scale_status,
    .doc = "The number that is there.",
};
static const struct field fields_scale[] = {
    API_VERSION,
    KIND,
    {.name = "metadata",
     .type = F_OBJECT,
     .of = &shape_object_meta,
     .dflt = "{}",
     .doc = "That of the scaled object."},
    {.name = "spec",
     .type = F_OBJECT,
     .of = &shape_scale_spec,
     .dflt = "{}",
     .doc = "The number that is wanted."},
    {.name = "status",
     .type = F_OBJECT,
     .of = &shape_scale_status,
     .dflt = "{}",
     .doc = "The number that is there."},
    {0},
};
const struct shape shape_scale = {
    .name = "Scale",
    .ref = AUTOSCALING "Scale",
    .fields = fields_scale,
    .doc = "How many there are and shall be of something.",
};

const struct shape *const shapes_shared[] = {
    &shape_scale,
    &shape_scale_spec,
    &shape_scale_status,
    &shape_delete_options,
    &shape_fields_v1,
    &shape_list_meta,
    &shape_managed_fields_entry,
    &shape_object_meta,
    &shape_owner_reference,
    &shape_patch,
    &shape_preconditions,
    &shape_shard_info,
    &shape_status,
    &shape_status_cause,
    &shape_status_details,
    &shape_time,
    NULL,
};
