/* Volumes of a Pod that runs follow what they are filled from: objects and tokens are looked at
 * every config.follow_ms, the Pod's own fields as they change. */
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/run.h"

/* Said once, as long as it stays the same. */
static void note_trouble(struct runner *r, struct run *run, const char *text)
{
    if (!str_equal(run->follow_trouble, text) && text) {
        report_event(r, run->pod, "Warning", "FailedMount", text);
        log_info("volumes not brought up to date pod=%s, trying again: %s", run->uid, text);
    }
    free(run->follow_trouble);
    run->follow_trouble = text ? xstrdup(text) : NULL;
}

int64_t follow_volumes(struct runner *r, struct run *run)
{
    int64_t now_ms = run_now_ms(r);
    if (!volume_follows(run->pod))
        return 0;
    if (now_ms < run->follow_ms)
        return run->follow_ms - now_ms;
    SCOPED_FREE char *folder = NULL, *claims = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct run_sources ctx = {r, run};
    struct sources s = run_sources(&ctx);
    struct volume_place place = run_place(r, run->uid, &folder, &claims);
    int rc = volume_follow_all(&s, &place, &err);
    note_trouble(r, run, rc < 0 ? err_text(&err) : NULL);
    run->follow_ms = now_ms + r->config.follow_ms;
    return r->config.follow_ms;
}

void follow_change(struct run *run, const cJSON *old, const cJSON *pod)
{
    static const char *const fields[] = {"metadata.labels", "metadata.annotations"};
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const cJSON *was = json_at(old, fields[i]), *is = json_at(pod, fields[i]);
        if (was != is && (!was || !is || !json_equal(was, is)))
            run->follow_ms = 0;
    }
}
