/* Objects of the registry as the reconciler hears of them. */
#include <pthread.h>
#include <sched.h>

#include "apiserver/base/str.h"
#include "reconcile/feed.h"
#include "tests/lib/world.h"

static struct {
    pthread_mutex_t lock;
    struct buf said; /* b = begun, NAME or -NAME, !plural for a gap */
    bool is_ready;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void say(const char *prefix, const char *text)
{
    pthread_mutex_lock(&heard.lock);
    buf_printf(&heard.said, "%s%s ", prefix, text);
    pthread_mutex_unlock(&heard.lock);
}

static bool is_ready(void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&heard.lock);
    bool ready = heard.is_ready;
    pthread_mutex_unlock(&heard.lock);
    return ready;
}

static void on_begin(void *ctx)
{
    (void)ctx;
    say("", "begin");
}

static void on_object(void *ctx, const struct object *o, bool is_delete)
{
    (void)ctx;
    say(is_delete ? "-" : "", o->name);
}

static void on_gap(void *ctx, const struct kind *kind)
{
    (void)ctx;
    say("!", kind->plural);
}

static bool has_heard(const char *text)
{
    pthread_mutex_lock(&heard.lock);
    bool is_it = str_equal(buf_cstr(&heard.said), text);
    pthread_mutex_unlock(&heard.lock);
    return is_it;
}

/* Check's time limit ends what never comes. */
static void wait_for(const char *text)
{
    while (!has_heard(text))
        sched_yield();
}

START_TEST(test_feed)
{
    static const struct kind *const kinds[] = {&kind_sandbox, &kind_sandbox_warm_pool, NULL};
    struct world w;
    world_start(&w, NULL);
    object_unref(world_create(&w, "ns", "a", ""));
    struct feed *f = feed_start(&(struct feed_config){.registry = w.registry,
                                                      .clock = &clock_system,
                                                      .kinds = kinds,
                                                      .is_ready = is_ready,
                                                      .on_begin = on_begin,
                                                      .on_object = on_object,
                                                      .on_gap = on_gap});
    ck_assert(has_heard("")); /* nothing before it is ready */
    pthread_mutex_lock(&heard.lock);
    heard.is_ready = true;
    pthread_mutex_unlock(&heard.lock);
    wait_for("begin a ");
    object_unref(world_create(&w, "ns", "b", ""));
    wait_for("begin a b ");
    world_delete(&w, "ns", "a");
    wait_for("begin a b -a ");
    feed_stop(f);
    world_stop(&w);
    buf_fini(&heard.said);
}
END_TEST

SUITE(feed)
{
    TESTS("feed", test_feed);
}
