/* Writes tar archives (ustar) into memory. Everything belongs to root and is of the beginning of
 * 1970, so that the same content gives the same bytes. Pure. */
#pragma once

#include "apiserver/base/buf.h"

/* Names are relative. */
#define ARCHIVE_NAME_MAX 100
void archive_folder(struct buf *tar, const char *name, unsigned mode);
void archive_file(struct buf *tar, const char *name, unsigned mode, const void *bytes, size_t n);
void archive_link(struct buf *tar, const char *name, const char *target);
void archive_end(struct buf *tar);
