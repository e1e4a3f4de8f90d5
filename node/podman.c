/* Calls and their errors. The API's version in the path is the oldest whose libpod part we use;
 * later engines serve it. Source of the routes: Podman's libpod API, version 4. */
#include "node/podman.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/podman_conn.h"
#include "node/process.h"

#define API "http://podman" PODMAN_API
#define CALL_TIMEOUT_MS 60000
#define PULL_TIMEOUT_MS (10 * 60000)
#define ANSWER_MAX ((size_t)16 << 20)
#define EXEC_OUTPUT_MAX ((size_t)64 << 10)
#define NPROC_MAX 32768 /* the engine lowers its own to the kernel's usual number of pids */

struct podman {
    struct fetch *fetch; /* borrowed */
    char *socket;
};

struct podman *podman_new(struct fetch *fetch, const char *socket)
{
    struct podman *p = xcalloc(1, sizeof *p);
    p->fetch = fetch;
    p->socket = xstrdup(socket);
    return p;
}

void podman_free(struct podman *p)
{
    if (!p)
        return;
    free(p->socket);
    free(p);
}

const char *podman_socket(const struct podman *p)
{
    return p->socket;
}

/* ---- calls ---- */

struct call {
    const char *method, *path;
    const cJSON *json;       /* body, or */
    const struct buf *bytes; /* this body */
    const char *auth;
    int64_t timeout_ms;
    size_t max;
};

/* {"cause": ..., "message": ..., "response": 404} */
static int refusal(int status, const struct buf *body, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    if (json_parse(buf_cstr(body), body->len, NULL, &tree, NULL) < 0)
        tree = NULL;
    enum err_code code = err_from_status(status, "");
    if (code == ERR_NONE)
        code = ERR_UNKNOWN;
    return err_set(err, code, "%s", json_str_or(tree, "message", "the engine refused it"));
}

static int send_call(struct podman *p, const struct call *c, struct fetch_response *ret,
                     struct err *err)
{
    SCOPED_FREE char *url = xasprintf(API "%s", c->path);
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(pairs_fini) struct pairs headers = {0};
    const struct buf *bytes = c->bytes;
    pairs_add(&headers, "Content-Type", bytes ? "application/x-tar" : "application/json");
    if (c->auth)
        pairs_add(&headers, "X-Registry-Auth", c->auth);
    if (c->json)
        json_print(c->json, &body);
    if (!bytes)
        bytes = &body;
    SCOPED(fetch_response_fini) struct fetch_response response = {0};
    int rc = fetch_do(p->fetch,
                      &(struct fetch_request){
                          .method = c->method,
                          .url = url,
                          .unix_socket = p->socket,
                          .headers = &headers,
                          .body = bytes->len ? bytes->data : NULL,
                          .body_len = bytes->len,
                          .timeout_ms = c->timeout_ms ? c->timeout_ms : CALL_TIMEOUT_MS,
                          .max_body = c->max ? c->max : ANSWER_MAX,
                      },
                      &response, err);
    if (rc < 0)
        return rc;
    if (response.status >= 400)
        return refusal(response.status, &response.body, err);
    if (ret)
        *ret = steal(&response);
    return 0;
}

static int call_json(struct podman *p, const struct call *c, cJSON **ret, struct err *err)
{
    SCOPED(fetch_response_fini) struct fetch_response response = {0};
    int rc = send_call(p, c, &response, err);
    if (rc < 0)
        return rc;
    static const struct json_opts lenient = {.flags = JSON_REPLACE_BAD_UTF8};
    if (json_parse(buf_cstr(&response.body), response.body.len, &lenient, ret, err) < 0)
        return err_wrap(err, "the engine's answer");
    return 0;
}

/* /containers/ID/VERB; the caller's. */
static char *path_of(const char *what, const char *name, const char *verb)
{
    SCOPED(buf_fini) struct buf path = {0};
    buf_printf(&path, "/%s/", what);
    fetch_escape(name, &path);
    buf_puts(&path, verb);
    return buf_take(&path, NULL);
}

int podman_ping(struct podman *p, struct err *err)
{
    return send_call(p, &(struct call){.method = "GET", .path = "/_ping"}, NULL, err);
}

/* ---- limits ---- */

int podman_connect(struct podman *p, int *ret_fd, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (snprintf(address.sun_path, sizeof address.sun_path, "%s", p->socket) >=
        (int)sizeof address.sun_path)
        return err_set(err, ERR_INVALID, "%s: too long for a socket's path", p->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) {
        *ret_fd = fd;
        return 0;
    }
    if (fd >= 0)
        close(fd);
    return err_set(err, ERR_UNAVAILABLE, "%s: no engine listens", p->socket);
}

