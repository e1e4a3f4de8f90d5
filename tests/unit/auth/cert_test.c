/* Chains against bundles, as Go's verifier would judge them, and names. */
#include "apiserver/auth/cert.h"

#include <openssl/pem.h>
#include <stdio.h>

#include "apiserver/auth/verify.h"
#include "tests/lib/certs.h"
#include "tests/lib/suite.h"

#define DAY_S 86400

static struct bundle *load(const char *name)
{
    struct bundle *b = NULL;
    SCOPED(buf_fini) struct buf pem = {0};
    SCOPED(err_fini) struct err err = {0};
    FILE *f = fopen(certs_path(name), "re");
    int c;
    while ((c = getc(f)) != EOF)
        buf_putc(&pem, (char)c);
    fclose(f);
    ck_assert_msg(bundle_parse(buf_cstr(&pem), pem.len, &b, &err) == 0, "%s: %s", name,
                  err_text(&err));
    return b;
}

/* The certificates of a file as DER. */
static size_t chain_of(const char *name, struct cert_der *chain, size_t max)
{
    FILE *f = fopen(certs_path(name), "re");
    size_t n = 0;
    X509 *x;
    while (f && n < max && (x = PEM_read_X509(f, NULL, NULL, NULL))) {
        unsigned char *der = NULL;
        int len = i2d_X509(x, &der);
        chain[n] = (struct cert_der){.p = xmemdup(der, (size_t)len), .n = (size_t)len};
        n++;
        OPENSSL_free(der);
        X509_free(x);
    }
    if (f)
        fclose(f);
    return n;
}

static void chain_fini(struct cert_der *chain, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *p;
        memcpy(&p, &chain[i].p, sizeof p);
        free(p);
    }
}

static int check(const char *bundle, const char *file, int64_t days_from_now, struct subject *ret,
                 struct err *err)
{
    struct cert_der chain[4];
    struct bundle *b = load(bundle);
    size_t n = chain_of(file, chain, ARRAY_LEN(chain));
    int r = cert_verify(b, chain, n, clock_unix_s(&clock_system) + days_from_now * DAY_S, ret, err);
    chain_fini(chain, n);
    bundle_unref(b);
    return r;
}

static const struct {
    const char *what, *bundle, *chain;
    int64_t days;
    bool is_good;
} rows[] = {
    {"direct", "ca.crt", "direct.crt", 0, true},
    {"through an intermediate", "ca.crt", "long.crt", 0, true},
    {"intermediate missing", "ca.crt", "leaf.crt", 0, false},
    {"intermediate is in the bundle", "middle.crt", "leaf.crt", 0, true},
    {"bundle of several", "both.crt", "direct.crt", 0, true},
    {"another authority", "other.crt", "direct.crt", 0, false},
    {"an authority of the same name", "twin.crt", "direct.crt", 0, false},
    {"over", "ca.crt", "direct.crt", 11, false},
    {"not yet", "ca.crt", "direct.crt", -1, false},
    {"for servers only", "ca.crt", "server.crt", 0, false},
    {"no usage named", "ca.crt", "plain.crt", 0, true},
    {"any usage", "ca.crt", "any.crt", 0, true},
    {"issued by no authority", "ca.crt", "by-leaf.crt", 0, false},
    {"itself in the bundle", "direct.crt", "direct.crt", 0, true},
    {"intermediate for servers only", "ca.crt", "narrow-long.crt", 0, false},
};

START_TEST(test_rows)
{
    SCOPED(subject_fini) struct subject s = {0};
    SCOPED(err_fini) struct err err = {0};
    int r = check(rows[_i].bundle, rows[_i].chain, rows[_i].days, &s, &err);
    ck_assert_msg((r == 0) == rows[_i].is_good, "%s: %s", rows[_i].what, err_text(&err));
    if (r < 0)
        ck_assert_int_eq(err.code, ERR_UNAUTHORIZED);
}
END_TEST

START_TEST(test_names)
{
    SCOPED(subject_fini) struct subject s = {0}, none = {0};
    ck_assert_int_eq(check("ca.crt", "named.crt", 0, &s, NULL), 0);
    ck_assert_str_eq(s.common_name, "second");
    ck_assert_str_eq(s.organizations[0], "b");
    ck_assert_str_eq(s.organizations[1], "a");
    ck_assert_ptr_null(s.organizations[2]);
    ck_assert_str_eq(s.uid, "u-7");
    ck_assert_int_eq(check("ca.crt", "nameless.crt", 0, &none, NULL), 0);
    ck_assert_str_eq(none.common_name, "");
    ck_assert_ptr_null(none.organizations[0]);
    ck_assert_str_eq(none.uid, "");
}
END_TEST

