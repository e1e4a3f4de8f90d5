/* The relay between Pods and the API server: who is let in, how many, and what is carried. The
 * loopback is the bridge, and its addresses are Pods. */
#include "node/relay.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

#define POD "127.0.0.2"
#define WITH_TOKEN                                                                                 \
    "\"volumes\":[{},{\"projected\":{\"sources\":[{},{\"serviceAccountToken\":{}}]}}]"
#define WAIT_MS 20000

static cJSON *pod;
static struct relay *relay;
static int server_fd;
static char *server_url;

static int tcp(const char *from)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(inet_pton(AF_INET, from, &a.sin_addr), 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static int port_of(int fd)
{
    struct sockaddr_in a;
    socklen_t n = sizeof a;
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    return ntohs(a.sin_port);
}

static int free_port(void)
{
    int fd = tcp("127.0.0.1"), port = port_of(fd);
    close(fd);
    return port;
}

static void make_pod(const char *text)
{
    ck_assert_msg(json_parse_str(text, &pod, NULL) == 0, "%s", text);
}

static bool lets_in(void *ctx, const char *ip)
{
    ck_assert_ptr_eq(ctx, &pod);
    return strcmp(ip, POD) == 0 && relay_is_for(pod);
}

static int relay_port;

static void setup(void)
{
    server_fd = tcp("127.0.0.1");
    ck_assert_int_eq(listen(server_fd, 64), 0);
    server_url = xasprintf("https://localhost:%d", port_of(server_fd));
    relay_port = free_port();
    ck_assert_int_eq(relay_new(&(struct relay_config){.interface = "lo",
                                                      .address = "127.0.0.1",
                                                      .port = relay_port,
                                                      .server = server_url},
                               &relay, NULL),
                     0);
    relay_start(relay, lets_in, &pod);
    relay_listen(relay);
    relay_listen(relay); /* nothing has changed */
}

static void teardown(void)
{
    relay_stop(relay);
    relay_free(relay);
    free(server_url);
    close(server_fd);
    json_free(pod);
}

static int connect_from(const char *ip)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)relay_port)};
    int fd = tcp(ip);
    ck_assert_int_eq(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr), 1);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* The server's end of the newest connection, -1 = none came. */
static int accept_at_server(int wait_ms)
{
    struct pollfd p = {.fd = server_fd, .events = POLLIN};
    return poll(&p, 1, wait_ms) == 1 ? accept(server_fd, NULL, NULL) : -1;
}

/* Nothing is ever sent to this one, so it reads its end or a reset. */
static bool is_closed(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char c;
    return poll(&p, 1, WAIT_MS) == 1 && recv(fd, &c, 1, 0) <= 0;
}

static const struct {
    const char *pod, *ip;
    bool may;
} callers[] = {
    {"{\"spec\":{" WITH_TOKEN "}}", POD, true},
    {"{\"spec\":{" WITH_TOKEN "},\"status\":{\"phase\":\"Running\"}}", POD, true},
    {"{\"spec\":{" WITH_TOKEN "}}", "127.0.0.3", false},
    {"{\"spec\":{" WITH_TOKEN "},\"status\":{\"phase\":\"Failed\"}}", POD, false},
    {"{\"spec\":{" WITH_TOKEN "},\"status\":{\"phase\":\"Succeeded\"}}", POD, false},
    {"{\"spec\":{\"volumes\":[{\"projected\":{\"sources\":[{\"configMap\":{}}]}},{\"secret\":{}}]}"
     "}",
     POD, false},
    {"{\"spec\":{}}", POD, false},
};

START_TEST(test_who)
{
    make_pod(callers[_i].pod);
    int fd = connect_from(callers[_i].ip);
    if (callers[_i].may) {
        int there = accept_at_server(WAIT_MS);
        ck_assert_int_ge(there, 0);
        close(there);
    } else {
        ck_assert(is_closed(fd));
        ck_assert_int_lt(accept_at_server(0), 0);
    }
    close(fd);
}
END_TEST

static void *answer(void *arg)
{
    char piece[4096];
    size_t sum = 0;
    ssize_t n;
    int fd = *(int *)arg;
    while ((n = read(fd, piece, sizeof piece)) > 0)
        sum += (size_t)n;
    SCOPED_FREE char *text = xasprintf("%zu bytes", sum);
    n = write(fd, text, strlen(text)); /* after its client has ended */
    close(fd);
    return NULL;
}

