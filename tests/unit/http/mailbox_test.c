/* The box between threads: once in it however often posted, in order, nothing missed. */
#include "apiserver/http/mailbox.h"

#include "tests/lib/suite.h"

struct letter {
    struct mail mail; /* first */
    int n_opened;
    struct mailbox *again; /* posted into, while it is opened */
};

static struct letter *last_opened;
static atomic_int n_notified;

static void open_letter(struct mail *m)
{
    struct letter *l = (struct letter *)m;
    l->n_opened++;
    last_opened = l;
    if (l->again)
        mailbox_post(l->again, m);
}

static void notify(void *ctx)
{
    ck_assert_ptr_eq(ctx, &n_notified);
    atomic_fetch_add(&n_notified, 1);
}

static struct letter letter(void)
{
    return (struct letter){.mail.open = open_letter};
}

START_TEST(test_once_and_in_order)
{
    struct mailbox b;
    struct letter first = letter(), second = letter();
    mailbox_init(&b, notify, &n_notified);
    ck_assert(mailbox_is_empty(&b));
    for (int i = 0; i < 3; i++) {
        mailbox_post(&b, &first.mail);
        mailbox_post(&b, &second.mail);
    }
    ck_assert_int_eq(atomic_load(&n_notified), 1); /* when it was empty */
    mailbox_open(&b);
    ck_assert(first.n_opened == 1 && second.n_opened == 1 && last_opened == &second);
    ck_assert(mailbox_is_empty(&b));
    mailbox_post(&b, &first.mail);
    mailbox_open(&b);
    ck_assert_int_eq(first.n_opened, 2);
    ck_assert_int_eq(atomic_load(&n_notified), 2);
    mailbox_fini(&b);
}
END_TEST

/* What is posted while the box is opened waits for the next time. */
START_TEST(test_posted_meanwhile)
{
    struct mailbox b;
    struct letter l = letter();
    mailbox_init(&b, notify, &n_notified);
    l.again = &b;
    mailbox_post(&b, &l.mail);
    for (int i = 1; i <= 3; i++) {
        mailbox_open(&b);
        ck_assert_int_eq(l.n_opened, i);
        ck_assert(!mailbox_is_empty(&b));
    }
    mailbox_cancel(&b, &l.mail);
    ck_assert(mailbox_is_empty(&b));
    mailbox_fini(&b);
}
END_TEST

START_TEST(test_cancel)
{
    struct mailbox b;
    struct letter l[3] = {letter(), letter(), letter()};
    mailbox_init(&b, notify, &n_notified);
    for (int skipped = 0; skipped < 3; skipped++) {
        for (int i = 0; i < 3; i++)
            mailbox_post(&b, &l[i].mail);
        mailbox_cancel(&b, &l[skipped].mail);
        mailbox_cancel(&b, &l[skipped].mail); /* is in it no more */
        mailbox_open(&b);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(l[i].n_opened, 2);
    ck_assert(mailbox_is_empty(&b));
    mailbox_fini(&b);
}
END_TEST

#define POSTS 20000
static struct letter shared;
static struct mailbox shared_box;
static atomic_int n_posted;

static void *post_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < POSTS; i++) {
        atomic_fetch_add(&n_posted, 1);
        mailbox_post(&shared_box, &shared.mail);
    }
    return NULL;
}

/* Whoever posts is heard: after the last post the box is opened once more at least. */
START_TEST(test_threads)
{
    pthread_t threads[3];
    shared = letter();
    mailbox_init(&shared_box, notify, &n_notified);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, post_many, NULL);
    while (atomic_load(&n_posted) < POSTS * (int)ARRAY_LEN(threads))
        mailbox_open(&shared_box);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    int before = shared.n_opened;
    mailbox_post(&shared_box, &shared.mail);
    mailbox_open(&shared_box);
    ck_assert_int_eq(shared.n_opened, before + 1);
    ck_assert(mailbox_is_empty(&shared_box));
    mailbox_fini(&shared_box);
}
END_TEST

SUITE(mailbox)
{
    TESTS("mailbox", test_once_and_in_order, test_posted_meanwhile, test_cancel, test_threads);
}
