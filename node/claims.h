/* The folders of PersistentVolumeClaims: they outlive Pods, and go when their claim and the
 * PersistentVolume that names them are gone. */
#pragma once

#include "apiserver/kube/kube.h"

/* Removes those of no claim and no volume that the cluster knows. folder holds them by the claim's
 * uid, which is the volume's handle (local_volume.h). Errors:
 * those of the cluster; then nothing is removed. */
int claims_sweep(struct kube *kube, const char *folder, struct err *err);
