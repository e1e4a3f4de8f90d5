/* What containers may use: Kubernetes quantities to numbers, and numbers to what the engine takes.
 * Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

/* In thousandths, rounded up; at most INT64_MAX. 0, or -1 for what is no quantity or negative.
 * Source: apimachinery resource.Quantity. */
int resource_parse_milli(const char *text, int64_t *ret);
/* The same of a node of JSON that holds text or a number; absent is -1. */
int resource_read_milli(const cJSON *quantity, int64_t *ret);
/* The engine's resource_limits for a container of a Pod, or NULL when nothing is limited. */
cJSON *resource_limits(const cJSON *container);
