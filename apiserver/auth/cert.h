/* Client certificates: DER chains verified against bundles of authorities.
 * Any thread. */
#pragma once

#include <stdint.h>

#include "apiserver/auth/auth.h"
#include "apiserver/base/subject.h"

struct bundle; /* constant, counted */
/* At least one certificate; anything in the text that is none is an error. Errors: ERR_INVALID. */
int bundle_parse(const char *pem, size_t n, struct bundle **ret, struct err *err);
struct bundle *bundle_ref(struct bundle *b);
void bundle_unref(struct bundle *b); /* NULL is fine */
/* Of this bundle alone, in all of the process's life. */
uint64_t bundle_number(const struct bundle *b);

/* The leaf (chain[0]) leads by the others to an authority of the bundle, all are valid at at_unix_s
 * and none forbids client authentication. ret gets the leaf's subject. Errors: ERR_UNAUTHORIZED
 * with the reason, for the log only. */
int cert_verify(const struct bundle *b, const struct cert_der *chain, size_t n, int64_t at_unix_s,
                struct subject *ret, struct err *err);
