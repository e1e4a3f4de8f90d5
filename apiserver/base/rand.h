/* Randomness (the kernel) and digests (OpenSSL). Randomness is a table of functions, so that tests
 * can fix it. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct randomness {
    void (*fill)(const struct randomness *r, void *p, size_t n);
    void *ctx;
};
extern const struct randomness rand_system;
struct rand_fixed { /* a deterministic sequence from a seed; not thread-safe */
    struct randomness r;
    uint64_t state;
};
void rand_fixed_init(struct rand_fixed *f, uint64_t seed);

#define RAND_UUID_SIZE 37
void rand_uuid(const struct randomness *r, char out[RAND_UUID_SIZE]); /* version 4, lower case */
/* n characters of bcdfghjklmnpqrstvwxz2456789 and a NUL. Source: apimachinery util/rand. */
void rand_name_suffix(const struct randomness *r, char *out, size_t n);
/* uniform in [0, bound); bound > 0 */
uint64_t rand_below(const struct randomness *r, uint64_t bound);

void digest_sha1(const void *p, size_t n, unsigned char out[20]); /* for protocols that say so */
void digest_sha256(const void *p, size_t n, unsigned char out[32]);
void digest_sha512_hex(const void *p, size_t n, char out[129]); /* upper case */
void digest_hmac_sha256(const void *key, size_t key_n, const void *p, size_t n,
                        unsigned char out[32]);
/* Takes a time that does not tell where the first difference is. */
bool digest_equal(const char *a, const char *b, size_t n);
void digest_print_hex(const void *p, size_t n, char *out); /* lower case; out has 2 n + 1 bytes */
#define NAME_HASH_SIZE 9
/* 8 lower-case hex digits of FNV-1a 32 */
void digest_name_hash(const char *name, char out[NAME_HASH_SIZE]);
