/* What layers below ask of the whole server, through tables of theirs: admission, in which state a
 * namespace is and what a claim is going to be; the health endpoints, which parts are well. */
#pragma once

#include "apiserver/app.h"

struct admit_env hooks_admit_env(struct app *a);
/* Fills a->checks. */
void hooks_checks(struct app *a);
