#include "node/volume.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/json.h"
#include "node/disk.h"
#include "tests/lib/suite.h"

/* A machine in small: a folder that Pods may have, one that they may not, and claims. */
static char root[] = "/tmp/volume-test-XXXXXX";
static char *pod_folder, *claims, *allowed;
static char *allowed_list[2];

static void put(const char *path, const char *text)
{
    ck_assert_int_eq(disk_write(AT_FDCWD, path, text, strlen(text), 0644, NULL), 0);
}

/* False where this process can have no mounts of its own. */
static bool setup(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(chdir(root), 0);
    pod_folder = xasprintf("%s/pods/u", root);
    claims = xasprintf("%s/claims", root);
    allowed = allowed_list[0] = xasprintf("%s/allowed", root);
    ck_assert_int_eq(mkdir("allowed", 0755), 0);
    ck_assert_int_eq(mkdir("allowed/in", 0755), 0);
    ck_assert_int_eq(mkdir("secret", 0755), 0);
    ck_assert_int_eq(mkdir("secret/inner", 0755), 0);
    put("allowed/in/file", "good");
    put("secret/inner/file", "bad");
    ck_assert_int_eq(symlink("../secret", "allowed/trap"), 0); /* as a container would put it */
    return true;
}

static void teardown(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(disk_remove_tree(root, NULL), 0);
    free(pod_folder);
    free(claims);
    free(allowed);
}

static cJSON *tree_of(const char *text)
{
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

static int get(void *ctx, const char *resource, const char *name, cJSON **ret, struct err *err)
{
    (void)name;
    (void)err;
    if (strcmp(resource, "persistentvolumeclaims") == 0)
        *ret = tree_of("{\"metadata\":{\"uid\":\"c\"},\"spec\":{\"volumeName\":\"v\"}}");
    else
        *ret = json_copy(ctx);
    return 0;
}

static struct volume_place place_of(void)
{
    return (struct volume_place){
        .folder = pod_folder, .claims = claims, .salt = "s", .host_paths = allowed_list};
}

/* Makes the volumes of a Pod and looks up the mounts of its container; the file below the first of
 * them is the text. volume is the PersistentVolume that a claim has, or NULL. */
static int make(const cJSON *pod, cJSON *volume, const char *text, struct err *err)
{
    const struct sources s = {.pod = pod, .pod_ip = "", .host_ip = "", .get = get, .ctx = volume};
    struct volume_place place = place_of();
    SCOPED(json_free_p) cJSON *mounts = NULL;
    SCOPED(buf_fini) struct buf bytes = {0};
    int rc = volume_make_all(&s, &place, err);
    if (rc == 0)
        rc = volume_mounts(&s, &place, json_at(pod, "spec.containers")->child, 0, &mounts, err);
    if (rc < 0)
        return rc;
    SCOPED_FREE char *file = xasprintf("%s/file", json_str_or(mounts->child, "source", ""));
    ck_assert_msg(file_read(file, 10, &bytes, NULL) == 0, "%s", file);
    ck_assert_str_eq(buf_cstr(&bytes), text);
    ck_assert_msg(strncmp(file, pod_folder, strlen(pod_folder)) == 0, "%s", file);
    return 0;
}

/* ---- folders of the machine ---- */

static const struct {
    const char *path, *type;
    int rc;
} hosts[] = {
    {"allowed/in", "", 0},
    {"allowed/in/", "Directory", 0},
    {"allowed/trap", "", -ERR_FORBIDDEN},
    {"allowed/trap/inner", "", -ERR_FORBIDDEN},
    {"allowed/trap/inner", "Directory", -ERR_FORBIDDEN},
    {"allowed/trap/new", "DirectoryOrCreate", -ERR_FORBIDDEN},
    {"allowed/trap/inner/file", "File", -ERR_FORBIDDEN},
    {"allowed/in/no", "", -ERR_NOT_FOUND},
    {"allowed/in/file", "", -ERR_INVALID},
    {"allowed/in", "File", -ERR_INVALID},
    {"secret", "", -ERR_FORBIDDEN},
};

static int try_host(const char *path, const char *type, bool by_claim, struct err *err)
{
    SCOPED_FREE char *host =
        xasprintf("{\"hostPath\":{\"path\":\"%s/%s\",\"type\":\"%s\"}}", root, path, type);
    SCOPED_FREE char *volume = xasprintf("{\"spec\":{\"claimRef\":{\"uid\":\"c\"},%s}", host + 1);
    SCOPED_FREE char *text =
        xasprintf("{\"spec\":{\"volumes\":[{\"name\":\"x\",%s],\"containers\":[{\"name\":\"m\","
                  "\"volumeMounts\":[{\"name\":\"x\",\"mountPath\":\"/x\"}]}]}}",
                  by_claim ? "\"persistentVolumeClaim\":{\"claimName\":\"c\"}}" : host + 1);
    SCOPED(json_free_p) cJSON *pod = tree_of(text), *given = tree_of(volume);
    return make(pod, given, "good", err);
}

START_TEST(test_host)
{
    size_t row = (size_t)_i / 2;
    SCOPED(err_fini) struct err err = {0};
    if (!setup())
        return;
    int rc = try_host(hosts[row].path, hosts[row].type, _i % 2, &err);
    ck_assert_msg(rc == hosts[row].rc, "%s: %d %s", hosts[row].path, rc, err_text(&err));
    ck_assert_int_lt(access("secret/new", F_OK), 0);
    struct volume_place place = place_of();
    ck_assert_int_eq(volume_remove_all(&place, NULL), 0);
    ck_assert_int_eq(access("allowed/in/file", F_OK), 0);
    teardown();
}
END_TEST

/* ---- the Pod's own fields ---- */

START_TEST(test_limits_of_an_init_container)
{
    if (!setup())
        return;
    SCOPED(json_free_p)
    cJSON *pod = tree_of(
        "{\"spec\":{\"volumes\":[{\"name\":\"x\",\"downwardAPI\":{\"items\":[{\"path\":\"file\","
        "\"resourceFieldRef\":{\"containerName\":\"i\",\"resource\":\"limits.memory\"}}]}}],"
        "\"initContainers\":[{\"name\":\"i\",\"resources\":{\"limits\":{\"memory\":\"7\"}}}],"
        "\"containers\":[{\"name\":\"m\",\"volumeMounts\":[{\"name\":\"x\",\"mountPath\":\"/x\"}]}]"
        "}}");
    ck_assert_int_eq(make(pod, NULL, "7", NULL), 0);
    teardown();
}
END_TEST

/* ---- places in a container ---- */

static size_t count_of(const cJSON *mounts, const char *place)
{
    const cJSON *mount;
    size_t n = 0;
    cJSON_ArrayForEach(mount, mounts) n +=
        strcmp(json_str_or(mount, "destination", ""), place) == 0;
    return n;
}

START_TEST(test_a_place_has_one_mount)
{
    static const char *const places[] = {"/etc/hosts", "/etc/resolv.conf", "/dev/termination-log"};
    if (!setup())
        return;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        SCOPED_FREE char *text = xasprintf(
            "{\"spec\":{\"volumes\":[{\"name\":\"x\",\"emptyDir\":{}}],\"containers\":[{\"name\":"
            "\"m\",\"volumeMounts\":[{\"name\":\"x\",\"mountPath\":\"%s\"}]}]}}",
            places[i]);
        SCOPED(json_free_p) cJSON *pod = tree_of(text), *mounts = NULL;
        const struct sources s = {.pod = pod, .pod_ip = "", .host_ip = ""};
        struct volume_place place = place_of();
        ck_assert_int_eq(volume_make_all(&s, &place, NULL), 0);
        ck_assert_int_eq(
            volume_mounts(&s, &place, json_at(pod, "spec.containers")->child, 0, &mounts, NULL), 0);
        for (size_t p = 0; p < ARRAY_LEN(places); p++)
            ck_assert_int_eq(count_of(mounts, places[p]), 1);
        ck_assert_msg(strstr(json_str_or(mounts->child, "source", ""), "/volumes/x") != NULL,
                      "the Pod's own");
    }
    teardown();
}
END_TEST

