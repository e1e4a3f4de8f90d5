/* Source of the format: the OCI image specification, "image layout", "manifest", "config". */
#include "node/image.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "node/archive.h"

#define PROGRAM_MAX ((size_t)16 << 20)
#define APPLETS_MAX ((size_t)64 << 10)
#define MEDIA "application/vnd.oci.image."
#define USER "65532:65532"
#define SEARCH "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

#if defined __x86_64__
#define ARCHITECTURE "amd64"
#elif defined __aarch64__
#define ARCHITECTURE "arm64"
#else
#error "the name of this architecture in images is not known"
#endif

/* ---- the layout ---- */

struct digest {
    char text[7 + 64 + 1]; /* sha256:... */
};

static struct digest digest_of(const struct buf *b)
{
    unsigned char bytes[32];
    struct digest d = {.text = "sha256:"};
    digest_sha256(buf_cstr(b), b->len, bytes);
    digest_print_hex(bytes, sizeof bytes, d.text + 7);
    return d;
}

static cJSON *descriptor(const char *type, const struct buf *blob)
{
    struct digest d = digest_of(blob);
    cJSON *o = json_object();
    json_add(o, "mediaType", json_string(type));
    json_add(o, "digest", json_string(d.text));
    json_add(o, "size", json_int((int64_t)blob->len));
    return o;
}

static void add_blob(struct buf *tar, const struct buf *blob)
{
    struct digest d = digest_of(blob);
    SCOPED_FREE char *name = xasprintf("blobs/sha256/%s", d.text + 7);
    archive_file(tar, name, 0644, buf_cstr(blob), blob->len);
}

static void print_config(const struct buf *layer, cJSON *take_settings, struct buf *out)
{
    SCOPED(json_free_p) cJSON *config = json_object();
    cJSON *layers = json_array();
    json_push(layers, json_string(digest_of(layer).text));
    json_add(config, "architecture", json_string(ARCHITECTURE));
    json_add(config, "os", json_string("linux"));
    json_add(config, "config", take_settings);
    json_set_at(config, "rootfs.type", json_string("layers"));
    json_set_at(config, "rootfs.diff_ids", layers);
    json_print(config, out);
}

static void print_manifest(const struct buf *config, const struct buf *layer, struct buf *out)
{
    SCOPED(json_free_p) cJSON *manifest = json_object();
    cJSON *layers = json_array();
    json_push(layers, descriptor(MEDIA "layer.v1.tar", layer));
    json_add(manifest, "schemaVersion", json_int(2));
    json_add(manifest, "mediaType", json_string(MEDIA "manifest.v1+json"));
    json_add(manifest, "config", descriptor(MEDIA "config.v1+json", config));
    json_add(manifest, "layers", layers);
    json_print(manifest, out);
}

static void print_index(const char *name, const struct buf *manifest, struct buf *out)
{
    SCOPED(json_free_p) cJSON *index = json_object();
    cJSON *list = json_array(), *one = descriptor(MEDIA "manifest.v1+json", manifest);
    cJSON *annotations = json_object();
    json_add(annotations, "org.opencontainers.image.ref.name", json_string(name));
    json_add(one, "annotations", annotations);
    json_push(list, one);
    json_add(index, "schemaVersion", json_int(2));
    json_add(index, "manifests", list);
    json_print(index, out);
}

static void pack(const char *name, const struct buf *layer, cJSON *take_settings, struct buf *tar)
{
    static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
    SCOPED(buf_fini) struct buf config = {0};
    SCOPED(buf_fini) struct buf manifest = {0};
    SCOPED(buf_fini) struct buf index = {0};
    print_config(layer, take_settings, &config);
    print_manifest(&config, layer, &manifest);
    print_index(name, &manifest, &index);
    archive_file(tar, "oci-layout", 0644, layout, strlen(layout));
    archive_file(tar, "index.json", 0644, buf_cstr(&index), index.len);
    add_blob(tar, layer);
    add_blob(tar, &config);
    add_blob(tar, &manifest);
    archive_end(tar);
}

