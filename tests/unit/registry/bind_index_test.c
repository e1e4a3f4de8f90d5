/* The order in which claims take members, and what a reservation keeps away (C8 to C11). */
#include "apiserver/registry/bind_index.h"

#include "tests/lib/suite.h"

static struct bind_index *x;

static void setup(void)
{
    x = bind_index_new();
}

static void teardown(void)
{
    bind_index_free(x);
}

static void put(const char *name, const char *node, enum bind_class class, int64_t created_s)
{
    SCOPED_FREE char *item = xasprintf("ns/%s", name);
    bind_index_put(
        x, item,
        &(struct bind_member){.pool = "p", .node = node, .class = class, .created_s = created_s});
}

static void expect(const char *name)
{
    SCOPED_FREE char *got = bind_index_take(x, "ns", "p", 0, 1000, 2000);
    if (name)
        ck_assert_str_eq(got, name);
    else
        ck_assert_ptr_null(got);
}

/* C-t085, C-t168: the oldest first, and of the same second the one that came first. */
START_TEST(test_oldest_first)
{
    put("b", "", BIND_READY, 20);
    put("a", "", BIND_READY, 20);
    put("c", "", BIND_READY, 10);
    expect("c");
    expect("b");
    expect("a");
    expect(NULL);
}
END_TEST

/* C-t090, C-t091, C-t093, C-t109: ready before an address, no address never. */
START_TEST(test_classes)
{
    put("pending", "", BIND_PENDING, 1);
    put("address", "", BIND_ADDRESS, 2);
    put("ready", "", BIND_READY, 3);
    expect("ready");
    expect("address");
    expect(NULL);
    ck_assert_uint_eq(bind_index_count(x, "ns", "p", BIND_PENDING), 1);
    put("pending", "n1", BIND_READY, 1); /* C-t113: it got its address */
    expect("pending");
}
END_TEST

/* C-t116: the node with most members gives the next one; without a node comes last. */
START_TEST(test_node_spread)
{
    put("old", "", BIND_READY, 1);
    put("a1", "a", BIND_READY, 2);
    put("b1", "b", BIND_READY, 3);
    put("b2", "b", BIND_READY, 4);
    expect("b1");
    expect("a1"); /* one each: the older */
    expect("b2");
    expect("old");
    expect(NULL);
}
END_TEST

/* C-t169, C-t170, C-t171, C-t163: an item is there once, and gone when it is removed. */
START_TEST(test_items)
{
    put("a", "", BIND_READY, 1);
    put("a", "n", BIND_READY, 1);
    put("b", "", BIND_READY, 2);
    bind_index_remove(x, "ns/b");
    bind_index_remove(x, "ns/b");
    expect("a");
    expect(NULL);
    bind_index_clear(x);
    bind_index_release(x, "ns/a");
    expect(NULL);
}
END_TEST

/* C-t173, C-t174: pools of one name in two namespaces are two. */
START_TEST(test_namespaces)
{
    put("a", "", BIND_READY, 1);
    ck_assert_ptr_null(bind_index_take(x, "other", "p", 0, 0, 1));
    ck_assert_ptr_null(bind_index_take(x, "ns", "q", 0, 0, 1));
    expect("a");
}
END_TEST

START_TEST(test_reservation)
{
    put("a", "", BIND_READY, 1);
    put("b", "", BIND_READY, 2);
    expect("a");
    put("a", "n", BIND_ADDRESS, 1); /* a change does not free it */
    ck_assert(!bind_index_take_item(x, "ns/a", 1000, 2000));
    bind_index_release(x, "ns/a");
    ck_assert_uint_eq(bind_index_count(x, "ns", "p", BIND_ADDRESS), 1);
    expect("b");
    expect("a");
    SCOPED_FREE char *late = bind_index_take(x, "ns", "p", 0, 2000, 3000); /* both are over */
    ck_assert_str_eq(late, "b");
    ck_assert(bind_index_take_item(x, "ns/a", 2000, 3000));
}
END_TEST

START_TEST(test_put_aside)
{
    put("a", "", BIND_READY, 1);
    expect("a");
    bind_index_put_aside(x, "ns/a", 5000);
    expect(NULL);
    put("a", "", BIND_READY, 1); /* its change is here */
    expect("a");
    bind_index_put_aside(x, "ns/a", 5000);
    SCOPED_FREE char *late = bind_index_take(x, "ns", "p", 0, 5000, 6000);
    ck_assert_str_eq(late, "a");
}
END_TEST

/* C-t183: who was looked at and put aside has the place that it had. */
START_TEST(test_order_after_putting_aside)
{
    put("b", "", BIND_READY, 2);
    put("c", "", BIND_READY, 3);
    put("a", "", BIND_READY, 1);
    expect("a");
    expect("b");
    bind_index_put_aside(x, "ns/b", 5000);
    bind_index_put_aside(x, "ns/a", 5000);
    put("b", "", BIND_READY, 2);
    put("a", "", BIND_READY, 1);
    expect("a");
    expect("b");
    expect("c");
}
END_TEST

START_TEST(test_skip_and_peek)
{
    put("a", "", BIND_READY, 1);
    put("b", "", BIND_READY, 2);
    SCOPED_FREE char *peeked = bind_index_take(x, "ns", "p", 0, 0, 0);
    SCOPED_FREE char *second = bind_index_take(x, "ns", "p", 1, 0, 10);
    SCOPED_FREE char *wrapped = bind_index_take(x, "ns", "p", 1, 0, 10);
    ck_assert_str_eq(peeked, "a");
    ck_assert_str_eq(second, "b");
    ck_assert_str_eq(wrapped, "a");
}
END_TEST

/* Many members, in any order in and out: nothing is lost, nothing comes twice. */
START_TEST(test_many) /* IL-114 */
{
    enum { N = 2000 };
    bool taken[N] = {false};
    for (int i = 0; i < N; i++) {
        SCOPED_FREE char *name = xasprintf("m%d", i * 7 % N);
        SCOPED_FREE char *node = xasprintf("n%d", i % 13);
        put(name, i % 5 ? node : "", i % 3 ? BIND_READY : BIND_ADDRESS, i % 50);
    }
    for (int i = 0; i < N; i++) {
        SCOPED_FREE char *name = bind_index_take(x, "ns", "p", (unsigned)i % 4, 0, 5000);
        ck_assert_ptr_nonnull(name);
        int k = (int)strtol(name + 1, NULL, 10);
        ck_assert(!taken[k]);
        taken[k] = true;
    }
    expect(NULL);
}
END_TEST

SUITE(bind_index)
{
    TCase *tc = tcase_create("index");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const tests[] = {
        test_oldest_first,  test_classes,     test_node_spread, test_items,
        test_namespaces,    test_reservation, test_put_aside,   test_order_after_putting_aside,
        test_skip_and_peek, test_many};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
}
