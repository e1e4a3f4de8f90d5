#include "apiserver/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/base/mem.h"

int file_read(const char *path, size_t max, struct buf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INVALID, "%s: %m", path);
    char part[16384];
    size_t total = 0;
    ssize_t n;
    while ((n = read(fd, part, sizeof part)) > 0 && (total += (size_t)n) <= max)
        buf_append(out, part, (size_t)n);
    int saved_errno = errno;
    close(fd);
    errno = saved_errno;
    if (n < 0)
        return err_set(err, ERR_INVALID, "%s: %m", path);
    if (n > 0 || buf_failed(out))
        return err_set(err, ERR_INVALID, "%s: larger than %zu bytes", path, max);
    return 0;
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0)
            return false;
        bytes += written;
        n -= (size_t)written;
    }
    return fsync(fd) == 0;
}

int file_write_private(const char *path, const char *bytes, size_t n, struct err *err)
{
    SCOPED_FREE char *beside = xasprintf("%s.new", path);
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_all(fd, bytes, n);
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    if (ok && rename(beside, path) == 0)
        return 0;
    err_set(err, ERR_INVALID, "%s: %m", path);
    (void)unlink(beside);
    return -ERR_INVALID;
}

struct file_stamp file_stamp(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return (struct file_stamp){0};
    return (struct file_stamp){
        .device = st.st_dev, .inode = st.st_ino, .size = st.st_size, .changed = st.st_mtim};
}

bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}
