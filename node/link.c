#include "node/link.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"

#define ANSWER_MAX 16384 /* bytes; an interface takes about two thousand */
#define ANSWER_S 10
#define SETTINGS "/proc/sys/net/bridge"

/* ---- messages ---- */

struct message {
    _Alignas(struct nlmsghdr) char bytes[512];
};

static struct nlmsghdr *head_of(struct message *m)
{
    return (struct nlmsghdr *)m->bytes;
}

static void begin(struct message *m, uint16_t type, uint16_t flags, int index)
{
    const struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = index};
    *m = (struct message){0};
    *head_of(m) = (struct nlmsghdr){
        .nlmsg_len = NLMSG_LENGTH(sizeof info), .nlmsg_type = type, .nlmsg_flags = flags};
    memcpy(NLMSG_DATA(head_of(m)), &info, sizeof info);
}

/* The attribute's place; n is small against the room. */
static size_t put(struct message *m, uint16_t type, const void *value, size_t n)
{
    size_t at = NLMSG_ALIGN(head_of(m)->nlmsg_len);
    const struct rtattr attribute = {.rta_len = (uint16_t)RTA_LENGTH(n), .rta_type = type};
    memcpy(m->bytes + at, &attribute, sizeof attribute);
    if (n)
        memcpy(m->bytes + at + RTA_LENGTH(0), value, n);
    head_of(m)->nlmsg_len = (uint32_t)(at + RTA_ALIGN(attribute.rta_len));
    return at;
}

/* What was put since then is inside of the attribute at that place. */
static void close_nest(struct message *m, size_t at)
{
    uint16_t n = (uint16_t)(head_of(m)->nlmsg_len - at);
    memcpy(m->bytes + at + offsetof(struct rtattr, rta_len), &n, sizeof n);
}

/* Sends it and reads one answer, in the network namespace of this thread. Bytes, or -errno. */
static ssize_t exchange(const struct message *m, char *answer)
{
    const struct timeval patience = {.tv_sec = ANSWER_S};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const struct nlmsghdr *head = (const struct nlmsghdr *)m->bytes;
    ssize_t n = send(fd, m->bytes, head->nlmsg_len, 0);
    if (n >= 0)
        n = recv(fd, answer, ANSWER_MAX, 0);
    if (n < 0)
        n = -errno;
    close(fd);
    return n;
}

/* 0, or the errno that the answer carries. */
static int error_of(const char *answer, ssize_t n)
{
    struct nlmsgerr said;
    const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
    if (n < 0)
        return (int)-n;
    if (n < NLMSG_HDRLEN || head->nlmsg_len > (size_t)n)
        return EPROTO;
    if (head->nlmsg_type != NLMSG_ERROR || head->nlmsg_len < NLMSG_LENGTH(sizeof said))
        return 0;
    memcpy(&said, NLMSG_DATA(head), sizeof said);
    return -said.error;
}

/* ---- an interface ---- */

struct interface {
    int index, peer, master; /* 0 = none */
    unsigned char mac[6];
};

static void read_interface(const char *answer, struct interface *ret)
{
    const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
    const struct ifinfomsg *info = NLMSG_DATA(head);
    size_t left = head->nlmsg_len > NLMSG_LENGTH(sizeof *info)
                      ? head->nlmsg_len - NLMSG_LENGTH(sizeof *info)
                      : 0;
    const struct rtattr *a = IFLA_RTA(info);
    ret->index = info->ifi_index;
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == IFLA_LINK && RTA_PAYLOAD(a) >= sizeof ret->peer)
            memcpy(&ret->peer, RTA_DATA(a), sizeof ret->peer);
        else if (a->rta_type == IFLA_MASTER && RTA_PAYLOAD(a) >= sizeof ret->master)
            memcpy(&ret->master, RTA_DATA(a), sizeof ret->master);
        else if (a->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(a) == sizeof ret->mac)
            memcpy(ret->mac, RTA_DATA(a), sizeof ret->mac);
    }
}

