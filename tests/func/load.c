/* Clients for the functional tests, where a shell is too slow: many writers, many watches, and the
 * checks on what they were told. One program, four modes; all talk to the sandboxes of one
 * namespace.
 *
 *   load create  makes -n objects on -t threads and writes what became of each into the ledger -l
 *   load verify  reads the ledger: every acknowledged object is there with the same uid and bytes,
 * none twice, the others absent or whole load watch   opens -n watches from revision -r, resumes
 * them whenever they end, until the object -u is seen; all must see the same events, in order, each
 * once, and they must add up to the final list. With -1: no resuming, all must end cleanly by
 * themselves load mix     creates, reads, lists, patches and deletes on -t threads for -d seconds;
 * every answer must be the right one
 *
 * Exit code 0 = all is well, 1 = something is wrong and stdout says what, 2 = usage. */
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/fetch.h"
#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/thread.h"

#define REPORTS_MAX 20 /* lines about what is wrong */
#define OPENING_MAX                                                                                \
    64 /* handshakes at once: with a thousand, on a busy machine, none would end in its time */

static struct {
    const char *url, *prefix, *ledger, *until, *output;
    char *ca, *cert, *key; /* files */
    int64_t count, threads, size_bytes, revision, seconds;
    bool is_once;
} options = {.prefix = "a", .count = 1, .threads = 1, .seconds = 60};

static struct fetch *fetch;
static struct fetch_tls tls;
static _Atomic int wrongs;
static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((format(printf, 1, 2))) static void wrong(const char *fmt, ...)
{
    if (atomic_fetch_add(&wrongs, 1) >= REPORTS_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&output_lock);
    vprintf(fmt, ap);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&output_lock);
    va_end(ap);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static int64_t deadline_ms(void)
{
    return clock_monotonic_ms(&clock_system) + options.seconds * 1000;
}

static bool is_past(int64_t at_ms)
{
    return clock_monotonic_ms(&clock_system) > at_ms;
}

/* ---- calls ---- */

#define COLLECTION "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"

/* HTTP status, or the negative error code when there was no answer. */
static int call(const char *method, const char *path, const char *type, const char *body,
                struct fetch_response *ret)
{
    SCOPED_FREE char *url = xasprintf("%s" COLLECTION "%s", options.url, path);
    SCOPED(pairs_fini) struct pairs headers = {0};
    if (type)
        pairs_add(&headers, "Content-Type", type);
    struct fetch_request req = {
        .method = method,
        .url = url,
        .headers = &headers,
        .body = body,
        .body_len = body ? strlen(body) : 0,
        .tls = &tls,
        .timeout_ms = 30000,
    };
    int rc = fetch_do(fetch, &req, ret, NULL);
    return rc < 0 ? rc : ret->status;
}

static cJSON *parsed(const struct buf *body)
{
    cJSON *tree = NULL;
    if (json_parse(buf_cstr(body), body->len, NULL, &tree, NULL) < 0)
        wrong("an answer is no JSON: %.200s", buf_cstr(body));
    return tree;
}

/* One number for a body without its final line end. */
static uint64_t digest_of(const char *p, size_t n)
{
    unsigned char sum[32];
    uint64_t short_sum;
    if (n && p[n - 1] == '\n')
        n--;
    digest_sha256(p, n, sum);
    memcpy(&short_sum, sum, sizeof short_sum);
    return short_sum;
}

/* A sandbox of about options.size_bytes bytes that its name determines. */
static char *sandbox_text(const char *name)
{
    struct buf b = {0};
    buf_printf(
        &b,
        "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{"
        "\"name\":\"%s\",\"labels\":{\"run\":\"%s\"},\"annotations\":{\"example.org/pad\":\"",
        name, options.prefix);
    while ((int64_t)b.len < options.size_bytes - 200)
        buf_printf(&b, "%s, %zu. ", name, b.len);
    buf_puts(&b, "\"}},\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"main\","
                 "\"image\":\"example.org/app:1\",\"ports\":[{\"containerPort\":8080}]}]}}}}");
    return buf_take(&b, NULL);
}

