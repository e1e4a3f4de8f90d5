/* Which namespaces the cluster has, followed by a reflector, for the admission of new objects.
 * Source: the NamespaceLifecycle plugin's rules in docs/kubernetes-api.md 30.1. Any thread. */
#pragma once

#include <stdbool.h>

#include "apiserver/kube/kube.h"

struct namespaces;
struct namespaces *namespaces_start(struct kube *kube); /* kube is borrowed */
void namespaces_stop(struct namespaces *n);             /* frees; NULL is fine */
bool namespaces_are_known(struct namespaces *n);        /* the first list has come */
/* A namespace that is not known is waited for, 50 ms, then asked for. Blocks for that. Errors:
 * those of kube_do when the cluster does not answer; then nothing is known. */
int namespaces_find(struct namespaces *n, const char *name, bool *ret_exists,
                    bool *ret_is_terminating, struct err *err);
