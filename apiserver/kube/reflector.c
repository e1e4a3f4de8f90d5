/* A copy of one resource of the cluster, kept by list and watch. The reflector's thread does
 * everything in plain order: list all pages, hand them over, watch from the list's revision, hand
 * over each event, and when the watch ends go on from the last revision seen; list again only when
 * the cluster has forgotten it. After trouble it waits longer each time, with jitter.
 *
 * A list asks for the most recent state (no resourceVersion), so a relist never goes back in time.
 * Source of the protocol: kubernetes.io, "API concepts: efficient detection of changes". */
#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/thread.h"
#include "apiserver/kube/client.h"
#include "apiserver/kube/kube.h"

#define PAGE_LIMIT 500
#define LIST_TIMEOUT_MS 60000 /* until the headers of a page, and between its bytes */
#define OPEN_TIMEOUT_MS 30000 /* until the headers of a watch */
/* A watch asks to be ended after 5 to 10 minutes, so that load spreads; bookmarks come every minute
 * or so, and without any byte for longer the connection counts as dead. */
#define WATCH_SECONDS 300
#define WATCH_IDLE_MS 150000
#define WATCH_SHORT_MS 1000 /* a watch that ends earlier without an event is trouble */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 30000
#define PENDING_MAX ((size_t)64 << 20) /* bytes of a page, or of an event */
#define OBJECTS_MAX ((size_t)1000000)  /* of one list */

struct reflector {
    struct kube *k;         /* borrowed */
    char *path, *selectors; /* selectors: "&labelSelector=..." or "" */
    struct reflector_ops ops;
    void *ctx;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool is_stopping;
    struct fetch_stream *stream; /* open now, or NULL */

    /* of the reflector's thread */
    char *version;         /* resume after it; NULL = list */
    cJSON *pages;          /* an array of the lists received, while listing */
    const cJSON **objects; /* the items in them */
    size_t n_objects, cap_objects;
    int64_t backoff_ms;
    bool is_link_known, is_link_up;
};

/* ---- transfers ---- */

static struct fetch_stream *open_transfer(struct reflector *r, const char *path, int64_t timeout_ms,
                                          int64_t idle_ms)
{
    struct fetch_stream *s = kube_open(r->k, path, timeout_ms, idle_ms);
    pthread_mutex_lock(&r->lock);
    r->stream = s;
    pthread_mutex_unlock(&r->lock);
    return s;
}

static void close_transfer(struct reflector *r)
{
    pthread_mutex_lock(&r->lock);
    struct fetch_stream *s = r->stream;
    r->stream = NULL;
    pthread_mutex_unlock(&r->lock);
    fetch_close(s);
}

static bool is_stopping(struct reflector *r)
{
    pthread_mutex_lock(&r->lock);
    bool is = r->is_stopping;
    pthread_mutex_unlock(&r->lock);
    return is;
}

/* ---- listing ---- */

static void drop_objects(struct reflector *r)
{
    json_free(steal(&r->pages));
    free(r->objects);
    r->objects = NULL;
    r->n_objects = r->cap_objects = 0;
}

/* Items of a list carry neither kind nor apiVersion; events do. Consumers see both the same way. */
static void add_type(cJSON *item, const cJSON *list)
{
    const char *kind = json_str_or(list, "kind", "");
    const char *version = json_str(list, "apiVersion");
    if (json_get(item, "kind") != NULL || version == NULL || !str_has_suffix(kind, "List"))
        return;
    SCOPED_FREE char *item_kind = xstrndup(kind, strlen(kind) - strlen("List"));
    json_set_str(item, "kind", item_kind);
    json_set_str(item, "apiVersion", version);
}

/* What the cluster has stored is what it is: one odd object must not stop the copy of the rest. */
static const struct json_opts lenient = {.flags = JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE};

