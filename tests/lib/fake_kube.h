/* The few answers of a cluster's API server that authentication and authorization need, on
 * loopback. */
#pragma once

#include <stdbool.h>

#include "apiserver/kube/kube.h"

struct fake_kube;
/* Tokens: good, masters, noname, refused (anything else too); broken (500 always), flaky (503, then
 * good), forbidden (403), slow (300 ms, then good), odd (no status). SubjectAccessReviews by user:
 * allowed, denied (with a reason), both, broken, flaky, slow, odd; anybody else: no. The ConfigMap
 * is absent until set. */
struct fake_kube *fake_kube_new(void);
struct kube *fake_kube_client(struct fake_kube *f); /* owned by f */
void fake_kube_free(struct fake_kube *f);
/* The ConfigMap's data as JSON text: watchers see the change. NULL = it is deleted. */
void fake_kube_set_config(struct fake_kube *f, const char *data);
void fake_kube_forbid_config(struct fake_kube *f);
int fake_kube_reviews(struct fake_kube *f);       /* asked so far */
char *fake_kube_last_review(struct fake_kube *f); /* the body, owned by the caller */
void fake_kube_break(struct fake_kube *f);        /* nothing answers any more */
