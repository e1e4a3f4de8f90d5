/* Tries of a review: up to five, with growing pauses between them, under one deadline. */
#include "apiserver/auth/review.h"

#include <time.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"

/* Source: apiserver's DefaultAuthWebhookRetryBackoff and the 10 s of the delegating options. */
#define BUDGET_MS 10000
#define TRIES 5
#define FIRST_PAUSE_MS 500.0
#define PAUSE_FACTOR 1.5
#define JITTER_PERCENT 20

/* A review changes nothing, so one whose outcome is not known may be sent again too. */
static bool may_help_to_retry(enum err_code code)
{
    return code != ERR_CANCELLED && (err_status(code) == 429 || err_status(code) >= 500);
}

static int64_t pause_ms(int try_no)
{
    double ms = FIRST_PAUSE_MS;
    for (int i = 0; i < try_no; i++)
        ms *= PAUSE_FACTOR;
    return (int64_t)(ms + ms * (double)rand_below(&rand_system, JITTER_PERCENT) / 100);
}

static void sleep_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static int take_status(cJSON *answer, cJSON **ret, struct err *err)
{
    cJSON *status = json_detach(answer, "status");
    if (!cJSON_IsObject(status)) {
        json_free(status);
        return err_set(err, ERR_UNKNOWN, "the cluster's review has no status");
    }
    *ret = status;
    return 0;
}

int review_post(struct kube *kube, const char *path, const cJSON *review, cJSON **ret,
                struct err *err)
{
    int64_t until = clock_monotonic_ms(&clock_system) + BUDGET_MS;
    for (int i = 0;; i++) {
        SCOPED(err_fini) struct err failure = {0};
        SCOPED(json_free_p) cJSON *answer = NULL;
        int64_t left = until - clock_monotonic_ms(&clock_system);
        struct kube_call call = {
            .method = "POST", .path = path, .body = review, .timeout_ms = left};
        int r = kube_do(kube, &call, &answer, &failure);
        if (r == 0)
            return take_status(answer, ret, err);
        int64_t pause = pause_ms(i);
        bool is_last = i + 1 == TRIES || clock_monotonic_ms(&clock_system) + pause >= until;
        if (is_last || !may_help_to_retry(failure.code))
            return err_move(err, &failure);
        sleep_ms(pause);
    }
}
