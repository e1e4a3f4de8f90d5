/* What Go says about a time it cannot parse. Pure; any thread. */
#pragma once

/* NULL when s is an RFC 3339 time; else the text of Go's error, owned by the caller. */
char *gotime_check_rfc3339(const char *s);
