/* Sets of numbers as ranges: IPv4 addresses in host order, ports. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
    uint32_t first, last;
};
struct ranges { /* starts as {0}; ranges_fini */
    struct range *v;
    size_t n, cap;
};
void ranges_fini(struct ranges *r);
void ranges_add(struct ranges *r, uint32_t first, uint32_t last);
void ranges_add_all(struct ranges *r, const struct ranges *other);
void ranges_remove(struct ranges *r, uint32_t first, uint32_t last);
void ranges_settle(struct ranges *r); /* in order, apart from each other */
bool ranges_have(const struct ranges *r, uint32_t number);

/* 10.0.0.0/8, or an address alone; false when it is none of IPv4. Bits beyond the prefix do not
 * count. */
bool ranges_read_cidr(const char *text, struct range *ret);
#define RANGES_ADDRESS_SIZE 16
void ranges_print_address(uint32_t address, char ret[RANGES_ADDRESS_SIZE]);
