#include "node/command.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/base/flags.h"
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
};
#define AT(member) offsetof(struct options, member)

static const struct flag flag_rows[] = {
    {"busybox", FLAG_STRING, AT(busybox), NULL, 0, 0,
     "a statically linked busybox; absent = the one in PATH"},
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
    .about = "Makes " IMAGE_BUSYBOX " from this machine's busybox, an image for Pods that needs\n"
             "no registry, and gives it to the node's engine or writes it as an OCI archive.\n\n"
             "usage: sandbox-node image build [flags]\n",
    .flags = flag_rows,
};

static int load(const struct options *o, const struct buf *archive, struct err *err)
{
    struct fetch *fetch = fetch_new();
    struct engine *engine = NULL;
    int rc = o->socket ? 0 : engine_start(&o->engine, fetch, &engine, err);
    if (rc == 0) {
        struct podman *podman = podman_new(fetch, o->socket ? o->socket : engine_socket(engine));
        rc = podman_image_load(podman, archive, err);
        podman_free(podman);
    }
    engine_stop(engine);
    fetch_free(fetch);
    return rc;
}

static int build(const struct options *o, struct err *err)
{
    SCOPED(buf_fini) struct buf archive = {0};
    int rc = image_make_busybox(o->busybox, &archive, err);
    if (rc < 0)
        return rc;
    return o->output ? disk_write(AT_FDCWD, o->output, archive.data, archive.len, 0644, err)
                     : load(o, &archive, err);
}

int command_image(int argc, char **argv)
{
    struct options o = {0};
    SCOPED(err_fini) struct err err = {0};
    int status = 2;
    if (argc < 2 || strcmp(argv[1], "build") != 0) {
        fprintf(stderr, "usage: sandbox-node image build [flags]\n");
        return 2;
    }
    if (flags_parse(&flag_table, argc - 1, argv + 1, &o, &status) < 0)
        return status;
    signal(SIGPIPE, SIG_IGN);
    if (build(&o, &err) < 0) {
        fprintf(stderr, "sandbox-node image build: %s\n", err_text(&err));
        return EXIT_FAILURE;
    }
    printf("%s: %s\n", IMAGE_BUSYBOX, o.output ? o.output : "loaded");
    return EXIT_SUCCESS;
}
