/* Containers own what they may write, so nothing here follows a link in it. */
#include "node/volume.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/quantity.h"
#include "apiserver/kube/local_volume.h"
#include "node/claims.h"
#include "node/disk.h"
#include "node/names.h"
#include "node/refuse.h"
#include "node/volume_fill.h"

#define MESSAGE_MAX ((size_t)4096)
#define HOST_RESOLV_MAX ((size_t)64 << 10)

static int fail(struct err *err, const char *what, const char *path)
{
    return err_set(err, ERR_INVALID, "%s: %s: %m", path, what);
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
    if (quantity_read_milli(json_get(v->spec, "sizeLimit"), &milli) == 0 && milli > 0)
        buf_printf(&options, ",size=%" PRId64, milli / 1000 + (milli % 1000 != 0));
    if (mount("tmpfs", v->folder, "tmpfs", MS_NOSUID | MS_NODEV, buf_cstr(&options)) < 0)
        return fail(err, "memory cannot be mounted", v->folder);
    return open_to_containers(v, err);
}

/* What was found is mounted to a place of ours, which the engine gets: a path would be looked up
 * again later, when a container may have put a link there. Later mounts do not pass between them.
 */
static int mount_found(int fd, const char *place, struct err *err)
{
    struct mount_attr apart = {.propagation = MS_PRIVATE};
    int tree =
        open_tree(fd, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    bool is_good =
        tree >= 0 &&
        mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &apart, sizeof apart) == 0 &&
        move_mount(tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) == 0;
    int rc = is_good ? 0 : fail(err, "cannot be mounted", place);
    if (tree >= 0)
        close(tree);
    return rc;
}

/* Takes over fd; name is of what was found. */
static int pin_found(int fd, const char *name, const char *place, struct err *err)
{
    struct stat st;
    int rc = 0;
    umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW);
    if (fstat(fd, &st) < 0)
        rc = fail(err, "cannot be looked at", name);
    else if (S_ISDIR(st.st_mode))
        rc = disk_make_folder(place, 0755, err);
    else if (S_ISREG(st.st_mode))
        rc = disk_write(AT_FDCWD, place, "", 0, 0644, err);
    else
        rc = err_set(err, ERR_FORBIDDEN, "\"%s\" is neither file nor folder", name);
    if (rc == 0)
        rc = mount_found(fd, place, err);
    close(fd);
    return rc;
}

/* ---- folders of the machine ---- */

static int open_host(const struct volume *v, const char *path, const char *type, int *ret_fd,
                     struct err *err)
{
    size_t n = refuse_allowed_length(path, v->place->host_paths);
    SCOPED_FREE char *root = xstrndup(path, n);
    bool makes = strcmp(type, "DirectoryOrCreate") == 0, wants_file = strcmp(type, "File") == 0;
    struct stat st;
    int fd = -1;
    if (n == 0)
        return err_set(err, ERR_FORBIDDEN, "%s is in no folder of --allowed-host-paths", path);
    int rc = makes ? disk_make_folder(root, 0755, err) : 0;
    if (rc == 0)
        rc = disk_open_beneath(root, path + n + strspn(path + n, "/"), makes, 0755, &fd, err);
    if (rc < 0)
        return err_wrap(err, "%s", path);
    if (fstat(fd, &st) < 0 || (wants_file ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode)))
        rc = err_set(err, ERR_INVALID, "%s is no %s", path, wants_file ? "file" : "folder");
    if (rc == 0)
        *ret_fd = fd;
    else
        close(fd);
    return rc;
}

/* Containers may write in an allowed folder, too, so a path in it leads where it says only as long
 * as nobody puts a link there: it is the volume's own folder on which it is mounted. */
static int pin_host(const struct volume *v, const char *path, const char *type, struct err *err)
{
    int fd = -1, rc = open_host(v, path, type, &fd, err);
    return rc < 0 ? rc : pin_found(fd, path, v->folder, err);
}

