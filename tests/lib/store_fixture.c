#include "tests/lib/store_fixture.h"

#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "storage/etcd.h"
#include "storage/memstore.h"

struct store *store;
char *root;
struct etcd_server server; /* of the parent; the tests inherit its address */
struct fetch *fetch;

static char *program_debian, *program_newest; /* NULL = missing; live as long as the process */

static void start_debian(void)
{
    ck_assert(etcd_server_start(&server, program_debian));
}

static void start_newest(void)
{
    ck_assert(etcd_server_start(&server, program_newest));
}

static void stop_server(void)
{
    etcd_server_stop(&server);
}

static void open_store(void)
{
    char uuid[RAND_UUID_SIZE];
    rand_uuid(&rand_system, uuid);
    root = xasprintf("/%s/", uuid);
    if (server.pid == 0) {
        store = memstore_new();
        return;
    }
    const char *endpoints[] = {server.endpoint, NULL};
    fetch = fetch_new();
    store = etcd_new(fetch, &(struct etcd_config){.endpoints = endpoints});
}

static void close_store(void)
{
    store_free(store);
    fetch_free(fetch);
    free(root);
    store = NULL;
    fetch = NULL;
    root = NULL;
}

static void add(Suite *s, const char *name, void (*start)(void), const TTest *const *tests,
                size_t n)
{
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 120); /* s */
    if (start != NULL)
        tcase_add_unchecked_fixture(tc, start, stop_server);
    tcase_add_checked_fixture(tc, open_store, close_store);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
}

void store_fixture_add(Suite *s, const TTest *const *tests, size_t n)
{
    add(s, "memory", NULL, tests, n);
    program_debian = etcd_server_debian();
    if (program_debian != NULL)
        add(s, "etcd of Debian", start_debian, tests, n);
    program_newest = etcd_server_newest();
    if (program_newest != NULL)
        add(s, "newest etcd", start_newest, tests, n);
}