static int peer_pid(struct podman *p, pid_t *ret, struct err *err)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    int fd = -1, rc = podman_connect(p, &fd, err);
    if (rc < 0)
        return rc;
    rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n);
    close(fd);
    if (rc < 0)
        return err_set(err, ERR_UNAVAILABLE, "%s: no engine listens", p->socket);
    *ret = peer.pid;
    return 0;
}

static int64_t least(rlim_t a, rlim_t b)
{
    rlim_t least = a < b ? a : b;
    return least > INT32_MAX ? INT32_MAX : (int64_t)least;
}

int podman_limits(struct podman *p, struct podman_limits *ret, struct err *err)
{
    struct rlimit own, theirs;
    pid_t pid = 0;
    int rc = peer_pid(p, &pid, err);
    if (rc < 0)
        return rc;
    if (getrlimit(RLIMIT_NOFILE, &own) < 0 || prlimit(pid, RLIMIT_NOFILE, NULL, &theirs) < 0)
        return err_set(err, ERR_INTERNAL, "the engine's limits cannot be read: %m");
    ret->nofile = least(own.rlim_max, theirs.rlim_max);
    if (getrlimit(RLIMIT_NPROC, &own) < 0 || prlimit(pid, RLIMIT_NPROC, NULL, &theirs) < 0)
        return err_set(err, ERR_INTERNAL, "the engine's limits cannot be read: %m");
    ret->nproc = least(least(own.rlim_max, theirs.rlim_max), NPROC_MAX);
    return 0;
}

/* ---- images ---- */

void podman_image_fini(struct podman_image *i)
{
    free(i->id);
    free(i->digest);
    free(i->user);
    json_free(i->labels);
    json_free(i->annotations);
    *i = (struct podman_image){0};
}

int podman_image_find(struct podman *p, const char *name, struct podman_image *ret, struct err *err)
{
    SCOPED_FREE char *path = path_of("images", name, "/json");
    SCOPED(json_free_p) cJSON *tree = NULL;
    int rc = call_json(p, &(struct call){.method = "GET", .path = path}, &tree, err);
    if (rc < 0)
        return rc;
    const cJSON *digests = json_get(tree, "RepoDigests");
    const cJSON *first = digests ? digests->child : NULL;
    *ret = (struct podman_image){
        .id = xstrdup(json_str_or(tree, "Id", "")),
        .digest = xstrdup(cJSON_IsString(first) ? first->valuestring : ""),
        .user = xstrdup(json_str_or(tree, "Config.User", "")),
        .labels = json_copy(json_at(tree, "Config.Labels")),
        .annotations = json_copy(json_get(tree, "Annotations")),
    };
    return 0;
}

/* A line of JSON for each step; the status is 200 whatever happens. */
static int pull_result(const struct buf *body, struct err *err)
{
    const char *line = buf_cstr(body);
    while (*line) {
        size_t n = strcspn(line, "\n");
        SCOPED(json_free_p) cJSON *step = NULL;
        if (n && json_parse(line, n, NULL, &step, NULL) == 0 && json_str(step, "error"))
            return err_set(err, ERR_UNAVAILABLE, "%s", json_str(step, "error"));
        line += n + (line[n] == '\n');
    }
    return 0;
}

int podman_image_pull(struct podman *p, const char *name, const char *auth, struct err *err)
{
    SCOPED(buf_fini) struct buf path = {0};
    buf_puts(&path, "/images/pull?policy=always&quiet=true&reference=");
    fetch_escape(name, &path);
    SCOPED(fetch_response_fini) struct fetch_response response = {0};
    int rc = send_call(
        p,
        &(struct call){
            .method = "POST", .path = buf_cstr(&path), .auth = auth, .timeout_ms = PULL_TIMEOUT_MS},
        &response, err);
    return rc < 0 ? rc : pull_result(&response.body, err);
}

int podman_image_load(struct podman *p, const struct buf *archive, struct err *err)
{
    return send_call(p,
                     &(struct call){.method = "POST",
                                    .path = "/images/load",
                                    .bytes = archive,
                                    .timeout_ms = PULL_TIMEOUT_MS},
                     NULL, err);
}

/* ---- networks ---- */