static int take_items(struct reflector *r, cJSON *list, struct err *err)
{
    cJSON *item;
    cJSON_ArrayForEach(item, json_get(list, "items"))
    {
        if (r->n_objects == OBJECTS_MAX)
            return err_set(err, ERR_TOO_LARGE, "%s: more than %zu objects", r->path, OBJECTS_MAX);
        if (r->n_objects == r->cap_objects) {
            r->cap_objects = r->cap_objects == 0 ? 64 : 2 * r->cap_objects;
            r->objects = xreallocarray(r->objects, r->cap_objects, sizeof(cJSON *));
        }
        add_type(item, list);
        r->objects[r->n_objects++] = item;
    }
    return 0;
}

static char *list_path(const struct reflector *r, const char *token)
{
    SCOPED(buf_fini) struct buf path = {0};
    buf_printf(&path, "%s?limit=%d%s", r->path, PAGE_LIMIT, r->selectors);
    if (token != NULL) {
        buf_puts(&path, "&continue=");
        fetch_escape(token, &path);
    }
    return buf_take(&path, NULL);
}

/* The HTTP status, or -code. */
static int read_page(struct reflector *r, const char *path, struct buf *bytes, struct err *err)
{
    SCOPED(err_fini) struct err why = {0};
    struct fetch_stream *s = open_transfer(r, path, LIST_TIMEOUT_MS, LIST_TIMEOUT_MS);
    while (!is_stopping(r) && fetch_read(s, INT64_MAX, bytes, &why) != FETCH_ENDED)
        continue;
    int status = fetch_status(s);
    close_transfer(r);
    if (is_stopping(r))
        return err_set(err, ERR_CANCELLED, "%s: stopping", r->path);
    return why.code != ERR_NONE ? err_move(err, &why) : status;
}

/* One page as a tree. */
static int fetch_page(struct reflector *r, const char *token, cJSON **ret, struct err *err)
{
    SCOPED_FREE char *path = list_path(r, token);
    SCOPED(buf_fini) struct buf bytes = {.max = PENDING_MAX};
    int status = read_page(r, path, &bytes, err);
    if (status < 0)
        return status;
    if (status < 200 || status > 299)
        return kube_answer_err(status, r->path, buf_cstr(&bytes), bytes.len, err);
    if (json_parse(buf_cstr(&bytes), bytes.len, &lenient, ret, err) < 0)
        return err_wrap(err, "%s: list", r->path);
    return 0;
}

static char *dup_nonempty(const char *s)
{
    return s != NULL && s[0] != '\0' ? xstrdup(s) : NULL;
}

/* All pages into objects, and the revision to watch from into version. */
static int list_all(struct reflector *r, struct err *err)
{
    SCOPED_FREE char *token = NULL;
    drop_objects(r);
    r->pages = json_array();
    do {
        cJSON *list = NULL;
        int code = fetch_page(r, token, &list, err);
        if (code == 0) {
            json_push(r->pages, list);
            code = take_items(r, list, err);
        }
        if (code < 0)
            return code;
        free(token);
        token = dup_nonempty(json_str(list, "metadata.continue"));
        free(r->version);
        r->version = dup_nonempty(json_str(list, "metadata.resourceVersion"));
    } while (token != NULL);
    return r->version != NULL ? 0 : err_set(err, ERR_UNKNOWN, "%s: list without version", r->path);
}

/* ---- state that outsiders see ---- */

static void set_link(struct reflector *r, bool is_up, const struct err *err)
{
    if (r->is_link_known && r->is_link_up == is_up)
        return;
    r->is_link_known = true;
    r->is_link_up = is_up;
    if (is_up)
        log_info("cluster watch works path=%s", r->path);
    else
        log_warn("cluster watch broken path=%s error=\"%s\", trying again", r->path, err_text(err));
    if (r->ops.on_link != NULL)
        r->ops.on_link(r->ctx, is_up);
}

