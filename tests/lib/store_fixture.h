/* Runs a set of tests on every store there is: in memory, on Debian's etcd 3.4, on the newest etcd
 * at hand (a missing one is skipped with a `# skip:` line). An etcd is started once per set; each
 * test gets a store and a random prefix of its own. */
#pragma once

#include <check.h>

#include "storage/store.h"
#include "tests/lib/etcd_server.h"

extern struct store *store;       /* of the test that runs */
extern char *root;                /* prefix for its keys, ends with a slash */
extern struct etcd_server server; /* pid 0 = the store is in memory; to be left running */
struct fetch;
extern struct fetch *fetch; /* NULL when the store is in memory */

void store_fixture_add(Suite *s, const TTest *const *tests, size_t n);
