/* cert_verify, remembered: one verification costs half a millisecond, more than all the rest of a
 * small request, and a connection brings the same chain with each of its requests. Any thread. */
#pragma once

#include "apiserver/auth/cert.h"

struct verifier;
struct verifier *verifier_new(const struct clock *clock);
void verifier_free(struct verifier *v); /* NULL is fine */
/* As cert_verify at the present time; the answer may be 10 s old. */
int verifier_check(struct verifier *v, const struct bundle *b, const struct cert_der *chain,
                   size_t n, struct subject *ret, struct err *err);