/* By name, or by index when that is NULL. 0 or errno. */
static int look(const char *name, int index, struct interface *ret)
{
    struct message m;
    _Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
    *ret = (struct interface){0};
    begin(&m, RTM_GETLINK, NLM_F_REQUEST, name ? 0 : index);
    if (name)
        put(&m, IFLA_IFNAME, name, strlen(name) + 1);
    int rc = error_of(answer, exchange(&m, answer));
    if (rc == 0)
        read_interface(answer, ret);
    return rc;
}

/* ---- inside of a network namespace ---- */

struct visit {
    const char *netns, *name;
    struct interface found;
    int error;
};

/* A thread that ends there: its namespace ends with it. */
static void *run_visit(void *arg)
{
    struct visit *v = arg;
    int fd = open(v->netns, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
        v->error = errno;
    else
        v->error = look(v->name, 0, &v->found);
    if (fd >= 0)
        close(fd);
    return NULL;
}

int link_find_port(const char *netns, const char *interface, const char *bridge,
                   struct link_port *ret, struct err *err)
{
    struct visit v = {.netns = netns, .name = interface};
    struct interface port, master;
    pthread_t thread;
    thread_start(&thread, "netns", run_visit, &v);
    pthread_join(thread, NULL);
    if (v.error)
        return err_set(err, ERR_UNAVAILABLE, "%s in %s: %s", interface, netns, strerror(v.error));
    bool is_port = look(NULL, v.found.peer, &port) == 0 && look(bridge, 0, &master) == 0 &&
                   port.peer == v.found.index && port.master == master.index;
    if (!is_port || !if_indextoname((unsigned)port.index, ret->name))
        return err_set(err, ERR_UNAVAILABLE, "%s in %s is no port of %s", interface, netns, bridge);
    const unsigned char *b = v.found.mac;
    snprintf(ret->mac, sizeof ret->mac, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3],
             b[4], b[5]);
    return 0;
}

/* ---- the bridge ---- */

int link_filter_bridge(const char *bridge, struct err *err)
{
    static const uint8_t on = 1;
    struct message m;
    _Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
    begin(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, (int)if_nametoindex(bridge));
    size_t info = put(&m, IFLA_LINKINFO, NULL, 0);
    put(&m, IFLA_INFO_KIND, "bridge", sizeof "bridge");
    size_t data = put(&m, IFLA_INFO_DATA, NULL, 0);
    put(&m, IFLA_BR_NF_CALL_IPTABLES, &on, sizeof on);
    close_nest(&m, data);
    close_nest(&m, info);
    int rc = error_of(answer, exchange(&m, answer));
    return rc == 0 ? 0
                   : err_set(err, ERR_FORBIDDEN, "bridge %s cannot be filtered: %s", bridge,
                             strerror(rc));
}

static void load(void)
{
    char program[] = "modprobe", quiet[] = "-q", name[] = "br_netfilter";
    char *argv[] = {program, quiet, name, NULL};
    pid_t pid;
    if (posix_spawnp(&pid, program, NULL, NULL, argv, environ) == 0)
        waitpid(pid, NULL, 0);
}

static bool switch_off(const char *setting)
{
    SCOPED_FREE char *path = xasprintf(SETTINGS "/%s", setting);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_good = fd >= 0 && write(fd, "0", 1) == 1;
    if (fd >= 0)
        close(fd);
    return is_good;
}

int link_need_filter(struct err *err)
{
    static const char *const others[] = {"bridge-nf-call-iptables", "bridge-nf-call-ip6tables",
                                         "bridge-nf-call-arptables"};
    if (access(SETTINGS, F_OK) == 0)
        return 0;
    load();
    if (access(SETTINGS, F_OK) != 0)
        return err_set(
            err, ERR_NOT_FOUND,
            "the kernel has no br_netfilter, so traffic between Pods cannot be filtered");
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (!switch_off(others[i]))
            return err_set(err, ERR_FORBIDDEN, SETTINGS "/%s cannot be set", others[i]);
    }
    return 0;
}
