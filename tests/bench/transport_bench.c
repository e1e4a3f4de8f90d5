/* What watching costs in the transport, over HTTP/1.1 and over HTTP/2 in one run: memory of the
 * server for each watch that only waits, and processor time for each event that is delivered,
 * alone and when several come together. Clients are in a process of their own.
 * Usage: transport_bench [watches [connections [rounds [together]]]]. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <malloc.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/http/server.h"

#define EVENT_BYTES 1000
#define WARM_UP 50 /* rounds that are not counted */

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- the server's side ---- */

struct source {
    struct stream s; /* first */
    pthread_mutex_t lock;
    int n_ready;
    bool is_armed;
    atomic_int pulls;
};

static struct source *sources;
static atomic_size_t n_opened;
static char event[EVENT_BYTES];

static int pull(struct stream *s, struct buf *out)
{
    struct source *x = (struct source *)s;
    pthread_mutex_lock(&x->lock);
    int n = x->n_ready;
    x->n_ready = 0;
    x->is_armed = true;
    pthread_mutex_unlock(&x->lock);
    for (int i = 0; i < n; i++)
        buf_append(out, event, sizeof event);
    atomic_fetch_add(&x->pulls, 1);
    return n > 0;
}

static void close_source(struct stream *s)
{
    struct source *x = (struct source *)s;
    pthread_mutex_lock(&x->lock);
    x->is_armed = false;
    pthread_mutex_unlock(&x->lock);
}

static void put_events(struct source *x, int n)
{
    pthread_mutex_lock(&x->lock);
    x->n_ready += n;
    if (x->is_armed)
        x->s.wake(x->s.wake_ctx);
    pthread_mutex_unlock(&x->lock);
}

static void handle(void *ctx, struct request *req, struct response *resp)
{
    (void)ctx;
    (void)req;
    resp->status = 200;
    pairs_add(&resp->headers, "Content-Type", "application/json");
    resp->stream = &sources[atomic_fetch_add(&n_opened, 1)].s;
}

/* ---- the clients' side ---- */

static void put_http1(struct buf *out)
{
    buf_puts(out, "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
}

static void put_frame(struct buf *out, int type, int flags, uint32_t id, const char *p, size_t n)
{
    char head[9] = {(char)(n >> 16),  (char)(n >> 8),   (char)n,         (char)type, (char)flags,
                    (char)(id >> 24), (char)(id >> 16), (char)(id >> 8), (char)id};
    buf_append(out, head, sizeof head);
    buf_append(out, p, n);
}

/* The windows are opened for good; the head is GET https x /. Source: RFC 9113, 6, RFC 7541, A. */
static void put_http2(struct buf *out, size_t streams)
{
    static const char head[] = "\x82\x87\x84\x41\x01x";
    buf_puts(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(out, 4, 0, 0, "\0\4\x7f\xff\xff\xff", 6);
    put_frame(out, 8, 0, 0, "\x7f\xfe\0\0", 4);
    for (size_t i = 0; i < streams; i++)
        put_frame(out, 1, 5, (uint32_t)(2 * i + 1), head, sizeof head - 1);
}

static SSL *connect_to(SSL_CTX *ctx, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    SSL *ssl = SSL_new(ctx);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0 || !SSL_set_fd(ssl, fd) ||
        SSL_connect(ssl) != 1)
        fail("connect");
    return ssl;
}

static void read_for_ever(int epoll_fd)
{
    static char bytes[1 << 16];
    struct epoll_event e[64];
    for (;;) {
        int n = epoll_wait(epoll_fd, e, 64, -1);
        for (int i = 0; i < n; i++)
            if (recv((int)e[i].data.fd, bytes, sizeof bytes, MSG_DONTWAIT) == 0)
                _exit(0);
    }
}

/* Bytes are thrown away as they come, undecrypted, so that it is the server that is measured. */
static void run_clients(bool is_http2, size_t connections, size_t streams, int port_pipe)
{
    int port = 0;
    if (read(port_pipe, &port, sizeof port) != sizeof port)
        _exit(1);
    int epoll_fd = epoll_create1(0);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)(is_http2 ? "\x02h2" : "\x08http/1.1"),
                            is_http2 ? 3 : 9);
    for (size_t i = 0; i < connections; i++) {
        struct buf out = {0};
        SSL *ssl = connect_to(ctx, port);
        if (is_http2)
            put_http2(&out, streams);
        else
            put_http1(&out);
        SSL_write(ssl, out.data, (int)out.len);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = SSL_get_fd(ssl)};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, SSL_get_fd(ssl), &e);
        buf_fini(&out);
    }
    read_for_ever(epoll_fd);
}

/* ---- measuring ---- */

static size_t resident(void)
{
    long pages = 0, ignored = 0;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &ignored, &pages) != 2)
        fail("/proc/self/statm");
    fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int64_t cpu_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void wait_for_pulls(size_t watches, const int *want)
{
    for (size_t i = 0; i < watches; i++)
        while (atomic_load(&sources[i].pulls) < want[i])
            pause_us(100);
}

