#include "apiserver/base/process_metric.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "apiserver/base/file.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"

#define PROC_FILE_MAX 65536 /* bytes; both files are far smaller */

#define PROCESS_METRIC(text, about, kind)                                                          \
    {                                                                                              \
        .name = text, .help = about, .type = kind                                                  \
    }
static struct metric cpu = PROCESS_METRIC("process_cpu_seconds_total",
                                          "Processor time spent, user and system.", METRIC_COUNTER);
static struct metric resident =
    PROCESS_METRIC("process_resident_memory_bytes", "Memory that is in RAM.", METRIC_GAUGE);
static struct metric virtual_memory =
    PROCESS_METRIC("process_virtual_memory_bytes", "Address space in use.", METRIC_GAUGE);
static struct metric open_files =
    PROCESS_METRIC("process_open_fds", "Open file descriptors.", METRIC_GAUGE);
static struct metric max_files =
    PROCESS_METRIC("process_max_fds", "Ceiling of open file descriptors.", METRIC_GAUGE);
static struct metric started = PROCESS_METRIC("process_start_time_seconds",
                                              "When the process began, since 1970.", METRIC_GAUGE);
static double counted_cpu; /* under the lock that collectors run with */

/* After the program's name in /proc/self/stat, which may hold anything. Fields are numbered as in
 * proc(5). */
enum { STAT_STATE = 3, STAT_UTIME = 14, STAT_STIME = 15, STAT_START = 22, STAT_VSIZE = 23 };
enum { STAT_RSS = 24, STAT_END };

static bool read_stat(uint64_t out[STAT_END])
{
    SCOPED(buf_fini) struct buf text = {0};
    if (file_read("/proc/self/stat", PROC_FILE_MAX, &text, NULL) < 0)
        return false;
    const char *p = strrchr(buf_cstr(&text), ')');
    for (int field = STAT_STATE; p && field < STAT_END; field++) {
        p = strchr(p, ' ');
        if (p && field > STAT_STATE)
            out[field] = strtoull(p + 1, NULL, 10);
        p = p ? p + 1 : NULL;
    }
    return p != NULL;
}

/* Seconds since 1970; 0 when it cannot be read. */
static double boot_time(void)
{
    SCOPED(buf_fini) struct buf text = {0};
    if (file_read("/proc/stat", (size_t)1 << 20, &text, NULL) < 0)
        return 0;
    const char *line = strstr(buf_cstr(&text), "\nbtime ");
    return line ? (double)strtoull(line + strlen("\nbtime "), NULL, 10) : 0;
}

static void collect_stat(void)
{
    uint64_t stat[STAT_END] = {0};
    double ticks = (double)sysconf(_SC_CLK_TCK), boot_s = boot_time();
    if (!read_stat(stat))
        return;
    double spent = (double)(stat[STAT_UTIME] + stat[STAT_STIME]) / ticks;
    metric_add(&cpu, spent - counted_cpu, NULL);
    counted_cpu = spent;
    metric_set(&virtual_memory, (double)stat[STAT_VSIZE], NULL);
    metric_set(&resident, (double)stat[STAT_RSS] * (double)sysconf(_SC_PAGESIZE), NULL);
    if (boot_s > 0)
        metric_set(&started, boot_s + (double)stat[STAT_START] / ticks, NULL);
}

static void collect_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        metric_set(&max_files, (double)limit.rlim_cur, NULL);
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return;
    int n = -1; /* the folder's own */
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    metric_set(&open_files, n, NULL);
}

static void collect(void *ctx)
{
    (void)ctx;
    collect_stat();
    collect_files();
}

void process_metric_on(void)
{
    metric_collect_on(collect, NULL);
}

void process_metric_off(void)
{
    metric_collect_off(collect, NULL);
}
