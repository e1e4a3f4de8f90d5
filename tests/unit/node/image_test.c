#include "node/image.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "node/oci.h"
#include "tests/lib/suite.h"

static char path[64];

static void setup(void)
{
    static const char script[] = "#!/bin/sh\nprintf 'busybox\\nls\\nsh\\n'\n";
    snprintf(path, sizeof path, "/tmp/image-test-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, script, strlen(script)), (int)strlen(script));
    fchmod(fd, 0700);
    close(fd);
}

static void teardown(void)
{
    unlink(path);
}

/* The content of the n-th file of an archive. */
static const char *content(const struct buf *tar, int n, size_t *ret_len)
{
    size_t at = 0;
    for (;; n--) {
        *ret_len = strtoul(tar->data + at + 124, NULL, 8);
        if (n == 0)
            return tar->data + at + 512;
        at += 512 + (*ret_len + 511) / 512 * 512;
    }
}

START_TEST(test_layers_and_label)
{
    SCOPED(buf_fini) struct buf low = {0};
    SCOPED(buf_fini) struct buf high = {0};
    SCOPED(buf_fini) struct buf tar = {0};
    SCOPED(json_free_p) cJSON *config = NULL;
    size_t n;
    buf_puts(&low, "low");
    buf_puts(&high, "high");
    const struct buf layers[] = {low, high};
    oci_pack(&(struct oci_image){.name = "x",
                                 .layers = layers,
                                 .n = 2,
                                 .user = "7",
                                 .command = "sh",
                                 .label = "what",
                                 .value = "it is"},
             &tar);
    const char *text = content(&tar, 2, &n);
    ck_assert_int_eq(strncmp(text, "low", n), 0);
    text = content(&tar, 3, &n);
    ck_assert_int_eq(strncmp(text, "high", n), 0);
    text = content(&tar, 4, &n);
    ck_assert_int_eq(json_parse(text, n, NULL, &config, NULL), 0);
    ck_assert_str_eq(json_str(config, "config.User"), "7");
    ck_assert_str_eq(json_str(config, "config.Labels.what"), "it is");
    ck_assert_uint_eq(json_len(json_at(config, "rootfs.diff_ids")), 2);
    ck_assert_ptr_null(json_at(config, "config.Entrypoint"));
}
END_TEST

START_TEST(test_recipes)
{
    setup();
    char first[IMAGE_RECIPE_SIZE];
    for (const struct image_kind *kind = image_kinds; kind->name; kind++) {
        SCOPED(image_fini) struct image one = {0};
        SCOPED(image_fini) struct image two = {0};
        ck_assert_ptr_eq(image_find(kind->name), kind);
        ck_assert_int_eq(image_start(kind, path, &one, NULL), 0);
        ck_assert_int_eq(image_start(kind, path, &two, NULL), 0);
        ck_assert_msg(strcmp(one.recipe, two.recipe) == 0, "%s: the same again", kind->name);
        if (kind != image_kinds)
            ck_assert_msg(strcmp(one.recipe, first) != 0, "%s: one of its own", kind->name);
        memcpy(first, one.recipe, sizeof first);
    }
    ck_assert_ptr_null(image_find("none"));
    teardown();
}
END_TEST

START_TEST(test_busybox)
{
    setup();
    SCOPED(image_fini) struct image image = {0};
    SCOPED(buf_fini) struct buf tar = {0};
    ck_assert_int_eq(image_start(image_kinds, path, &image, NULL), 0);
    ck_assert_int_eq(image_make(&image, &tar, NULL), 0);
    ck_assert_str_eq(tar.data, "oci-layout");
    ck_assert_ptr_nonnull(memmem(tar.data, tar.len, "bin/ls", 7));
    ck_assert_ptr_nonnull(memmem(tar.data, tar.len, image.recipe, strlen(image.recipe)));
    teardown();
    ck_assert_int_eq(image_start(image_kinds, path, &image, NULL), -ERR_NOT_FOUND);
}
END_TEST

SUITE(image)
{
    TESTS("image", test_layers_and_label, test_recipes, test_busybox);
}