int podman_network_ensure(struct podman *p, const char *name, const char *interface,
                          const char *subnet, struct err *err)
{
    SCOPED_FREE char *path = path_of("networks", name, "/exists");
    int rc = send_call(p, &(struct call){.method = "GET", .path = path}, NULL, err);
    if (rc != -ERR_NOT_FOUND)
        return rc;
    SCOPED(json_free_p) cJSON *body = json_object();
    cJSON *subnets = json_array(), *one = json_object();
    json_add(one, "subnet", json_string(subnet));
    json_push(subnets, one);
    json_add(body, "name", json_string(name));
    json_add(body, "driver", json_string("bridge"));
    json_add(body, "network_interface", json_string(interface));
    json_add(body, "dns_enabled", json_boolean(false));
    json_add(body, "subnets", subnets);
    return send_call(p, &(struct call){.method = "POST", .path = "/networks/create", .json = body},
                     NULL, err);
}

/* ---- containers ---- */

int podman_create(struct podman *p, const cJSON *spec, char **ret_id, struct err *err)
{
    SCOPED(json_free_p) cJSON *answer = NULL;
    int rc =
        call_json(p, &(struct call){.method = "POST", .path = "/containers/create", .json = spec},
                  &answer, err);
    if (rc < 0)
        return rc;
    *ret_id = xstrdup(json_str_or(answer, "Id", ""));
    return 0;
}

static int act(struct podman *p, const char *method, const char *id, const char *verb,
               struct err *err)
{
    SCOPED_FREE char *path = path_of("containers", id, verb);
    return send_call(p, &(struct call){.method = method, .path = path}, NULL, err);
}

int podman_start(struct podman *p, const char *id, struct err *err)
{
    return act(p, "POST", id, "/start", err);
}

int podman_signal(struct podman *p, const char *id, const char *signal, struct err *err)
{
    SCOPED_FREE char *verb = xasprintf("/kill?signal=%s", signal);
    return act(p, "POST", id, verb, err);
}

int podman_remove(struct podman *p, const char *id, struct err *err)
{
    int rc = act(p, "DELETE", id, "?force=true&v=true&ignore=true&timeout=0", err);
    return rc == -ERR_NOT_FOUND ? 0 : rc;
}

int podman_inspect(struct podman *p, const char *id, cJSON **ret, struct err *err)
{
    SCOPED_FREE char *path = path_of("containers", id, "/json");
    return call_json(p, &(struct call){.method = "GET", .path = path}, ret, err);
}

int podman_list(struct podman *p, const char *label, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *filters = json_object();
    cJSON *labels = json_array();
    json_push(labels, json_string(label));
    json_add(filters, "label", labels);
    SCOPED_FREE char *text = json_to_str(filters);
    SCOPED(buf_fini) struct buf path = {0};
    buf_puts(&path, "/containers/json?all=true&filters=");
    fetch_escape(text, &path);
    return call_json(p, &(struct call){.method = "GET", .path = buf_cstr(&path)}, ret, err);
}

static void unframe(const struct buf *frames, struct buf *out)
{
    const char *p = buf_cstr(frames);
    size_t left = frames->len;
    while (left > PODMAN_FRAME_HEAD) {
        size_t n;
        podman_frame((const unsigned char *)p, &n);
        left -= PODMAN_FRAME_HEAD;
        n = n < left ? n : left;
        buf_append(out, p + PODMAN_FRAME_HEAD, n);
        p += PODMAN_FRAME_HEAD + n;
        left -= n;
    }
}

int podman_log_tail(struct podman *p, const char *id, size_t max, struct buf *ret, struct err *err)
{
    SCOPED_FREE char *path =
        path_of("containers", id, "/logs?stdout=true&stderr=true&follow=false&tail=80");
    SCOPED(fetch_response_fini) struct fetch_response response = {0};
    int rc = send_call(p, &(struct call){.method = "GET", .path = path}, &response, err);
    if (rc < 0)
        return rc;
    SCOPED(buf_fini) struct buf text = {0};
    unframe(&response.body, &text);
    size_t n = text.len < max ? text.len : max;
    buf_append(ret, buf_cstr(&text) + text.len - n, n);
    return 0;
}

/* ---- commands in containers ---- */

void podman_exec_fini(struct podman_exec *e)
{
    buf_fini(&e->output);
}

int podman_exec_create(struct podman *p, const char *id, const struct podman_command *c,
                       char **ret_exec_id, struct err *err)
{
    SCOPED_FREE char *path = path_of("containers", id, "/exec");
    SCOPED(json_free_p) cJSON *body = json_object(), *answer = NULL;
    json_add(body, "Cmd", json_copy(c->words));
    json_add(body, "AttachStdin", json_boolean(c->has_stdin));
    json_add(body, "AttachStdout", json_boolean(c->has_stdout));
    json_add(body, "AttachStderr", json_boolean(c->has_stderr));
    json_add(body, "Tty", json_boolean(c->has_tty));
    json_add(body, "DetachKeys", json_string("")); /* all bytes are the command's */
    int rc =
        call_json(p, &(struct call){.method = "POST", .path = path, .json = body}, &answer, err);
    if (rc == 0)
        *ret_exec_id = xstrdup(json_str_or(answer, "Id", ""));
    return rc;
}

