#include "node/register.h"

#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

struct node_facts register_facts(const char *name, const char *address, int port, int pods)
{
    return (struct node_facts){
        .name = name,
        .address = address,
        .port = port,
        .pods = pods,
        .cpus = sysconf(_SC_NPROCESSORS_ONLN),
        .memory_bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
    };
}

static int call(struct kube *kube, const char *method, const char *path, const char *type,
                cJSON *take_body, struct err *err)
{
    SCOPED(json_free_p) cJSON *body = take_body;
    return kube_do(
        kube,
        &(struct kube_call){.method = method, .path = path, .body = body, .content_type = type},
        NULL, err);
}

int register_node(struct kube *kube, const struct node_facts *facts, int64_t now_unix_s,
                  struct err *err)
{
    SCOPED_FREE char *path = xasprintf("/api/v1/nodes/%s/status", facts->name);
    int rc = call(kube, "POST", "/api/v1/nodes", NULL, object_node(facts), err);
    if (rc < 0 && rc != -ERR_ALREADY_EXISTS)
        return rc;
    return call(kube, "PATCH", path, KUBE_STRATEGIC_PATCH, object_node_status(facts, now_unix_s),
                err);
}

int register_renew(struct kube *kube, const char *name, int64_t renew_ms, int64_t now_unix_ms,
                   struct err *err)
{
    SCOPED_FREE char *path = xasprintf(OBJECT_LEASES "/%s", name);
    int rc =
        call(kube, "PATCH", path, KUBE_MERGE_PATCH, object_lease(name, renew_ms, now_unix_ms), err);
    if (rc == -ERR_NOT_FOUND)
        rc =
            call(kube, "POST", OBJECT_LEASES, NULL, object_lease(name, renew_ms, now_unix_ms), err);
    return rc;
}
