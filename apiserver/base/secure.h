/* What every use of TLS here has in common: versions, options, modes, and the files of our own
 * certificate. Whom to trust is for the caller to add. Any thread. */
#pragma once

#include <openssl/ssl.h>

#include "apiserver/base/err.h"

/* cert_file and key_file: ours; NULL = none. Errors: ERR_INVALID for files that cannot be read or
 * do not belong together. SSL_CTX_free. */
int secure_context(const SSL_METHOD *method, const char *cert_file, const char *key_file,
                   SSL_CTX **ret, struct err *err);
/* ERR_INVALID with what OpenSSL says last of a file. Returns its negative. */
int secure_failed(struct err *err, const char *what, const char *file);
