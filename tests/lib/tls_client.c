#include "tests/lib/tls_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int tcp_connect(int port)
{
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct timeval limit = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    close(fd);
    return -1;
}

static SSL_CTX *make_ctx(const struct tls_client_opts *o)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (o->max_version)
        SSL_CTX_set_max_proto_version(ctx, o->max_version);
    if (o->cert_file) {
        SSL_CTX_use_certificate_chain_file(ctx, o->cert_file);
        SSL_CTX_use_PrivateKey_file(ctx, o->key_file, SSL_FILETYPE_PEM);
    }
    if (o->alpn)
        SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)o->alpn, (unsigned)strlen(o->alpn));
    return ctx;
}

bool tls_client_open(struct tls_client *c, int port, const struct tls_client_opts *opts)
{
    static const struct tls_client_opts none;
    if (!opts)
        opts = &none;
    *c = (struct tls_client){.fd = tcp_connect(port)};
    if (c->fd < 0)
        return false;
    c->ctx = opts->ctx ? opts->ctx : make_ctx(opts);
    if (opts->ctx)
        SSL_CTX_up_ref(c->ctx);
    c->ssl = SSL_new(c->ctx);
    SSL_set_fd(c->ssl, c->fd);
    if (opts->session)
        SSL_set_session(c->ssl, opts->session);
    return SSL_connect(c->ssl) == 1;
}

bool tls_client_send_bytes(struct tls_client *c, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        int r = SSL_write(c->ssl, p, n > 16384 ? 16384 : (int)n);
        if (r <= 0)
            return false;
        p += r;
        n -= (size_t)r;
    }
    return true;
}

bool tls_client_send(struct tls_client *c, const char *text)
{
    return tls_client_send_bytes(c, text, strlen(text));
}

/* 1 = something came, 0 = the end, -1 = broken or too late. */
static int read_some(struct tls_client *c)
{
    char part[16384];
    int r = SSL_read(c->ssl, part, sizeof part);
    if (r > 0) {
        buf_append(&c->got, part, (size_t)r);
        return 1;
    }
    return SSL_get_error(c->ssl, r) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

bool tls_client_read_until(struct tls_client *c, const char *text)
{
    while (!strstr(buf_cstr(&c->got), text))
        if (read_some(c) != 1)
            return false;
    return true;
}

bool tls_client_read_all(struct tls_client *c)
{
    int r;
    do
        r = read_some(c);
    while (r == 1);
    return r == 0;
}

void tls_client_clear(struct tls_client *c)
{
    buf_clear(&c->got);
}

void tls_client_close(struct tls_client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    if (c->fd >= 0)
        close(c->fd);
    buf_fini(&c->got);
    *c = (struct tls_client){.fd = -1};
}