/* So many events to each, and again when all have taken them. */
static void deliver(size_t watches, int rounds, int together)
{
    int *want = xcalloc(watches, sizeof *want);
    for (int r = 0; r < rounds; r++) {
        for (size_t i = 0; i < watches; i++) {
            want[i] = atomic_load(&sources[i].pulls) + 1;
            put_events(&sources[i], together);
        }
        wait_for_pulls(watches, want);
    }
    free(want);
}

static struct server *start_server(const char *cert, const char *key)
{
    struct server *server = NULL;
    struct server_config config = {.bind_address = "127.0.0.1",
                                   .cert_file = cert,
                                   .key_file = key,
                                   .max_connections = 5000,
                                   .handler = handle};
    if (server_start(&config, &server, NULL) < 0)
        fail("server_start");
    return server;
}

static pid_t start_clients(bool is_http2, size_t connections, size_t streams, int *ret_pipe)
{
    int ends[2];
    pid_t pid = pipe(ends) < 0 ? -1 : fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0)
        run_clients(is_http2, connections, streams, ends[0]);
    *ret_pipe = ends[1];
    return pid;
}

/* Microseconds of the processor for an event. */
static double cost_of(size_t watches, int rounds, int together)
{
    deliver(watches, WARM_UP, together);
    int64_t cpu = cpu_ns();
    deliver(watches, rounds, together);
    return (double)(cpu_ns() - cpu) / 1000 / ((double)watches * rounds * together);
}

static void measure(const char *name, bool is_http2, size_t watches, size_t connections, int rounds,
                    int together, const char *const *files)
{
    int port_pipe = -1;
    pid_t clients = start_clients(is_http2, connections, watches / connections, &port_pipe);
    struct server *server = start_server(files[0], files[1]);
    int port = server_port(server);
    atomic_store(&n_opened, 0);
    for (size_t i = 0; i < watches; i++) {
        sources[i] = (struct source){.s = {.pull = pull, .close = close_source}};
        pthread_mutex_init(&sources[i].lock, NULL);
    }
    size_t before = resident();
    if (write(port_pipe, &port, sizeof port) != sizeof port)
        fail("write");
    int *one = xcalloc(watches, sizeof *one);
    for (size_t i = 0; i < watches; i++)
        one[i] = 1;
    wait_for_pulls(watches, one);
    free(one);
    pause_us(900000);
    size_t after = resident();
    double alone = cost_of(watches, rounds, 1), shared = cost_of(watches, rounds, together);
    printf("%-9s %6zu %11zu %12.2f %14.2f %10.2f (of %d)\n", name, watches, connections,
           (double)(after - before) / 1024 / (double)watches, alone, shared, together);
    kill(clients, SIGTERM);
    waitpid(clients, NULL, 0);
    close(port_pipe);
    server_stop(server, 1000);
    server_free(server);
}

/* ---- a certificate ---- */

static void write_pair(const char *cert_file, const char *key_file)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_set_pubkey(x, key);
    X509_sign(x, key, EVP_sha256());
    FILE *cert_out = fopen(cert_file, "w"), *key_out = fopen(key_file, "w");
    if (!cert_out || !key_out || !PEM_write_X509(cert_out, x) ||
        !PEM_write_PrivateKey(key_out, key, NULL, NULL, 0, NULL, NULL))
        fail(cert_file);
    fclose(cert_out);
    fclose(key_out);
    X509_free(x);
    EVP_PKEY_free(key);
}

static size_t number(int argc, char **argv, int i, size_t otherwise)
{
    uint64_t n = 0;
    return argc > i && str_to_u64(argv[i], &n) == 0 && n > 0 ? (size_t)n : otherwise;
}

int main(int argc, char **argv)
{
    size_t watches = number(argc, argv, 1, 500), connections = number(argc, argv, 2, 5);
    int rounds = (int)number(argc, argv, 3, 200), together = (int)number(argc, argv, 4, 10);
    char folder[] = "/tmp/transport-bench-XXXXXX";
    if (!mkdtemp(folder))
        fail("mkdtemp");
    SCOPED_FREE char *cert = xasprintf("%s/crt", folder);
    SCOPED_FREE char *key = xasprintf("%s/key", folder);
    const char *const files[] = {cert, key};
    write_pair(cert, key);
    watches -= watches % connections;
    sources = xcalloc(watches, sizeof *sources);
    memset(event, 'e', sizeof event - 1);
    event[sizeof event - 1] = '\n';
    printf("%-9s %6s %11s %12s %14s %10s\n", "", "watch", "connections", "KiB/watch",
           "us/event alone", "together");
    measure("HTTP/1.1", false, watches, watches, rounds, together, files);
    measure("HTTP/2", true, watches, connections, rounds, together, files);
    free(sources);
    unlink(cert);
    unlink(key);
    rmdir(folder);
    return 0;
}
