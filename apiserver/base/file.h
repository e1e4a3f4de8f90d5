/* Small files read as a whole: settings, certificates, tokens. Any thread. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

/* Appends the file's bytes. Errors: ERR_NOT_FOUND; ERR_INVALID it cannot be read or is larger than
 * max bytes. */
int file_read(const char *path, size_t max, struct buf *out, struct err *err);
/* Puts a file of these bytes there, readable by its owner alone: as a whole or not at all. Errors:
 * ERR_INVALID. */
int file_write_private(const char *path, const char *bytes, size_t n, struct err *err);

struct file_stamp { /* differs once the file was written or exchanged; zero = there is none */
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};
struct file_stamp file_stamp(const char *path);
bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);
