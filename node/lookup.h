/* A container of a Pod, by its name. Pure; what is found is the Pod's. */
#pragma once

#include <cjson/cJSON.h>

#define LOOKUP_SCHEME "podman://" /* before the engine's id, in a status */

/* Init containers as well; NULL = there is none. */
const cJSON *lookup_spec(const cJSON *pod, const char *container);
const cJSON *lookup_status(const cJSON *pod, const char *container);
/* The engine's id in what a status says; "" = none. */
const char *lookup_engine_id(const char *container_id);
