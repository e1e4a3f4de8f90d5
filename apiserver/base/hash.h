/* Hash of keys that clients choose: SipHash with a secret of the process, so that nobody can choose
 * colliding ones. Values differ from process to process. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *p, size_t n);