static cJSON *settings_of(const char *user, const char *entry, const char *command)
{
    cJSON *settings = json_object(), *env = json_array();
    json_push(env, json_string("PATH=" SEARCH));
    json_add(settings, "User", json_string(user));
    json_add(settings, "Env", env);
    const char *const lists[][2] = {{"Entrypoint", entry}, {"Cmd", command}};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (!lists[i][1])
            continue;
        cJSON *list = json_array();
        json_push(list, json_string(lists[i][1]));
        json_add(settings, lists[i][0], list);
    }
    return settings;
}

/* ---- the images ---- */

int image_make_pause(const char *program, struct buf *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    SCOPED(buf_fini) struct buf layer = {0};
    int rc = file_read(program, PROGRAM_MAX, &bytes, err);
    if (rc < 0)
        return rc;
    archive_file(&layer, "pause", 0755, bytes.data, bytes.len);
    archive_end(&layer);
    pack(IMAGE_PAUSE, &layer, settings_of(USER, "/pause", NULL), ret);
    return 0;
}

static char *find_program(const char *name)
{
    const char *folders = SEARCH;
    while (*folders) {
        size_t n = strcspn(folders, ":");
        char *path = xasprintf("%.*s/%s", (int)n, folders, name);
        if (access(path, X_OK) == 0)
            return path;
        free(path);
        folders += n + (folders[n] == ':');
    }
    return NULL;
}

static bool read_all(int fd, size_t max, struct buf *out)
{
    char bytes[4096];
    ssize_t n;
    out->max = max;
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        buf_append(out, bytes, (size_t)n);
    return n == 0 && !buf_failed(out);
}

/* Its commands, a line each, as it lists them itself. */
static int list_applets(const char *program, struct buf *ret, struct err *err)
{
    char *argv[] = {xstrdup("busybox"), xstrdup("--list"), NULL};
    char *env[] = {NULL};
    int pipes[2], status = 0;
    pid_t pid = 0;
    bool is_good = pipe2(pipes, O_CLOEXEC) == 0;
    if (is_good) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
        is_good = posix_spawn(&pid, program, &actions, NULL, argv, env) == 0;
        posix_spawn_file_actions_destroy(&actions);
        close(pipes[1]);
        is_good = read_all(pipes[0], APPLETS_MAX, ret) && is_good;
        close(pipes[0]);
    }
    if (is_good)
        is_good = waitpid(pid, &status, 0) == pid && status == 0;
    free(argv[0]);
    free(argv[1]);
    return is_good ? 0 : err_set(err, ERR_INVALID, "%s does not list its commands", program);
}

static void add_accounts(struct buf *layer)
{
    static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                                 "nonroot:x:65532:65532:nonroot:/tmp:/bin/false\n";
    static const char group[] = "root:x:0:\nnonroot:x:65532:\n";
    archive_folder(layer, "etc", 0755);
    archive_file(layer, "etc/passwd", 0644, passwd, strlen(passwd));
    archive_file(layer, "etc/group", 0644, group, strlen(group));
    archive_folder(layer, "root", 0700);
    archive_folder(layer, "tmp", 01777);
}

int image_make_busybox(const char *program, struct buf *ret, struct err *err)
{
    SCOPED_FREE char *path = program ? xstrdup(program) : find_program("busybox");
    SCOPED(buf_fini) struct buf bytes = {0};
    SCOPED(buf_fini) struct buf layer = {0};
    SCOPED(buf_fini) struct buf applets = {0};
    if (!path)
        return err_set(err, ERR_NOT_FOUND, "there is no busybox (Debian: busybox-static)");
    int rc = file_read(path, PROGRAM_MAX, &bytes, err);
    if (rc == 0)
        rc = list_applets(path, &applets, err);
    if (rc < 0)
        return rc;
    add_accounts(&layer);
    archive_folder(&layer, "bin", 0755);
    archive_file(&layer, "bin/busybox", 0755, bytes.data, bytes.len);
    for (const char *name = buf_cstr(&applets); *name; name += strcspn(name, "\n") + 1) {
        SCOPED_FREE char *link = xasprintf("bin/%.*s", (int)strcspn(name, "\n"), name);
        if (strcmp(link, "bin/busybox") != 0 && strlen(link) <= ARCHIVE_NAME_MAX)
            archive_link(&layer, link, "busybox");
        if (!strchr(name, '\n'))
            break;
    }
    archive_end(&layer);
    pack(IMAGE_BUSYBOX, &layer, settings_of("", NULL, "/bin/sh"), ret);
    return 0;
}
