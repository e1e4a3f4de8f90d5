/* Files of a volume are put in place one by one and at once, so a reader sees an old or a new one.
 * Containers own what they may write, so nothing here follows a link in it. */
#include "node/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/disk.h"
#include "node/resource.h"

#define MESSAGE_MAX ((size_t)4096)
#define FILE_MODE 0644
#define HOST_RESOLV_MAX ((size_t)64 << 10)

struct volume { /* one that is being made */
    const struct sources *s;
    const struct volume_place *place;
    const cJSON *spec; /* what stands below its kind */
    char *folder;
    int64_t group; /* fsGroup, -1 = none */
};

static int fail(struct err *err, const char *what, const char *path)
{
    return err_set(err, ERR_INVALID, "%s: %s: %m", path, what);
}

/* ---- files from other objects ---- */

/* One file of a volume; path is relative and may name folders. */
static int put_file(const struct volume *v, const char *path, const struct buf *bytes, int64_t mode,
                    struct err *err)
{
    const char *name = strrchr(path, '/');
    SCOPED_FREE char *parent = name ? xstrndup(path, (size_t)(name - path)) : xstrdup("");
    int fd;
    int rc = disk_open_beneath(v->folder, parent, true, 0755, &fd, err);
    if (rc < 0)
        return rc;
    name = name ? name + 1 : path;
    mode_t bits = (mode_t)(mode & 0777) | (v->group >= 0 ? 0440 : 0);
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        rc = err_set(err, ERR_FORBIDDEN, "\"%s\" is no file's name", path);
    else
        rc = disk_write(fd, name, buf_cstr(bytes), bytes->len, bits, err);
    if (rc == 0 && v->group >= 0 &&
        fchownat(fd, name, (uid_t)-1, (gid_t)v->group, AT_SYMLINK_NOFOLLOW) < 0)
        rc = fail(err, "cannot be given to its group", path);
    close(fd);
    return rc;
}

struct origin { /* a kind of object whose data become files */
    const char *field, *resource;
    const char *name_field; /* of the spec, when it is a volume of its own */
};
static const struct origin config_map = {"configMap", "configmaps", "name"};
static const struct origin secret = {"secret", "secrets", "secretName"};

static int data_bytes(const struct origin *o, const cJSON *object, const char *key, bool *ret_found,
                      struct buf *out, struct err *err)
{
    const cJSON *plain = json_get(json_get(object, "data"), key);
    const cJSON *binary = json_get(json_get(object, "binaryData"), key);
    const cJSON *coded = o == &secret ? plain : binary;
    *ret_found = plain || binary;
    if (cJSON_IsString(coded)) {
        if (!buf_unbase64(out, coded->valuestring, strlen(coded->valuestring)))
            return err_set(err, ERR_INVALID, "%s: a value is no base64", o->resource);
    } else if (cJSON_IsString(plain)) {
        buf_puts(out, plain->valuestring);
    }
    return 0;
}

static int put_key(const struct volume *v, const struct origin *o, const cJSON *object,
                   const char *key, const char *path, int64_t mode, bool *ret_found,
                   struct err *err)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    int rc = data_bytes(o, object, key, ret_found, &bytes, err);
    return rc < 0 || !*ret_found ? rc : put_file(v, path, &bytes, mode, err);
}

