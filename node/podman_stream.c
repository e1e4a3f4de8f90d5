/* Connections to the engine that become streams: asked for by HTTP, with an upgrade, they are the
 * streams' own once the answer's head is read. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/head.h"
#include "node/podman_conn.h"

#define ANSWER_S 60
#define TEXT_MAX ((size_t)8192) /* bytes of a refusal that are looked at */

enum podman_stream podman_frame(const unsigned char head[PODMAN_FRAME_HEAD], size_t *ret_len)
{
    *ret_len = (size_t)head[4] << 24 | (size_t)head[5] << 16 | (size_t)head[6] << 8 | head[7];
    return head[0] == PODMAN_STDERR ? PODMAN_STDERR : PODMAN_STDOUT;
}

static void set_timeout(int fd, int seconds)
{
    const struct timeval t = {.tv_sec = seconds};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

static int send_all(int fd, const struct buf *bytes, struct err *err)
{
    for (size_t at = 0; at < bytes->len;) {
        ssize_t n = send(fd, bytes->data + at, bytes->len - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return err_set(err, ERR_UNAVAILABLE, "the engine does not listen: %m");
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Byte by byte, for what follows the head is not ours. */
static int read_head(int fd, struct buf *head, struct err *err)
{
    char c;
    while (head_length(buf_cstr(head), head->len) == 0) {
        ssize_t n = recv(fd, &c, 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || head->len >= HEAD_MAX)
            return err_set(err, ERR_UNAVAILABLE, "the engine gave no answer");
        buf_putc(head, c);
    }
    return 0;
}

/* {"cause": ..., "message": ..., "response": 500} */
static int refused(int fd, int status, struct err *err)
{
    char text[TEXT_MAX];
    ssize_t n = recv(fd, text, sizeof text, 0);
    SCOPED(json_free_p) cJSON *tree = NULL;
    if (n <= 0 || json_parse(text, (size_t)n, NULL, &tree, NULL) < 0)
        tree = NULL;
    enum err_code code = err_from_status(status, "");
    return err_set(err, code == ERR_NONE ? ERR_UNKNOWN : code, "%s",
                   json_str_or(tree, "message", "the engine refused it"));
}

static int upgrade(int fd, const char *path, const cJSON *body, struct err *err)
{
    SCOPED(buf_fini) struct buf request = {0};
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(buf_fini) struct buf answer = {0};
    if (body)
        json_print(body, &text);
    buf_printf(&request,
               "POST " PODMAN_API "%s HTTP/1.1\r\nHost: podman\r\nConnection: Upgrade\r\n"
               "Upgrade: tcp\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
               path, text.len);
    buf_append(&request, text.data, text.len);
    int rc = send_all(fd, &request, err);
    if (rc == 0)
        rc = read_head(fd, &answer, err);
    if (rc < 0)
        return rc;
    int status = 0;
    if (sscanf(buf_cstr(&answer), "HTTP/1.%*1d %3d", &status) != 1)
        return err_set(err, ERR_UNAVAILABLE, "the engine's answer cannot be read");
    return status == 101 || status == 200 ? 0 : refused(fd, status, err);
}

static int open_stream(struct podman *p, const char *path, const cJSON *body, int *ret_fd,
                       struct err *err)
{
    int fd = -1, rc = podman_connect(p, &fd, err);
    if (rc < 0)
        return rc;
    set_timeout(fd, ANSWER_S);
    rc = upgrade(fd, path, body, err);
    set_timeout(fd, 0);
    if (rc < 0)
        close(fd);
    else
        *ret_fd = fd;
    return rc;
}

int podman_exec_open(struct podman *p, const char *exec_id, bool has_tty, int width, int height,
                     int *ret_fd, struct err *err)
{
    SCOPED(json_free_p) cJSON *body = json_object();
    SCOPED_FREE char *path = xasprintf("/exec/%s/start", exec_id);
    json_add(body, "Detach", json_boolean(false));
    json_add(body, "Tty", json_boolean(has_tty));
    if (has_tty && width > 0 && height > 0) {
        json_add(body, "w", json_int(width));
        json_add(body, "h", json_int(height));
    }
    return open_stream(p, path, body, ret_fd, err);
}

int podman_attach(struct podman *p, const char *id, bool has_stdin, int *ret_fd, struct err *err)
{
    SCOPED_FREE char *path = xasprintf("/containers/%s/attach?stream=true&stdout=true&stderr=true"
                                       "&logs=false&detachKeys=&stdin=%s",
                                       id, has_stdin ? "true" : "false");
    return open_stream(p, path, NULL, ret_fd, err);
}
