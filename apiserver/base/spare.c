#include "apiserver/base/spare.h"

#include <inttypes.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/file.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

#define EVERY_MS 2000
#define GROWTH_BYTES ((size_t)1 << 20) /* that is worth the pages' coming back one by one */
#define GROWTH_PART 16 /* and of what is in use, so much: it is all walked through */
#define QUIET_PART 4   /* of one processor */
#define STATM_MAX 256  /* bytes of the file */

bool spare_is_due(struct spare *s, const struct spare_state *now, int64_t every_ms)
{
    bool is_quiet = (now->cpu_ms - s->cpu_ms) * QUIET_PART < every_ms;
    size_t growth = now->used_bytes / GROWTH_PART;
    s->cpu_ms = now->cpu_ms;
    if (growth < GROWTH_BYTES)
        growth = GROWTH_BYTES;
    return is_quiet && now->resident_bytes >= now->used_bytes + s->other_bytes + growth;
}

void spare_given_back(struct spare *s, const struct spare_state *now)
{
    s->cpu_ms = now->cpu_ms;
    s->other_bytes =
        now->resident_bytes > now->used_bytes ? now->resident_bytes - now->used_bytes : 0;
}

/* ---- the process ---- */

static int64_t cpu_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* 0 when it cannot be read, so that nothing is done. Second field of proc(5), statm; pages. */
static size_t resident_now(void)
{
    SCOPED(buf_fini) struct buf text = {0};
    if (file_read("/proc/self/statm", STATM_MAX, &text, NULL) < 0)
        return 0;
    const char *second = strchr(buf_cstr(&text), ' ');
    return second ? strtoull(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static struct spare_state state_now(void)
{
    struct mallinfo2 info = mallinfo2();
    return (struct spare_state){.resident_bytes = resident_now(),
                                .used_bytes = info.uordblks + info.hblkhd,
                                .cpu_ms = cpu_now_ms()};
}

static void look(struct spare *s)
{
    struct spare_state before = state_now();
    if (!spare_is_due(s, &before, EVERY_MS))
        return;
    malloc_trim(0);
    struct spare_state after = state_now();
    spare_given_back(s, &after);
    log_debug("memory given back before=%zu after=%zu used=%zu", before.resident_bytes,
              after.resident_bytes, after.used_bytes);
}

int spare_wait_signal(struct spare *s, const sigset_t *signals)
{
    const struct timespec every = {.tv_sec = EVERY_MS / 1000};
    int sig;
    while ((sig = sigtimedwait(signals, NULL, &every)) < 0)
        look(s);
    return sig;
}
