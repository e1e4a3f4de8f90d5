/* Randomness from the kernel, the door to OpenSSL for digests, and a fixed sequence for tests.
 * Certificates are not here. OpenSSL's own generator, one a thread, costs several times as much for
 * the few bytes that are asked for. */
#include "apiserver/base/rand.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* A server without randomness or digests cannot make a uid or check a certificate: it ends. */
static void require(int ok, const char *what)
{
    if (ok == 1)
        return;
    fprintf(stderr, "fatal: %s failed\n", what);
    abort();
}

static void system_fill(const struct randomness *r, void *p, size_t n)
{
    (void)r;
    unsigned char *at = p;
    while (n > 0) {
        ssize_t part = getrandom(at, n, 0);
        if (part < 0 && errno == EINTR)
            continue;
        require(part > 0, "getrandom");
        at += part;
        n -= (size_t)part;
    }
}

const struct randomness rand_system = {.fill = system_fill};

/* Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (SplitMix64). */
static uint64_t split_mix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void fixed_fill(const struct randomness *r, void *p, size_t n)
{
    struct rand_fixed *f = r->ctx;
    unsigned char *at = p;
    while (n > 0) {
        uint64_t word = split_mix(&f->state);
        size_t part = n < sizeof word ? n : sizeof word;
        memcpy(at, &word, part);
        at += part;
        n -= part;
    }
}

void rand_fixed_init(struct rand_fixed *f, uint64_t seed)
{
    f->r = (struct randomness){.fill = fixed_fill, .ctx = f};
    f->state = seed;
}

static void print_hex(const unsigned char *p, size_t n, const char digits[16], char *out)
{
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[p[i] >> 4];
        *out++ = digits[p[i] & 15];
    }
    *out = '\0';
}

static const char hex_lower[16] = "0123456789abcdef";
static const char hex_upper[16] = "0123456789ABCDEF";

/* Source: RFC 9562, version 4: 122 random bits, version and variant in bytes 6 and 8. */
void rand_uuid(const struct randomness *r, char out[RAND_UUID_SIZE])
{
    static const size_t group_end[] = {4, 6, 8, 10, 16};
    unsigned char bytes[16];
    r->fill(r, bytes, sizeof bytes);
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
    size_t from = 0;
    for (size_t g = 0; g < 5; g++) {
        print_hex(bytes + from, group_end[g] - from, hex_lower, out);
        out += 2 * (group_end[g] - from);
        from = group_end[g];
        *out++ = g < 4 ? '-' : '\0';
    }
}

uint64_t rand_below(const struct randomness *r, uint64_t bound)
{
    /* Values below 2^64 mod bound would make the first ones likelier; they are drawn again. */
    uint64_t unfair = (0 - bound) % bound;
    uint64_t v;
    do
        r->fill(r, &v, sizeof v);
    while (v < unfair);
    return v % bound;
}

void rand_name_suffix(const struct randomness *r, char *out, size_t n)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    for (size_t i = 0; i < n; i++)
        out[i] = letters[rand_below(r, sizeof letters - 1)];
    out[n] = '\0';
}

void digest_sha1(const void *p, size_t n, unsigned char out[20])
{
    require(EVP_Digest(p, n, out, NULL, EVP_sha1(), NULL), "SHA-1");
}

void digest_sha256(const void *p, size_t n, unsigned char out[32])
{
    require(EVP_Digest(p, n, out, NULL, EVP_sha256(), NULL), "SHA-256");
}

void digest_sha512_hex(const void *p, size_t n, char out[129])
{
    unsigned char bytes[64];
    require(EVP_Digest(p, n, bytes, NULL, EVP_sha512(), NULL), "SHA-512");
    print_hex(bytes, sizeof bytes, hex_upper, out);
}

void digest_hmac_sha256(const void *key, size_t key_n, const void *p, size_t n,
                        unsigned char out[32])
{
    unsigned int len = 0;
    int ok = key_n <= INT_MAX && HMAC(EVP_sha256(), key, (int)key_n, p, n, out, &len) != NULL;
    require(ok, "HMAC");
}

bool digest_equal(const char *a, const char *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

void digest_print_hex(const void *p, size_t n, char *out)
{
    print_hex(p, n, hex_lower, out);
}

static uint32_t fnv1a32(const void *p, size_t n)
{
    const unsigned char *bytes = p;
    uint32_t h = 0x811c9dc5;
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 16777619;
    return h;
}

void digest_name_hash(const char *name, char out[NAME_HASH_SIZE])
{
    snprintf(out, NAME_HASH_SIZE, "%08x", fnv1a32(name, strlen(name)));
}
