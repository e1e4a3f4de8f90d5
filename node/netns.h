/* Sockets in another network namespace. Any thread. */
#pragma once

#include "apiserver/base/err.h"

/* A socket of the family (AF_INET, AF_INET6) for a stream, in the namespace of that file; it does
 * not block. The thread's own namespace stays. Errors: ERR_UNAVAILABLE. */
int netns_socket(const char *path, int family, int *ret_fd, struct err *err);
