#include "apiserver/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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