/* All keys of an object, or those that items list, each under its path. */
static int put_object(const struct volume *v, const struct origin *o, const cJSON *spec,
                      const cJSON *object, int64_t mode, struct err *err)
{
    const cJSON *items = json_get(spec, "items"), *entry;
    bool is_found;
    int rc = 0;
    cJSON_ArrayForEach(entry, items)
    {
        const char *key = json_str_or(entry, "key", "");
        rc = put_key(v, o, object, key, json_str_or(entry, "path", ""),
                     json_i64_or(entry, "mode", mode), &is_found, err);
        if (rc == 0 && !is_found && !json_bool_or(spec, "optional", false))
            rc = err_set(err, ERR_NOT_FOUND, "references non-existent key: %s", key);
        if (rc < 0)
            return rc;
    }
    static const char *const maps[] = {"data", "binaryData"};
    for (size_t i = 0; !items && i < ARRAY_LEN(maps); i++) {
        cJSON_ArrayForEach(entry, json_get(object, maps[i]))
        {
            rc = put_key(v, o, object, entry->string, entry->string, mode, &is_found, err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int fill_from(const struct volume *v, const struct origin *o, const cJSON *spec,
                     const char *name, int64_t mode, struct err *err)
{
    SCOPED(json_free_p) cJSON *object = NULL;
    int rc = v->s->get(v->s->ctx, o->resource, name, &object, err);
    if (rc == -ERR_NOT_FOUND && json_bool_or(spec, "optional", false))
        return 0;
    return rc < 0 ? rc : put_object(v, o, spec, object, mode, err);
}

static int fill_config_map(const struct volume *v, struct err *err)
{
    return fill_from(v, &config_map, v->spec, json_str_or(v->spec, "name", ""),
                     json_i64_or(v->spec, "defaultMode", FILE_MODE), err);
}

static int fill_secret(const struct volume *v, struct err *err)
{
    return fill_from(v, &secret, v->spec, json_str_or(v->spec, "secretName", ""),
                     json_i64_or(v->spec, "defaultMode", FILE_MODE), err);
}

/* ---- the Pod's own fields ---- */

static const cJSON *container_of(const cJSON *pod, const char *name)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_at(pod, "spec.containers"))
    {
        if (strcmp(json_str_or(c, "name", ""), name) == 0)
            return c;
    }
    return NULL;
}

static int put_fields(const struct volume *v, const cJSON *spec, int64_t mode, struct err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, json_get(spec, "items"))
    {
        SCOPED(buf_fini) struct buf text = {0};
        const cJSON *resource = json_get(item, "resourceFieldRef");
        int rc;
        if (resource)
            rc = env_resource(container_of(v->s->pod, json_str_or(resource, "containerName", "")),
                              resource, &text, err);
        else
            rc = env_field(v->s, json_str_or(item, "fieldRef.fieldPath", ""), &text, err);
        if (rc == 0)
            rc = put_file(v, json_str_or(item, "path", ""), &text, json_i64_or(item, "mode", mode),
                          err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int fill_downward(const struct volume *v, struct err *err)
{
    return put_fields(v, v->spec, json_i64_or(v->spec, "defaultMode", FILE_MODE), err);
}

static int put_token(const struct volume *v, const cJSON *spec, int64_t mode, struct err *err)
{
    SCOPED_FREE char *token = NULL;
    int rc = v->s->token(v->s->ctx, spec, &token, err);
    if (rc < 0)
        return rc;
    SCOPED(buf_fini) struct buf bytes = {0};
    buf_puts(&bytes, token);
    return put_file(v, json_str_or(spec, "path", "token"), &bytes, mode, err);
}

static int fill_projected(const struct volume *v, struct err *err)
{
    int64_t mode = json_i64_or(v->spec, "defaultMode", FILE_MODE);
    const cJSON *source;
    int rc = 0;
    cJSON_ArrayForEach(source, json_get(v->spec, "sources"))
    {
        const cJSON *map = json_get(source, "configMap"), *hidden = json_get(source, "secret");
        const cJSON *fields = json_get(source, "downwardAPI");
        const cJSON *token = json_get(source, "serviceAccountToken");
        if (map)
            rc = fill_from(v, &config_map, map, json_str_or(map, "name", ""), mode, err);
        if (rc == 0 && hidden)
            rc = fill_from(v, &secret, hidden, json_str_or(hidden, "name", ""), mode, err);
        if (rc == 0 && fields)
            rc = put_fields(v, fields, mode, err);
        if (rc == 0 && token)
            rc = put_token(v, token, mode, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- folders ---- */

/* A folder that containers write in: open to all, as a kubelet's, or to the Pod's group. */
static int open_to_containers(const struct volume *v, struct err *err)
{
    if (v->group >= 0 && chown(v->folder, (uid_t)-1, (gid_t)v->group) < 0)
        return fail(err, "cannot be given to its group", v->folder);
    return chmod(v->folder, v->group >= 0 ? 02777 : 0777) < 0
               ? fail(err, "cannot be opened to containers", v->folder)
               : 0;
}

static bool is_mounted(const char *path)
{
    SCOPED_FREE char *parent = xasprintf("%s/..", path);
    struct stat here, above;
    return stat(path, &here) == 0 && stat(parent, &above) == 0 && here.st_dev != above.st_dev;
}

static int fill_empty(const struct volume *v, struct err *err)
{
    if (strcmp(json_str_or(v->spec, "medium", ""), "Memory") != 0 || is_mounted(v->folder))
        return open_to_containers(v, err);
    int64_t milli = 0;
    SCOPED(buf_fini) struct buf options = {0};
    buf_puts(&options, "mode=0777");
    if (resource_read_milli(json_get(v->spec, "sizeLimit"), &milli) == 0 && milli > 0)
        buf_printf(&options, ",size=%" PRId64, milli / 1000);
    if (mount("tmpfs", v->folder, "tmpfs", MS_NOSUID | MS_NODEV, buf_cstr(&options)) < 0)
        return fail(err, "memory cannot be mounted", v->folder);
    return open_to_containers(v, err);
}

/* A claim's folder carries the uid, so that a later one of the same name starts empty. */
static int claim_folder(const struct volume *v, char **ret, struct err *err)
{
    const char *name = json_str_or(v->spec, "claimName", "");
    SCOPED(json_free_p) cJSON *claim = NULL;
    int rc = v->s->get(v->s->ctx, "persistentvolumeclaims", name, &claim, err);
    if (rc < 0)
        return rc;
    const char *uid = json_str_or(claim, "metadata.uid", "");
    if (!*uid || strchr(uid, '/') || *uid == '.')
        return err_set(err, ERR_INVALID, "the claim \"%s\" has no uid", name);
    *ret = xasprintf("%s/%s", v->place->claims, uid);
    return 0;
}

static int fill_claim(struct volume *v, struct err *err)
{
    SCOPED_FREE char *folder = NULL;
    int rc = claim_folder(v, &folder, err);
    if (rc == 0)
        rc = disk_make_folder(v->place->claims, 0711, err);
    struct stat st;
    bool is_new = rc == 0 && stat(folder, &st) < 0;
    if (is_new)
        rc = disk_make_folder(folder, 0777, err);
    free(v->folder);
    v->folder = steal(&folder);
    return rc == 0 && (is_new || v->group >= 0) ? open_to_containers(v, err) : rc;
}

static int fill_host(struct volume *v, struct err *err)
{
    const char *path = json_str_or(v->spec, "path", "");
    const char *type = json_str_or(v->spec, "type", "");
    free(v->folder);
    v->folder = xstrdup(path);
    if (strcmp(type, "DirectoryOrCreate") == 0)
        return disk_make_folder(path, 0755, err);
    struct stat st;
    if (lstat(path, &st) < 0)
        return err_set(err, ERR_NOT_FOUND, "%s is not there", path);
    bool wants_file = strcmp(type, "File") == 0;
    if (wants_file ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID, "%s is no %s", path, wants_file ? "file" : "folder");
    return 0;
}

/* ---- all volumes ---- */

/* Read-only ones are written by the node alone. Those whose folder is elsewhere change it. */
static const struct kind {
    const char *field;
    int (*fill)(const struct volume *v, struct err *err);
    int (*locate)(struct volume *v, struct err *err);
    bool is_read_only;
} kinds[] = {
    {"emptyDir", fill_empty, NULL, false},     {"configMap", fill_config_map, NULL, true},
    {"secret", fill_secret, NULL, true},       {"downwardAPI", fill_downward, NULL, true},
    {"projected", fill_projected, NULL, true}, {"persistentVolumeClaim", NULL, fill_claim, false},
    {"hostPath", NULL, fill_host, false},
};

static const struct kind *kind_of(const cJSON *volume)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (json_get(volume, kinds[i].field))
            return &kinds[i];
    }
    return NULL;
}

static struct volume volume_of(const struct sources *s, const struct volume_place *place,
                               const cJSON *volume, const struct kind *kind)
{
    return (struct volume){
        .s = s,
        .place = place,
        .spec = json_get(volume, kind->field),
        .folder = xasprintf("%s/volumes/%s", place->folder, json_str_or(volume, "name", "")),
        .group = json_i64_or(s->pod, "spec.securityContext.fsGroup", -1),
    };
}

static int make_one(const struct sources *s, const struct volume_place *place, const cJSON *volume,
                    struct err *err)
{
    const struct kind *kind = kind_of(volume);
    if (!kind) /* says nothing: an empty folder */
        kind = &kinds[0];
    struct volume v = volume_of(s, place, volume, kind);
    int rc = kind->locate ? kind->locate(&v, err) : disk_make_folder(v.folder, 0755, err);
    if (rc == 0 && kind->fill)
        rc = kind->fill(&v, err);
    free(v.folder);
    if (rc < 0)
        err_wrap(err, "volume \"%s\"", json_str_or(volume, "name", ""));
    return rc;
}

int volume_make_all(const struct sources *s, const struct volume_place *place, struct err *err)
{
    static const char *const folders[] = {"volumes", "containers", "parts"};
    int rc = disk_make_folder(place->folder, 0711, err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(folders); i++) {
        SCOPED_FREE char *path = xasprintf("%s/%s", place->folder, folders[i]);
        rc = disk_make_folder(path, 0711, err);
    }
    const cJSON *volume;
    cJSON_ArrayForEach(volume, json_at(s->pod, "spec.volumes"))
    {
        if (rc == 0)
            rc = make_one(s, place, volume, err);
    }
    return rc;
}

/* ---- mounts ---- */

static void add_mount(cJSON *list, const char *from, const char *to, bool is_read_only)
{
    cJSON *mount = json_object(), *options = json_array();
    json_push(options, json_string("rbind"));
    json_push(options, json_string("rprivate"));
    json_push(options, json_string(is_read_only ? "ro" : "rw"));
    json_add(mount, "type", json_string("bind"));
    json_add(mount, "source", json_string(from));
    json_add(mount, "destination", json_string(to));
    json_add(mount, "options", options);
    json_push(list, mount);
}

/* The engine gets a place of ours on which the very file that was found is mounted: a path would be
 * looked up again later, when a container may have put a link there. */
static int pin(const char *root, const char *sub_path, bool make, const char *place,
               struct err *err)
{
    struct stat st = {.st_mode = 0755};
    int fd;
    stat(root, &st); /* what is made has the volume's own mode */
    int rc = disk_open_beneath(root, sub_path, make, st.st_mode & 07777, &fd, err);
    if (rc < 0)
        return rc;
    SCOPED_FREE char *found = xasprintf("/proc/self/fd/%d", fd);
    umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW);
    if (fstat(fd, &st) < 0)
        rc = fail(err, "cannot be looked at", sub_path);
    else if (S_ISDIR(st.st_mode))
        rc = disk_make_folder(place, 0755, err);
    else if (S_ISREG(st.st_mode))
        rc = disk_write(AT_FDCWD, place, "", 0, 0644, err);
    else
        rc = err_set(err, ERR_FORBIDDEN, "\"%s\" is neither file nor folder", sub_path);
    if (rc == 0 && mount(found, place, NULL, MS_BIND, NULL) < 0)
        rc = fail(err, "cannot be mounted", sub_path);
    close(fd);
    return rc;
}

static const cJSON *volume_find(const cJSON *pod, const char *name)
{
    const cJSON *volume;
    cJSON_ArrayForEach(volume, json_at(pod, "spec.volumes"))
    {
        if (strcmp(json_str_or(volume, "name", ""), name) == 0)
            return volume;
    }
    return NULL;
}

static int add_volume_mount(const struct sources *s, const struct volume_place *place,
                            const cJSON *volume, const cJSON *mount, const char *part, cJSON *list,
                            struct err *err)
{
    const struct kind *kind = kind_of(volume);
    if (!kind)
        kind = &kinds[0];
    struct volume v = volume_of(s, place, volume, kind);
    int rc = kind->locate ? kind->locate(&v, err) : 0;
    const char *sub_path = json_str_or(mount, "subPath", "");
    bool is_read_only = kind->is_read_only || json_bool_or(mount, "readOnly", false) ||
                        json_bool_or(v.spec, "readOnly", false);
    if (rc == 0 && *sub_path)
        rc = pin(v.folder, sub_path, !kind->is_read_only, part, err);
    if (rc == 0)
        add_mount(list, *sub_path ? part : v.folder, json_str_or(mount, "mountPath", ""),
                  is_read_only);
    free(v.folder);
    return rc;
}

static char *message_path(const struct volume_place *place, const char *container, unsigned attempt)
{
    return xasprintf("%s/containers/%s-%u", place->folder, container, attempt);
}

/* Files of the node's in every container. */
static int add_own(const struct volume_place *place, const cJSON *container, unsigned attempt,
                   cJSON *list, struct err *err)
{
    static const char *const files[][2] = {{"hosts", "/etc/hosts"},
                                           {"resolv.conf", "/etc/resolv.conf"}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        SCOPED_FREE char *path = xasprintf("%s/%s", place->folder, files[i][0]);
        add_mount(list, path, files[i][1], false);
    }
    SCOPED_FREE char *message = message_path(place, json_str_or(container, "name", ""), attempt);
    int rc = disk_write(AT_FDCWD, message, "", 0, 0666, err);
    add_mount(list, message,
              json_str_or(container, "terminationMessagePath", "/dev/termination-log"), false);
    return rc;
}

int volume_mounts(const struct sources *s, const struct volume_place *place, const cJSON *container,
                  unsigned attempt, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *list = json_array();
    const cJSON *mount;
    size_t i = 0;
    cJSON_ArrayForEach(mount, json_get(container, "volumeMounts"))
    {
        const char *name = json_str_or(mount, "name", "");
        const cJSON *volume = volume_find(s->pod, name);
        SCOPED_FREE char *part = xasprintf("%s/parts/%s-%u-%zu", place->folder,
                                           json_str_or(container, "name", ""), attempt, i++);
        if (!volume)
            return err_set(err, ERR_INVALID, "there is no volume \"%s\"", name);
        int rc = add_volume_mount(s, place, volume, mount, part, list, err);
        if (rc < 0)
            return rc;
    }
    int rc = add_own(place, container, attempt, list, err);
    if (rc == 0)
        *ret = steal(&list);
    return rc;
}

void volume_read_message(const struct volume_place *place, const char *container, unsigned attempt,
                         struct buf *out)
{
    SCOPED_FREE char *path = message_path(place, container, attempt);
    char bytes[MESSAGE_MAX];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    if (n > 0)
        buf_append(out, bytes, (size_t)n);
}

/* ---- names ---- */

static void print_hosts(const struct sources *s, const char *domain, struct buf *out)
{
    const char *host =
        json_str_or(s->pod, "spec.hostname", json_str_or(s->pod, "metadata.name", ""));
    const char *subdomain = json_str_or(s->pod, "spec.subdomain", "");
    buf_puts(out, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
    buf_printf(out, "%s\t", s->pod_ip);
    if (*subdomain)
        buf_printf(out, "%s.%s.%s.svc.%s\t", host, subdomain,
                   json_str_or(s->pod, "metadata.namespace", ""), domain);
    buf_printf(out, "%s\n", host);
    const cJSON *alias, *name;
    cJSON_ArrayForEach(alias, json_at(s->pod, "spec.hostAliases"))
    {
        buf_puts(out, json_str_or(alias, "ip", ""));
        cJSON_ArrayForEach(name, json_get(alias, "hostnames"))
            buf_printf(out, "\t%s", cJSON_IsString(name) ? name->valuestring : "");
        buf_putc(out, '\n');
    }
}

static void print_list(const cJSON *list, const char *before, const char *between, struct buf *out)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item))
            buf_printf(out, "%s%s", item == list->child ? before : between, item->valuestring);
    }
}

/* The Pod's own settings come on top of those of its policy. */
static void print_resolv(const struct sources *s, char *const *dns, const char *domain,
                         struct buf *out)
{
    const char *policy = json_str_or(s->pod, "spec.dnsPolicy", "ClusterFirst");
    const cJSON *own = json_at(s->pod, "spec.dnsConfig");
    if (strcmp(policy, "ClusterFirst") == 0 && dns && *dns) {
        for (; *dns; dns++)
            buf_printf(out, "nameserver %s\n", *dns);
        buf_printf(out, "search %s.svc.%s svc.%s %s", json_str_or(s->pod, "metadata.namespace", ""),
                   domain, domain, domain);
        print_list(json_get(own, "searches"), " ", " ", out);
        buf_puts(out, "\noptions ndots:5\n");
    } else if (strcmp(policy, "None") != 0) {
        file_read("/etc/resolv.conf", HOST_RESOLV_MAX, out, NULL);
        print_list(json_get(own, "searches"), "\nsearch ", " ", out);
    } else {
        print_list(json_get(own, "searches"), "search ", " ", out);
    }
    buf_putc(out, '\n');
    print_list(json_get(own, "nameservers"), "nameserver ", "\nnameserver ", out);
    buf_putc(out, '\n');
    const cJSON *option;
    cJSON_ArrayForEach(option, json_get(own, "options"))
    {
        const char *value = json_str(option, "value");
        buf_printf(out, "options %s%s%s\n", json_str_or(option, "name", ""), value ? ":" : "",
                   value ? value : "");
    }
}

int volume_write_network(const struct sources *s, const struct volume_place *place,
                         char *const *dns, const char *domain, struct err *err)
{
    SCOPED(buf_fini) struct buf hosts = {0};
    SCOPED(buf_fini) struct buf resolv = {0};
    SCOPED_FREE char *hosts_path = xasprintf("%s/hosts", place->folder);
    SCOPED_FREE char *resolv_path = xasprintf("%s/resolv.conf", place->folder);
    print_hosts(s, domain, &hosts);
    print_resolv(s, dns, domain, &resolv);
    int rc = disk_write(AT_FDCWD, hosts_path, hosts.data, hosts.len, 0644, err);
    return rc < 0 ? rc : disk_write(AT_FDCWD, resolv_path, resolv.data, resolv.len, 0644, err);
}

/* ---- the end ---- */

/* Everything that is mounted below the folder, last first. */
static void unmount_below(const char *folder)
{
    SCOPED(buf_fini) struct buf table = {0};
    char **places = NULL;
    size_t n = 0, len = strlen(folder);
    if (file_read("/proc/self/mountinfo", (size_t)16 << 20, &table, NULL) < 0)
        return;
    for (char *line = table.data; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        const char *field = line;
        for (int i = 0; i < 4 && field; i++) /* id, parent, device, root, place */
            field = strchr(field, ' ') ? strchr(field, ' ') + 1 : NULL;
        if (field && strncmp(field, folder, len) == 0 && field[len] == '/') {
            strv_add(&places, xstrndup(field, strcspn(field, " ")));
            n++;
        }
    }
    while (n-- > 0)
        umount2(places[n], MNT_DETACH | UMOUNT_NOFOLLOW);
    strv_free(places);
}

int volume_remove_all(const struct volume_place *place, struct err *err)
{
    unmount_below(place->folder);
    return disk_remove_tree(place->folder, err);
}
