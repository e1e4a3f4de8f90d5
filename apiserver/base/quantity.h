/* Kubernetes quantities to numbers. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

/* In thousandths, rounded up; at most INT64_MAX. 0, or -1 for what is no quantity or negative.
 * Source: apimachinery resource.Quantity. */
int quantity_parse_milli(const char *text, int64_t *ret);
/* The same of a node of JSON that holds text or a number; absent is -1. */
int quantity_read_milli(const cJSON *quantity, int64_t *ret);
