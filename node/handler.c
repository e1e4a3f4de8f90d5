/* Probes and hooks say what to do in the same words: run a command, ask over HTTP, connect. To
 * sleep is a hook's alone, and needs nobody (hook.c). */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/run.h"

#define ENGINE_MS 5000 /* what the engine may need to start a command, beside its own time */
#define SAID_MAX 256   /* bytes of what it said that go into an error */

void handler_target_fini(struct handler_target *t)
{
    free(t->id);
    free(t->ip);
    json_free(t->container);
    *t = (struct handler_target){0};
}

static const cJSON *spec_find(const cJSON *pod, const char *container)
{
    SCOPED_FREE struct member *members = NULL;
    size_t n;
    members = plan_members(pod, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(members[i].name, container) == 0)
            return members[i].spec;
    }
    return NULL;
}

bool handler_find(struct runner *r, const struct handler_key *k, struct handler_target *ret)
{
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, k->uid);
    const struct note *note = run && !run->is_gone ? run_note(run, k->container) : NULL;
    bool is_found = note && str_equal(note->instance_id, k->id);
    if (is_found)
        *ret = (struct handler_target){
            .id = xstrdup(note->instance_id),
            .ip = xstrdup(run->ip),
            .container = json_copy(spec_find(run->newest, k->container)),
        };
    pthread_mutex_unlock(&r->lock);
    return is_found;
}

/* ---- keys ---- */

char *handler_key_print(const char *uid, const char *container, const char *id, const char *what)
{
    return xasprintf("%s/%s/%s/%s", uid, container, id, what);
}

static char *next_part(const char **at)
{
    char *part = xstrndup(*at, strcspn(*at, "/"));
    *at += strlen(part);
    *at += **at == '/';
    return part;
}

struct handler_key handler_key_read(const char *key)
{
    struct handler_key k = {.uid = next_part(&key)};
    k.container = next_part(&key);
    k.id = next_part(&key);
    k.what = next_part(&key);
    return k;
}

void handler_key_fini(struct handler_key *k)
{
    free(k->uid);
    free(k->container);
    free(k->id);
    free(k->what);
}

/* ---- workers ---- */

bool handler_enter(struct runner *r, const char *uid, enum handler_queue queue)
{
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, uid);
    bool may = run && (run->busy[queue] == 0 || r->busy[queue] < HANDLER_WORKERS / 2);
    if (may) {
        run->busy[queue]++;
        r->busy[queue]++;
    }
    pthread_mutex_unlock(&r->lock);
    return may;
}

void handler_leave(struct runner *r, const char *uid, enum handler_queue queue)
{
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, uid); /* another one, if the Pod went and came meanwhile */
    if (run && run->busy[queue] > 0)
        run->busy[queue]--;
    r->busy[queue]--;
    pthread_mutex_unlock(&r->lock);
}

/* ---- what is done ---- */

static int run_command(struct runner *r, const struct handler_target *t, const cJSON *action,
                       int64_t timeout_ms, struct err *err)
{
    SCOPED(podman_exec_fini) struct podman_exec result = {0};
    int rc = podman_exec(r->far_podman, t->id, json_get(action, "command"), timeout_ms + ENGINE_MS,
                         &result, err);
    if (rc < 0)
        return rc;
    if (result.exit_code == 0)
        return 0;
    const char *said = buf_cstr(&result.output);
    return err_set(err, ERR_INTERNAL, "command ended with code %d: %.*s", result.exit_code,
                   (int)str_utf8_cut(said, result.output.len, SAID_MAX), said);
}

/* A number, or the name of one of the container's ports; 0 = neither. */
static int port_of(const struct handler_target *t, const cJSON *port)
{
    int64_t number = 0;
    const cJSON *p;
    if (json_node_i64(port, &number) < 0 && cJSON_IsString(port)) {
        cJSON_ArrayForEach(p, json_get(t->container, "ports"))
        {
            if (str_equal(json_str(p, "name"), port->valuestring))
                number = json_i64_or(p, "containerPort", 0);
        }
    }
    return number > 0 && number <= UINT16_MAX ? (int)number : 0;
}

/* What it says beside its status does not matter, however much it is. */
static int ask(struct fetch *fetch, const struct fetch_request *request, struct err *err)
{
    SCOPED(buf_fini) struct buf dropped = {0};
    int64_t until_ms = clock_monotonic_ms(&clock_system) + request->timeout_ms;
    struct fetch_stream *s = fetch_open(fetch, request);
    while (fetch_status(s) == 0 && fetch_read(s, until_ms, &dropped, err) == FETCH_SOME)
        ;
    int status = fetch_status(s);
    fetch_close(s);
    if (status == 0 && err->code == ERR_NONE)
        return err_set(err, ERR_TIMEOUT, "no answer in time");
    if (status == 0)
        return -(int)err->code;
    err_fini(err);
    return status >= 200 && status <= 399 ? 0
                                          : err_set(err, ERR_INTERNAL, "HTTP status %d", status);
}

static int ask_http(struct runner *r, const struct handler_target *t, const cJSON *action,
                    int64_t timeout_ms, struct err *err)
{
    static const struct fetch_tls any = {.insecure = true}; /* certificates are not looked at */
    const char *path = json_str_or(action, "path", "/");
    bool is_tls = strcmp(json_str_or(action, "scheme", "HTTP"), "HTTPS") == 0;
    SCOPED_FREE char *url =
        xasprintf("%s://%s:%d%s%s", is_tls ? "https" : "http", t->ip,
                  port_of(t, json_get(action, "port")), *path == '/' ? "" : "/", path);
    SCOPED(pairs_fini) struct pairs headers = {0};
    const cJSON *header;
    cJSON_ArrayForEach(header, json_get(action, "httpHeaders"))
        pairs_add(&headers, json_str_or(header, "name", ""), json_str_or(header, "value", ""));
    return ask(r->far_fetch,
               &(struct fetch_request){
                   .url = url, .headers = &headers, .tls = &any, .timeout_ms = timeout_ms},
               err);
}

static int connect_tcp(struct runner *r, const struct handler_target *t, const cJSON *action,
                       int64_t timeout_ms, struct err *err)
{
    (void)r;
    int problem = 0;
    socklen_t n = sizeof problem;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port_of(t, json_get(action, "port")))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || inet_pton(AF_INET, t->ip, &to.sin_addr) != 1)
        problem = EADDRNOTAVAIL;
    else if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        problem = errno;
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    if (problem == EINPROGRESS) {
        problem = ETIMEDOUT;
        if (poll(&wait, 1, timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms) == 1)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &n);
    }
    if (fd >= 0)
        close(fd);
    errno = problem;
    return problem ? err_set(err, ERR_INTERNAL, "connecting: %m") : 0;
}

static const struct {
    const char *field;
    int (*run)(struct runner *r, const struct handler_target *t, const cJSON *action,
               int64_t timeout_ms, struct err *err);
} actions[] = {
    {"exec", run_command},
    {"httpGet", ask_http},
    {"tcpSocket", connect_tcp},
};

int handler_run(struct runner *r, const struct handler_target *t, const cJSON *action,
                int64_t timeout_ms, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        const cJSON *how = json_get(action, actions[i].field);
        if (how)
            return actions[i].run(r, t, how, timeout_ms, err);
    }
    return err_set(err, ERR_INVALID, "nothing to do is named");
}
