#include "node/address.h"

#include "tests/lib/suite.h"

START_TEST(test_each_once)
{
    struct address_space *a = address_space_new();
    char ip[ADDRESS_TEXT_SIZE];
    ck_assert(address_take(a, ip));
    ck_assert_str_eq(ip, "10.128.0.1");
    address_take_this(a, "10.128.0.2"); /* a Pod has it already */
    address_take_this(a, "192.0.2.1");  /* not ours */
    address_take_this(a, "fd00::1");
    ck_assert(address_take(a, ip));
    ck_assert_str_eq(ip, "10.128.0.3");
    address_give_back(a, "10.128.0.1");
    ck_assert(address_take(a, ip));
    ck_assert_str_eq(ip, "10.128.0.4"); /* one that was given back rests */
    address_space_free(a);
}
END_TEST

/* All of them, then none, then the one that comes back. */
START_TEST(test_bounds)
{
    struct address_space *a = address_space_new();
    char ip[ADDRESS_TEXT_SIZE], last[ADDRESS_TEXT_SIZE] = "";
    unsigned n = 0;
    while (address_take(a, ip)) {
        memcpy(last, ip, sizeof last);
        n++;
    }
    ck_assert_uint_eq(n, (1u << 23) / 256 * 254);
    ck_assert_str_eq(last, "10.255.255.254");
    address_give_back(a, "10.200.0.7");
    ck_assert(address_take(a, ip));
    ck_assert_str_eq(ip, "10.200.0.7");
    address_space_free(a);
}
END_TEST

START_TEST(test_nodes)
{
    char ip[ADDRESS_TEXT_SIZE];
    address_of_node(0, ip);
    ck_assert_str_eq(ip, "198.18.0.1");
    address_of_node(999, ip);
    ck_assert_str_eq(ip, "198.18.3.232");
}
END_TEST

SUITE(node_address)
{
    TESTS("address", test_each_once, test_bounds, test_nodes);
}
