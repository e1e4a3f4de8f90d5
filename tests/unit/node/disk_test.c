#include "node/disk.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "tests/lib/suite.h"

static char root[] = "/tmp/disk-test-XXXXXX";

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(chdir(root), 0);
    ck_assert_int_eq(mkdir("in", 0755), 0);
    ck_assert_int_eq(mkdir("in/a", 0755), 0);
    ck_assert_int_eq(mkdir("out", 0755), 0);
    ck_assert_int_eq(symlink("../out", "in/link"), 0);
    ck_assert_int_eq(symlink("/etc", "in/a/absolute"), 0);
    ck_assert_int_eq(symlink("a", "in/harmless"), 0);
    ck_assert_int_eq(disk_write(AT_FDCWD, "in/file", "x", 1, 0600, NULL), 0);
}

static void teardown(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(disk_remove_tree(root, NULL), 0);
    ck_assert_int_lt(access(root, F_OK), 0);
}

static const struct {
    const char *name;
    bool make;
    int rc;
} names[] = {
    {"", false, 0},
    {"a", false, 0},
    {"./a/", false, 0},
    {"file", false, 0},
    {"no", false, -ERR_NOT_FOUND},
    {"b/c/d", true, 0},
    {"..", false, -ERR_FORBIDDEN},
    {"a/../..", true, -ERR_FORBIDDEN},
    {"a/../../out", true, -ERR_FORBIDDEN},
    {"/etc", false, -ERR_FORBIDDEN},
    {"link", false, -ERR_FORBIDDEN},
    {"link/new", true, -ERR_FORBIDDEN},
    {"a/absolute", false, -ERR_FORBIDDEN},
    {"a/absolute/passwd", false, -ERR_FORBIDDEN},
    {"harmless", false, -ERR_FORBIDDEN},
    {"file/x", true, -ERR_INVALID},
};

START_TEST(test_name)
{
    int fd = -1;
    SCOPED(err_fini) struct err err = {0};
    setup();
    int rc = disk_open_beneath("in", names[_i].name, names[_i].make, 0777, &fd, &err);
    ck_assert_msg(rc == names[_i].rc, "\"%s\": %d %s", names[_i].name, rc, err_text(&err));
    ck_assert_int_eq(fd >= 0, rc == 0);
    if (rc == 0)
        close(fd);
    ck_assert_int_lt(access("out/new", F_OK), 0);
    teardown();
}
END_TEST

START_TEST(test_what_is_made_has_its_mode)
{
    struct stat st;
    int fd;
    setup();
    umask(077);
    ck_assert_int_eq(disk_open_beneath("in", "x/y", true, 0777, &fd, NULL), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0777);
    close(fd);
    SCOPED_FREE char *deep = xasprintf("%s/p/q", root);
    ck_assert_int_eq(disk_make_folder(deep, 0750, NULL), 0);
    ck_assert_int_eq(disk_make_folder(deep, 0750, NULL), 0);
    ck_assert_int_eq(stat(deep, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0750);
    teardown();
}
END_TEST

START_TEST(test_write_replaces_a_link)
{
    SCOPED(buf_fini) struct buf text = {0};
    struct stat st;
    setup();
    ck_assert_int_eq(disk_write(AT_FDCWD, "out/kept", "old", 3, 0644, NULL), 0);
    ck_assert_int_eq(symlink("../out/kept", "in/trap"), 0);
    ck_assert_int_eq(disk_write(AT_FDCWD, "in/trap", "new", 3, 0604, NULL), 0);
    ck_assert_int_eq(lstat("in/trap", &st), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_int_eq(st.st_mode & 07777, 0604);
    ck_assert_int_eq(file_read("out/kept", 10, &text, NULL), 0);
    ck_assert_str_eq(buf_cstr(&text), "old");
    teardown();
}
END_TEST

START_TEST(test_remove_leaves_what_links_name)
{
    setup();
    ck_assert_int_eq(disk_write(AT_FDCWD, "out/kept", "x", 1, 0644, NULL), 0);
    ck_assert_int_eq(disk_remove_tree("in", NULL), 0);
    ck_assert_int_eq(access("out/kept", F_OK), 0);
    ck_assert_int_eq(disk_remove_tree("in", NULL), 0); /* nothing there is fine */
    ck_assert_int_eq(symlink("out", "alias"), 0);
    ck_assert_int_lt(disk_remove_tree("alias", NULL), 0);
    ck_assert_int_eq(access("out/kept", F_OK), 0);
    teardown();
}
END_TEST

/* A container may go as deep as it likes. */
START_TEST(test_remove_has_no_bottom)
{
    setup();
    int at = open("in", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 3000; i++) {
        ck_assert_int_eq(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
        ck_assert_int_ge(next, 0);
        close(at);
        at = next;
    }
    close(at);
    ck_assert_int_eq(mkdir("in/.lifted-0", 0755), 0); /* a name that it could want */
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(disk_remove_tree("in", &err) == 0, "%s", err_text(&err));
    ck_assert_int_lt(access("in", F_OK), 0);
    teardown();
}
END_TEST

/* Whether this process has mounts of its own from now on. */
static bool has_own_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void mount_at(const char *from, const char *at)
{
    ck_assert_int_eq(mount(from, at, NULL, MS_BIND, NULL), 0);
}

/* Mounts are of volumes that stay, and a path may lead to them over a link. */
START_TEST(test_remove_leaves_what_is_mounted)
{
    setup();
    if (has_own_mounts()) {
        ck_assert_int_eq(disk_write(AT_FDCWD, "out/kept", "x", 1, 0644, NULL), 0);
        ck_assert_int_eq(mkdir("in/a/place", 0755), 0);
        ck_assert_int_eq(symlink(".", "alias"), 0);
        mount_at("out", "in/a/place");
        mount_at("out", "in/a/place");
        mount_at("out/kept", "in/file");
        SCOPED(err_fini) struct err err = {0};
        ck_assert_msg(disk_remove_tree("alias/in", &err) == 0, "%s", err_text(&err));
        ck_assert_int_lt(access("in", F_OK), 0);
        ck_assert_int_eq(access("out/kept", F_OK), 0);
    }
    teardown();
}
END_TEST

SUITE(disk)
{
    LOOP("beneath", test_name, 0, ARRAY_LEN(names));
    TESTS("disk", test_what_is_made_has_its_mode, test_write_replaces_a_link,
          test_remove_leaves_what_links_name, test_remove_has_no_bottom,
          test_remove_leaves_what_is_mounted);
}