static bool is_name(const char *handle)
{
    return *handle && *handle != '.' && !strchr(handle, '/');
}

/* A volume that somebody made is on this machine: a folder that is allowed to be given away. */
static int pin_given(const struct volume *v, const cJSON *volume, struct err *err)
{
    const char *name = json_str_or(volume, "metadata.name", ""),
               *path = json_str(volume, "spec.hostPath.path");
    path = path ? path : json_str(volume, "spec.local.path");
    if (!path)
        return err_set(err, ERR_INVALID, "persistentvolume \"%s\" is of no kind that is known here",
                       name);
    int rc = pin_host(v, path, json_str_or(volume, "spec.hostPath.type", ""), err);
    return rc < 0 ? err_wrap(err, "persistentvolume \"%s\"", name) : 0;
}

/* Of our own, it carries the uid of the claim that it was made for, so that a later claim of the
 * same name starts empty. */
static int own_folder(const struct volume *v, const char *handle, char **ret, struct err *err)
{
    SCOPED_FREE char *folder = xasprintf("%s/%s", v->place->claims, handle);
    if (!is_name(handle))
        return err_set(err, ERR_INVALID, "\"%s\" cannot be the handle of a volume", handle);
    struct stat st;
    int rc = disk_make_folder(v->place->claims, 0711, err);
    bool is_new = rc == 0 && stat(folder, &st) < 0;
    if (is_new)
        rc = disk_make_folder(folder, 0777, err);
    if (rc < 0)
        return rc;
    struct volume own = *v;
    own.folder = folder;
    rc = is_new || v->group >= 0 ? open_to_containers(&own, err) : 0;
    if (rc == 0)
        *ret = steal(&folder);
    return rc;
}

/* A claim that nobody gave a volume has the one that would be made for it. */
static int unbound_folder(const struct volume *v, const char *uid, char **ret, struct err *err)
{
    if (is_name(uid) && claims_mark_unbound(v->place->claims, uid, err) < 0)
        return -(int)err->code;
    return own_folder(v, uid, ret, err);
}

static int claim_folder(const struct volume *v, char **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *claim = NULL, *volume = NULL;
    int rc = v->s->get(v->s->ctx, "persistentvolumeclaims", json_str_or(v->spec, "claimName", ""),
                       &claim, err);
    if (rc < 0)
        return rc;
    const char *uid = json_str_or(claim, "metadata.uid", ""),
               *name = json_str_or(claim, "spec.volumeName", "");
    if (!*name)
        return unbound_folder(v, uid, ret, err);
    rc = v->s->get(v->s->ctx, "persistentvolumes", name, &volume, err);
    if (rc < 0)
        return rc;
    if (strcmp(json_str_or(volume, "spec.claimRef.uid", ""), uid) != 0)
        return err_set(err, ERR_NOT_FOUND, "persistentvolume \"%s\" is not the claim's yet", name);
    if (strcmp(json_str_or(volume, "spec.csi.driver", ""), LOCAL_VOLUME_DRIVER) == 0)
        return own_folder(v, json_str_or(volume, "spec.csi.volumeHandle", ""), ret, err);
    *ret = xstrdup(v->folder);
    return pin_given(v, volume, err);
}

static int fill_claim(struct volume *v, struct err *err)
{
    char *folder = NULL;
    int rc = claim_folder(v, &folder, err);
    if (folder)
        free(v->folder);
    v->folder = folder ? folder : v->folder;
    return rc;
}

static int fill_host(struct volume *v, struct err *err)
{
    return pin_host(v, json_str_or(v->spec, "path", ""), json_str_or(v->spec, "type", ""), err);
}

/* ---- all volumes ---- */

