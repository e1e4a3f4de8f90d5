/* Fuzz target for the whole server above the transport: bytes of a request through every filter and
 * verb, by an administrator. Every answer has a status, a type for its body, and JSON where it says
 * JSON. */
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/pipeline.h"
#include "openapi/kinds.h"
#include "storage/memstore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An authority and an administrator's certificate of it, good for a hundred years; nobody has the
 * keys. */
static const char ca_pem[] = "-----BEGIN CERTIFICATE-----\n"
                             "MIIBPDCB46ADAgECAgEBMAoGCCqGSM49BAMCMA0xCzAJBgNVBAMMAmNhMCAXDTIw\n"
                             "MDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjANMQswCQYDVQQDDAJjYTBZMBMG\n"
                             "ByqGSM49AgEGCCqGSM49AwEHA0IABFBEiERw5QtMPbvTStJ0DGTdEMyNtShue5bu\n"
                             "IFHq6HsAelZNZguBFkEWDuEUhM+/jxvrz+pD+3dp1RPMsBpYTdijMjAwMA8GA1Ud\n"
                             "EwEB/wQFMAMBAf8wHQYDVR0OBBYEFFsba7pOFGGdPVzdIG99opejYAdfMAoGCCqG\n"
                             "SM49BAMCA0gAMEUCIQCJcLeuUNNcQz7R+9rxcaQWzvvH0/CM4n3FoHFryXaR9wIg\n"
                             "aiv+KEmA6FKdVrkRePc92Baau9zqhHYhiGW7Zq20BMw=\n"
                             "-----END CERTIFICATE-----\n";
static const char admin_pem[] = "-----BEGIN CERTIFICATE-----\n"
                                "MIIBfzCCASSgAwIBAgIBAjAKBggqhkjOPQQDAjANMQswCQYDVQQDDAJjYTAgFw0y\n"
                                "MDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowKTEXMBUGA1UECgwOc3lzdGVt\n"
                                "Om1hc3RlcnMxDjAMBgNVBAMMBWFkbWluMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD\n"
                                "QgAERxXdTnNxlw2k0a+mDvUzZL92gqP423JfM4eDsstYWjBglt+6UbBYaw5H5FMM\n"
                                "e8wrPMsLmhjGxZnLLciZYX1Bz6NXMFUwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYD\n"
                                "VR0OBBYEFGmwn4i6P3nG5NGZjsmrAc9AXl0MMB8GA1UdIwQYMBaAFFsba7pOFGGd\n"
                                "PVzdIG99opejYAdfMAoGCCqGSM49BAMCA0kAMEYCIQCFkREWu2S676yg8baOrRBF\n"
                                "SNhhPlUX7y6iXHWbWK0NyAIhALU1ZLWCgi9Rqf1VokgLdlZ3O4mVlFhmNwdw5lt9\n"
                                "tLm+\n"
                                "-----END CERTIFICATE-----\n";

static struct pipeline *pipeline;
static struct cert_der admin;
static struct clock_fake fake_clock;
static struct rand_fixed fixed_random;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static struct cert_der read_cert(const char *pem)
{
    unsigned char *der = NULL;
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    int n = x ? i2d_X509(x, &der) : -1;
    require(n > 0);
    X509_free(x);
    BIO_free(bio);
    return (struct cert_der){.p = der, .n = (size_t)n};
}

static struct auth *make_auth(void)
{
    char path[] = "/tmp/fuzz-request-ca-XXXXXX";
    struct auth *auth = NULL;
    int fd = mkstemp(path);
    require(fd >= 0 && write(fd, ca_pem, sizeof ca_pem - 1) == (ssize_t)sizeof ca_pem - 1);
    close(fd);
    struct auth_config config = {
        .clock = &clock_system, .client_ca_file = path, .requestheader_ca_file = path};
    require(auth_new(&config, &auth, NULL) == 0);
    unlink(path);
    return auth;
}

static void setup(void)
{
    static struct admit_env admit;
    clock_fake_init(&fake_clock, (int64_t)1767323045 * 1000);
    rand_fixed_init(&fixed_random, 1);
    admit = (struct admit_env){.clock = &fake_clock.clock, .randomness = &fixed_random.r};
    struct registry *registry = registry_new(
        &(struct registry_config){.store = memstore_new(), .kinds = kinds_all, .admit = &admit});
    registry_start(registry);
    while (!registry_is_synced(registry))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    admin = read_cert(admin_pem);
    pipeline = pipeline_new(&(struct pipeline_config){.registry = registry,
                                                      .auth = make_auth(),
                                                      .clock = &fake_clock.clock,
                                                      .randomness = &fixed_random.r,
                                                      .request_timeout_ms = 200});
}

/* Up to the next line end; no NUL inside, as no transport lets one through. */
static char *next_line(const uint8_t **p, const uint8_t *end)
{
    const uint8_t *eol = memchr(*p, '\n', (size_t)(end - *p));
    const uint8_t *stop = eol ? eol : end;
    char *line = xstrndup((const char *)*p, (size_t)(stop - *p));
    *p = eol ? eol + 1 : end;
    return line;
}

static void read_first_line(char *line, struct request *req)
{
    char *url = strchr(line, ' '), *query = url ? strchr(url, '?') : NULL;
    if (url)
        *url++ = '\0';
    if (query)
        *query++ = '\0';
    req->method = xstrdup(line);
    req->path = xstrdup(url ? url : "/");
    req->query = xstrdup(query ? query : "");
}

static void read_request(const uint8_t *p, const uint8_t *end, struct request *req)
{
    SCOPED_FREE char *first = next_line(&p, end);
    read_first_line(first, req);
    while (p < end) {
        SCOPED_FREE char *line = next_line(&p, end);
        char *colon = strchr(line, ':');
        if (!*line)
            break;
        if (!colon)
            continue;
        *colon = '\0';
        pairs_add(&req->headers, line, colon + 1 + strspn(colon + 1, " "));
    }
    buf_append(&req->body, p, (size_t)(end - p));
}

static void check_answer(const struct response *resp)
{
    const char *type = pairs_get_ci(&resp->headers, "Content-Type");
    SCOPED(json_free_p) cJSON *tree = NULL;
    require(resp->status >= 200 && resp->status < 600);
    require(!resp->body.len || type);
    if (type && strcmp(type, "application/json") == 0 && resp->body.len &&
        !pairs_get_ci(&resp->headers, "Content-Encoding"))
        require(json_parse(resp->body.data, resp->body.len, NULL, &tree, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED(request_fini) struct request req = {.chain = &admin, .n_chain = 1};
    SCOPED(response_fini) struct response resp = {0};
    SCOPED(buf_fini) struct buf events = {0};
    if (!pipeline)
        setup();
    read_request(data, data + size, &req);
    pipeline_handle(pipeline, &req, &resp);
    check_answer(&resp);
    for (int i = 0; resp.stream && i < 3 && resp.stream->pull(resp.stream, &events) > 0; i++)
        continue;
    return 0;
}
