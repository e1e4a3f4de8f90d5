/* CustomResourceDefinitions, for clients that look up there what kinds there are. Ours are shown as
 * the ones that they could have been; none can be added. Source: the Kubernetes API reference,
 * v1.37. */
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"
#include "openapi/kinds/meta.h"

static const struct field fields_crd[] = {
    FIELD_API_VERSION,
    FIELD_KIND,
    FIELD_METADATA,
    {.name = "spec",
     .type = F_ANY,
     .doc = "Group, names and versions of the kind, with their schemas."},
    {.name = "status",
     .type = F_ANY,
     .flags = FIELD_STATUS,
     .doc = "That the kind is served, and under which names."},
    {0},
};
static const struct shape shape_crd = {
    .name = "CustomResourceDefinition",
    .ref = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    .fields = fields_crd,
    .doc = "A kind of objects that this server adds to those of Kubernetes.",
};
static const struct column columns_crd[] = {
    {.name = "Created At",
     .type = COL_STRING,
     .path = ".metadata.creationTimestamp",
     .doc = "When it was made."},
    {0},
};
const struct kind kind_custom_resource_definition = {
    .group = "apiextensions.k8s.io",
    .version = "v1",
    .kind = "CustomResourceDefinition",
    .list_kind = "CustomResourceDefinitionList",
    .plural = "customresourcedefinitions",
    .singular = "customresourcedefinition",
    .short_names = (const char *const[]){"crd", "crds", NULL},
    .is_cluster_scoped = true,
    .is_builtin = true,
    .is_read_only = true,
    .has_status = true,
    .columns = columns_crd,
    .shape = &shape_crd,
    .schema_name =
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    .doc = "A kind of objects that this server adds to those of Kubernetes.",
};