static int relist(struct reflector *r, struct err *err)
{
    int code = list_all(r, err);
    if (code == 0) {
        set_link(r, true, NULL);
        r->ops.on_replace(r->ctx, r->objects, r->n_objects, r->version);
    } else {
        free(r->version);
        r->version = NULL;
    }
    drop_objects(r);
    return code;
}

/* ---- watching ---- */

static int take_event(struct reflector *r, const char *line, size_t n, struct err *err)
{
    SCOPED(json_free_p) cJSON *event = NULL;
    if (json_parse(line, n, &lenient, &event, err) < 0)
        return err_wrap(err, "%s: watch event", r->path);
    const char *type = json_str_or(event, "type", "");
    const cJSON *object = json_get(event, "object");
    const char *version = json_str(object, "metadata.resourceVersion");
    if (strcmp(type, "ERROR") == 0)
        return kube_status_err(500, object, err);
    if (version == NULL)
        return err_set(err, ERR_UNKNOWN, "%s: watch event without version", r->path);
    bool is_delete = strcmp(type, "DELETED") == 0;
    if (is_delete || strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        r->ops.on_event(r->ctx, object, is_delete);
    else if (strcmp(type, "BOOKMARK") != 0)
        return err_set(err, ERR_UNKNOWN, "%s: watch event of unknown type", r->path);
    free(r->version);
    r->version = xstrdup(version);
    r->backoff_ms = 0;
    return 0;
}

/* Handles all whole lines of `in` and keeps the rest there. */
static int take_lines(struct reflector *r, struct buf *in, struct err *err)
{
    size_t from = 0;
    int code = 0;
    const char *end;
    while (code == 0 && from < in->len &&
           (end = memchr(in->data + from, '\n', in->len - from)) != NULL) {
        size_t n = (size_t)(end - in->data) - from;
        if (n > 0)
            code = take_event(r, in->data + from, n, err);
        from += n + 1;
        if (is_stopping(r))
            code = err_set(err, ERR_CANCELLED, "%s: stopping", r->path);
    }
    if (from > 0) {
        memmove(in->data, in->data + from, in->len - from + 1);
        in->len -= from;
    }
    return code;
}

static char *watch_path(const struct reflector *r)
{
    SCOPED(buf_fini) struct buf path = {0};
    uint64_t seconds = WATCH_SECONDS + rand_below(&rand_system, WATCH_SECONDS);
    buf_printf(&path, "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%llu%s", r->path,
               (unsigned long long)seconds, r->selectors);
    buf_puts(&path, "&resourceVersion=");
    fetch_escape(r->version, &path);
    return buf_take(&path, NULL);
}

/* Events until the stream ends; 0 at a clean end. */
static int take_stream(struct reflector *r, struct fetch_stream *s, struct err *err)
{
    SCOPED(buf_fini) struct buf lines = {.max = PENDING_MAX};
    SCOPED(err_fini) struct err why = {0};
    for (;;) {
        enum fetch_news news = fetch_read(s, INT64_MAX, &lines, &why);
        int status = fetch_status(s), code = 0;
        if (is_stopping(r))
            return err_set(err, ERR_CANCELLED, "%s: stopping", r->path);
        if (status > 299 && news != FETCH_ENDED)
            continue; /* the rest of its Status is to come */
        if (status > 299)
            return kube_answer_err(status, r->path, buf_cstr(&lines), lines.len, err);
        if (news == FETCH_ENDED)
            return why.code != ERR_NONE ? err_move(err, &why) : 0;
        if (status != 0)
            set_link(r, true, NULL);
        if ((code = take_lines(r, &lines, err)) < 0)
            return code;
    }
}

static int watch(struct reflector *r, struct err *err)
{
    SCOPED_FREE char *path = watch_path(r);
    SCOPED_FREE char *before = xstrdup(r->version);
    int64_t begin_ms = clock_monotonic_ms(&clock_system);
    struct fetch_stream *s = open_transfer(r, path, OPEN_TIMEOUT_MS, WATCH_IDLE_MS);
    int code = take_stream(r, s, err);
    close_transfer(r);
    bool is_short = clock_monotonic_ms(&clock_system) - begin_ms < WATCH_SHORT_MS;
    if (!is_short)
        r->backoff_ms = 0;
    if (code == 0 && is_short && strcmp(before, r->version) == 0)
        return err_set(err, ERR_UNAVAILABLE, "%s: the watch ended at once", r->path);
    return code;
}

/* ---- the loop ---- */

static void wait_ms(struct reflector *r, int64_t ms)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + ms;
    pthread_mutex_lock(&r->lock);
    while (!r->is_stopping && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&r->wake, &r->lock, until_ms);
    pthread_mutex_unlock(&r->lock);
}

