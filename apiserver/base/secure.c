#include "apiserver/base/secure.h"

#include <openssl/err.h>

int secure_failed(struct err *err, const char *what, const char *file)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    err_set(err, ERR_INVALID, "%s %s: %s", what, file, reason ? reason : "unusable");
    ERR_clear_error();
    return -ERR_INVALID;
}

static int load_files(SSL_CTX *ctx, const char *cert_file, const char *key_file, struct err *err)
{
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1)
        return secure_failed(err, "certificate", cert_file);
    if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1)
        return secure_failed(err, "key", key_file);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return secure_failed(err, "key does not fit the certificate:", key_file);
    return 0;
}

int secure_context(const SSL_METHOD *method, const char *cert_file, const char *key_file,
                   SSL_CTX **ret, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    if (!ctx)
        return err_set(err, ERR_INTERNAL, "OpenSSL gives no context");
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    /* A peer that goes without close_notify is at its end like any other: what is spoken here says
     * itself where a message ends. */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    int rc = cert_file ? load_files(ctx, cert_file, key_file, err) : 0;
    if (rc < 0)
        SSL_CTX_free(ctx);
    else
        *ret = ctx;
    return rc;
}
