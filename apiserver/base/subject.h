/* The names in a client's certificate: who it is, and of which groups. Verifies nothing. Any
 * thread. */
#pragma once

#include <openssl/x509.h>

#include "apiserver/base/err.h"

struct subject {          /* starts as {0}; subject_fini */
    char *common_name;    /* the last CN; "" when there is none */
    char **organizations; /* NULL-terminated, in order */
    char *uid;            /* OID 1.3.6.1.4.1.57683.2, "" when absent */
};
void subject_fini(struct subject *s);
/* Errors: ERR_UNAUTHORIZED when a name is no text. */
int subject_read(X509 *certificate, struct subject *ret, struct err *err);
