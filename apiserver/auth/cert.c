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

/* Source: kube-apiserver 1.33, client certificates may carry the user's uid. */
static const char uid_oid[] = "1.3.6.1.4.1.57683.2";

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

/* ---- names ---- */

void subject_fini(struct subject *s)
{
    strv_free(s->organizations);
    free(s->common_name);
    free(s->uid);
    *s = (struct subject){0};
}

/* NULL when it is no text or has a NUL inside, which would cut a name short. */
static char *text_of(const X509_NAME_ENTRY *entry)
{
    unsigned char *utf8 = NULL;
    int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
    char *text = NULL;
    if (n >= 0 && !memchr(utf8, 0, (size_t)n))
        text = xstrndup((const char *)utf8, (size_t)n);
    OPENSSL_free(utf8);
    return text;
}

static void replace(char **to, char *take)
{
    free(*to);
    *to = take;
}

static bool is_uid(const X509_NAME_ENTRY *entry)
{
    char oid[64];
    OBJ_obj2txt(oid, sizeof oid, X509_NAME_ENTRY_get_object(entry), 1);
    return strcmp(oid, uid_oid) == 0;
}

static bool take_entry(struct subject *s, const X509_NAME_ENTRY *entry)
{
    int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (nid != NID_commonName && nid != NID_organizationName && !is_uid(entry))
        return true;
    char *text = text_of(entry);
    if (!text)
        return false;
    if (nid == NID_commonName)
        replace(&s->common_name, text);
    else if (nid == NID_organizationName)
        strv_add(&s->organizations, text);
    else
        replace(&s->uid, text);
    return true;
}

static int read_subject(X509 *leaf, struct subject *ret, struct err *err)
{
    SCOPED(subject_fini) struct subject s = {.common_name = xstrdup(""), .uid = xstrdup("")};
    s.organizations = xcalloc(1, sizeof(char *));
    const X509_NAME *name = X509_get_subject_name(leaf);
    for (int i = 0; i < X509_NAME_entry_count(name); i++)
        if (!take_entry(&s, X509_NAME_get_entry(name, i)))
            return err_set(err, ERR_UNAUTHORIZED, "certificate's subject is not readable");
    *ret = steal(&s);
    return 0;
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
    return r < 0 ? r : read_subject(leaf, ret, err);
}
