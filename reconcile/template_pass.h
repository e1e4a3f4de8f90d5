/* One pass over one SandboxTemplate: its label, its NetworkPolicy (template.c). */
#pragma once

#include "apiserver/base/loop.h"
#include "reconcile/pass.h"
#include "reconcile/template.h"

#define TEMPLATE_CONTROLLER "sandboxtemplate-controller" /* field manager */

struct template_reconciler {
    struct pass_env env;
    struct template_settings settings;
};
/* A loop_work_fn; ctx is a struct template_reconciler, key is NAMESPACE/NAME. */
int template_pass(void *ctx, const char *key, struct loop_result *ret);
