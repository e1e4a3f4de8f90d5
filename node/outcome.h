/* How a command ended, as a client of exec or attach is told on the error stream. Source:
 * Kubernetes' remotecommand package. Pure. */
#pragma once

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

/* err->code ERR_NONE: it ended by itself, with exit_code. is_status: a Status as JSON, else text,
 * and nothing when all went well. */
void outcome_print(int exit_code, const struct err *err, bool is_status, struct buf *out);
