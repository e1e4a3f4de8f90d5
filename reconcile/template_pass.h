/* One pass over one SandboxTemplate: its label, its NetworkPolicy (template.c). */
#pragma once

#include "apiserver/base/loop.h"
#include "reconcile/pass.h"

#define TEMPLATE_CONTROLLER "sandboxtemplate-controller" /* field manager */

/* A loop_work_fn; ctx is a struct pass_env, key is NAMESPACE/NAME. */
int template_pass(void *ctx, const char *key, struct loop_result *ret);
