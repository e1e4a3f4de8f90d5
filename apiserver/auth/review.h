/* POSTs a review object to the cluster, again when that may help. Any thread; blocks. */
#pragma once

#include "apiserver/auth/auth.h"

/* ret gets the answer's status (an object). At most about 10 s, all tries together. Errors: those
 * of the last try. */
int review_post(struct kube *kube, const char *path, const cJSON *review, cJSON **ret,
                struct err *err);
