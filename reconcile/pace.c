#include "reconcile/pace.h"

#define RETRY_FIRST_MS 60000
#define RETRY_MAX_MS (30 * 60000)

/* ---- replenish delay ---- */

int64_t hold_see(struct hold *h, int64_t count, int64_t desired, int64_t delay_ms, int64_t now_ms)
{
    if (delay_ms <= 0)
        return 0;
    if (count >= desired)
        h->until_ms = 0;
    else if (h->is_known && count < h->count)
        h->until_ms = now_ms + delay_ms;
    h->is_known = true;
    h->count = count;
    if (h->until_ms <= now_ms)
        h->until_ms = 0;
    return h->until_ms ? h->until_ms - now_ms : 0;
}

void hold_created(struct hold *h, int64_t n)
{
    if (h->is_known && n > 0)
        h->count += n;
}

/* ---- giving way ---- */

#define LULL_MAX_MS 1000

int64_t lull_wait(struct lull *l, int64_t bound_ago_ms, bool is_low, int64_t lull_ms,
                  int64_t now_ms)
{
    bool is_due = l->since_ms && now_ms - l->since_ms >= LULL_MAX_MS;
    if (bound_ago_ms >= lull_ms || is_low || is_due) {
        l->since_ms = 0;
        return 0;
    }
    if (!l->since_ms)
        l->since_ms = now_ms;
    int64_t quiet_ms = lull_ms - bound_ago_ms, left_ms = l->since_ms + LULL_MAX_MS - now_ms;
    return quiet_ms < left_ms ? quiet_ms : left_ms;
}

/* ---- refill rate ---- */

#define WAIT_MAX_MS INT64_C(1000000000000) /* of a rate that is next to nothing */

static double capacity_of(double rate)
{
    return rate > 1 ? rate : 1;
}

static double at_most(double a, double b)
{
    return a < b ? a : b;
}

static void accrue(struct bucket *b, double rate, int64_t now_ms)
{
    double capacity = capacity_of(rate);
    if (!b->is_known)
        b->tokens = capacity;
    else if (now_ms > b->at_ms)
        b->tokens = at_most(capacity, b->tokens + rate * (double)(now_ms - b->at_ms) / 1000);
    b->is_known = true;
    b->at_ms = now_ms;
}

int64_t bucket_take(struct bucket *b, int64_t want, double rate, int64_t now_ms,
                    int64_t *ret_wait_ms)
{
    *ret_wait_ms = 0;
    if (rate <= 0 || want <= 0)
        return want;
    accrue(b, rate, now_ms);
    /* Compared as doubles first: a huge rate does not fit an integer. A hair is added because
     * tokens are sums of fractions. */
    double have = b->tokens + 1e-9;
    int64_t grant = have >= (double)want ? want : (int64_t)have;
    b->tokens -= (double)grant;
    if (grant == 0) {
        double wait_ms = (1 - b->tokens) * 1000 / rate;
        *ret_wait_ms = wait_ms < WAIT_MAX_MS ? (int64_t)wait_ms + 1 : WAIT_MAX_MS;
    }
    return grant;
}

/* ---- tries that fail ---- */

void retry_failed(struct retry *r, int64_t now_ms)
{
    int64_t delay = RETRY_FIRST_MS;
    for (unsigned i = 2; i <= r->failures && delay < RETRY_MAX_MS; i++)
        delay *= 2;
    r->failures++;
    r->not_before_ms =
        r->failures > 1 ? now_ms + (delay < RETRY_MAX_MS ? delay : RETRY_MAX_MS) : now_ms;
}

int64_t retry_room(const struct retry *r, int64_t want, int64_t unready, int64_t now_ms,
                   int64_t *ret_wait_ms)
{
    *ret_wait_ms = 0;
    if (r->failures < 2)
        return want;
    if (now_ms < r->not_before_ms)
        *ret_wait_ms = r->not_before_ms - now_ms;
    return *ret_wait_ms || unready > 0 || want < 1 ? 0 : 1;
}
