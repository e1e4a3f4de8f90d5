/* The folders of PersistentVolumeClaims: they outlive Pods, and go when their claim and the
 * PersistentVolume that names them are gone. */
#pragma once

#include "apiserver/kube/kube.h"

/* Removes those of no claim and no volume that the cluster knows; where the node may not ask for
 * claims, those of no volume that are not marked. folder holds them by the claim's uid, which is
 * the volume's handle (local_volume.h). Errors: those of the cluster; then nothing is removed. */
int claims_sweep(struct kube *kube, const char *folder, struct err *err);
/* Before the folder of a claim without a volume is made: nobody but the claim can say that it is
 * still wanted. */
int claims_mark_unbound(const char *folder, const char *uid, struct err *err);
