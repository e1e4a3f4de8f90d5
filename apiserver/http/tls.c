/* TLS settings in one SSL_CTX, swapped as a whole by tls_reload. */
#include "apiserver/http/tls.h"

#include <openssl/x509.h>
#include <pthread.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/secure.h"

#define CHAIN_MAX 16 /* certificates of a peer that are looked at */

struct tls {
    const char *const *alpn;
    char *cert_file, *key_file;
    BIO_METHOD *out_method;
    pthread_mutex_t lock; /* guards ctx */
    SSL_CTX *ctx;
};

/* Any certificate will do for the handshake: probes and token users have none, and which authority
 * counts is decided for each request against bundles that may change while the connection lives. */
static int accept_any_certificate(X509_STORE_CTX *store, void *unused)
{
    (void)unused;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
}

/* A ticket keeps the peer's leaf only, not the intermediates that are needed to verify it. So who
 * came with a certificate makes a full handshake each time; everybody else may resume. Source:
 * SSL_SESSION's ASN.1 form has one peer certificate. */
static SSL_TICKET_RETURN judge_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                      size_t name_len, SSL_TICKET_STATUS status, void *unused)
{
    (void)ssl;
    (void)name;
    (void)name_len;
    (void)unused;
    bool is_good = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
    if (!is_good || SSL_SESSION_get0_peer(session) != NULL)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS_RENEW ? SSL_TICKET_RETURN_USE_RENEW : SSL_TICKET_RETURN_USE;
}

static int make_ticket(SSL *ssl, void *unused)
{
    (void)ssl;
    (void)unused;
    return 1;
}

static bool is_offered(const char *name, const unsigned char *in, unsigned in_len,
                       const unsigned char **out)
{
    size_t n = strlen(name);
    for (unsigned at = 0; at < in_len && in[at] <= in_len - at - 1; at += 1U + in[at]) {
        if (in[at] == n && memcmp(in + at + 1, name, n) == 0) {
            *out = in + at + 1;
            return true;
        }
    }
    return false;
}

/* The first of our protocols that the client offers; none in common ends the handshake (RFC
 * 7301, 3.2). */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    (void)ssl;
    const struct tls *t = arg;
    for (const char *const *name = t->alpn; *name; name++) {
        if (is_offered(*name, in, in_len, out)) {
            *out_len = (unsigned char)strlen(*name);
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void set_rules(struct tls *t, SSL_CTX *ctx)
{
    static const unsigned char id[] = "sandbox-apiserver";
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, accept_any_certificate, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets need no memory here */
    SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1);
    SSL_CTX_set_session_ticket_cb(ctx, make_ticket, judge_ticket, NULL);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, t);
}

static int make_context(struct tls *t, SSL_CTX **ret, struct err *err)
{
    int r = secure_context(TLS_server_method(), t->cert_file, t->key_file, ret, err);
    if (r == 0)
        set_rules(t, *ret);
    return r;
}

/* ---- sending ---- */

static int put_out(BIO *bio, const char *p, int n)
{
    struct buf *out = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    buf_append(out, p, (size_t)n);
    return buf_failed(out) ? -1 : n;
}

static long control_out(BIO *bio, int what, long number, void *arg)
{
    (void)bio;
    (void)number;
    (void)arg;
    return what == BIO_CTRL_FLUSH;
}

static int open_out(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *make_out_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "out");
    if (m && BIO_meth_set_write(m, put_out) && BIO_meth_set_ctrl(m, control_out) &&
        BIO_meth_set_create(m, open_out))
        return m;
    BIO_meth_free(m);
    return NULL;
}

/* ---- start and end ---- */

int tls_new(const char *cert_file, const char *key_file, const char *const *alpn, struct tls **ret,
            struct err *err)
{
    struct tls *t = xcalloc(1, sizeof *t);
    t->alpn = alpn;
    t->cert_file = xstrdup(cert_file);
    t->key_file = xstrdup(key_file);
    pthread_mutex_init(&t->lock, NULL);
    t->out_method = make_out_method();
    int r = t->out_method ? make_context(t, &t->ctx, err)
                          : err_set(err, ERR_INTERNAL, "OpenSSL gives no BIO");
    if (r < 0) {
        tls_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    BIO_meth_free(t->out_method);
    pthread_mutex_destroy(&t->lock);
    free(t->cert_file);
    free(t->key_file);
    free(t);
}

int tls_reload(struct tls *t, struct err *err)
{
    SSL_CTX *fresh = NULL;
    int r = make_context(t, &fresh, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&t->lock);
    SSL_CTX *old = t->ctx;
    t->ctx = fresh;
    pthread_mutex_unlock(&t->lock);
    SSL_CTX_free(old); /* counted: open connections hold it */
    return 0;
}

/* ---- connections ---- */

static bool set_ends(const struct tls *t, SSL *ssl, int fd, struct buf *out)
{
    BIO *bio = BIO_new(t->out_method);
    if (!bio)
        return false;
    BIO_set_data(bio, out);
    SSL_set0_wbio(ssl, bio);
    return SSL_set_rfd(ssl, fd) == 1;
}

SSL *tls_accept(struct tls *t, int fd, struct buf *out)
{
    pthread_mutex_lock(&t->lock);
    SSL *ssl = SSL_new(t->ctx);
    pthread_mutex_unlock(&t->lock);
    if (ssl && !set_ends(t, ssl, fd, out)) {
        SSL_free(ssl);
        return NULL;
    }
    if (ssl)
        SSL_set_accept_state(ssl);
    return ssl;
}

const char *tls_protocol(const struct tls *t, SSL *ssl)
{
    const unsigned char *chosen = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(ssl, &chosen, &len);
    const char *last = NULL;
    for (const char *const *name = t->alpn; *name; name++) {
        last = *name;
        if (chosen && len == strlen(*name) && memcmp(chosen, *name, len) == 0)
            break;
    }
    return last;
}

static bool put_der(X509 *certificate, struct cert_der *ret)
{
    unsigned char *der = NULL;
    int n = certificate ? i2d_X509(certificate, &der) : -1;
    if (n <= 0)
        return false;
    ret->p = xmemdup(der, (size_t)n);
    ret->n = (size_t)n;
    OPENSSL_free(der);
    return true;
}

struct cert_der *tls_chain(SSL *ssl, size_t *ret_n)
{
    STACK_OF(X509) *rest = SSL_get_peer_cert_chain(ssl); /* on the server's side without the leaf */
    struct cert_der *chain = xcalloc(CHAIN_MAX, sizeof *chain);
    size_t n = 0;
    if (put_der(SSL_get0_peer_certificate(ssl), &chain[0]))
        n = 1;
    for (int i = 0; n > 0 && n < CHAIN_MAX && i < sk_X509_num(rest); i++)
        n += put_der(sk_X509_value(rest, i), &chain[n]);
    *ret_n = n;
    if (n == 0) {
        free(chain);
        return NULL;
    }
    return xreallocarray(chain, n, sizeof *chain);
}

void tls_chain_free(struct cert_der *chain, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *p;
        memcpy(&p, &chain[i].p, sizeof p);
        free(p);
    }
    free(chain);
}