/* Those whose folder is elsewhere change it. Collected ones are written by the node alone. */
static const struct kind {
    const char *field;
    int (*fill)(const struct volume *v, struct err *err);
    int (*locate)(struct volume *v, struct err *err);
    int (*collect)(const struct volume *v, struct err *err);
} kinds[] = {
    {"emptyDir", fill_empty, NULL, NULL},
    {"configMap", NULL, NULL, volume_fill_config_map},
    {"secret", NULL, NULL, volume_fill_secret},
    {"downwardAPI", NULL, NULL, volume_fill_downward},
    {"projected", NULL, NULL, volume_fill_projected},
    {"persistentVolumeClaim", NULL, fill_claim, NULL},
    {"hostPath", NULL, fill_host, NULL},
};

/* One that says nothing is an empty folder, the first. */
static const struct kind *kind_of(const cJSON *volume)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (json_get(volume, kinds[i].field))
            return &kinds[i];
    }
    return &kinds[0];
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

static int collect(struct volume *v, const struct kind *kind, struct err *err)
{
    SCOPED(payload_fini) struct payload payload = {0};
    v->payload = &payload;
    int rc = kind->collect(v, err);
    if (rc == 0)
        rc = payload_write(&payload,
                           &(struct payload_place){.folder = v->folder,
                                                   .salt = v->place->salt,
                                                   .group = (gid_t)v->group},
                           err);
    v->payload = NULL;
    return rc;
}

