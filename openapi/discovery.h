/* Discovery documents, printed from the tables: unaggregated and aggregated. Pure; any thread.
 * Source of forms and orders: docs/kubernetes-api.md 8. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/buf.h"

void discovery_print_core(struct buf *out);                     /* GET /api: APIVersions */
void discovery_print_groups(struct buf *out);                   /* GET /apis: APIGroupList */
bool discovery_print_group(const char *group, struct buf *out); /* GET /apis/<g>; false = unknown */
bool discovery_print_resources(const char *group, const char *version,
                               struct buf *out); /* GET /apis/<g>/<v> */
/* GET /apis, or of_core /api, with as=APIGroupDiscoveryList; api_version is "v2" or "v2beta1". */
void discovery_print_aggregated(const char *api_version, bool of_core, struct buf *out);
