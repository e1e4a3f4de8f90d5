/* The door to Podman's REST API, over its Unix socket. Knows containers and images, no Pods. What
 * the engine answers is bounded; calls have deadlines. Errors carry the engine's own text: by code
 * ERR_NOT_FOUND there is no such thing, ERR_CONFLICT its state does not allow it, else as fetch_do.
 * Any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apiserver/base/fetch.h"

struct podman;
struct podman *podman_new(struct fetch *fetch, const char *socket); /* fetch is borrowed */
void podman_free(struct podman *p);
const char *podman_socket(const struct podman *p);

int podman_ping(struct podman *p, struct err *err);

/* Limits of processes that the engine may give to containers: its own. Where it may not raise them,
 * its defaults fail, so every create call carries these. */
struct podman_limits {
    int64_t nofile, nproc;
};
int podman_limits(struct podman *p, struct podman_limits *ret, struct err *err);

/* ---- images ---- */

struct podman_image { /* starts as {0}; podman_image_fini */
    char *id;         /* sha256 in hex */
    char *digest;     /* name@sha256:..., "" when it was never in a registry */
    char *user;       /* as the image says, "" = root */
    cJSON *labels;    /* NULL = none; as annotations */
    cJSON *annotations;
};
void podman_image_fini(struct podman_image *i);
int podman_image_find(struct podman *p, const char *name, struct podman_image *ret,
                      struct err *err);
/* auth: what X-Registry-Auth takes, or NULL. Takes minutes. */
int podman_image_pull(struct podman *p, const char *name, const char *auth, struct err *err);
/* Takes a while for large ones. */
int podman_image_load(struct podman *p, const struct buf *archive, struct err *err);

/* ---- networks ---- */

/* A bridge of that name and range; nothing when there is one already. */
int podman_network_ensure(struct podman *p, const char *name, const char *interface,
                          const char *subnet, struct err *err);

/* ---- containers ---- */

int podman_create(struct podman *p, const cJSON *spec, char **ret_id, struct err *err);
int podman_start(struct podman *p, const char *id, struct err *err);
int podman_signal(struct podman *p, const char *id, const char *signal, struct err *err);
int podman_remove(struct podman *p, const char *id, struct err *err); /* of one that is gone: 0 */
int podman_inspect(struct podman *p, const char *id, cJSON **ret, struct err *err);
/* All containers, running or not, with that label ("name=value" or "name"). */
int podman_list(struct podman *p, const char *label, cJSON **ret, struct err *err);
/* The last bytes that it wrote, at most max; "" when there is nothing. */
int podman_log_tail(struct podman *p, const char *id, size_t max, struct buf *ret, struct err *err);

struct podman_exec {   /* podman_exec_fini */
    int exit_code;     /* of the command */
    struct buf output; /* both streams, in order, its beginning */
};
void podman_exec_fini(struct podman_exec *e);
/* Runs a command in a container and waits for its end. Errors: ERR_TIMEOUT it was killed. */
int podman_exec(struct podman *p, const char *id, const cJSON *command, int64_t timeout_ms,
                struct podman_exec *ret, struct err *err);

/* The same in steps: a command is made, started, looked after and, when nobody wants it any more,
 * killed with what it started. The engine forgets it some seconds after its end. */
struct podman_command {
    const cJSON *words; /* list of strings */
    bool has_stdin, has_stdout, has_stderr, has_tty;
};
int podman_exec_create(struct podman *p, const char *id, const struct podman_command *c,
                       char **ret_exec_id, struct err *err);
struct podman_exec_state {
    bool is_running;
    int exit_code;
    pid_t pid; /* while it runs: leads a session of its own */
};
int podman_exec_look(struct podman *p, const char *exec_id, struct podman_exec_state *ret,
                     struct err *err);
int podman_exec_kill(struct podman *p, const char *exec_id, struct err *err);
/* what: exec or containers. */
int podman_resize(struct podman *p, const char *what, const char *id, int width, int height,
                  struct err *err);

/* ---- streams of commands and containers ---- */

/* Connections that carry the bytes of stdin one way and the others' the other way: with a terminal
 * as they are, else in frames (podman_frame). Shutting one's side down ends stdin. Closing leaves
 * command and container alone. ret_fd blocks; its end is the command's or the container's end. */
int podman_exec_open(struct podman *p, const char *exec_id, bool has_tty, int width, int height,
                     int *ret_fd, struct err *err);
int podman_attach(struct podman *p, const char *id, bool has_stdin, int *ret_fd, struct err *err);

#define PODMAN_FRAME_HEAD 8
enum podman_stream { PODMAN_STDIN, PODMAN_STDOUT, PODMAN_STDERR };
/* Which stream the bytes behind the head are of, and how many. */
enum podman_stream podman_frame(const unsigned char head[PODMAN_FRAME_HEAD], size_t *ret_len);

/* ---- news ---- */

/* Calls back, on a thread that must not block, with the value of a label of every container that
 * starts or ends. Resumes for ever; what happens while the engine is away is not told. */
struct podman_watch;
struct podman_watch *podman_watch_start(struct podman *p, const char *label,
                                        void (*on_change)(void *ctx, const char *value), void *ctx);
void podman_watch_stop(struct podman_watch *w); /* NULL is fine */
