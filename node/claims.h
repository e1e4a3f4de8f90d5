/* The folders of PersistentVolumeClaims: they outlive Pods, and go when their claim is gone. */
#pragma once

#include "apiserver/kube/kube.h"

/* Removes those of no claim that the cluster knows. folder holds one by the uid of each. Errors:
 * those of the cluster; then nothing is removed. */
int claims_sweep(struct kube *kube, const char *folder, struct err *err);
