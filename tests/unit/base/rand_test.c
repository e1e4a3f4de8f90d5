#include "apiserver/base/rand.h"

#include <stdio.h>

#include "tests/lib/suite.h"

/* Source: the published vectors of FNV-1a, and names whose hashes the contract lists. */
static const struct {
    const char *name, *hash;
} names[] = {
    {"", "811c9dc5"},
    {"a", "e40c292c"},
    {"foobar", "bf9cf968"},
    {"my-sandbox", "374de8f5"},
    {"sandbox-name", "ab179450"},
    {"test-pool", "59733166"},
    {"test-template", "69155462"},
    {"pool", "91dd7983"},
};

START_TEST(test_name_hash)
{
    char out[NAME_HASH_SIZE];
    digest_name_hash(names[_i].name, out);
    ck_assert_str_eq(out, names[_i].hash);
}
END_TEST

static void check_hex(const unsigned char *p, size_t n, const char *hex)
{
    for (size_t i = 0; i < n; i++) {
        char two[3];
        snprintf(two, sizeof two, "%02x", p[i]);
        ck_assert_msg(memcmp(two, hex + 2 * i, 2) == 0, "byte %zu", i);
    }
}

START_TEST(test_sha1)
{
    unsigned char out[20];
    char hex[41];
    digest_sha1("abc", 3, out); /* FIPS 180 */
    digest_print_hex(out, sizeof out, hex);
    ck_assert_str_eq(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
}
END_TEST

START_TEST(test_sha256)
{
    unsigned char out[32];
    digest_sha256("abc", 3, out);
    check_hex(out, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_sha256(NULL, 0, out);
    check_hex(out, 32, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
END_TEST

START_TEST(test_sha512)
{
    char out[129];
    digest_sha512_hex("abc", 3, out);
    ck_assert_str_eq(out, "DDAF35A193617ABACC417349AE20413112E6FA4E89A97EA20A9EEEE64B55D39A"
                          "2192992A274FC1A836BA3C23A3FEEBBD454D4423643CE80E2A9AC94FA54CA49F");
}
END_TEST

/* Source: RFC 4231, test case 2. */
START_TEST(test_hmac)
{
    unsigned char out[32];
    digest_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, out);
    check_hex(out, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}
END_TEST

START_TEST(test_uuid)
{
    char a[RAND_UUID_SIZE], b[RAND_UUID_SIZE];
    rand_uuid(&rand_system, a);
    rand_uuid(&rand_system, b);
    ck_assert_str_ne(a, b);
    ck_assert_uint_eq(strlen(a), 36);
    for (size_t i = 0; i < 36; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        ck_assert_msg(is_dash ? a[i] == '-' : strchr("0123456789abcdef", a[i]) != NULL, "%s", a);
    }
    ck_assert_int_eq(a[14], '4');
    ck_assert_ptr_nonnull(strchr("89ab", a[19]));
}
END_TEST

START_TEST(test_suffix)
{
    char out[6] = "xxxxx";
    for (int i = 0; i < 1000; i++) {
        rand_name_suffix(&rand_system, out, 5);
        ck_assert_uint_eq(strlen(out), 5);
        ck_assert_uint_eq(strspn(out, "bcdfghjklmnpqrstvwxz2456789"), 5);
    }
    rand_name_suffix(&rand_system, out, 0);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(test_below)
{
    struct rand_fixed f;
    rand_fixed_init(&f, 1);
    int seen[7] = {0};
    for (int i = 0; i < 7000; i++)
        seen[rand_below(&f.r, 7)]++;
    for (int i = 0; i < 7; i++)
        ck_assert_int_gt(seen[i], 800);
    ck_assert_uint_eq(rand_below(&f.r, 1), 0);
    uint64_t big = UINT64_MAX / 2 + 2; /* nearly every second draw is unfair */
    for (int i = 0; i < 100; i++)
        ck_assert_uint_lt(rand_below(&f.r, big), big);
}
END_TEST

START_TEST(test_fixed_repeats)
{
    struct rand_fixed f, g;
    char a[RAND_UUID_SIZE], b[RAND_UUID_SIZE];
    rand_fixed_init(&f, 7);
    rand_fixed_init(&g, 7);
    rand_uuid(&f.r, a);
    rand_uuid(&g.r, b);
    ck_assert_str_eq(a, b);
    rand_uuid(&f.r, b);
    ck_assert_str_ne(a, b);
}
END_TEST

START_TEST(test_hex)
{
    char out[7];
    digest_print_hex("\x01\xab\xff", 3, out);
    ck_assert_str_eq(out, "01abff");
}
END_TEST

SUITE(rand)
{
    LOOP("name_hash", test_name_hash, 0, ARRAY_LEN(names));
    TESTS("digest", test_sha1, test_sha256, test_sha512, test_hmac, test_hex);
    TESTS("random", test_uuid, test_suffix, test_below, test_fixed_repeats);
}
