/* The types of Kubernetes itself that our documents refer to. Structure as kube-apiserver publishes
 * it, texts our own. */
#pragma once

#include "openapi/shape.h"

extern const struct shape shape_object_meta, shape_scale;
/* All of them, ended by NULL, in alphabetical order of their component names. */
extern const struct shape *const shapes_shared[];
