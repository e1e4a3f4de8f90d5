/* The checks of a kind's table that stand at paths (struct path_check): kinds of Kubernetes itself,
 * whose shapes are shared with kinds that have no such checks. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/err.h"
#include "openapi/shape.h"

/* Adds a cause for each that does not hold, but for those that did not hold in old either (NULL =
 * no such object, or nothing is held to it). */
void checks_validate(const struct kind *kind, const cJSON *object, const cJSON *old,
                     struct err *causes);
