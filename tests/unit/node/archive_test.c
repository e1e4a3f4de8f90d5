#include "node/archive.h"

#include <unistd.h>

#include "apiserver/base/json.h"
#include "node/image.h"
#include "tests/lib/suite.h"

START_TEST(test_headers)
{
    SCOPED(buf_fini) struct buf tar = {0};
    archive_folder(&tar, "d", 01777);
    archive_file(&tar, "d/f", 0644, "hello", 5);
    archive_link(&tar, "l", "d/f");
    archive_end(&tar);
    ck_assert_uint_eq(tar.len, 6 * 512);
    const char *folder = tar.data, *file = tar.data + 512, *link = tar.data + 3 * 512;
    ck_assert_str_eq(folder, "d");
    ck_assert_int_eq(folder[156], '5');
    ck_assert_str_eq(folder + 100, "0001777");
    ck_assert_str_eq(file, "d/f");
    ck_assert_str_eq(file + 124, "00000000005");
    ck_assert_int_eq(memcmp(file + 257, "ustar\00000", 8), 0);
    ck_assert_int_eq(memcmp(file + 512, "hello\0", 6), 0);
    ck_assert_int_eq(link[156], '2');
    ck_assert_str_eq(link + 157, "d/f");
    /* the sum of all bytes, its own field as blanks */
    unsigned sum = 0;
    for (int i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)file[i];
    ck_assert_uint_eq(strtoul(file + 148, NULL, 8), sum);
}
END_TEST

START_TEST(test_image_has_the_layout)
{
    char path[] = "/tmp/archive-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "program", 7), 7);
    close(fd);
    SCOPED(buf_fini) struct buf one = {0};
    SCOPED(buf_fini) struct buf two = {0};
    ck_assert_int_eq(image_make_pause(path, &one, NULL), 0);
    ck_assert_int_eq(image_make_pause(path, &two, NULL), 0);
    ck_assert_uint_eq(one.len, two.len);
    ck_assert_int_eq(memcmp(one.data, two.data, one.len), 0);
    ck_assert_str_eq(one.data, "oci-layout");
    const char *index = one.data + 3 * 512;
    SCOPED(json_free_p) cJSON *tree = NULL;
    ck_assert_str_eq(one.data + 2 * 512, "index.json");
    ck_assert_int_eq(json_parse_str(index, &tree, NULL), 0);
    const cJSON *manifest = json_get(tree, "manifests")->child;
    ck_assert_str_eq(
        json_get(json_get(manifest, "annotations"), "org.opencontainers.image.ref.name")
            ->valuestring,
        IMAGE_PAUSE);
    ck_assert_int_eq(strncmp(json_str(manifest, "digest"), "sha256:", 7), 0);
    unlink(path);
    ck_assert_int_eq(image_make_pause(path, &one, NULL), -ERR_NOT_FOUND);
}
END_TEST

SUITE(archive)
{
    TESTS("archive", test_headers, test_image_has_the_layout);
}
