#include "node/names.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/env.h"

static const char *pod_text(const cJSON *pod, const char *path)
{
    return json_str_or(pod, path, "");
}

void names_print_hosts(const cJSON *pod, const char *pod_ip, const char *api, const char *domain,
                       struct buf *out)
{
    const char *host = json_str_or(pod, "spec.hostname", pod_text(pod, "metadata.name"));
    const char *subdomain = pod_text(pod, "spec.subdomain");
    buf_puts(out, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
    buf_printf(out, "%s\t", pod_ip);
    if (*subdomain)
        buf_printf(out, "%s.%s.%s.svc.%s\t", host, subdomain, pod_text(pod, "metadata.namespace"),
                   domain);
    buf_printf(out, "%s\n", host);
    if (api)
        buf_printf(out, "%s\t" ENV_API_HOST "\t" ENV_API_HOST ".%s\n", api, domain);
    const cJSON *alias, *name;
    cJSON_ArrayForEach(alias, json_at(pod, "spec.hostAliases"))
    {
        buf_puts(out, json_str_or(alias, "ip", ""));
        cJSON_ArrayForEach(name, json_get(alias, "hostnames"))
            buf_printf(out, "\t%s", cJSON_IsString(name) ? name->valuestring : "");
        buf_putc(out, '\n');
    }
}

/* ---- resolv.conf ---- */

static void print_servers(const cJSON *pod, struct buf *out)
{
    const cJSON *server;
    cJSON_ArrayForEach(server, json_at(pod, "spec.dnsConfig.nameservers"))
    {
        if (cJSON_IsString(server))
            buf_printf(out, "nameserver %s\n", server->valuestring);
    }
}

/* Of several search lines the last counts, so there is one. */
static void print_search(const cJSON *pod, const char *before, struct buf *out)
{
    const cJSON *own = json_at(pod, "spec.dnsConfig.searches"), *item;
    if (!*before && !(own && own->child))
        return;
    buf_printf(out, "search%s%s", *before ? " " : "", before);
    cJSON_ArrayForEach(item, own)
    {
        if (cJSON_IsString(item))
            buf_printf(out, " %s", item->valuestring);
    }
    buf_putc(out, '\n');
}

static void print_options(const cJSON *pod, const char *before, struct buf *out)
{
    const cJSON *option;
    buf_puts(out, before);
    cJSON_ArrayForEach(option, json_at(pod, "spec.dnsConfig.options"))
    {
        const char *value = json_str(option, "value");
        buf_printf(out, "options %s%s%s\n", json_str_or(option, "name", ""), value ? ":" : "",
                   value ? value : "");
    }
}

/* The machine's file but its search line, which is returned in search. */
static void print_machine(const char *machine, struct buf *search, struct buf *out)
{
    while (*machine) {
        size_t n = strcspn(machine, "\n");
        if (strncmp(machine, "search ", 7) == 0) {
            buf_clear(search);
            buf_append(search, machine + 7, n - 7);
        } else if (n > 0) {
            buf_printf(out, "%.*s\n", (int)n, machine);
        }
        machine += n + (machine[n] == '\n');
    }
}

void names_print_resolv(const cJSON *pod, char *const *dns, const char *domain, const char *machine,
                        struct buf *out)
{
    const char *policy = json_str_or(pod, "spec.dnsPolicy", "ClusterFirst");
    bool is_cluster = strcmp(policy, "ClusterFirst") == 0 && dns && *dns;
    SCOPED(buf_fini) struct buf search = {0};
    if (is_cluster) {
        for (; *dns; dns++)
            buf_printf(out, "nameserver %s\n", *dns);
        buf_printf(&search, "%s.svc.%s svc.%s %s", pod_text(pod, "metadata.namespace"), domain,
                   domain, domain);
    } else if (strcmp(policy, "None") != 0) {
        print_machine(machine, &search, out);
    }
    print_servers(pod, out);
    print_search(pod, buf_cstr(&search), out);
    print_options(pod, is_cluster ? "options ndots:5\n" : "", out);
}