/* All pages; each item goes to fn. False when a page did not come. */
static bool list_all(void (*fn)(void *ctx, const cJSON *item), void *ctx)
{
    SCOPED(buf_fini) struct buf path = {0};
    SCOPED_FREE char *token = xstrdup("");
    do {
        SCOPED(fetch_response_fini) struct fetch_response res = {0};
        buf_clear(&path);
        buf_puts(&path, "?limit=500&continue=");
        fetch_escape(token, &path);
        int status = call("GET", buf_cstr(&path), NULL, NULL, &res);
        if (status != 200) {
            wrong("list: %d %.300s", status, buf_cstr(&res.body));
            return false;
        }
        SCOPED(json_free_p) cJSON *tree = parsed(&res.body);
        const cJSON *item;
        cJSON_ArrayForEach(item, json_get(tree, "items")) fn(ctx, item);
        free(token);
        token = xstrdup(json_str_or(tree, "metadata.continue", ""));
    } while (token[0]);
    return true;
}

static void run_threads(void *(*fn)(void *), void *ctx)
{
    pthread_t *threads = xcalloc((size_t)options.threads, sizeof *threads);
    for (int64_t i = 0; i < options.threads; i++)
        if (pthread_create(&threads[i], NULL, fn, ctx) != 0)
            abort();
    for (int64_t i = 0; i < options.threads; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

/* ---- create: the ledger has a line per object, NAME OUTCOME UID RESOURCEVERSION DIGEST; outcomes:
 * acknowledged; refused by an answer, so it must not be there; unknown ---- */

struct creation {
    _Atomic int64_t next, acknowledged, unknown;
    FILE *ledger;
    int64_t until_ms;
};

static void note_answer(struct creation *c, const char *name, int status,
                        const struct fetch_response *res)
{
    SCOPED(json_free_p) cJSON *tree = status == 201 ? parsed(&res->body) : NULL;
    const char *outcome = status == 201                ? "acknowledged"
                          : status > 0 && status < 500 ? "refused"
                                                       : "unknown";
    if (status == 201)
        atomic_fetch_add(&c->acknowledged, 1);
    else
        atomic_fetch_add(&c->unknown, 1);
    if (status > 0 && status < 500 && status != 201)
        wrong("create %s: %d %.300s", name, status, buf_cstr(&res->body));
    fprintf(c->ledger, "%s %s %s %s %016llx\n", name, outcome,
            json_str_or(tree, "metadata.uid", "-"),
            json_str_or(tree, "metadata.resourceVersion", "-"),
            (unsigned long long)digest_of(buf_cstr(&res->body), res->body.len));
}

/* Nothing was sent, or the server says that it cannot tell or not now: 500 and 503 may or may not
 * have stored it, so only the first is tried again under the same name. */
static void create_one(struct creation *c, const char *name)
{
    SCOPED_FREE char *text = sandbox_text(name);
    for (;;) {
        SCOPED(fetch_response_fini) struct fetch_response res = {0};
        int status = call("POST", "", "application/json", text, &res);
        if (status == -ERR_UNAVAILABLE && !is_past(c->until_ms)) {
            pause_ms(20);
            continue;
        }
        note_answer(c, name, status, &res);
        if (status >= 500)
            pause_ms(100); /* the store is away: leave something to write for when it is back */
        return;
    }
}

static void *creator(void *arg)
{
    struct creation *c = arg;
    for (int64_t i; (i = atomic_fetch_add(&c->next, 1)) < options.count;) {
        SCOPED_FREE char *name = xasprintf("%s-%05lld", options.prefix, (long long)i);
        create_one(c, name);
    }
    return NULL;
}

static void mode_create(void)
{
    struct creation c = {.ledger = fopen(options.ledger, "w"), .until_ms = deadline_ms()};
    if (!c.ledger)
        exit(2);
    setvbuf(c.ledger, NULL, _IOLBF, 0); /* the test counts the lines to choose its moment */
    int64_t begin_ms = clock_monotonic_ms(&clock_system);
    run_threads(creator, &c);
    fclose(c.ledger);
    int64_t took_ms = clock_monotonic_ms(&clock_system) - begin_ms;
    printf("# %lld acknowledged, %lld unknown, %lld ms, %lld creates/s\n",
           (long long)c.acknowledged, (long long)c.unknown, (long long)took_ms,
           (long long)(options.count * 1000 / (took_ms ? took_ms : 1)));
}

/* ---- verify ---- */

struct stored {
    char *uid, *rev;
    cJSON *tree;
};

struct verification {
    struct map *by_name, *by_uid; /* of struct stored; the second shares the first's */
    FILE *ledger;
    int64_t acknowledged, unknown_stored;
};

static void note_stored(void *ctx, const cJSON *item)
{
    struct verification *v = ctx;
    const char *name = json_str_or(item, "metadata.name", "");
    struct stored *s = xcalloc(1, sizeof *s);
    s->uid = xstrdup(json_str_or(item, "metadata.uid", ""));
    s->rev = xstrdup(json_str_or(item, "metadata.resourceVersion", ""));
    s->tree = json_copy(item);
    if (map_put(v->by_name, name, s))
        wrong("%s is in the list twice", name);
    if (map_put(v->by_uid, s->uid, s))
        wrong("%s has the uid of another object", name);
}

/* Is everything of sent also in got? The server may add defaults and metadata. */
static bool contains(const cJSON *got, const cJSON *sent)
{
    if (!cJSON_IsObject(sent) && !cJSON_IsArray(sent))
        return json_equal(got, sent);
    const cJSON *g = cJSON_IsArray(sent) && got ? got->child : NULL, *s;
    cJSON_ArrayForEach(s, sent)
    {
        if (!contains(cJSON_IsArray(sent) ? g : json_get(got, s->string), s))
            return false;
        g = g ? g->next : NULL;
    }
    return !g;
}

static void check_whole(const char *name, const struct stored *s)
{
    SCOPED_FREE char *text = sandbox_text(name);
    SCOPED(json_free_p) cJSON *sent = NULL;
    if (json_parse_str(text, &sent, NULL) < 0 || !contains(s->tree, sent))
        wrong("%s is stored, but not as it was sent", name);
}

static void check_acknowledged(const char *name, const char *uid, const char *rev,
                               unsigned long long digest, const struct stored *s)
{
    if (!s) {
        wrong("%s was acknowledged with revision %s and is gone", name, rev);
        return;
    }
    if (!str_equal(uid, s->uid) || !str_equal(rev, s->rev))
        wrong("%s was acknowledged as %s %s and is now %s %s", name, uid, rev, s->uid, s->rev);
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    SCOPED_FREE char *path = xasprintf("/%s", name);
    int status = call("GET", path, NULL, NULL, &res);
    if (status != 200 || digest_of(buf_cstr(&res.body), res.body.len) != digest)
        wrong("%s: %d, not the bytes that were acknowledged: %.300s", name, status,
              buf_cstr(&res.body));
}

static void *verifier(void *arg)
{
    struct verification *v = arg;
    char name[256], outcome[32], uid[64], rev[32], digest_text[17];
    for (;;) {
        pthread_mutex_lock(&output_lock);
        int n =
            fscanf(v->ledger, "%255s %31s %63s %31s %16s", name, outcome, uid, rev, digest_text);
        struct stored *s = n == 5 ? map_del(v->by_name, name) : NULL;
        bool is_acknowledged = n == 5 && str_equal(outcome, "acknowledged");
        v->acknowledged += is_acknowledged;
        v->unknown_stored += s && !is_acknowledged;
        pthread_mutex_unlock(&output_lock);
        if (n != 5)
            return NULL;
        if (is_acknowledged)
            check_acknowledged(name, uid, rev, strtoull(digest_text, NULL, 16), s);
        else if (s && str_equal(outcome, "refused"))
            wrong("%s was refused and is there", name);
        if (s)
            check_whole(name, s);
    }
}

static bool nobody_made(void *ctx, const char *name, void *value)
{
    (void)ctx, (void)value;
    if (str_has_prefix(name, options.prefix))
        wrong("%s is in the list and not in the ledger", name);
    return true;
}

static bool free_stored(void *ctx, const char *uid, void *value)
{
    (void)ctx, (void)uid;
    struct stored *s = value;
    json_free(s->tree);
    free(s->uid);
    free(s->rev);
    free(s);
    return true;
}

static void mode_verify(void)
{
    struct verification v = {
        .by_name = map_new(), .by_uid = map_new(), .ledger = fopen(options.ledger, "r")};
    if (!v.ledger)
        exit(2);
    if (list_all(note_stored, &v)) {
        run_threads(verifier, &v);
        map_each(v.by_name, nobody_made, NULL);
        printf("# %lld acknowledged and there, %lld of the unknown ones are stored\n",
               (long long)v.acknowledged, (long long)v.unknown_stored);
    }
    fclose(v.ledger);
    map_free(v.by_name);
    map_each(v.by_uid, free_stored, NULL);
    map_free(v.by_uid);
}

/* ---- watch ---- */

struct seen { /* newest event of one object */
    int64_t rev;
    bool is_deleted;
};

struct watcher {
    struct fetch_stream *stream; /* read by a thread of its own */
    pthread_t thread;
    struct buf line; /* begun, not ended */
    int64_t rev;     /* of the last event */
    int64_t n_events;
    uint64_t digest; /* of all lines so far, in order */
    bool is_open, is_ended, is_done, is_clean;
    int64_t retry_at_ms;
    struct map
        *seen; /* of struct seen; the first watcher only, the others compare digests with it */
    FILE *output;
};

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_new_kind_of_event(const struct seen *old, const char *type)
{
    if (!old)
        return true; /* it may have been there before the first revision */
    return old->is_deleted == str_equal(type, "ADDED");
}

static void check_order(struct watcher *w, const char *type, const char *name, int64_t rev)
{
    if (rev <= w->rev)
        wrong("watch: %s %s with revision %lld after %lld", type, name, (long long)rev,
              (long long)w->rev);
    struct seen *s = map_get(w->seen, name);
    if (!is_new_kind_of_event(s, type))
        wrong("watch: %s %s at %lld, but before that it was %s", type, name, (long long)rev,
              s->is_deleted ? "deleted" : "there");
    if (!s)
        map_put(w->seen, name, s = xcalloc(1, sizeof *s));
    s->rev = rev;
    s->is_deleted = str_equal(type, "DELETED");
}

/* True for the event that ends the test. */
static bool take_event(struct watcher *w, const cJSON *event)
{
    const char *type = json_str_or(event, "type", "");
    const char *name = json_str_or(event, "object.metadata.name", "");
    const char *rev_text = json_str_or(event, "object.metadata.resourceVersion", "0");
    int64_t rev = 0;
    str_to_i64(rev_text, &rev);
    if (str_equal(type, "ERROR"))
        wrong("watch: ERROR %s", json_str_or(event, "object.message", "without a text"));
    if (rev == 0)
        return false;
    if (w->seen)
        check_order(w, type, name, rev);
    if (w->output)
        fprintf(w->output, "%s %s %s %s\n", rev_text, type, name,
                json_str_or(event, "object.metadata.uid", "-"));
    w->rev = rev;
    return options.until && str_equal(name, options.until);
}

static uint64_t digest_chain(uint64_t before, struct str line)
{
    for (size_t i = 0; i < line.n; i++) /* FNV-1a */
        before = (before ^ (unsigned char)line.p[i]) * 1099511628211ULL;
    return before;
}

static bool take_line(struct watcher *w)
{
    SCOPED(json_free_p) cJSON *event = parsed(&w->line);
    w->digest = digest_chain(w->digest, buf_str(&w->line));
    w->n_events++;
    return take_event(w, event);
}

static void take_bytes(struct watcher *w, const char *p, size_t n)
{
    while (n && !w->is_done) {
        const char *end = memchr(p, '\n', n);
        size_t part = end ? (size_t)(end - p) : n;
        buf_append(&w->line, p, part);
        if (end)
            w->is_done = take_line(w), buf_clear(&w->line), part++;
        p += part;
        n -= part;
    }
}

/* Reads until the end of the stream, of the test, or watch_end; *err is how. */
static void watch_read(struct watcher *w, struct err *err)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    enum fetch_news news;
    while (!w->is_done && (news = fetch_read(w->stream, INT64_MAX, &bytes, err)) != FETCH_ENDED) {
        if (news == FETCH_NOTHING)
            return;
        pthread_mutex_lock(&watch_lock);
        w->is_open = fetch_status(w->stream) == 200;
        pthread_mutex_unlock(&watch_lock);
        if (w->is_open) /* else a Status in place of the stream */
            take_bytes(w, buf_cstr(&bytes), bytes.len);
        buf_clear(&bytes);
    }
}

static void *watch_run(void *ctx)
{
    struct watcher *w = ctx;
    SCOPED(err_fini) struct err err = {0};
    watch_read(w, &err);
    pthread_mutex_lock(&watch_lock);
    w->is_clean = err.code == ERR_NONE && w->is_open && w->line.len == 0;
    if (options.is_once && !w->is_clean)
        wrong("watch: ended with %s %s", err_name(err.code), err_text(&err));
    w->is_ended = true;
    w->is_open = false;
    w->retry_at_ms = clock_monotonic_ms(&clock_system) + 50;
    pthread_mutex_unlock(&watch_lock);
    return NULL;
}

static void watch_begin(struct watcher *w)
{
    SCOPED_FREE char *url =
        xasprintf("%s" COLLECTION "?watch=true&timeoutSeconds=3000&resourceVersion=%lld",
                  options.url, (long long)w->rev);
    w->is_ended = false;
    buf_clear(&w->line); /* half a line of a stream that broke comes again */
    struct fetch_request req = {.url = url, .tls = &tls, .timeout_ms = 30000};
    w->stream = fetch_open(fetch, &req);
    thread_start(&w->thread, "watcher", watch_run, w);
}

static void watch_end(struct watcher *w)
{
    if (!w->stream)
        return;
    fetch_wake(w->stream);
    pthread_join(w->thread, NULL);
    fetch_close(w->stream);
    w->stream = NULL;
}

/* Opens the watches, a few at once, and again those that ended, until each is done; says so once
 * all are open. */
static void watch_all(struct watcher *watchers)
{
    int64_t until_ms = deadline_ms(), n_opening = 0;
    bool is_said = false;
    for (int64_t n_done = 0; n_done < options.count; pause_ms(10)) {
        int64_t n_open = n_done = 0, n_still_opening = 0;
        for (int64_t i = 0; i < options.count; i++) {
            struct watcher *w = &watchers[i];
            pthread_mutex_lock(&watch_lock);
            bool is_over = w->stream && w->is_ended && (w->is_done || options.is_once);
            bool is_due = !w->stream || (w->is_ended && !is_over && is_past(w->retry_at_ms));
            n_still_opening += w->stream && !w->is_open && !w->is_ended;
            n_open += w->is_open;
            n_done += is_over;
            pthread_mutex_unlock(&watch_lock);
            if (is_due && n_opening < OPENING_MAX) {
                watch_end(w);
                watch_begin(w);
                n_opening++;
                n_still_opening++;
            }
        }
        n_opening = n_still_opening;
        if (n_open == options.count && !is_said) {
            puts("open");
            fflush(stdout);
            is_said = true;
        }
        if (is_past(until_ms)) {
            wrong("watch: %lld of %lld never came to their end",
                  (long long)(options.count - n_done), (long long)options.count);
            return;
        }
    }
}

static void check_listed(void *ctx, const cJSON *item)
{
    struct watcher *w = ctx;
    const char *name = json_str_or(item, "metadata.name", "");
    int64_t rev = 0;
    str_to_i64(json_str_or(item, "metadata.resourceVersion", ""), &rev);
    struct seen *s = map_del(w->seen, name);
    if (!s && rev > options.revision)
        wrong("watch: %s of revision %lld was never seen", name, (long long)rev);
    if (s && (s->is_deleted || s->rev != rev))
        wrong("watch: %s has revision %lld, last seen was %lld%s", name, (long long)rev,
              (long long)s->rev, s->is_deleted ? ", deleted" : "");
    free(s);
}

static bool check_unlisted(void *ctx, const char *name, void *value)
{
    struct seen *s = value;
    (void)ctx;
    if (!s->is_deleted)
        wrong("watch: %s was seen at %lld, is gone, and that was not said", name,
              (long long)s->rev);
    free(s);
    return true;
}

static void mode_watch(void)
{
    struct watcher *watchers = xcalloc((size_t)options.count, sizeof *watchers);
    struct watcher *first = &watchers[0];
    first->seen = map_new();
    first->output = options.output ? fopen(options.output, "w") : NULL;
    for (int64_t i = 0; i < options.count; i++)
        watchers[i].rev = options.revision;
    watch_all(watchers);
    for (int64_t i = 0; i < options.count; i++) {
        struct watcher *w = &watchers[i];
        watch_end(w);
        if (w->digest != first->digest || w->n_events != first->n_events)
            wrong("watch %lld saw %lld events, not the %lld of the first one", (long long)i,
                  (long long)w->n_events, (long long)first->n_events);
        buf_fini(&w->line);
    }
    if (!options.is_once && list_all(check_listed, first))
        map_each(first->seen, check_unlisted, NULL);
    printf("# %lld watches, %lld events each\n", (long long)options.count,
           (long long)first->n_events);
    if (first->output)
        fclose(first->output);
    map_free(first->seen);
    free(watchers);
}

/* ---- mix ---- */

#define LIVE_MAX 16 /* objects that one thread keeps */

struct mixer {
    struct mix *mix;
    char *live[LIVE_MAX]; /* paths, oldest first */
    size_t n_live;
    int64_t serial, thread;
};

struct mix {
    int64_t until_ms;
    _Atomic int64_t next_thread, n_calls, slowest_ms;
};

static void expect(struct mix *m, int expected, const char *method, const char *path,
                   const char *type, const char *body)
{
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    int64_t begin_ms = clock_monotonic_ms(&clock_system);
    int status = call(method, path, type, body, &res);
    int64_t took_ms = clock_monotonic_ms(&clock_system) - begin_ms;
    for (int64_t old = m->slowest_ms; took_ms > old;)
        if (atomic_compare_exchange_weak(&m->slowest_ms, &old, took_ms))
            break;
    atomic_fetch_add(&m->n_calls, 1);
    if (status != expected)
        wrong("%s %s: %d %.300s", method, path, status, buf_cstr(&res.body));
}

static void mix_create(struct mixer *x)
{
    SCOPED_FREE char *name =
        xasprintf("%s-%02lld-%05lld", options.prefix, (long long)x->thread, (long long)x->serial++);
    SCOPED_FREE char *text = sandbox_text(name);
    expect(x->mix, 201, "POST", "", "application/json", text);
    x->live[x->n_live++] = xasprintf("/%s", name);
    expect(x->mix, 200, "GET", x->live[x->n_live - 1], NULL, NULL); /* one reads what one wrote */
}

static void mix_delete(struct mixer *x)
{
    SCOPED_FREE char *path = x->live[0];
    memmove(x->live, x->live + 1, --x->n_live * sizeof *x->live);
    expect(x->mix, 200, "DELETE", path, NULL, NULL);
    expect(x->mix, 404, "GET", path, NULL, NULL);
}

static void mix_patch(struct mixer *x, const char *path)
{
    SCOPED_FREE char *patch =
        xasprintf("{\"metadata\":{\"labels\":{\"turn\":\"%lld\"}}}", (long long)x->serial++);
    expect(x->mix, 200, "PATCH", path, "application/merge-patch+json", patch);
}

static void mix_step(struct mixer *x)
{
    uint64_t dice = rand_below(&rand_system, 10);
    if (x->n_live == LIVE_MAX || (x->n_live && dice < 2))
        mix_delete(x);
    else if (!x->n_live || dice < 5)
        mix_create(x);
    else if (dice < 7)
        mix_patch(x, x->live[rand_below(&rand_system, x->n_live)]);
    else if (dice < 9)
        expect(x->mix, 200, "GET", x->live[rand_below(&rand_system, x->n_live)], NULL, NULL);
    else
        expect(x->mix, 200, "GET", x->serial % 2 ? "?limit=50" : "?limit=50&resourceVersion=0",
               NULL, NULL);
}

static void *mixer(void *arg)
{
    struct mixer x = {.mix = arg, .thread = atomic_fetch_add(&((struct mix *)arg)->next_thread, 1)};
    while (!is_past(x.mix->until_ms) && atomic_load(&wrongs) < REPORTS_MAX)
        mix_step(&x);
    while (x.n_live)
        mix_delete(&x);
    return NULL;
}

static void mode_mix(void)
{
    struct mix m = {.until_ms = deadline_ms()};
    run_threads(mixer, &m);
    printf("# %lld calls, %lld a second, slowest %lld ms\n", (long long)m.n_calls,
           (long long)(m.n_calls / (options.seconds ? options.seconds : 1)),
           (long long)m.slowest_ms);
}

/* ---- main ---- */

static int usage(void)
{
    fputs("usage: load create|verify|watch|mix -U URL -c FOLDER [-n COUNT] [-t THREADS] [-p "
          "PREFIX] [-s BYTES] "
          "[-l LEDGER] [-r REVISION] [-u NAME] [-o FILE] [-d SECONDS] [-1]\n"
          "FOLDER has serving-ca.crt, admin.crt and admin.key\n",
          stderr);
    return 2;
}

static bool parse_options(int argc, char **argv)
{
    for (int c; (c = getopt(argc, argv, "U:c:n:t:p:s:l:r:u:o:d:1")) != -1;) {
        int64_t *number = c == 'n'   ? &options.count
                          : c == 't' ? &options.threads
                          : c == 's' ? &options.size_bytes
                          : c == 'r' ? &options.revision
                          : c == 'd' ? &options.seconds
                                     : NULL;
        const char **text = c == 'U'   ? &options.url
                            : c == 'p' ? &options.prefix
                            : c == 'l' ? &options.ledger
                            : c == 'u' ? &options.until
                            : c == 'o' ? &options.output
                                       : NULL;
        if (number && str_to_i64(optarg, number) < 0)
            return false;
        if (text)
            *text = optarg;
        if (c == 'c' && !options.ca) {
            options.ca = xasprintf("%s/serving-ca.crt", optarg);
            options.cert = xasprintf("%s/admin.crt", optarg);
            options.key = xasprintf("%s/admin.key", optarg);
        }
        options.is_once = options.is_once || c == '1';
        if (c == '?')
            return false;
    }
    return options.url && options.ca && options.count > 0 && options.threads > 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"create", mode_create}, {"verify", mode_verify}, {"watch", mode_watch}, {"mix", mode_mix}};
    if (argc < 2 || !parse_options(argc - 1, argv + 1))
        return usage();
    tls = (struct fetch_tls){
        .ca_file = options.ca, .cert_file = options.cert, .key_file = options.key};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (!str_equal(argv[1], modes[i].name))
            continue;
        fetch = fetch_new();
        modes[i].run();
        fetch_free(fetch);
        free(options.ca);
        free(options.cert);
        free(options.key);
        if (wrongs > REPORTS_MAX)
            printf("and %d more\n", wrongs - REPORTS_MAX);
        return wrongs ? 1 : 0;
    }
    return usage();
}
