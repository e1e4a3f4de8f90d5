/* The name of a state is a keyed digest of it, so that the state that is there is known for the
 * same without being read, and what a crash has left half-written is written anew. */
#include "node/payload.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/str.h"
#include "node/disk.h"

#define CURRENT "..data"
#define FRESH "..data_tmp"
#define STATE_DIGITS 16 /* bytes of the digest */
#define STATE_SIZE (sizeof ".." + (size_t)2 * STATE_DIGITS)
#define KEPT S_ISVTX

static int fail(struct err *err, const char *what, const char *path)
{
    return err_set(err, ERR_INVALID, "%s: %s: %m", path, what);
}

/* ---- what is to be there ---- */

void payload_fini(struct payload *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->files[i].path);
        buf_fini(&p->files[i].bytes);
    }
    free(p->files);
    *p = (struct payload){0};
}

/* Names that begin with two dots are the node's own. */
static bool is_file_path(const char *path)
{
    bool is_good = *path && path[0] != '/' && strncmp(path, "..", 2) != 0;
    for (const char *at = path; is_good && *at; at += strspn(at, "/")) {
        struct str part = {at, strcspn(at, "/")};
        is_good = !str_eq(part, "..") && !str_eq(part, ".");
        at += part.n;
    }
    return is_good && path[strlen(path) - 1] != '/';
}

int payload_put(struct payload *p, const char *path, struct buf *take_bytes, mode_t mode,
                struct err *err)
{
    size_t size = sizeof *p->files + strlen(path) + take_bytes->len;
    if (!is_file_path(path))
        return err_set(err, ERR_FORBIDDEN, "\"%s\" is no file's name in a volume", path);
    if (size > PAYLOAD_MAX - p->size)
        return err_set(err, ERR_TOO_LARGE, "the files of a volume are more than %zu MiB",
                       PAYLOAD_MAX >> 20);
    p->size += size;
    p->files = xreallocarray(p->files, p->n + 1, sizeof *p->files);
    p->files[p->n++] =
        (struct payload_file){.path = xstrdup(path), .bytes = steal(take_bytes), .mode = mode};
    return 0;
}

/* ---- a state ---- */

static void name_state(const struct payload *p, const char *salt, char out[STATE_SIZE])
{
    unsigned char chain[32];
    digest_sha256(salt, strlen(salt), chain);
    for (size_t i = 0; i < p->n; i++) {
        const struct payload_file *f = &p->files[i];
        SCOPED_FREE char *head = xasprintf("%o %s", f->mode, f->path);
        digest_hmac_sha256(chain, sizeof chain, head, strlen(head), chain);
        digest_hmac_sha256(chain, sizeof chain, buf_cstr(&f->bytes), f->bytes.len, chain);
    }
    out[0] = out[1] = '.';
    digest_print_hex(chain, STATE_DIGITS, out + 2);
}

static int write_file(const char *state, gid_t group, const struct payload_file *f, struct err *err)
{
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
    SCOPED_FREE char *parent = slash ? xstrndup(f->path, (size_t)(slash - f->path)) : xstrdup("");
    int fd;
    int rc = disk_open_beneath(state, parent, true, 0755, &fd, err);
    if (rc < 0)
        return rc;
    rc = disk_write(fd, name, buf_cstr(&f->bytes), f->bytes.len, f->mode, err);
    if (rc == 0 && group != (gid_t)-1 &&
        fchownat(fd, name, (uid_t)-1, group, AT_SYMLINK_NOFOLLOW) < 0)
        rc = fail(err, "cannot be given to its group", f->path);
    close(fd);
    return rc;
}

static bool leads_to(int fd, const char *name, const char *to)
{
    char there[PATH_MAX];
    ssize_t n = readlinkat(fd, name, there, sizeof there);
    return n == (ssize_t)strlen(to) && memcmp(there, to, (size_t)n) == 0;
}

/* A link that takes the place of whatever had its name. */
static int put_link(int fd, const char *to, const char *name, struct err *err)
{
    if (leads_to(fd, name, to))
        return 0;
    unlinkat(fd, FRESH, 0);
    if (symlinkat(to, fd, FRESH) < 0 || renameat(fd, FRESH, fd, name) < 0)
        return fail(err, "cannot be put in place", name);
    return 0;
}

static int write_state(const struct payload *p, const struct payload_place *place, int fd,
                       const char *name, struct err *err)
{
    SCOPED_FREE char *state = xasprintf("%s/%s", place->folder, name);
    int rc = disk_remove_tree(state, err);
    if (rc == 0)
        rc = disk_make_folder(state, 0755, err);
    for (size_t i = 0; rc == 0 && i < p->n; i++)
        rc = write_file(state, place->group, &p->files[i], err);
    return rc == 0 ? put_link(fd, name, CURRENT, err) : rc;
}

/* ---- what containers open ---- */

static char *top_of(const char *path)
{
    return xstrndup(path, strcspn(path, "/"));
}

static int put_links(const struct payload *p, int fd, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n; i++) {
        SCOPED_FREE char *top = top_of(p->files[i].path);
        SCOPED_FREE char *to = xasprintf(CURRENT "/%s", top);
        rc = put_link(fd, to, top, err);
    }
    return rc;
}

/* Links of the state's own names; the state itself, and those of which a part is mounted. */
static bool is_wanted(int fd, const char *state, const char *name)
{
    struct stat st;
    if (strcmp(name, CURRENT) == 0 || strcmp(name, state) == 0)
        return true;
    if (strncmp(name, "..", 2) == 0)
        return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
               (st.st_mode & KEPT);
    SCOPED_FREE char *path = xasprintf("%s/%s", state, name);
    return fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int remove_one(const char *folder, int fd, const char *name, struct err *err)
{
    SCOPED_FREE char *path = xasprintf("%s/%s", folder, name);
    return unlinkat(fd, name, 0) == 0 ? 0 : disk_remove_tree(path, err);
}

static int remove_others(const char *folder, int fd, const char *state, struct err *err)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    int rc = entries ? 0 : fail(err, "cannot be read", folder);
    while (rc == 0 && (entry = readdir(entries)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !is_wanted(fd, state, name))
            rc = remove_one(folder, fd, name, err);
    }
    if (entries)
        closedir(entries);
    return rc;
}

int payload_write(const struct payload *p, const struct payload_place *place, struct err *err)
{
    char state[STATE_SIZE];
    int fd = open(place->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail(err, "cannot be opened", place->folder);
    name_state(p, place->salt, state);
    int rc = leads_to(fd, CURRENT, state) ? 0 : write_state(p, place, fd, state, err);
    if (rc == 0)
        rc = put_links(p, fd, err);
    if (rc == 0)
        rc = remove_others(place->folder, fd, state, err);
    close(fd);
    return rc;
}

/* ---- parts ---- */

char *payload_root(const char *folder)
{
    return xasprintf("%s/" CURRENT, folder);
}

void payload_keep(const char *folder)
{
    SCOPED_FREE char *root = payload_root(folder);
    chmod(root, 0755 | KEPT);
}
