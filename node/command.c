#include "node/command.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/flags.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/disk.h"
#include "node/engine.h"
#include "node/image.h"

char *command_find_pause(void)
{
    static const char *const places[] = {"sandbox-pause", "../libexec/agent-sandbox/sandbox-pause"};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return NULL;
    self[n] = '\0';
    char *name = strrchr(self, '/') + 1;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char *path = xasprintf("%.*s%s", (int)(name - self), self, places[i]);
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

struct options {
    struct engine_config engine;
    const char *socket, *output, *busybox;
    bool again;
};
#define AT(member) offsetof(struct options, member)

static const struct flag flag_rows[] = {
    {"again", FLAG_BOOL, AT(again), "false", 0, 0,
     "make it though the engine has it: with the packages of today"},
    {"busybox", FLAG_STRING, AT(busybox), NULL, 0, 0,
     "a statically linked busybox; absent = the machine's"},
    {"output", FLAG_STRING, AT(output), NULL, 0, 0,
     "write the archive to this file; absent = give it to the engine"},
    {"data", FLAG_STRING, AT(engine.folder), "/var/lib/agent-sandbox/node", 0, 0,
     "folder of the node's own engine"},
    {"podman-socket", FLAG_STRING, AT(socket), NULL, 0, 0, "of an engine that runs already"},
    {"podman", FLAG_STRING, AT(engine.program), "podman", 0, 0, "the engine's program"},
    {"runtime", FLAG_STRING, AT(engine.runtime), "runc", 0, 0, "as the node's"},
    {"storage-driver", FLAG_STRING, AT(engine.storage), "overlay", 0, 0, "as the node's"},
    {0},
};
static const struct flag_table flag_table = {
    .program = "sandbox-node image build",
    .version = VERSION,
    .about =
        "Makes an image for Pods that needs no registry, unless the node's engine has it, and\n"
        "gives it to the engine or writes it as an OCI archive:\n"
        "  busybox  localhost/agent-sandbox/busybox:dev, from this machine's busybox\n"
        "  python   localhost/agent-sandbox/python:dev, from Debian's packages by mmdebstrap\n\n"
        "usage: sandbox-node image build [busybox|python] [flags]\n",
    .flags = flag_rows,
};

/* Made of what it would be made of now. */
static bool has_image(struct podman *podman, const struct image *image)
{
    SCOPED(podman_image_fini) struct podman_image found = {0};
    if (podman_image_find(podman, image->kind->reference, &found, NULL) < 0)
        return false;
    const cJSON *recipe = json_get(found.labels, IMAGE_RECIPE);
    return cJSON_IsString(recipe) && strcmp(recipe->valuestring, image->recipe) == 0;
}

static int make_and_load(const struct options *o, struct podman *podman, const struct image *image,
                         const char **ret_done, struct err *err)
{
    SCOPED(buf_fini) struct buf archive = {0};
    if (!o->again && has_image(podman, image)) {
        *ret_done = "is there already";
        return 0;
    }
    *ret_done = "loaded";
    int rc = image_make(image, &archive, err);
    return rc < 0 ? rc : podman_image_load(podman, &archive, err);
}

static int give_to_engine(const struct options *o, const struct image *image, const char **ret_done,
                          struct err *err)
{
    struct fetch *fetch = fetch_new();
    struct engine *engine = NULL;
    int rc = o->socket ? 0 : engine_start(&o->engine, fetch, &engine, err);
    if (rc == 0) {
        struct podman *podman = podman_new(fetch, o->socket ? o->socket : engine_socket(engine));
        rc = make_and_load(o, podman, image, ret_done, err);
        podman_free(podman);
    }
    engine_stop(engine);
    fetch_free(fetch);
    return rc;
}

static int write_archive(const struct options *o, const struct image *image, struct err *err)
{
    SCOPED(buf_fini) struct buf archive = {0};
    int rc = image_make(image, &archive, err);
    return rc < 0 ? rc : disk_write(AT_FDCWD, o->output, archive.data, archive.len, 0644, err);
}

static int build(const struct options *o, const struct image_kind *kind, const char **ret_done,
                 struct err *err)
{
    SCOPED(image_fini) struct image image = {0};
    int rc = image_start(kind, o->busybox, &image, err);
    if (rc < 0)
        return rc;
    *ret_done = o->output;
    return o->output ? write_archive(o, &image, err) : give_to_engine(o, &image, ret_done, err);
}

int command_image(int argc, char **argv)
{
    struct options o = {0};
    SCOPED(err_fini) struct err err = {0};
    const struct image_kind *kind = image_kinds;
    const char *done = "";
    int status = 2;
    if (argc > 1 && strcmp(argv[1], "build") == 0) {
        bool is_named = argc > 2 && argv[2][0] != '-';
        kind = is_named ? image_find(argv[2]) : kind;
        argc -= 1 + is_named;
        argv += 1 + is_named;
    } else {
        kind = NULL;
    }
    if (!kind) {
        fprintf(stderr, "usage: sandbox-node image build [busybox|python] [flags]\n");
        return 2;
    }
    if (flags_parse(&flag_table, argc, argv, &o, &status) < 0)
        return status;
    signal(SIGPIPE, SIG_IGN);
    int64_t began_ms = clock_monotonic_ms(&clock_system);
    if (build(&o, kind, &done, &err) < 0) {
        fprintf(stderr, "sandbox-node image build: %s: %s\n", kind->name, err_text(&err));
        return EXIT_FAILURE;
    }
    int64_t took_ms = clock_monotonic_ms(&clock_system) - began_ms;
    printf("%s: %s (%.1f s)\n", kind->reference, done, (double)took_ms / 1000);
    return EXIT_SUCCESS;
}
