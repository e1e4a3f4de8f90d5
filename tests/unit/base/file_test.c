#include "apiserver/base/file.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/lib/suite.h"

START_TEST(reads_whole)
{
    char path[] = "/tmp/file-test-XXXXXX";
    int fd = mkstemp(path);
    SCOPED(buf_fini) struct buf got = {0}, more = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "a\0b", 3), 3);
    close(fd);
    ck_assert_int_eq(file_read(path, 3, &got, &err), 0);
    ck_assert_uint_eq(got.len, 3);
    ck_assert_mem_eq(got.data, "a\0b", 3);
    ck_assert_int_eq(file_read(path, 2, &more, &err), -ERR_INVALID);
    ck_assert_str_eq(err.message + strlen(path), ": larger than 2 bytes");
    unlink(path);
    ck_assert_int_eq(file_read(path, 3, &more, &err), -ERR_NOT_FOUND);
    ck_assert_int_eq(file_read("/tmp", 3, &more, &err), -ERR_INVALID);
}
END_TEST

/* Sizes differ, so that it does not matter how fine the file system's clock is. */
START_TEST(stamp_tells_versions_apart)
{
    char path[] = "/tmp/file-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, "a", 1), 1);
    struct file_stamp old = file_stamp(path), same = file_stamp(path);
    ck_assert(file_stamp_equal(&old, &same));
    ck_assert_int_eq(write(fd, "b", 1), 1);
    close(fd);
    struct file_stamp longer = file_stamp(path);
    ck_assert(!file_stamp_equal(&old, &longer));
    ck_assert_int_eq(file_write_private(path, "cd", 2, NULL), 0);
    struct file_stamp other = file_stamp(path), none = {0};
    ck_assert(!file_stamp_equal(&longer, &other));
    unlink(path);
    other = file_stamp(path);
    ck_assert(file_stamp_equal(&other, &none));
}
END_TEST

SUITE(file)
{
    TESTS("file", reads_whole, stamp_tells_versions_apart);
}
