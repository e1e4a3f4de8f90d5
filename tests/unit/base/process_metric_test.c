/* What the kernel says about the process: plausible values, under the usual names. */
#include "apiserver/base/process_metric.h"

#include <stdlib.h>
#include <time.h>

#include "apiserver/base/metric.h"
#include "tests/lib/suite.h"

/* The value of a metric without labels; -1 when it is not there. */
static double value_of(const char *name)
{
    SCOPED(buf_fini) struct buf text = {0}, line = {0};
    metric_print_all(&text);
    buf_printf(&line, "\n%s ", name);
    const char *at = strstr(buf_cstr(&text), buf_cstr(&line));
    return at ? strtod(at + line.len, NULL) : -1;
}

START_TEST(test_values)
{
    process_metric_on();
    ck_assert_double_gt(value_of("process_resident_memory_bytes"), 100000);
    ck_assert_double_gt(value_of("process_virtual_memory_bytes"),
                        value_of("process_resident_memory_bytes"));
    ck_assert_double_ge(value_of("process_open_fds"), 3);
    ck_assert_double_gt(value_of("process_max_fds"), value_of("process_open_fds"));
    ck_assert_double_ge(value_of("process_cpu_seconds_total"), 0);
    double started = value_of("process_start_time_seconds"), now = (double)time(NULL);
    ck_assert_double_gt(started, now - 3600);
    ck_assert_double_le(started, now + 2); /* the kernel's boot time has whole seconds */
    process_metric_off();
}
END_TEST

SUITE(process_metric)
{
    TESTS("values", test_values);
}
