/* A Pod's folder: its volumes, and the files that the node gives to containers. Volumes are folders
 * in it, filled from other objects where they say so; claims are folders beside it that stay when
 * the Pod goes. What is mounted here is unmounted here. Any thread, one a Pod. */
#pragma once

#include "node/env.h"

struct volume_place {        /* borrowed */
    const char *folder;      /* of the Pod, absolute */
    const char *claims;      /* of all volumes of our own, by their handle */
    const char *salt;        /* what nobody else knows: of names that come from content */
    char *const *host_paths; /* folders that other volumes may be in, with what is below */
};

/* Makes the folder and fills it; what is there already is brought up to date. Errors: ERR_NOT_FOUND
 * an object is not there yet. */
int volume_make_all(const struct sources *s, const struct volume_place *place, struct err *err);
/* Whether it has volumes whose files come from objects that may change, or from itself. */
bool volume_follows(const cJSON *pod);
/* Brings those up to date in the folder that is there. One that cannot be keeps what it has, and
 * the others go on; errors: the first. */
int volume_follow_all(const struct sources *s, const struct volume_place *place, struct err *err);
/* The engine's mounts of one container; attempt tells runs of it apart. The caller's. */
int volume_mounts(const struct sources *s, const struct volume_place *place, const cJSON *container,
                  unsigned attempt, cJSON **ret, struct err *err);
/* A run that is over and forgotten needs neither its parts of volumes nor its last words. */
void volume_forget(const struct volume_place *place, const cJSON *container, unsigned attempt);
/* What the container wrote as its last words: of what it wrote the last 4 KiB. */
void volume_read_message(const struct volume_place *place, const char *container, unsigned attempt,
                         struct buf *out);
/* Unmounts and removes the folder. Errors: something in it is still in use. */
int volume_remove_all(const struct volume_place *place, struct err *err);
/* /etc/hosts and /etc/resolv.conf of the Pod's containers. dns: the cluster's, or NULL. */
int volume_write_network(const struct sources *s, const struct volume_place *place,
                         char *const *dns, const char *domain, struct err *err);
