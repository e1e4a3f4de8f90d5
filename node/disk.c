/* The kernel's openat2 keeps names below a folder; older ways of checking a path race with those
 * who rename in it. */
#include "node/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

#define DEPTH_MAX 100 /* folders that are open at once while a tree is removed */

static int fail(struct err *err, const char *what, const char *path)
{
    enum err_code code = errno == ENOENT ? ERR_NOT_FOUND : ERR_INVALID;
    return err_set(err, code, "%s: %s: %m", path, what);
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

int disk_write(int fd, const char *path, const void *bytes, size_t n, mode_t mode, struct err *err)
{
    SCOPED_FREE char *fresh = xasprintf("%s.new", path);
    unlinkat(fd, fresh, 0);
    int file = openat(fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (file < 0)
        return fail(err, "cannot be made", path);
    /* mode as asked for, whatever our mask is */
    bool is_good = write_all(file, bytes, n) && fchmod(file, mode) == 0;
    int rc = is_good ? 0 : fail(err, "cannot be written", path);
    close(file);
    if (rc == 0 && renameat(fd, fresh, fd, path) < 0)
        rc = fail(err, "cannot be put in place", path);
    return rc;
}

int disk_make_folder(const char *path, mode_t mode, struct err *err)
{
    SCOPED_FREE char *part = xstrdup(path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0711) < 0 && errno != EEXIST)
            return fail(err, "cannot be made", part);
        *slash = '/';
    }
    if (mkdir(path, mode) < 0)
        return errno == EEXIST ? 0 : fail(err, "cannot be made", path);
    return chmod(path, mode) < 0 ? fail(err, "cannot be made", path) : 0;
}

/* ---- names that stay below ---- */

static int open_step(int fd, const char *name, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | resolve,
    };
    long rc;
    do /* a rename somewhere may make the kernel unsure */
        rc = syscall(SYS_openat2, fd, name, &how, sizeof how);
    while (rc < 0 && errno == EAGAIN);
    return (int)rc;
}

/* ---- removing ---- */

/* Containers may nest folders as they like, but only so many can be open at once: what is deeper is
 * moved to the top, where its turn comes. */
struct removal {
    int top;
    unsigned lifted;
};

static bool unmount(int fd, const char *name)
{
    SCOPED_FREE char *path = xasprintf("/proc/self/fd/%d/%s", fd, name);
    int why = errno;
    bool is_good = umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
    errno = why;
    return is_good;
}

/* One that is mounted belongs to somebody else, so it is never gone into. */
static int open_own(int fd, const char *name)
{
    int child;
    do
        child = open_step(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_XDEV);
    while (child < 0 && errno == EXDEV && unmount(fd, name));
    return child;
}

static int lift(struct removal *r, int fd, const char *name)
{
    int rc;
    do {
        SCOPED_FREE char *to = xasprintf(".lifted-%u", r->lifted++);
        rc = renameat2(fd, name, r->top, to, RENAME_NOREPLACE);
    } while (rc < 0 && (errno == EEXIST || (errno == EBUSY && unmount(fd, name))));
    return rc;
}

static int remove_below(struct removal *r, int fd, int depth);

static int remove_entry(struct removal *r, int fd, const char *name, int depth)
{
    int rc;
    do
        rc = unlinkat(fd, name, 0);
    while (rc < 0 && errno == EBUSY && unmount(fd, name));
    if (rc == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (depth == DEPTH_MAX)
        return lift(r, fd, name);
    int child = open_own(fd, name);
    if (child < 0)
        return -1;
    return remove_below(r, child, depth + 1) < 0 ? -1 : unlinkat(fd, name, AT_REMOVEDIR);
}

/* Takes over fd. */
static int remove_below(struct removal *r, int fd, int depth)
{
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return -1;
    }
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = remove_entry(r, fd, entry->d_name, depth);
    }
    int why = errno;
    closedir(folder);
    errno = why;
    return rc;
}

/* What was lifted may have come too late to be seen. */
static int remove_all(int top)
{
    struct removal r = {.top = top};
    unsigned before;
    int rc;
    do {
        before = r.lifted;
        int fd = open_own(top, ".");
        rc = fd < 0 ? -1 : remove_below(&r, fd, 0);
    } while (rc == 0 && r.lifted != before);
    return rc;
}

int disk_remove_tree(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : fail(err, "cannot be removed", path);
    int rc = remove_all(fd) < 0 || rmdir(path) < 0 ? fail(err, "cannot be removed", path) : 0;
    close(fd);
    return rc;
}

/* ---- names from Pods ---- */

static int take_step(int at, const char *part, bool make, mode_t mode)
{
    int fd = open_step(at, part, O_PATH, 0);
    if (fd >= 0 || errno != ENOENT || !make)
        return fd;
    if (mkdirat(at, part, mode) < 0 && errno != EEXIST)
        return -1;
    if (fchmodat(at, part, mode, AT_SYMLINK_NOFOLLOW) < 0) /* whatever our mask is */
        return -1;
    return open_step(at, part, O_PATH, 0);
}

/* One component after the other, so that each folder is made where its parent was found. */
static int walk(int root, const char *name, bool make, mode_t mode)
{
    int at = open_step(root, ".", O_PATH | O_DIRECTORY, 0);
    while (at >= 0 && *name) {
        size_t n = strcspn(name, "/");
        if (n > 0) {
            SCOPED_FREE char *part = xstrndup(name, n);
            int next = take_step(at, part, make, mode), why = errno;
            close(at);
            errno = why;
            at = next;
        }
        name += n + (name[n] == '/');
    }
    return at;
}

int disk_open_beneath(const char *root, const char *name, bool make, mode_t mode, int *ret_fd,
                      struct err *err)
{
    if (*name == '/')
        return err_set(err, ERR_FORBIDDEN, "\"%s\" leads out of the volume", name);
    int base = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return fail(err, "cannot be opened", root);
    int fd = walk(base, name, make, mode);
    int why = errno;
    close(base);
    errno = why;
    if (fd < 0 && (errno == EXDEV || errno == ELOOP))
        return err_set(err, ERR_FORBIDDEN, "\"%s\" leads out of the volume, or over a link", name);
    if (fd < 0)
        return fail(err, "cannot be opened in the volume", name);
    *ret_fd = fd;
    return 0;
}
