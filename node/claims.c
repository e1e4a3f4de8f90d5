/* The folder is read before the cluster is asked, so a claim that is made meanwhile is not taken
 * for one that is gone. */
#include "node/claims.h"

#include <dirent.h>
#include <string.h>

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

/* A claim that has no volume yet uses the folder that it will get. */
static const struct {
    const char *page;
    const char *(*folder)(const cJSON *object);
} owners[] = {
    {"/api/v1/persistentvolumeclaims?limit=500", uid_of_claim},
    {"/api/v1/persistentvolumes?limit=500", handle_of_volume},
};

static int list_owned(struct kube *kube, size_t i, struct map *owned, struct err *err)
{
    SCOPED(buf_fini) struct buf path = {0};
    buf_puts(&path, owners[i].page);
    for (;;) {
        SCOPED(json_free_p) cJSON *page = NULL;
        int rc = kube_do(kube, &(struct kube_call){.method = "GET", .path = buf_cstr(&path)}, &page,
                         err);
        if (rc < 0)
            return rc;
        const cJSON *o;
        cJSON_ArrayForEach(o, json_get(page, "items")) map_put(owned, owners[i].folder(o), owned);
        const char *next = json_str_or(page, "metadata.continue", "");
        if (!*next)
            return 0;
        buf_clear(&path);
        buf_printf(&path, "%s&continue=", owners[i].page);
        fetch_escape(next, &path);
    }
}

int claims_sweep(struct kube *kube, const char *folder, struct err *err)
{
    char **names = list_folders(folder);
    struct map *owned = map_new();
    int rc = 0;
    for (size_t i = 0; names && rc == 0 && i < ARRAY_LEN(owners); i++)
        rc = list_owned(kube, i, owned, err);
    for (char **name = names; rc == 0 && name && *name; name++) {
        if (map_get(owned, *name))
            continue;
        SCOPED_FREE char *path = xasprintf("%s/%s", folder, *name);
        rc = disk_remove_tree(path, err);
        log_info("volume's folder removed name=%s", *name);
    }
    strv_free(names);
    map_free(owned);
    return rc;
}
