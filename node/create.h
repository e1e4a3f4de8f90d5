/* The engine's create calls: the container that holds a Pod's namespaces, and the Pod's own
 * containers in them. Pure. Trees are the caller's. */
#pragma once

#include "node/podman.h"

struct create_common { /* borrowed */
    const cJSON *pod;
    const char *node;    /* its name */
    const char *network; /* of the engine */
    const char *runtime; /* NULL = the engine's default */
    struct podman_limits limits;
};
cJSON *create_pause(const struct create_common *common, const char *image, unsigned attempt);

struct create_container { /* borrowed */
    const cJSON *spec;
    const char *image;    /* id */
    const char *pause_id; /* whose namespaces it joins */
    const cJSON *env;     /* name to value */
    const cJSON *mounts;
    unsigned attempt, step;
    const char *image_user;         /* NAME[:GROUP], when the spec names none; "" = root */
    const cJSON *image_annotations; /* which the engine hands on to the runtime */
};
/* Errors: ERR_FORBIDDEN it would run as root and must not, or the image has a runtime's settings.
 */
int create_container(const struct create_common *common, const struct create_container *c,
                     cJSON **ret, struct err *err);
