/* Who reconciles: one process at a time, by a lease in the store. */
#pragma once

#include "apiserver/app.h"

/* Nothing without a cluster to reconcile, or when the options say so. */
int leading_start(struct app *a, struct err *err);
void leading_stop(struct app *a);
/* A write found another one's fence: whether we still lead is looked at now, not when the lease is
 * renewed next. Any thread. */
void leading_suspect(void *app);
