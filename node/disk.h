/* Folders and files below a folder of ours. Names from Pods never lead out of it: they are resolved
 * by the kernel beneath a descriptor, and links in between are not followed. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "apiserver/base/err.h"

/* A file of that content, put in place of an old one at once. path is relative to fd, or fd is
 * AT_FDCWD. */
int disk_write(int fd, const char *path, const void *bytes, size_t n, mode_t mode, struct err *err);
/* With those above it; nothing when it is there. */
int disk_make_folder(const char *path, mode_t mode, struct err *err);
/* With all that is in it, however deep, without following links; nothing when it is not there. What
 * is mounted in it is unmounted and stays what it is. */
int disk_remove_tree(const char *path, struct err *err);
/* Opens what name says below root (O_PATH). A name that leads out, by "..", "/" or a link, is
 * ERR_FORBIDDEN. make: folders that are not there are made, with that mode. Returns the descriptor
 * by ret_fd. */
int disk_open_beneath(const char *root, const char *name, bool make, mode_t mode, int *ret_fd,
                      struct err *err);