int podman_exec_look(struct podman *p, const char *exec_id, struct podman_exec_state *ret,
                     struct err *err)
{
    SCOPED_FREE char *path = path_of("exec", exec_id, "/json");
    SCOPED(json_free_p) cJSON *state = NULL;
    int rc = call_json(p, &(struct call){.method = "GET", .path = path}, &state, err);
    if (rc == 0)
        *ret = (struct podman_exec_state){
            .is_running = json_bool_or(state, "Running", false),
            .exit_code = (int)json_i64_or(state, "ExitCode", -1),
            .pid = (pid_t)json_i64_or(state, "Pid", 0),
        };
    return rc;
}

int podman_exec_kill(struct podman *p, const char *exec_id, struct err *err)
{
    struct podman_exec_state state = {0};
    int rc = podman_exec_look(p, exec_id, &state, err);
    if (rc == 0 && state.is_running)
        process_kill_session(state.pid);
    return rc == -ERR_NOT_FOUND ? 0 : rc;
}

int podman_resize(struct podman *p, const char *what, const char *id, int width, int height,
                  struct err *err)
{
    SCOPED_FREE char *verb = xasprintf("/resize?w=%d&h=%d", width, height);
    SCOPED_FREE char *path = path_of(what, id, verb);
    return send_call(p, &(struct call){.method = "POST", .path = path}, NULL, err);
}

/* The command's output, in frames. What is too much is read and dropped, for it waits for its
 * reader. */
static int hear_command(struct podman *p, const char *exec_id, int64_t timeout_ms, struct buf *ret,
                        struct err *err)
{
    SCOPED_FREE char *path = path_of("exec", exec_id, "/start");
    SCOPED_FREE char *url = xasprintf(API "%s", path);
    SCOPED(pairs_fini) struct pairs headers = {0};
    static const char body[] = "{\"Detach\":false}";
    int64_t until_ms = clock_monotonic_ms(&clock_system) + timeout_ms;
    pairs_add(&headers, "Content-Type", "application/json");
    struct fetch_stream *s =
        fetch_open(p->fetch, &(struct fetch_request){.method = "POST",
                                                     .url = url,
                                                     .unix_socket = p->socket,
                                                     .headers = &headers,
                                                     .body = body,
                                                     .body_len = strlen(body),
                                                     .timeout_ms = timeout_ms});
    enum fetch_news news;
    do {
        SCOPED(buf_fini) struct buf piece = {0};
        news = fetch_read(s, until_ms, &piece, err);
        size_t room = EXEC_OUTPUT_MAX - ret->len;
        buf_append(ret, piece.data, piece.len < room ? piece.len : room);
    } while (news == FETCH_SOME && clock_monotonic_ms(&clock_system) < until_ms);
    int status = fetch_status(s);
    fetch_close(s);
    if (news != FETCH_ENDED)
        return err_set(err, ERR_TIMEOUT, "the command timed out");
    if (err->code != ERR_NONE)
        return -(int)err->code;
    return status >= 400 ? refusal(status, ret, err) : 0;
}

int podman_exec(struct podman *p, const char *id, const cJSON *command, int64_t timeout_ms,
                struct podman_exec *ret, struct err *err)
{
    SCOPED_FREE char *exec_id = NULL;
    SCOPED(buf_fini) struct buf frames = {0};
    struct podman_exec_state state = {0};
    int rc = podman_exec_create(
        p, id, &(struct podman_command){.words = command, .has_stdout = true, .has_stderr = true},
        &exec_id, err);
    if (rc < 0)
        return rc;
    rc = hear_command(p, exec_id, timeout_ms, &frames, err);
    if (rc == -ERR_UNDETERMINED || rc == -ERR_TIMEOUT) {
        podman_exec_kill(p, exec_id, NULL);
        return err_set(err, ERR_TIMEOUT, "the command timed out");
    }
    if (rc == 0)
        rc = podman_exec_look(p, exec_id, &state, err);
    if (rc < 0)
        return rc;
    *ret = (struct podman_exec){.exit_code = state.exit_code};
    unframe(&frames, &ret->output);
    return 0;
}

/* ---- the way of streams ---- */

struct fetch_stream *podman_open(struct podman *p, const char *path)
{
    SCOPED_FREE char *url = xasprintf(API "%s", path);
    return fetch_open(p->fetch, &(struct fetch_request){.url = url, .unix_socket = p->socket});
}
