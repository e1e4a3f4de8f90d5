#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/kube/kube.h"
#include "tests/lib/peer.h"
#include "tests/lib/suite.h"

/* Each test is a script of the cluster's answers, and the text that the reflector's callbacks write
 * down: up  replace@5[a:1 b:2]  a:3  -a:4  down */

/* ---- what the reflector said ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static struct buf said; /* under lock */

static void say(const char *prefix, const cJSON *object)
{
    buf_printf(&said, "%s%s:%s", prefix, json_str_or(object, "metadata.name", "?"),
               json_str_or(object, "metadata.resourceVersion", "?"));
    if (!str_equal(json_str(object, "kind"), "Pod") ||
        !str_equal(json_str(object, "apiVersion"), "v1"))
        buf_puts(&said, "(no type)");
}

static void on_replace(void *ctx, const cJSON *const *objects, size_t n, const char *version)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    buf_printf(&said, " replace@%s[", version);
    for (size_t i = 0; i < n; i++)
        say(i > 0 ? " " : "", objects[i]);
    buf_putc(&said, ']');
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

static void on_event(void *ctx, const cJSON *object, bool is_delete)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    say(is_delete ? " -" : " ", object);
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

static void on_link(void *ctx, bool is_up)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    buf_puts(&said, is_up ? " up" : " down");
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

static const struct reflector_ops ops = {
    .on_replace = on_replace, .on_event = on_event, .on_link = on_link};

static void wait_said(const char *text)
{
    pthread_mutex_lock(&lock);
    while (strlen(buf_cstr(&said)) < strlen(text))
        pthread_cond_wait(&wake, &lock);
    ck_assert_str_eq(buf_cstr(&said), text);
    pthread_mutex_unlock(&lock);
}

/* ---- the cluster ---- */

enum then { KEEP, HANG, BREAK }; /* after the answer: next request, wait for the client, hang up */

struct step {
    const char *query; /* part of the request's target */
    int status;        /* 0 = no answer at all */
    const char *text;  /* status 200 on a watch: sent as chunks, cut at | */
    enum then then;
};
static const struct step *script; /* ends with a step whose query is NULL */
static int at_step;               /* under lock */

static const struct step *next_step(void)
{
    pthread_mutex_lock(&lock);
    const struct step *s = &script[at_step];
    if (s->query != NULL)
        at_step++;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    return s;
}

static void wait_step(int n)
{
    pthread_mutex_lock(&lock);
    while (at_step < n)
        pthread_cond_wait(&wake, &lock);
    pthread_mutex_unlock(&lock);
}

static void send_chunks(struct peer_conn *c, const char *text)
{
    SCOPED_FREE char *copy = xstrdup(text);
    char *rest = copy, *part;
    peer_begin_chunks(c, 200);
    while ((part = strsep(&rest, "|")) != NULL)
        if (part[0] != '\0')
            peer_chunk(c, part);
}

static bool serve(void *ctx, struct peer_conn *c, const struct peer_request *req)
{
    (void)ctx;
    const struct step *s = next_step();
    if (s->query == NULL) { /* the script is over */
        peer_wait_hangup(c, 30000);
        return false;
    }
    if (strstr(req->target, s->query) == NULL) {
        fprintf(stderr, "step %s: got %s\n", s->query, req->target);
        abort();
    }
    bool is_watch = strstr(req->target, "watch=true") != NULL;
    if (s->status == 200 && is_watch)
        send_chunks(c, s->text);
    else if (s->status != 0)
        peer_answer(c, s->status, NULL, s->text);
    if (s->then == HANG)
        peer_wait_hangup(c, 30000);
    else if (s->then == KEEP && s->status == 200 && is_watch)
        peer_chunk(c, "");
    return s->then == KEEP;
}

static struct peer *peer;
static struct fetch *fetch;
static struct kube *kube;
static struct reflector *reflector;