START_TEST(test_rubbish)
{
    struct bundle *b = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(bundle_parse("", 0, &b, &err), -ERR_INVALID);
    ck_assert_int_eq(bundle_parse("hello", 5, &b, &err), -ERR_INVALID);
    const char *broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    ck_assert_int_eq(bundle_parse(broken, strlen(broken), &b, &err), -ERR_INVALID);
    ck_assert_ptr_null(b);
    b = load("ca.crt");
    struct subject s = {0};
    const struct cert_der der = {.p = (const unsigned char *)"\x30\x03\x02\x01\x01", .n = 5};
    ck_assert_int_eq(cert_verify(b, &der, 1, 0, &s, &err), -ERR_UNAUTHORIZED);
    ck_assert_int_eq(cert_verify(b, &der, 0, 0, &s, &err), -ERR_UNAUTHORIZED);
    bundle_unref(bundle_ref(b));
    bundle_unref(b);
}
END_TEST

/* The remembered answer: the same until it is too old, another for another bundle. */
START_TEST(test_verifier)
{
    struct clock_fake now;
    clock_fake_init(&now, clock_unix_ms(&clock_system));
    struct verifier *v = verifier_new(&now.clock);
    struct bundle *ca = load("ca.crt"), *other = load("other.crt");
    struct cert_der chain[4];
    size_t n = chain_of("named.crt", chain, ARRAY_LEN(chain));
    SCOPED(err_fini) struct err err = {0};
    for (int i = 0; i < 3; i++) {
        SCOPED(subject_fini) struct subject s = {0};
        ck_assert_int_eq(verifier_check(v, ca, chain, n, &s, &err), 0);
        ck_assert_str_eq(s.common_name, "second");
        ck_assert_str_eq(s.organizations[1], "a");
        ck_assert_ptr_null(s.organizations[2]);
        ck_assert_str_eq(s.uid, "u-7");
        ck_assert_int_eq(verifier_check(v, other, chain, n, &s, &err), -ERR_UNAUTHORIZED);
        ck_assert_ptr_nonnull(strstr(err_text(&err), "certificate: "));
    }
    ck_assert_uint_ne(bundle_number(ca), bundle_number(other));
    clock_fake_advance(&now, (int64_t)11 * DAY_S * 1000);
    struct subject s = {0};
    ck_assert_int_eq(verifier_check(v, ca, chain, n, &s, &err), -ERR_UNAUTHORIZED);
    chain_fini(chain, n);
    bundle_unref(ca);
    bundle_unref(other);
    verifier_free(v);
}
END_TEST

#define NARROW_CA CERTS_CA "extendedKeyUsage=serverAuth\n"

SUITE(cert)
{
    certs_init();
    certs_make("ca", NULL, "/CN=authority", CERTS_CA, 10);
    certs_make("twin", NULL, "/CN=authority", CERTS_CA, 10);
    certs_make("other", NULL, "/CN=other", CERTS_CA, 10);
    certs_make("middle", "ca", "/CN=middle", CERTS_CA, 10);
    certs_make("narrow", "ca", "/CN=narrow", NARROW_CA, 10);
    certs_make("direct", "ca", "/CN=direct", CERTS_CLIENT, 10);
    certs_make("leaf", "middle", "/CN=leaf", CERTS_CLIENT, 10);
    certs_make("narrow-leaf", "narrow", "/CN=leaf", CERTS_CLIENT, 10);
    certs_make("server", "ca", "/CN=server", CERTS_SERVER, 10);
    certs_make("plain", "ca", "/CN=plain", NULL, 10);
    certs_make("any", "ca", "/CN=any", "extendedKeyUsage=anyExtendedKeyUsage\n", 10);
    certs_make("by-leaf", "direct", "/CN=by-leaf", CERTS_CLIENT, 10);
    certs_make("named", "ca", "/O=b/CN=first/O=a/OU=x/userUid=u-7/CN=second", CERTS_CLIENT, 10);
    certs_make("nameless", "ca", "/OU=x", CERTS_CLIENT, 10);
    certs_join("both.crt", (const char *[]){"other.crt", "ca.crt", NULL});
    certs_join("long.crt", (const char *[]){"leaf.crt", "middle.crt", NULL});
    certs_join("narrow-long.crt", (const char *[]){"narrow-leaf.crt", "narrow.crt", NULL});
    LOOP("chains", test_rows, 0, ARRAY_LEN(rows));
    TESTS("names", test_names, test_rubbish, test_verifier);
}
