/* The folder is read before the cluster is asked, so a claim that is made meanwhile is not taken
 * for one that is gone. */
#include "node/claims.h"

#include <dirent.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "node/disk.h"

#define PAGE "/api/v1/persistentvolumeclaims?limit=500"

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

static int list_uids(struct kube *kube, struct map *uids, struct err *err)
{
    SCOPED(buf_fini) struct buf path = {0};
    buf_puts(&path, PAGE);
    for (;;) {
        SCOPED(json_free_p) cJSON *page = NULL;
        int rc = kube_do(kube, &(struct kube_call){.method = "GET", .path = buf_cstr(&path)}, &page,
                         err);
        if (rc < 0)
            return rc;
        const cJSON *claim;
        cJSON_ArrayForEach(claim, json_get(page, "items"))
            map_put(uids, json_str_or(claim, "metadata.uid", ""), uids);
        const char *next = json_str_or(page, "metadata.continue", "");
        if (!*next)
            return 0;
        buf_clear(&path);
        buf_puts(&path, PAGE "&continue=");
        fetch_escape(next, &path);
    }
}

int claims_sweep(struct kube *kube, const char *folder, struct err *err)
{
    char **names = list_folders(folder);
    struct map *uids = map_new();
    int rc = names ? list_uids(kube, uids, err) : 0;
    for (char **name = names; rc == 0 && name && *name; name++) {
        if (map_get(uids, *name))
            continue;
        SCOPED_FREE char *path = xasprintf("%s/%s", folder, *name);
        rc = disk_remove_tree(path, err);
        log_info("claim's folder removed uid=%s", *name);
    }
    strv_free(names);
    map_free(uids);
    return rc;
}