/* More than all buffers on the way, to a server that reads late, and what it says afterwards. */
START_TEST(test_bytes_and_ends)
{
    enum { PIECE = 65536, PIECES = 300 };
    static char piece[PIECE];
    char text[64] = "";
    pthread_t thread;
    make_pod(callers[0].pod);
    int fd = connect_from(POD), there = accept_at_server(WAIT_MS);
    ck_assert_int_ge(there, 0);
    ck_assert_int_eq(write(there, "hello", 5), 5);
    ck_assert_int_eq(recv(fd, text, 5, MSG_WAITALL), 5);
    ck_assert_str_eq(text, "hello");
    pthread_create(&thread, NULL, answer, &there);
    for (int i = 0; i < PIECES; i++)
        ck_assert_int_eq(send(fd, piece, PIECE, 0), PIECE);
    shutdown(fd, SHUT_WR);
    ssize_t n = recv(fd, text, sizeof text - 1, MSG_WAITALL);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_str_eq(text, "19660800 bytes");
    pthread_join(thread, NULL);
    close(fd);
}
END_TEST

START_TEST(test_reset_is_carried_over)
{
    const struct linger at_once = {.l_onoff = 1};
    make_pod(callers[0].pod);
    int fd = connect_from(POD), there = accept_at_server(WAIT_MS);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
    ck_assert(is_closed(there));
    close(there);
}
END_TEST

START_TEST(test_one_pod_has_so_many)
{
    int fds[RELAY_POD_MAX], there[RELAY_POD_MAX];
    make_pod(callers[0].pod);
    for (int i = 0; i < RELAY_POD_MAX; i++) {
        fds[i] = connect_from(POD);
        there[i] = accept_at_server(WAIT_MS);
        ck_assert_int_ge(there[i], 0);
    }
    int more = connect_from(POD);
    ck_assert(is_closed(more));
    close(more);
    close(there[0]); /* one ends, and its place is free again */
    ck_assert(is_closed(fds[0]));
    close(fds[0]);
    int again = -1;
    for (int i = 0; i < 1000 && again < 0; i++) {
        more = connect_from(POD);
        again = accept_at_server(100);
        close(more);
    }
    ck_assert_int_ge(again, 0);
    close(again);
    for (int i = 1; i < RELAY_POD_MAX; i++) {
        close(fds[i]);
        close(there[i]);
    }
}
END_TEST

START_TEST(test_no_server)
{
    make_pod(callers[0].pod);
    close(server_fd);
    int fd = connect_from(POD);
    ck_assert(is_closed(fd));
    close(fd);
    server_fd = tcp("127.0.0.1");
}
END_TEST

static const struct {
    const char *url;
    bool is_local;
} servers[] = {
    {"https://127.0.0.1:6443", true},  {"https://localhost:1", true},
    {"https://[::1]:6443/", true},     {"https://127.1.2.3", true},
    {"https://10.0.0.1:6443", false},  {"https://kube.example:6443", false},
    {"https://[fd00::1]:6443", false}, {"https://localhost.example", false},
};

START_TEST(test_server)
{
    struct relay *r = NULL;
    int rc = relay_new(
        &(struct relay_config){
            .interface = "lo", .address = "127.0.0.1", .port = 443, .server = servers[_i].url},
        &r, NULL);
    ck_assert_int_eq(rc, servers[_i].is_local ? 0 : -ERR_NOT_FOUND);
    relay_free(r);
}
END_TEST

SUITE(relay)
{
    TCase *who = tcase_create("who");
    tcase_add_checked_fixture(who, setup, teardown);
    tcase_add_loop_test(who, test_who, 0, ARRAY_LEN(callers));
    suite_add_tcase(s, who);
    TCase *carried = tcase_create("carried");
    tcase_set_timeout(carried, 120);
    tcase_add_checked_fixture(carried, setup, teardown);
    tcase_add_test(carried, test_bytes_and_ends);
    tcase_add_test(carried, test_reset_is_carried_over);
    tcase_add_test(carried, test_one_pod_has_so_many);
    tcase_add_test(carried, test_no_server);
    suite_add_tcase(s, carried);
    LOOP("server", test_server, 0, ARRAY_LEN(servers));
}
