/* The transport: an OpenSSL listener (TLS 1.2 and up, ALPN, client certificates requested and not
 * required, reload of certificate and key without restart), libnghttp2 behind it for HTTP/2 and
 * libmicrohttpd for HTTP/1.1, a pool of worker threads for the handlers, graceful stop. */
#pragma once

#include "apiserver/base/err.h"
#include "apiserver/http/request.h"

struct server_config {
    const char *bind_address; /* "127.0.0.1", "::"; numeric */
    int port;                 /* 0 = any free one */
    /* PEM; watched for change (polled each 5 s and on SIGHUP by main) */
    const char *cert_file, *key_file;
    int workers;                  /* threads; 0 = 32 */
    size_t max_body;              /* bytes; 0 = 3 MiB (3145728) */
    size_t max_connections;       /* 0 = 4,096 */
    size_t other_fds;             /* descriptors that others need */
    int64_t handshake_timeout_ms; /* 0 = 10,000 */
    int64_t header_timeout_ms;    /* from a request's first byte to its headers' end; 0 = 30,000 */
    int64_t idle_timeout_ms;      /* keep-alive, and to take an answer; 0 = 120,000 */
    bool disable_http2;           /* offer HTTP/1.1 only */
    request_handler_fn handler;
    void *ctx;
};
struct server;
/* Binds and starts to serve. Errors: unreadable files, address in use. */
int server_start(const struct server_config *config, struct server **ret, struct err *err);
int server_port(const struct server *s);
/* Reads certificate and key again; the old ones stay when the new ones do not fit together. */
int server_reload(struct server *s, struct err *err);
/* Clients are made to come anew, wherever they are sent then: a connection that was used ends after
 * what is under way, streams at once. New ones are served. */
void server_send_away(struct server *s);
/* No new connections; idle ones end; requests under way have grace_ms; streams are closed; then the
 * rest is cut. */
void server_stop(struct server *s, int64_t grace_ms);
void server_free(struct server *s);
