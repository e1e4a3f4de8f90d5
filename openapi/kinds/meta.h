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
/* Names that are made of others are checked where these are written, rather than when a cluster
 * refuses what they name. Of a template: a volume of the pod has its name, so it must be a label;
 * that it is there at all is said by the controllers. */
#define RULE_VOLUME_NAMES                                                                          \
    {                                                                                              \
        .rule = "!has(self.volumeClaimTemplates) || self.volumeClaimTemplates.all(t, "             \
                "!has(t.metadata) || !has(t.metadata.name) || "                                    \
                "t.metadata.name.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$'))",             \
        .message = "metadata.name of a template names a volume of the pod: at most 63 lower case " \
                   "letters, digits or '-', the first and the last not '-'",                       \
        .field = "volumeClaimTemplates", .is_added = true                                          \
    }
/* Of a volume claim: TEMPLATE-OWNER. */
#define RULE_VOLUME_CLAIM_NAMES                                                                    \
    {                                                                                              \
        .rule = "!has(self.spec.volumeClaimTemplates) || self.spec.volumeClaimTemplates.all(t, "   \
                "!has(t.metadata) || !has(t.metadata.name) || "                                    \
                "size(t.metadata.name) + size(self.metadata.name) <= 252)",                        \
        .message = "metadata.name of a template, a '-' and metadata.name of this object name a "   \
                   "volume claim: at most 253 characters together",                                \
        .field = "spec.volumeClaimTemplates", .is_added = true                                     \
    }
#define FIELD_VOLUME_CLAIM_TEMPLATES(text)                                                         \
    {                                                                                              \
        .name = "volumeClaimTemplates", .type = F_LIST, .item = F_OBJECT,                          \
        .of = &shape_volume_claim_template, .list = LIST_ATOMIC, .doc = (text)                     \
    }
