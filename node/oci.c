/* Source of the format: the OCI image specification, "image layout", "manifest", "config". */
#include "node/oci.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "node/archive.h"

#define MEDIA "application/vnd.oci.image."
#define SEARCH "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

#if defined __x86_64__
#define ARCHITECTURE "amd64"
#elif defined __aarch64__
#define ARCHITECTURE "arm64"
#else
#error "the name of this architecture in images is not known"
#endif

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

static cJSON *settings_of(const struct oci_image *image)
{
    cJSON *settings = json_object(), *env = json_array(), *labels = json_object();
    json_push(env, json_string(SEARCH));
    json_add(settings, "User", json_string(image->user));
    json_add(settings, "Env", env);
    const char *const lists[][2] = {{"Entrypoint", image->entry}, {"Cmd", image->command}};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (!lists[i][1])
            continue;
        cJSON *list = json_array();
        json_push(list, json_string(lists[i][1]));
        json_add(settings, lists[i][0], list);
    }
    if (image->label)
        json_add(labels, image->label, json_string(image->value));
    json_add(settings, "Labels", labels);
    return settings;
}

static void print_config(const struct oci_image *image, struct buf *out)
{
    SCOPED(json_free_p) cJSON *config = json_object();
    cJSON *layers = json_array();
    for (size_t i = 0; i < image->n; i++)
        json_push(layers, json_string(digest_of(&image->layers[i]).text));
    json_add(config, "architecture", json_string(ARCHITECTURE));
    json_add(config, "os", json_string("linux"));
    json_add(config, "config", settings_of(image));
    json_set_at(config, "rootfs.type", json_string("layers"));
    json_set_at(config, "rootfs.diff_ids", layers);
    json_print(config, out);
}

static void print_manifest(const struct oci_image *image, const struct buf *config, struct buf *out)
{
    SCOPED(json_free_p) cJSON *manifest = json_object();
    cJSON *layers = json_array();
    for (size_t i = 0; i < image->n; i++)
        json_push(layers, descriptor(MEDIA "layer.v1.tar", &image->layers[i]));
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

void oci_pack(const struct oci_image *image, struct buf *tar)
{
    static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
    SCOPED(buf_fini) struct buf config = {0};
    SCOPED(buf_fini) struct buf manifest = {0};
    SCOPED(buf_fini) struct buf index = {0};
    print_config(image, &config);
    print_manifest(image, &config, &manifest);
    print_index(image->name, &manifest, &index);
    archive_file(tar, "oci-layout", 0644, layout, strlen(layout));
    archive_file(tar, "index.json", 0644, buf_cstr(&index), index.len);
    for (size_t i = 0; i < image->n; i++)
        add_blob(tar, &image->layers[i]);
    add_blob(tar, &config);
    add_blob(tar, &manifest);
    archive_end(tar);
}
