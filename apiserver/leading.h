/* Who reconciles: one process at a time, by a lease in the store. */
#pragma once

#include "apiserver/app.h"

/* Nothing without a cluster to reconcile, or when the options say so. */
int leading_start(struct app *a, struct err *err);
void leading_stop(struct app *a);
