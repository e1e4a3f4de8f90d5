/* Keys are P-256, signatures ECDSA with SHA-256: what every client takes, and quick. */
#include "apiserver/auth/issue.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "apiserver/base/mem.h"

#define SERIAL_BITS 127
#define DAY_S 86400
#define SKEW_S 3600 /* clocks of clients may be behind */

void pair_pem_fini(struct pair_pem *p)
{
    if (p->key.data)
        OPENSSL_cleanse(p->key.data, p->key.len);
    buf_fini(&p->cert);
    buf_fini(&p->key);
}

static void x509_free_p(X509 **x)
{
    X509_free(*x);
}

static void key_free_p(EVP_PKEY **k)
{
    EVP_PKEY_free(*k);
}

static void bio_free_p(BIO **b)
{
    BIO_free(*b);
}

static int fail(struct err *err, const char *what)
{
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    ERR_clear_error();
    return err_set(err, ERR_INTERNAL, "%s: %s", what, reason);
}

/* ---- reading ---- */

static X509 *read_cert(const struct buf *pem)
{
    SCOPED(bio_free_p) BIO *in = BIO_new_mem_buf(buf_cstr(pem), (int)pem->len);
    return in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
}

static EVP_PKEY *read_key(const struct buf *pem)
{
    SCOPED(bio_free_p) BIO *in = BIO_new_mem_buf(buf_cstr(pem), (int)pem->len);
    return in ? PEM_read_bio_PrivateKey(in, NULL, NULL, NULL) : NULL;
}

/* ---- writing ---- */

static void take_text(BIO *from, struct buf *to)
{
    char *text = NULL;
    long n = BIO_get_mem_data(from, &text);
    if (n > 0)
        buf_append(to, text, (size_t)n);
}

static bool print_pair(X509 *x, EVP_PKEY *key, struct pair_pem *ret)
{
    SCOPED(bio_free_p) BIO *cert_out = BIO_new(BIO_s_mem());
    SCOPED(bio_free_p) BIO *key_out = BIO_new(BIO_s_secmem());
    if (!cert_out || !key_out || PEM_write_bio_X509(cert_out, x) != 1 ||
        PEM_write_bio_PKCS8PrivateKey(key_out, key, NULL, NULL, 0, NULL, NULL) != 1)
        return false;
    take_text(cert_out, &ret->cert);
    take_text(key_out, &ret->key);
    return true;
}

/* ---- the certificate ---- */

static bool set_serial(X509 *x)
{
    BIGNUM *n = BN_new();
    bool ok = n && BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
              BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL;
    BN_free(n);
    return ok;
}

static bool add_name(X509_NAME *name, const char *field, const char *text)
{
    return !text || X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                               (const unsigned char *)text, -1, -1, 0) == 1;
}

static bool add_extension(X509V3_CTX *ctx, X509 *x, int nid, const char *value)
{
    if (!value)
        return true;
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, ctx, nid, value);
    bool ok = e && X509_add_ext(x, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

static bool add_extensions(const struct issue_request *req, X509 *x, X509 *issuer)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    const char *usage = req->is_server && req->is_client ? "serverAuth,clientAuth"
                        : req->is_server                 ? "serverAuth"
                                                         : "clientAuth";
    bool is_authority = req->is_authority;
    return add_extension(&ctx, x, NID_basic_constraints,
                         is_authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
           add_extension(&ctx, x, NID_key_usage,
                         is_authority ? "critical,keyCertSign,cRLSign"
                                      : "critical,digitalSignature") &&
           add_extension(&ctx, x, NID_ext_key_usage, is_authority ? NULL : usage) &&
           add_extension(&ctx, x, NID_subject_key_identifier, "hash") &&
           add_extension(&ctx, x, NID_authority_key_identifier, is_authority ? NULL : "keyid") &&
           add_extension(&ctx, x, NID_subject_alt_name, req->alternatives);
}

static bool fill(const struct issue_request *req, X509 *x, EVP_PKEY *key, X509 *issuer)
{
    X509_NAME *name = X509_get_subject_name(x);
    return X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
           X509_gmtime_adj(X509_getm_notBefore(x), -SKEW_S) &&
           X509_gmtime_adj(X509_getm_notAfter(x), (long)(req->days * DAY_S)) &&
           add_name(name, "O", req->organization) && add_name(name, "CN", req->common_name) &&
           X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 &&
           X509_set_pubkey(x, key) == 1 && add_extensions(req, x, issuer);
}

int issue(const struct issue_request *req, struct pair_pem *ret, struct err *err)
{
    SCOPED(x509_free_p) X509 *x = X509_new();
    SCOPED(key_free_p) EVP_PKEY *key = EVP_EC_gen("P-256");
    SCOPED(x509_free_p) X509 *issuer = req->from ? read_cert(&req->from->cert) : NULL;
    SCOPED(key_free_p) EVP_PKEY *signer = req->from ? read_key(&req->from->key) : NULL;
    if (req->from && (!issuer || !signer))
        return err_set(err, ERR_INVALID, "the authority's certificate or key cannot be read");
    if (!x || !key || !fill(req, x, key, issuer ? issuer : x) ||
        X509_sign(x, signer ? signer : key, EVP_sha256()) == 0 || !print_pair(x, key, ret))
        return fail(err, "making a certificate");
    return 0;
}

/* ---- is it still good? ---- */

static bool has_alternatives(X509 *x, const char *list)
{
    SCOPED_FREE char *copy = xstrdup(list ? list : "");
    for (char *rest = copy, *entry; (entry = strsep(&rest, ",")) != NULL;) {
        const char *name = strchr(entry, ':');
        if (!name)
            continue;
        bool has = str_has_prefix(entry, "IP:") ? X509_check_ip_asc(x, name + 1, 0) == 1
                                                : X509_check_host(x, name + 1, 0, 0, NULL) == 1;
        if (!has)
            return false;
    }
    return true;
}

static bool has_usages(X509 *x, const struct issue_request *req)
{
    uint32_t usage = X509_get_extended_key_usage(x);
    return req->is_authority || ((!req->is_server || (usage & XKU_SSL_SERVER)) &&
                                 (!req->is_client || (usage & XKU_SSL_CLIENT)));
}

bool issue_is_good(const struct pair_pem *p, const struct issue_request *req, int64_t days_left)
{
    SCOPED(x509_free_p) X509 *x = read_cert(&p->cert);
    SCOPED(key_free_p) EVP_PKEY *key = read_key(&p->key);
    SCOPED(x509_free_p) X509 *issuer = req->from ? read_cert(&req->from->cert) : NULL;
    bool is_good = x && key && X509_check_private_key(x, key) == 1 &&
                   (!req->from || (issuer && X509_verify(x, X509_get0_pubkey(issuer)) == 1)) &&
                   has_usages(x, req) && has_alternatives(x, req->alternatives);
    int days = 0, seconds = 0;
    is_good = is_good && ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(x)) == 1 &&
              days >= days_left;
    ERR_clear_error();
    return is_good;
}