static void begin(const struct step *steps)
{
    char path[] = "/tmp/reflector-test-XXXXXX";
    int fd = mkstemp(path);
    script = steps;
    log_set_level(LOG_ERROR);
    peer = peer_start(NULL, serve, NULL);
    ck_assert_int_gt(dprintf(fd,
                             "current-context: x\n"
                             "contexts: [{name: x, context: {cluster: c}}]\n"
                             "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}]\n",
                             peer_port(peer)),
                     0);
    close(fd);
    fetch = fetch_new();
    ck_assert_int_eq(kube_new(path, fetch, &kube, NULL), 0);
    unlink(path);
    reflector = reflector_start(kube, "/api/v1/pods", "a=b,c", "spec.x!=1", &ops, NULL);
}

static void end(void)
{
    reflector_stop(reflector);
    kube_free(kube);
    fetch_free(fetch);
    peer_stop(peer);
    buf_fini(&said);
}

#define SELECTORS "&labelSelector=a%3Db%2Cc&fieldSelector=spec.x%21%3D1"
#define OBJECT(name, version)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, more, items)                                                                 \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" version     \
    "\",\"continue\":\"" more "\"},\"items\":[" items "]}"
#define EVENT(type, name, version)                                                                 \
    "{\"type\":\"" type                                                                            \
    "\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name         \
    "\",\"resourceVersion\":\"" version "\"}}}\n"
#define STATUS(code, reason)                                                                       \
    "{\"kind\":\"Status\",\"message\":\"m\",\"reason\":\"" reason "\",\"code\":" code "}"
#define ERROR_EVENT(code, reason) "{\"type\":\"ERROR\",\"object\":" STATUS(code, reason) "}\n"

/* ---- tests ---- */

START_TEST(test_pages_events_and_resume)
{
    static const struct step steps[] = {
        {"/api/v1/pods?limit=500" SELECTORS, 200, LIST("5", "t+k", OBJECT("a", "1")), KEEP},
        {"limit=500" SELECTORS "&continue=t%2Bk", 200,
         LIST("5", "", OBJECT("b", "2") "," OBJECT("c", "3")), KEEP},
        {SELECTORS "&resourceVersion=5", 200,
         EVENT("ADDED", "d", "6") "|" EVENT("MODI|FIED", "a", "7") EVENT("DELETED", "b", "8"),
         KEEP},
        {"&resourceVersion=8", 200, EVENT("BOOKMARK", "", "20"), BREAK},
        {"&resourceVersion=20", 200, EVENT("ADDED", "e", "21"), HANG},
        {0}};
    begin(steps);
    wait_said(" up replace@5[a:1 b:2 c:3] d:6 a:7 -b:8 down up e:21");
    end();
}
END_TEST

/* The cluster has forgotten our version; it says so by status or by event. */
START_TEST(test_expired)
{
    static const struct step by_status[] = {
        {"limit", 200, LIST("5", "", OBJECT("a", "1")), KEEP},
        {"&resourceVersion=5", 200, EVENT("ADDED", "b", "6"), KEEP},
        {"&resourceVersion=6", 410, STATUS("410", "Expired"), KEEP},
        {"limit", 200, LIST("9", "", OBJECT("b", "6")), KEEP},
        {"&resourceVersion=9", 200, EVENT("ADDED", "c", "10"), HANG},
        {0}};
    static const struct step by_event[] = {
        {"limit", 200, LIST("5", "", OBJECT("a", "1")), KEEP},
        {"&resourceVersion=5", 200, EVENT("ADDED", "b", "6"), KEEP},
        {"&resourceVersion=6", 200, ERROR_EVENT("410", "Gone"), HANG},
        {"limit", 200, LIST("9", "", OBJECT("b", "6")), KEEP},
        {"&resourceVersion=9", 200, EVENT("ADDED", "c", "10"), HANG},
        {0}};
    begin(_i == 0 ? by_status : by_event);
    wait_said(" up replace@5[a:1] b:6 replace@9[b:6] c:10");
    end();
}
END_TEST

