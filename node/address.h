/* Made-up addresses of simulated nodes and Pods, each given once at a time. Not locked. */
#pragma once

#include <stdbool.h>

#include "node/ranges.h"

#define ADDRESS_TEXT_SIZE RANGES_ADDRESS_SIZE

struct address_space; /* of Pods: 10.128.0.0/9 */
struct address_space *address_space_new(void);
void address_space_free(struct address_space *a);
/* The next free one; false when none is left. */
bool address_take(struct address_space *a, char ret[ADDRESS_TEXT_SIZE]);
/* One that a Pod has already; of another range it is not ours. */
void address_take_this(struct address_space *a, const char *ip);
void address_give_back(struct address_space *a, const char *ip);

/* Of the i-th node, from the block 198.18.0.0/15 that is meant for tests. */
void address_of_node(int i, char ret[ADDRESS_TEXT_SIZE]);
