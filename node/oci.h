/* Packs layers into an image: an archive in the OCI layout. The same input gives the same bytes.
 * Pure. */
#pragma once

#include "apiserver/base/buf.h"

struct oci_image {
    const char *name;         /* reference, like localhost/box:1 */
    const struct buf *layers; /* tar archives, the lowest first */
    size_t n;
    const char *user;            /* "" = root */
    const char *entry, *command; /* one word each, NULL = none */
    const char *label, *value;   /* a label of the image, NULL = none */
};
void oci_pack(const struct oci_image *image, struct buf *tar);