/* The next delay: doubling, at least what the server asked for, and up to twice that by chance. */
static void back_off(struct reflector *r, int retry_after_s)
{
    r->backoff_ms = r->backoff_ms == 0 ? BACKOFF_FIRST_MS : 2 * r->backoff_ms;
    if (r->backoff_ms > BACKOFF_MAX_MS)
        r->backoff_ms = BACKOFF_MAX_MS;
    int64_t ms = r->backoff_ms;
    if ((int64_t)retry_after_s * 1000 > ms)
        ms = (int64_t)retry_after_s * 1000 < BACKOFF_MAX_MS ? (int64_t)retry_after_s * 1000
                                                            : BACKOFF_MAX_MS;
    wait_ms(r, ms + (int64_t)rand_below(&rand_system, (uint64_t)ms));
}

/* Lists if needed and watches once. */
static int run_once(struct reflector *r, struct err *err)
{
    int code = r->version == NULL ? relist(r, err) : 0;
    return code < 0 || is_stopping(r) ? code : watch(r, err);
}

static void *run(void *ctx)
{
    struct reflector *r = ctx;
    while (!is_stopping(r)) {
        SCOPED(err_fini) struct err err = {0};
        bool was_listing = r->version == NULL;
        if (run_once(r, &err) == 0 || is_stopping(r))
            continue;
        if (err.code == ERR_EXPIRED) {
            free(r->version);
            r->version = NULL;
            if (!was_listing)
                continue; /* the cluster has forgotten our version: no trouble */
        }
        if (err.code == ERR_UNAUTHORIZED)
            kube_distrust_token(r->k);
        set_link(r, false, &err);
        back_off(r, err.retry_after_s);
    }
    return NULL;
}

/* ---- start and stop ---- */

static char *make_selectors(const char *label_selector, const char *field_selector)
{
    SCOPED(buf_fini) struct buf text = {0};
    if (label_selector != NULL && label_selector[0] != '\0') {
        buf_puts(&text, "&labelSelector=");
        fetch_escape(label_selector, &text);
    }
    if (field_selector != NULL && field_selector[0] != '\0') {
        buf_puts(&text, "&fieldSelector=");
        fetch_escape(field_selector, &text);
    }
    return buf_take(&text, NULL);
}

struct reflector *reflector_start(struct kube *k, const char *path, const char *label_selector,
                                  const char *field_selector, const struct reflector_ops *ops,
                                  void *ctx)
{
    struct reflector *r = xcalloc(1, sizeof *r);
    r->k = k;
    r->path = xstrdup(path);
    r->selectors = make_selectors(label_selector, field_selector);
    r->ops = *ops;
    r->ctx = ctx;
    pthread_mutex_init(&r->lock, NULL);
    thread_cond_init(&r->wake);
    thread_start(&r->thread, "reflector", run, r);
    return r;
}

void reflector_stop(struct reflector *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    r->is_stopping = true;
    pthread_cond_signal(&r->wake);
    if (r->stream)
        fetch_wake(r->stream);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    free(r->path);
    free(r->selectors);
    free(r->version);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
