/* Volumes whose files come from elsewhere: other objects, or the Pod itself. A part of volume.c,
 * and nobody else's. */
#pragma once

#include "node/payload.h"
#include "node/volume.h"

struct volume { /* one that is being made */
    const struct sources *s;
    const struct volume_place *place;
    const cJSON *spec; /* what stands below its kind */
    char *folder;
    int64_t group;           /* fsGroup, -1 = none */
    struct payload *payload; /* of one whose files the node writes */
};

int volume_fill_config_map(const struct volume *v, struct err *err);
int volume_fill_secret(const struct volume *v, struct err *err);
int volume_fill_downward(const struct volume *v, struct err *err);
int volume_fill_projected(const struct volume *v, struct err *err);
/* Whatever it is filled from was seen, and is of the kind that cannot change. */
bool volume_is_constant(const struct sources *s, const cJSON *volume);
