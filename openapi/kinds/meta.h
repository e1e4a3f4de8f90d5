/* Rows that every kind's tables repeat, so that their texts stay the same. Included by the files of
 * openapi/kinds only. */
#pragma once

#include "openapi/shape.h"

#define FIELD_API_VERSION                                                                          \
    {                                                                                              \
        .name = "apiVersion", .type = F_STRING,                                                    \
        .doc = "Group and version of this object's form, like example.org/v1."                     \
    }
#define FIELD_KIND                                                                                 \
    {                                                                                              \
        .name = "kind", .type = F_STRING,                                                          \
        .doc = "What this object is, in CamelCase. Cannot be changed."                             \
    }
#define FIELD_METADATA                                                                             \
    {                                                                                              \
        .name = "metadata", .type = F_META,                                                        \
        .doc = "Name, namespace, labels and the rest that every object has."                       \
    }
#define FIELD_CONDITIONS(text)                                                                     \
    {                                                                                              \
        .name = "conditions", .type = F_LIST, .item = F_OBJECT, .of = &shape_condition,            \
        .list = LIST_UNDECLARED, .doc = (text)                                                     \
    }
#define FIELD_VOLUME_CLAIM_TEMPLATES(text)                                                         \
    {                                                                                              \
        .name = "volumeClaimTemplates", .type = F_LIST, .item = F_OBJECT,                          \
        .of = &shape_volume_claim_template, .list = LIST_ATOMIC, .doc = (text)                     \
    }
