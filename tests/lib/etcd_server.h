/* A real etcd for tests: on 127.0.0.1, random ports below 32768, a folder of its own, gone when the
 * process that started it is gone. No fsync, so nothing here is about durability. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The programs to test with: Debian's, and the newest one at hand ($AGENT_SANDBOX_ETCD, else from
 * the cache of hack/cluster). Each owned by the caller, NULL when there is none (a `# skip:` line
 * is printed then). */
char *etcd_server_debian(void);
char *etcd_server_newest(void);

struct etcd_server {                /* starts as {0} */
    char *program, *dir, *endpoint; /* http://127.0.0.1:port */
    char *peer_url, *health_url;
    const char *scheme;  /* NULL = http; https needs args that name the certificates */
    const char *args[8]; /* further arguments, borrowed; set before the start */
    pid_t pid;           /* 0 = not running */
};
/* Chooses ports, makes the folder, starts and waits until it is healthy. False when that fails. */
bool etcd_server_start(struct etcd_server *s, const char *program);
void etcd_server_kill(struct etcd_server *s);    /* SIGKILL; folder and ports stay */
bool etcd_server_restart(struct etcd_server *s); /* after a kill, with the same data */
void etcd_server_pause(struct etcd_server *s, bool is_paused);
void etcd_server_stop(struct etcd_server *s); /* and removes the folder */
