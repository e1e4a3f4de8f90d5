/* Certificates for tests, made by the openssl program in a temporary directory that goes when the
 * test program ends. */
#pragma once

#include <stddef.h>

/* Makes the directory; call before the suite runs (in the parent of all tests). */
void certs_init(void);
/* Path of a file in it. Lives as long as the program. */
const char *certs_path(const char *name);
/* <name>.crt and <name>.key. issuer NULL = self-signed authority. subject like /O=a/CN=b; ext:
 * lines for the extension file, or NULL for none; days may be negative (already over). Ends the
 * program on failure. */
void certs_make(const char *name, const char *issuer, const char *subject, const char *ext,
                int days);
/* Writes the named files one after the other into out. */
void certs_join(const char *out, const char *const *names);
void certs_write(const char *name, const char *text);
#define CERTS_CA "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
#define CERTS_CLIENT "extendedKeyUsage=clientAuth\n"
#define CERTS_SERVER "extendedKeyUsage=serverAuth\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n"