START_TEST(test_trouble_at_the_start)
{
    static const struct step steps[] = {{"limit", 0, NULL, BREAK},
                                        {"limit", 500, "oops", KEEP},
                                        {"limit", 403, STATUS("403", "Forbidden"), KEEP},
                                        {"limit", 200, "<html>", KEEP},
                                        {"limit", 200, LIST("5", "", ""), KEEP},
                                        {"&resourceVersion=5", 200, EVENT("ADDED", "a", "6"), HANG},
                                        {0}};
    begin(steps);
    wait_said(" down up replace@5[] a:6");
    end();
}
END_TEST

/* The second page's token expires: all is listed anew, nothing half is handed over. */
START_TEST(test_expired_page)
{
    static const struct step steps[] = {{"limit", 200, LIST("5", "t", OBJECT("a", "1")), KEEP},
                                        {"&continue=t", 410, STATUS("410", "Expired"), KEEP},
                                        {"limit", 200, LIST("7", "", OBJECT("b", "2")), KEEP},
                                        {"&resourceVersion=7", 200, "", HANG},
                                        {0}};
    begin(steps);
    wait_said(" down up replace@7[b:2]");
    wait_step(4);
    end();
}
END_TEST

/* Errors of a running watch that are no reason to list again. */
START_TEST(test_trouble_of_a_watch)
{
    static const struct step steps[] = {
        {"limit", 200, LIST("5", "", ""), KEEP},
        {"&resourceVersion=5", 429, STATUS("429", "TooManyRequests"), KEEP},
        {"&resourceVersion=5", 200, "", KEEP}, /* ends at once */
        {"&resourceVersion=5", 200, ERROR_EVENT("500", "InternalError"), HANG},
        {"&resourceVersion=5", 200, "no json\n", HANG},
        {"&resourceVersion=5", 200, EVENT("ADDED", "a", "6") "half", BREAK},
        {"&resourceVersion=6", 200, EVENT("MODIFIED", "a", "7"), HANG},
        {0}};
    begin(steps);
    wait_said(" up replace@5[] down up down up down up down up a:6 down up a:7");
    end();
}
END_TEST

/* Many events in one go, and one large object. */
START_TEST(test_flood)
{
    SCOPED(buf_fini) struct buf events = {0};
    SCOPED(buf_fini) struct buf expect = {0};
    buf_puts(&expect, " up replace@5[]");
    for (int i = 10; i < 3000; i++) {
        buf_printf(&events,
                   "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
                   "\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"%d\"},\"x\":\"",
                   i);
        for (int j = 0; i == 1000 && j < 200000; j++)
            buf_puts(&events, "xxxxx");
        buf_puts(&events, "\"}}\n");
        buf_printf(&expect, " p:%d", i);
    }
    struct step steps[] = {{"limit", 200, LIST("5", "", ""), KEEP},
                           {"&resourceVersion=5", 200, buf_cstr(&events), HANG},
                           {0}};
    begin(steps);
    wait_said(buf_cstr(&expect));
    end();
}
END_TEST

/* Stopping while the list hangs, while a watch is silent, and while it waits for the next try. */
START_TEST(test_stop)
{
    static const struct step hanging[] = {{"limit", 0, NULL, HANG}, {0}};
    static const struct step silent[] = {
        {"limit", 200, LIST("5", "", ""), KEEP}, {"&resourceVersion=5", 200, "", HANG}, {0}};
    static const struct step failing[] = {{"limit", 500, "", KEEP},
                                          {"limit", 500, "", KEEP},
                                          {"limit", 500, "", KEEP},
                                          {"limit", 500, "", KEEP},
                                          {0}};
    static const struct step *const all[] = {hanging, silent, failing};
    static const int steps[] = {1, 2, 4};
    begin(all[_i]);
    wait_step(steps[_i]);
    end();
}
END_TEST

START_TEST(test_stop_null)
{
    reflector_stop(NULL);
}
END_TEST

SUITE(reflector)
{
    TESTS("reflector", test_pages_events_and_resume, test_trouble_at_the_start, test_expired_page,
          test_trouble_of_a_watch, test_flood, test_stop_null);
    LOOP("expired", test_expired, 0, 2);
    LOOP("stop", test_stop, 0, 3);
}
