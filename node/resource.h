/* What containers may use: Kubernetes quantities as what the engine takes. Pure. */
#pragma once

#include <cjson/cJSON.h>

/* The engine's resource_limits for a container of a Pod, or NULL when nothing is limited. */
cJSON *resource_limits(const cJSON *container);
