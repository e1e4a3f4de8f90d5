/* Every system has a layer of busybox, its shell and tools; what else it has is a layer of packages
 * above it. Packages are unpacked, not installed: nothing of them runs here, and there are neither
 * their documentation nor a package manager. */
#include "node/image.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "node/archive.h"
#include "node/oci.h"
#include "node/program.h"

#define PROGRAM_MAX ((size_t)16 << 20)
#define APPLETS_MAX ((size_t)64 << 10)
#define SYSTEM_MAX ((size_t)512 << 20)
#define USER "65532:65532"

int image_make_pause(const char *program, struct buf *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    SCOPED(buf_fini) struct buf layer = {0};
    int rc = file_read(program, PROGRAM_MAX, &bytes, err);
    if (rc < 0)
        return rc;
    archive_file(&layer, "pause", 0755, bytes.data, bytes.len);
    archive_end(&layer);
    oci_pack(
        &(struct oci_image){
            .name = IMAGE_PAUSE, .layers = &layer, .n = 1, .user = USER, .entry = "/pause"},
        ret);
    return 0;
}

/* ---- busybox ---- */

/* Its commands, a line each, as it lists them itself. */
static int list_applets(const char *program, struct buf *ret, struct err *err)
{
    char name[] = "busybox", list[] = "--list", *argv[] = {name, list, NULL}, *env[] = {NULL};
    ret->max = APPLETS_MAX;
    return program_output(program, argv, env, ret, err);
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

static int make_base(const char *path, struct buf *layer, struct err *err)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    SCOPED(buf_fini) struct buf applets = {0};
    int rc = file_read(path, PROGRAM_MAX, &bytes, err);
    if (rc == 0)
        rc = list_applets(path, &applets, err);
    if (rc < 0)
        return rc;
    add_accounts(layer);
    archive_folder(layer, "bin", 0755);
    archive_file(layer, "bin/busybox", 0755, bytes.data, bytes.len);
    for (const char *name = buf_cstr(&applets); *name; name += strcspn(name, "\n") + 1) {
        SCOPED_FREE char *link = xasprintf("bin/%.*s", (int)strcspn(name, "\n"), name);
        if (strcmp(link, "bin/busybox") != 0 && strlen(link) <= ARCHIVE_NAME_MAX)
            archive_link(layer, link, "busybox");
        if (!strchr(name, '\n'))
            break;
    }
    archive_end(layer);
    return 0;
}

/* ---- packages ---- */

/* The hook collects the certificates, which the package would do when it is installed, and takes
 * away what mmdebstrap has copied from this machine. */
static const char *const unpack[] = {
    "mmdebstrap",
    "--quiet",
    "--variant=extract",
    "--format=tar",
    "--skip=cleanup/apt",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/lib/*/gconv/*",
    "--extract-hook=cd \"$1\" &&"
    " cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt &&"
    " rm -rf etc/apt/sources.list* etc/hostname etc/resolv.conf var/*",
    NULL,
};

/* Where this machine has its packages from. */
static void add_sources(char ***argv)
{
    static const char *const patterns[] = {"/etc/apt/sources.list",
                                           "/etc/apt/sources.list.d/*.list",
                                           "/etc/apt/sources.list.d/*.sources"};
    glob_t found = {0};
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        strv_add(argv, xstrdup(found.gl_pathv[i]));
    globfree(&found);
}

static int make_system(const char *packages, struct buf *layer, struct err *err)
{
    SCOPED_FREE char *path = program_find(unpack[0]);
    if (!path)
        return err_set(err, ERR_NOT_FOUND, "there is no mmdebstrap (Debian: mmdebstrap)");
    char **argv = strv_copy(unpack), **env = NULL;
    strv_add(&env, xstrdup("SOURCE_DATE_EPOCH=0"));
    for (char **setting = environ; *setting; setting++)
        strv_add(&env, xstrdup(*setting));
    strv_add(&argv, xasprintf("--include=%s", packages));
    strv_add(&argv, xstrdup("")); /* the release: as the sources say */
    strv_add(&argv, xstrdup("-"));
    add_sources(&argv);
    layer->max = SYSTEM_MAX;
    int rc = program_output(path, argv, env, layer, err);
    strv_free(argv);
    strv_free(env);
    return rc;
}

/* ---- the images ---- */

const struct image_kind image_kinds[] = {
    {"busybox", "localhost/agent-sandbox/busybox:dev", NULL, "/bin/sh"},
    {"python", "localhost/agent-sandbox/python:dev", "python3,ca-certificates", "python3"},
    {0},
};

const struct image_kind *image_find(const char *name)
{
    const struct image_kind *kind = image_kinds;
    while (kind->name && strcmp(kind->name, name) != 0)
        kind++;
    return kind->name ? kind : NULL;
}

int image_start(const struct image_kind *kind, const char *busybox, struct image *ret,
                struct err *err)
{
    SCOPED_FREE char *path = busybox ? xstrdup(busybox) : program_find("busybox");
    SCOPED(image_fini) struct image image = {.kind = kind};
    unsigned char digest[32];
    if (!path)
        return err_set(err, ERR_NOT_FOUND, "there is no busybox (Debian: busybox-static)");
    int rc = make_base(path, &image.base, err);
    if (rc < 0)
        return rc;
    SCOPED(buf_fini) struct buf recipe = {0};
    buf_append(&recipe, image.base.data, image.base.len);
    for (size_t i = 0; kind->packages && unpack[i]; i++)
        buf_puts(&recipe, unpack[i]);
    buf_puts(&recipe, kind->packages ? kind->packages : "");
    digest_sha256(recipe.data, recipe.len, digest);
    digest_print_hex(digest, sizeof digest, image.recipe);
    *ret = steal(&image);
    return 0;
}

int image_make(const struct image *image, struct buf *ret, struct err *err)
{
    const struct image_kind *kind = image->kind;
    SCOPED(buf_fini) struct buf system = {0};
    int rc = kind->packages ? make_system(kind->packages, &system, err) : 0;
    if (rc < 0)
        return rc;
    const struct buf layers[] = {image->base, system};
    ret->max = SYSTEM_MAX;
    oci_pack(&(struct oci_image){.name = kind->reference,
                                 .layers = layers,
                                 .n = kind->packages ? 2 : 1,
                                 .user = "",
                                 .command = kind->command,
                                 .label = IMAGE_RECIPE,
                                 .value = image->recipe},
             ret);
    return buf_failed(ret) ? err_set(err, ERR_INVALID, "the image is too large") : 0;
}

void image_fini(struct image *image)
{
    buf_fini(&image->base);
}