/* ---- runs that are over ---- */

static size_t count_mounts(void)
{
    SCOPED(buf_fini) struct buf table = {0};
    size_t n = 0;
    ck_assert_int_eq(file_read("/proc/self/mountinfo", (size_t)1 << 20, &table, NULL), 0);
    for (const char *at = buf_cstr(&table); (at = strstr(at, "pods/u/parts/")) != NULL; at++)
        n++;
    return n;
}

START_TEST(test_a_run_that_is_over_leaves_nothing)
{
    if (!setup())
        return;
    SCOPED(json_free_p)
    cJSON *pod = tree_of(
        "{\"spec\":{\"volumes\":[{\"name\":\"x\",\"emptyDir\":{}}],\"containers\":[{\"name\":\"m\","
        "\"volumeMounts\":[{\"name\":\"x\",\"mountPath\":\"/x\",\"subPath\":\"a\"},{\"name\":\"x\","
        "\"mountPath\":\"/y\",\"subPath\":\"b\"}]}]}}");
    const struct sources s = {.pod = pod, .pod_ip = "", .host_ip = ""};
    const cJSON *container = json_at(pod, "spec.containers")->child;
    struct volume_place place = place_of();
    ck_assert_int_eq(volume_make_all(&s, &place, NULL), 0);
    for (unsigned attempt = 0; attempt < 3; attempt++) {
        SCOPED(json_free_p) cJSON *mounts = NULL;
        ck_assert_int_eq(volume_mounts(&s, &place, container, attempt, &mounts, NULL), 0);
        ck_assert_int_eq(count_mounts(), 2);
        volume_forget(&place, container, attempt);
        ck_assert_int_eq(count_mounts(), 0);
    }
    ck_assert_int_eq(access("pods/u/volumes/x/b", F_OK), 0); /* the volume stays */
    ck_assert_int_eq(rmdir("pods/u/parts"), 0);
    ck_assert_int_eq(rmdir("pods/u/containers"), 0);
    teardown();
}
END_TEST

START_TEST(test_last_words_are_the_last)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(buf_fini) struct buf said = {0};
    if (!setup())
        return;
    struct volume_place place = place_of();
    ck_assert_int_eq(disk_make_folder("pods/u/containers", 0755, NULL), 0);
    put("pods/u/containers/m-0", "short");
    volume_read_message(&place, "m", 0, &said);
    ck_assert_str_eq(buf_cstr(&said), "short");
    for (int i = 0; i < 5000; i++)
        buf_putc(&text, 'x');
    buf_puts(&text, "why");
    put("pods/u/containers/m-0", buf_cstr(&text));
    buf_clear(&said);
    volume_read_message(&place, "m", 0, &said);
    ck_assert_int_eq(said.len, 4096);
    ck_assert_str_eq(buf_cstr(&said) + 4093, "why");
    teardown();
}
END_TEST

SUITE(volume)
{
    LOOP("host", test_host, 0, 2 * ARRAY_LEN(hosts)); /* by the Pod, and by a claim */
    TESTS("volume", test_limits_of_an_init_container, test_a_place_has_one_mount,
          test_a_run_that_is_over_leaves_nothing, test_last_words_are_the_last);
}
