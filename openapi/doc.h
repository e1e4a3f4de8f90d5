/* The OpenAPI documents, printed from the tables. Same bytes on every replica of the same build.
 * Pure; any thread. */
#pragma once

#include "apiserver/base/buf.h"
#include "openapi/shape.h"

/* OpenAPI v3 of one group-version: paths and components, compact JSON. */
void doc_v3_print(const char *group, const char *version, struct buf *out);
/* The index
 * {"paths":{"apis/GROUP/VERSION":{"serverRelativeURL":"/openapi/v3/apis/GROUP/VERSION?hash=..."}}};
 * the hash is the upper-case hex SHA-512 of that document. */
void doc_v3_print_index(struct buf *out);
/* Swagger 2.0 of all groups. */
void doc_v2_print(struct buf *out);
/* The structural schema of a kind as a CustomResourceDefinition (openAPIV3Schema, columns,
 * subresources, rules), for comparing with the real thing in tests. Compact JSON of the whole CRD
 * object. */
void doc_crd_print(const struct kind *kind, struct buf *out);
