/* The folder is read before the cluster is asked, so a claim that is made meanwhile is not taken
 * for one that is gone. Claims are asked for only when there is a folder of no volume: a node may
 * know of volumes, but seldom of all claims (a server without a cluster tells it of those of its
 * own Pods only). */
#include "node/claims.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/kube/local_volume.h"
#include "node/disk.h"

static char **list_folders(const char *folder)
{
    char **names = NULL;
    DIR *claims = opendir(folder);
    const struct dirent *entry;
    while (claims && (entry = readdir(claims)) != NULL) {
        if (entry->d_name[0] != '.')
            strv_add(&names, xstrdup(entry->d_name));
    }
    if (claims)
        closedir(claims);
    return names;
}

/* ---- who a folder belongs to ---- */

static const char *uid_of_claim(const cJSON *claim)
{
    return json_str_or(claim, "metadata.uid", "");
}

static const char *handle_of_volume(const cJSON *volume)
{
    bool is_ours = strcmp(json_str_or(volume, "spec.csi.driver", ""), LOCAL_VOLUME_DRIVER) == 0;
    return is_ours ? json_str_or(volume, "spec.csi.volumeHandle", "") : "";
}

struct owner {
    const char *page;
    const char *(*folder)(const cJSON *object);
};
static const struct owner volumes = {"/api/v1/persistentvolumes?limit=500", handle_of_volume};
static const struct owner claims = {"/api/v1/persistentvolumeclaims?limit=500", uid_of_claim};

static int list_owned(struct kube *kube, const struct owner *owner, struct map *owned,
                      struct err *err)
{
    SCOPED(buf_fini) struct buf path = {0};
    buf_puts(&path, owner->page);
    for (;;) {
        SCOPED(json_free_p) cJSON *page = NULL;
        int rc = kube_do(kube, &(struct kube_call){.method = "GET", .path = buf_cstr(&path)}, &page,
                         err);
        if (rc < 0)
            return rc;
        const cJSON *o;
        cJSON_ArrayForEach(o, json_get(page, "items")) map_put(owned, owner->folder(o), owned);
        const char *next = json_str_or(page, "metadata.continue", "");
        if (!*next)
            return 0;
        buf_clear(&path);
        buf_printf(&path, "%s&continue=", owner->page);
        fetch_escape(next, &path);
    }
}

/* ---- claims without a volume ---- */

static char *mark_of(const char *folder, const char *uid)
{
    return xasprintf("%s/.unbound-%s", folder, uid);
}

int claims_mark_unbound(const char *folder, const char *uid, struct err *err)
{
    SCOPED_FREE char *mark = mark_of(folder, uid);
    int rc = disk_make_folder(folder, 0711, err);
    return rc < 0 ? rc : disk_write(AT_FDCWD, mark, "", 0, 0600, err);
}

static void unmark(const char *folder, const char *uid)
{
    SCOPED_FREE char *mark = mark_of(folder, uid);
    (void)unlink(mark); /* seldom there */
}

static bool is_marked(const char *folder, const char *uid)
{
    SCOPED_FREE char *mark = mark_of(folder, uid);
    return access(mark, F_OK) == 0;
}

/* ---- the sweep ---- */

struct sweep {
    struct kube *kube;
    const char *folder;
    char **names;
    struct map *owned;
    bool knows_claims;
};

static bool is_all_owned(const struct sweep *s)
{
    for (char **name = s->names; *name; name++)
        if (!map_get(s->owned, *name))
            return false;
    return true;
}

static int find_owners(struct sweep *s, struct err *err)
{
    int rc = list_owned(s->kube, &volumes, s->owned, err);
    if (rc < 0 || is_all_owned(s))
        return rc;
    rc = list_owned(s->kube, &claims, s->owned, err);
    s->knows_claims = rc == 0;
    if (rc != -ERR_FORBIDDEN)
        return rc;
    err_fini(err);
    return 0;
}

static int look_at(const struct sweep *s, const char *name, struct err *err)
{
    if (map_get(s->owned, name)) {
        if (!s->knows_claims) /* so it is a volume's by now */
            unmark(s->folder, name);
        return 0;
    }
    if (!s->knows_claims && is_marked(s->folder, name))
        return 0;
    SCOPED_FREE char *path = xasprintf("%s/%s", s->folder, name);
    int rc = disk_remove_tree(path, err);
    if (rc < 0)
        return rc;
    unmark(s->folder, name);
    log_info("volume's folder removed name=%s", name);
    return 0;
}

int claims_sweep(struct kube *kube, const char *folder, struct err *err)
{
    struct sweep s = {
        .kube = kube, .folder = folder, .names = list_folders(folder), .owned = map_new()};
    int rc = s.names ? find_owners(&s, err) : 0;
    for (char **name = rc == 0 ? s.names : NULL; name && *name; name++) {
        SCOPED(err_fini) struct err other = {0};
        if (look_at(&s, *name, rc == 0 ? err : &other) < 0) /* the first; others go on */
            rc = -(int)err->code;
    }
    strv_free(s.names);
    map_free(s.owned);
    return rc;
}