static int make_one(const struct sources *s, const struct volume_place *place, const cJSON *volume,
                    struct err *err)
{
    const struct kind *kind = kind_of(volume);
    struct volume v = volume_of(s, place, volume, kind);
    int rc = kind->locate ? kind->locate(&v, err) : disk_make_folder(v.folder, 0755, err);
    if (rc == 0 && kind->fill)
        rc = kind->fill(&v, err);
    if (rc == 0 && kind->collect)
        rc = collect(&v, kind, err);
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

bool volume_follows(const cJSON *pod)
{
    const cJSON *volume;
    cJSON_ArrayForEach(volume, json_at(pod, "spec.volumes"))
    {
        if (kind_of(volume)->collect)
            return true;
    }
    return false;
}

/* Others would meet with the same. */
static bool is_of_volume(int rc)
{
    return rc == -ERR_NOT_FOUND || rc == -ERR_FORBIDDEN || rc == -ERR_INVALID ||
           rc == -ERR_TOO_LARGE;
}

int volume_follow_all(const struct sources *s, const struct volume_place *place, struct err *err)
{
    const cJSON *volume;
    int first = 0;
    cJSON_ArrayForEach(volume, json_at(s->pod, "spec.volumes"))
    {
        SCOPED(err_fini) struct err other = {0};
        if (!kind_of(volume)->collect || volume_is_constant(s, volume))
            continue;
        int rc = make_one(s, place, volume, first == 0 ? err : &other);
        first = first == 0 ? rc : first;
        if (rc < 0 && !is_of_volume(rc))
            break;
    }
    return first;
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

static int pin(const char *root, const char *sub_path, bool make, const char *place,
               struct err *err)
{
    struct stat st = {.st_mode = 0755};
    int fd;
    stat(root, &st); /* what is made has the volume's own mode */
    int rc = disk_open_beneath(root, sub_path, make, st.st_mode & 07777, &fd, err);
    return rc < 0 ? rc : pin_found(fd, sub_path, place, err);
}

/* A part of a volume whose states follow each other is of the state that is there now. */
static int pin_state(const char *folder, const char *sub_path, const char *place, struct err *err)
{
    SCOPED_FREE char *root = payload_root(folder);
    struct stat st;
    int rc = pin(root, sub_path, false, place, err);
    if (rc == 0 && stat(place, &st) == 0 && S_ISDIR(st.st_mode)) /* a file is there while mounted */
        payload_keep(folder);
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
    struct volume v = volume_of(s, place, volume, kind);
    int rc = kind->locate ? kind->locate(&v, err) : 0;
    const char *sub_path = json_str_or(mount, "subPath", "");
    bool is_read_only = kind->collect || json_bool_or(mount, "readOnly", false) ||
                        json_bool_or(v.spec, "readOnly", false);
    if (rc == 0 && *sub_path)
        rc = kind->collect ? pin_state(v.folder, sub_path, part, err)
                           : pin(v.folder, sub_path, true, part, err);
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

static char *part_path(const struct volume_place *place, const char *container, unsigned attempt,
                       size_t i)
{
    return xasprintf("%s/parts/%s-%u-%zu", place->folder, container, attempt, i);
}

/* The engine takes one mount for a place, and the Pod's own wish counts. */
static void add_file(const char *from, const char *to, cJSON *list)
{
    const cJSON *mount;
    cJSON_ArrayForEach(mount, list)
    {
        if (strcmp(json_str_or(mount, "destination", ""), to) == 0)
            return;
    }
    add_mount(list, from, to, false);
}

/* Files of the node's in every container. */
static int add_own(const struct volume_place *place, const cJSON *container, unsigned attempt,
                   cJSON *list, struct err *err)
{
    static const char *const files[][2] = {{"hosts", "/etc/hosts"},
                                           {"resolv.conf", "/etc/resolv.conf"}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        SCOPED_FREE char *path = xasprintf("%s/%s", place->folder, files[i][0]);
        add_file(path, files[i][1], list);
    }
    SCOPED_FREE char *message = message_path(place, json_str_or(container, "name", ""), attempt);
    int rc = disk_write(AT_FDCWD, message, "", 0, 0666, err);
    add_file(message, json_str_or(container, "terminationMessagePath", "/dev/termination-log"),
             list);
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
        SCOPED_FREE char *part = part_path(place, json_str_or(container, "name", ""), attempt, i++);
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

void volume_forget(const struct volume_place *place, const cJSON *container, unsigned attempt)
{
    const char *name = json_str_or(container, "name", "");
    SCOPED_FREE char *message = message_path(place, name, attempt);
    unlink(message);
    for (size_t i = 0; i < json_len(json_get(container, "volumeMounts")); i++) {
        SCOPED_FREE char *part = part_path(place, name, attempt, i);
        umount2(part, MNT_DETACH | UMOUNT_NOFOLLOW);
        if (rmdir(part) < 0)
            unlink(part);
    }
}

/* Source: the kubelet, which keeps the last bytes. */
void volume_read_message(const struct volume_place *place, const char *container, unsigned attempt,
                         struct buf *out)
{
    SCOPED_FREE char *path = message_path(place, container, attempt);
    char bytes[MESSAGE_MAX];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        lseek(fd, -(off_t)sizeof bytes, SEEK_END); /* one that is shorter stays at its start */
    ssize_t n = fd < 0 ? 0 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    if (n > 0)
        buf_append(out, bytes, (size_t)n);
}

/* ---- names ---- */

int volume_write_network(const struct sources *s, const struct volume_place *place,
                         char *const *dns, const char *domain, struct err *err)
{
    SCOPED(buf_fini) struct buf hosts = {0};
    SCOPED(buf_fini) struct buf resolv = {0};
    SCOPED(buf_fini) struct buf machine = {0};
    SCOPED_FREE char *hosts_path = xasprintf("%s/hosts", place->folder);
    SCOPED_FREE char *resolv_path = xasprintf("%s/resolv.conf", place->folder);
    file_read("/etc/resolv.conf", HOST_RESOLV_MAX, &machine, NULL);
    names_print_hosts(s->pod, s->pod_ip, s->api.address, domain, &hosts);
    names_print_resolv(s->pod, dns, domain, buf_cstr(&machine), &resolv);
    int rc = disk_write(AT_FDCWD, hosts_path, hosts.data, hosts.len, 0644, err);
    return rc < 0 ? rc : disk_write(AT_FDCWD, resolv_path, resolv.data, resolv.len, 0644, err);
}

/* ---- the end ---- */

int volume_remove_all(const struct volume_place *place, struct err *err)
{
    return disk_remove_tree(place->folder, err);
}
