/* Fuzz target for server-side apply: what is stored and what is applied, a line each, as Sandboxes.
 * Applying again and again settles; what one write changes, the managers of fields follow, and
 * their list reads as it was printed. */
#include <stdint.h>
#include <stdlib.h>

#include "admission/apply.h"
#include "admission/managers.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static cJSON *applied(const struct apply *a, const cJSON *live, const cJSON *patch)
{
    cJSON *out = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = apply_run(a, patch, live, &out, &err);
    require((rc == 0) == (out != NULL) && rc == -(int)err.code);
    return out;
}

/* The first time, others lose fields; then parents that had nothing but these may go (an empty
 * keyed list keeps no parent, as in the real thing); then nothing changes any more. */
#define SETTLED 4

static void check_apply(const cJSON *live, const cJSON *patch, const char *manager)
{
    const struct apply a = {.kind = &kind_sandbox,
                            .subresource = "",
                            .manager = manager,
                            .namespace_name = "ns",
                            .name = "a",
                            .force = true,
                            .now_unix_s = 1767323045};
    cJSON *now = applied(&a, live, patch), *next = NULL;
    /* Somebody may own an item whose keys nobody owns any more: then validation refuses the result,
     * and it never is stored. */
    bool is_settled = !now || !merge_fits(now, kind_sandbox.shape, true, NULL);
    for (int i = 0; i < SETTLED && !is_settled; i++) {
        next = applied(&a, now, patch);
        require(next != NULL);
        is_settled = json_equal(now, next);
        json_free(now);
        now = next;
    }
    require(is_settled);
    json_free(now);
}

/* From one tree to another as an update. */
static void check_record(const cJSON *old, const cJSON *new)
{
    SCOPED(managers_fini) struct managers m = {0}, again = {0};
    SCOPED(buf_fini) struct buf text = {0};
    struct comparison c;
    if (managers_read(&m, json_at(old, "metadata.managedFields"), true) < 0)
        return;
    managers_adapt(&m, kind_sandbox.shape);
    merge_compare(&m.arena, old, new, kind_sandbox.shape, &c);
    if (merge_fits(old, kind_sandbox.shape, false, NULL) &&
        merge_fits(new, kind_sandbox.shape, false, NULL)) { /* without repeated items */
        require(!fieldset_intersection(&m.arena, c.added, c.removed));
        require(!fieldset_intersection(&m.arena, c.modified, c.removed));
    }
    const struct manager_id writer = {
        .name = "w", .version = "agents.x-k8s.io/v1beta1", .subresource = ""};
    managers_record(&m, &writer, &c, managers_reset_fields(&m.arena, &kind_sandbox, ""), NULL);
    managers_limit(&m);
    managers_print(&m, &text);
    SCOPED(json_free_p) cJSON *raw = json_raw(xstrdup(buf_cstr(&text)));
    require(managers_read(&again, raw, false) == 0 && managers_equal_but_time(&m, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *eol = size ? memchr(text, '\n', size) : NULL;
    SCOPED(json_free_p) cJSON *live = NULL, *patch = NULL;
    size_t n = eol ? (size_t)(eol - text) : size;
    if (!eol || json_parse(eol + 1, size - n - 1, NULL, &patch, NULL) < 0)
        return 0;
    if (n > 0 && json_parse(text, n, NULL, &live, NULL) < 0)
        return 0;
    SCOPED(json_free_p) cJSON *live_before = json_copy(live), *patch_before = json_copy(patch);
    check_apply(live, patch, "m");
    check_apply(live, patch, "kubectl");
    if (live)
        check_record(live, patch);
    require(json_equal(live, live_before) && json_equal(patch, patch_before));
    return 0;
}
