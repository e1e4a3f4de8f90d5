/* Reading what stands in a URL: percent-escapes and queries, as Go's net/url does. Any thread. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/str.h"

/* Undoes percent-escapes, and '+' too when plus_is_blank. A zero byte becomes STR_NUL, so that
 * nothing is cut off silently. The caller's; NULL when an escape is broken. */
char *url_unescape(struct str s, bool plus_is_blank);
/* Appends the query's parameters in order; those with broken escapes or a ';' are dropped. */
void url_parse_query(const char *query, struct pairs *ret);
