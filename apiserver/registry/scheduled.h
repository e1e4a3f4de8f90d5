/* What a Pod says of its scheduling, whoever decides it. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Gives the Pod a node, or says why it has none (node NULL), by its condition PodScheduled. False
 * when that is there already, and nothing when it has a node. */
bool pod_set_scheduled(cJSON *pod, const char *node, const char *why, int64_t now_unix_s);
