/* The door to nftables (libnftables), in the network namespace of the caller. One thread at a
 * time. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/err.h"

/* Runs a ruleset as one transaction: all of it or nothing. is_trial: the kernel says whether it
 * would, and nothing changes. Errors: ERR_FORBIDDEN with what nftables says. */
int nft_run(const char *ruleset, bool is_trial, struct err *err);
