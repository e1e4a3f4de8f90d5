#include "node/payload.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/mem.h"
#include "node/disk.h"
#include "tests/lib/suite.h"

static char root[] = "/tmp/payload-test-XXXXXX";

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(chdir(root), 0);
}

static void teardown(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(disk_remove_tree(root, NULL), 0);
}

static int put(struct payload *p, const char *path, const char *text, mode_t mode)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    buf_puts(&bytes, text);
    return payload_put(p, path, &bytes, mode, NULL);
}

/* Writes the files that are listed as path, text, ...; NULL ends them. */
static void write_files(const char *const *files)
{
    SCOPED(payload_fini) struct payload p = {0};
    for (; *files; files += 2)
        ck_assert_int_eq(put(&p, files[0], files[1], 0640), 0);
    ck_assert_int_eq(
        payload_write(&p, &(struct payload_place){.folder = root, .salt = "s", .group = (gid_t)-1},
                      NULL),
        0);
}
#define WRITE(...) write_files((const char *const[]){__VA_ARGS__, NULL})

static void has(const char *path, const char *text)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    ck_assert_msg(file_read(path, 100, &bytes, NULL) == 0, "%s is not there", path);
    ck_assert_str_eq(buf_cstr(&bytes), text);
}

/* What ..data leads to. */
static void state(char out[100])
{
    ssize_t n = readlink("..data", out, 99);
    ck_assert_int_gt(n, 2);
    out[n] = 0;
}

static const struct {
    const char *path;
    bool is_good;
} paths[] = {
    {"a", true},   {"a/b.c/..d", true}, {".hidden", true}, {"", false},      {"/a", false},
    {"..", false}, {"..data", false},   {"a/../b", false}, {"./a", false},   {"a/.", false},
    {"a/", false}, {"a//b", true},      {"a/..", false},   {"..a/b", false},
};

START_TEST(test_path)
{
    SCOPED(payload_fini) struct payload p = {0};
    ck_assert_msg((put(&p, paths[_i].path, "", 0644) == 0) == paths[_i].is_good, "%s",
                  paths[_i].path);
}
END_TEST

START_TEST(test_size)
{
    SCOPED(payload_fini) struct payload p = {0};
    SCOPED_FREE char *part = xmalloc(PAYLOAD_MAX / 4);
    for (int i = 0; i < 4; i++) {
        SCOPED(buf_fini) struct buf bytes = {0};
        buf_append(&bytes, part, PAYLOAD_MAX / 4);
        ck_assert_int_eq(payload_put(&p, "a", &bytes, 0644, NULL), i < 3 ? 0 : -ERR_TOO_LARGE);
    }
}
END_TEST

START_TEST(test_states)
{
    setup();
    char first[100], second[100];
    struct stat st;
    WRITE("a", "1", "sub/b", "2", "sub/c", "3");
    has("a", "1");
    has("sub/c", "3");
    has("..data/sub/b", "2");
    ck_assert(lstat("a", &st) == 0 && S_ISLNK(st.st_mode));
    ck_assert(stat("a", &st) == 0 && (st.st_mode & 07777) == 0640);
    state(first);
    WRITE("a", "1", "sub/b", "2", "sub/c", "3");
    state(second);
    ck_assert_str_eq(first, second);

    int old = open(first, O_PATH | O_DIRECTORY);
    WRITE("a", "new", "d", "4");
    state(second);
    ck_assert_str_ne(first, second);
    has("a", "new");
    has("d", "4");
    ck_assert_int_lt(lstat("sub", &st), 0);
    ck_assert_int_lt(lstat(first, &st), 0);
    close(old);
    WRITE(NULL);
    ck_assert_int_lt(lstat("a", &st), 0);
    ck_assert(stat("..data", &st) == 0 && S_ISDIR(st.st_mode));
    teardown();
}
END_TEST

START_TEST(test_mode_alone_is_a_change)
{
    setup();
    SCOPED(payload_fini) struct payload p = {0};
    struct stat st;
    WRITE("a", "1");
    ck_assert_int_eq(put(&p, "a", "1", 0400), 0);
    struct payload_place place = {.folder = root, .salt = "s", .group = (gid_t)-1};
    ck_assert_int_eq(payload_write(&p, &place, NULL), 0);
    ck_assert(stat("a", &st) == 0 && (st.st_mode & 07777) == 0400);
    teardown();
}
END_TEST

/* A crash left half of a state and a link; an older node plain files. */
START_TEST(test_leftovers)
{
    setup();
    char name[100];
    WRITE("a", "1");
    state(name);
    ck_assert_int_eq(unlink("..data"), 0);
    ck_assert_int_eq(disk_write(AT_FDCWD, "..data/..", "", 0, 0644, NULL) < 0, 1);
    SCOPED_FREE char *inside = xasprintf("%s/half", name);
    ck_assert_int_eq(disk_write(AT_FDCWD, inside, "", 0, 0644, NULL), 0);
    ck_assert_int_eq(symlink("nowhere", "..data_tmp"), 0);
    ck_assert_int_eq(unlink("a"), 0);
    ck_assert_int_eq(disk_write(AT_FDCWD, "a", "plain", 5, 0644, NULL), 0);
    ck_assert_int_eq(disk_make_folder("old", 0755, NULL), 0);
    ck_assert_int_eq(disk_write(AT_FDCWD, "old/file", "plain", 5, 0644, NULL), 0);
    WRITE("a", "1");
    has("a", "1");
    ck_assert_int_lt(access("..data/half", F_OK), 0);
    ck_assert_int_lt(access("old", F_OK), 0);
    struct stat st;
    ck_assert_int_lt(lstat("..data_tmp", &st), 0);
    teardown();
}
END_TEST

START_TEST(test_kept)
{
    setup();
    char first[100];
    WRITE("sub/a", "1");
    state(first);
    payload_keep(root);
    WRITE("sub/a", "2");
    WRITE("sub/a", "3");
    SCOPED_FREE char *old = xasprintf("%s/sub/a", first);
    has(old, "1");
    has("sub/a", "3");
    SCOPED_FREE char *path = payload_root(root);
    SCOPED_FREE char *newest = xasprintf("%s/sub/a", path);
    has(newest, "3");
    teardown();
}
END_TEST

SUITE(payload)
{
    LOOP("paths", test_path, 0, ARRAY_LEN(paths));
    TESTS("payload", test_size, test_states, test_mode_alone_is_a_change, test_leftovers,
          test_kept);
}
