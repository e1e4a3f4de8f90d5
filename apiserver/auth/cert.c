/* OpenSSL does the verifying, held to what Go's crypto/x509 demands of a client: any certificate of
 * the bundle is an end of the chain, extended key usage is nested, SHA-1 is too weak. */
#include "apiserver/auth/cert.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>

#include "apiserver/base/mem.h"

#define BUNDLE_MAX 1000 /* certificates */
#define CHAIN_DEPTH 10
#define AUTH_LEVEL 1 /* 80 bits: no SHA-1, no RSA below 1,024 */

struct bundle {
    atomic_int refs;
    uint64_t number;
    X509_STORE *store;
};

static void x509_free_p(X509 **x)
{
    X509_free(*x);
}

static void stack_free_p(STACK_OF(X509) * *s)
{
    sk_X509_pop_free(*s, X509_free);
}

static void store_ctx_free_p(X509_STORE_CTX **c)
{
    X509_STORE_CTX_free(*c);
}

/* ---- bundles ---- */

/* How many were added; -1 when something is no certificate. */
static int add_all(X509_STORE *store, BIO *in)
{
    int n = 0;
    ERR_clear_error();
    while (n < BUNDLE_MAX) {
        SCOPED(x509_free_p) X509 *x = PEM_read_bio_X509(in, NULL, NULL, NULL);
        if (!x) {
            bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
            ERR_clear_error();
            return is_end ? n : -1;
        }
        /* Reads the extensions now, not in several threads at the first use. */
        X509_check_purpose(x, -1, 0);
        if (X509_STORE_add_cert(store, x) != 1)
            return -1;
        n++;
    }
    return n;
}

static X509_STORE *make_store(void)
{
    X509_STORE *store = X509_STORE_new();
    if (!store)
        abort(); /* exhausted, as in base/mem */
    X509_VERIFY_PARAM *param = X509_STORE_get0_param(store);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_depth(param, CHAIN_DEPTH);
    X509_VERIFY_PARAM_set_auth_level(param, AUTH_LEVEL);
    return store;
}

int bundle_parse(const char *pem, size_t n, struct bundle **ret, struct err *err)
{
    BIO *in = n <= INT32_MAX ? BIO_new_mem_buf(pem, (int)n) : NULL;
    X509_STORE *store = make_store();
    int added = in ? add_all(store, in) : -1;
    BIO_free(in);
    if (added <= 0) {
        X509_STORE_free(store);
        return err_set(err, ERR_INVALID,
                       added < 0 ? "broken PEM certificate" : "no PEM certificate in it");
    }
    static _Atomic uint64_t numbers;
    struct bundle *b = xcalloc(1, sizeof *b);
    atomic_init(&b->refs, 1);
    b->number = atomic_fetch_add(&numbers, 1) + 1;
    b->store = store;
    *ret = b;
    return 0;
}

struct bundle *bundle_ref(struct bundle *b)
{
    if (b)
        atomic_fetch_add(&b->refs, 1);
    return b;
}

void bundle_unref(struct bundle *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    X509_STORE_free(b->store);
    free(b);
}

uint64_t bundle_number(const struct bundle *b)
{
    return b->number;
}

/* ---- verifying ---- */

static X509 *parse_der(const struct cert_der *der)
{
    const unsigned char *p = der->p;
    X509 *x = der->n <= INT32_MAX ? d2i_X509(NULL, &p, (long)der->n) : NULL;
    ERR_clear_error();
    return x;
}

/* From the leaf to the authority: who names usages has to name this one. Source: crypto/x509
 * checkChainForKeyUsage. */
static bool may_authenticate_clients(const STACK_OF(X509) * chain)
{
    for (int i = 0; i < sk_X509_num(chain); i++) {
        X509 *x = sk_X509_value(chain, i);
        bool names_usages = X509_get_extension_flags(x) & EXFLAG_XKUSAGE;
        if (names_usages && !(X509_get_extended_key_usage(x) & (XKU_SSL_CLIENT | XKU_ANYEKU)))
            return false;
    }
    return true;
}

static int verify(const struct bundle *b, X509 *leaf, STACK_OF(X509) * rest, int64_t at_unix_s,
                  struct err *err)
{
    SCOPED(store_ctx_free_p) X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    if (!ctx || X509_STORE_CTX_init(ctx, b->store, leaf, rest) != 1)
        abort(); /* exhausted */
    X509_STORE_CTX_set_time(ctx, 0, (time_t)at_unix_s);
    bool is_good = X509_verify_cert(ctx) == 1;
    ERR_clear_error();
    if (!is_good)
        return err_set(err, ERR_UNAUTHORIZED, "certificate: %s",
                       X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
    if (!may_authenticate_clients(X509_STORE_CTX_get0_chain(ctx)))
        return err_set(err, ERR_UNAUTHORIZED, "certificate: not for client authentication");
    return 0;
}

int cert_verify(const struct bundle *b, const struct cert_der *chain, size_t n, int64_t at_unix_s,
                struct subject *ret, struct err *err)
{
    SCOPED(x509_free_p) X509 *leaf = n > 0 ? parse_der(&chain[0]) : NULL;
    SCOPED(stack_free_p) STACK_OF(X509) *rest = sk_X509_new_null();
    if (!leaf)
        return err_set(err, ERR_UNAUTHORIZED, "certificate: not readable");
    for (size_t i = 1; i < n; i++) {
        X509 *x = parse_der(&chain[i]);
        if (x && sk_X509_push(rest, x) == 0)
            X509_free(x);
    }
    int r = verify(b, leaf, rest, at_unix_s, err);
    return r < 0 ? r : subject_read(leaf, ret, err);
}
