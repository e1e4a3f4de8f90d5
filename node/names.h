/* Names in a Pod's containers: /etc/hosts and /etc/resolv.conf. Pure. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/buf.h"

/* api: the address of the API server for that Pod, NULL = it has none. */
void names_print_hosts(const cJSON *pod, const char *pod_ip, const char *api, const char *domain,
                       struct buf *out);
/* dns: the cluster's name servers, ended by NULL; none or NULL: those of the machine's own file
 * serve ClusterFirst as well. The Pod's own settings come on top. */
void names_print_resolv(const cJSON *pod, char *const *dns, const char *domain, const char *machine,
                        struct buf *out);
