#include "node/podman.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "node/instance.h"
#include "tests/lib/peer.h"
#include "tests/lib/suite.h"

/* An engine that says what Podman says, as far as the door looks at it. */
static bool engine(void *ctx, struct peer_conn *c, const struct peer_request *req)
{
    (void)ctx;
    const char *path = strstr(req->target, "/libpod");
    path = path ? path + strlen("/libpod") : "";
    if (strcmp(path, "/images/there/json") == 0)
        peer_answer(c, 200, "application/json",
                    "{\"Id\":\"abc\",\"RepoDigests\":[\"there@sha256:1\"],\"Config\":{\"User\":"
                    "\"7\",\"Labels\":{\"a\":\"b\"}}}");
    else if (strstr(path, "/images/pull"))
        peer_answer(c, 200, "application/json",
                    strstr(path, "reference=good")
                        ? "{\"stream\":\"...\"}\n{\"id\":\"abc\"}\n"
                        : "{\"stream\":\"...\"}\n{\"error\":\"no such image\"}\n");
    else if (strcmp(path, "/containers/create") == 0)
        peer_answer(c, 201, "application/json", "{\"Id\":\"c1\",\"Warnings\":[]}");
    else if (strcmp(path, "/containers/c1/exec") == 0)
        peer_answer(c, 201, "application/json", "{\"Id\":\"e1\"}");
    else if (strcmp(path, "/exec/e1/start") == 0)
        peer_printf(
            c, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n%c%c%c%c%c%c%c%chi %c%c%c%c%c%c%c%cx",
            1, 0, 0, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0, 1);
    else if (strcmp(path, "/containers/loud/exec") == 0)
        peer_answer(c, 201, "application/json", "{\"Id\":\"e2\"}");
    else if (strcmp(path, "/exec/e2/start") == 0) {
        peer_printf(c, "HTTP/1.1 200 OK\r\nContent-Length: 200008\r\n\r\n%c%c%c%c%c%c%c%c", 1, 0, 0,
                    0, 0, 3, 0x0d, 0x40);
        for (int i = 0; i < 2000; i++)
            peer_printf(c, "%0100d", i);
    } else if (strcmp(path, "/exec/e2/json") == 0)
        peer_answer(c, 200, "application/json", "{\"ExitCode\":0,\"Running\":false}");
    else if (strcmp(path, "/exec/e1/json") == 0)
        peer_answer(c, 200, "application/json", "{\"ExitCode\":3,\"Running\":false}");
    else if (strcmp(path, "/containers/busy/start") == 0)
        peer_answer(c, 409, "application/json", "{\"message\":\"not now\",\"response\":409}");
    else
        peer_answer(c, 404, "application/json", "{\"message\":\"no such thing\",\"response\":404}");
    return true;
}

static char path[64];
static struct peer *peer;
static struct fetch *fetch;
static struct podman *podman;

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "/tmp/podman-test-%d", getpid());
    peer = peer_start(path, engine, NULL);
    fetch = fetch_new();
    podman = podman_new(fetch, path);
}

static void teardown(void)
{
    podman_free(podman);
    fetch_free(fetch);
    peer_stop(peer);
    unlink(path);
}

START_TEST(test_images)
{
    SCOPED(podman_image_fini) struct podman_image image = {0};
    SCOPED(err_fini) struct err err = {0};
    setup();
    ck_assert_int_eq(podman_image_find(podman, "there", &image, &err), 0);
    ck_assert_str_eq(image.id, "abc");
    ck_assert_str_eq(image.digest, "there@sha256:1");
    ck_assert_str_eq(image.user, "7");
    ck_assert_str_eq(json_str(image.labels, "a"), "b");
    ck_assert_int_eq(podman_image_find(podman, "a/../b", &image, &err), -ERR_NOT_FOUND);
    ck_assert_str_eq(err_text(&err), "no such thing");
    ck_assert_int_eq(podman_image_pull(podman, "good", NULL, &err), 0);
    ck_assert_int_lt(podman_image_pull(podman, "bad", NULL, &err), 0);
    ck_assert_str_eq(err_text(&err), "no such image");
    teardown();
}
END_TEST

START_TEST(test_containers)
{
    SCOPED(json_free_p) cJSON *spec = json_object();
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *id = NULL;
    setup();
    ck_assert_int_eq(podman_create(podman, spec, &id, &err), 0);
    ck_assert_str_eq(id, "c1");
    ck_assert_int_eq(podman_start(podman, "busy", &err), -ERR_CONFLICT);
    ck_assert_str_eq(err_text(&err), "not now");
    ck_assert_int_eq(podman_remove(podman, "gone", &err), 0);
    teardown();
}
END_TEST

START_TEST(test_command)
{
    SCOPED(json_free_p) cJSON *command = json_array();
    SCOPED(podman_exec_fini) struct podman_exec result = {0};
    SCOPED(err_fini) struct err err = {0};
    setup();
    ck_assert_msg(podman_exec(podman, "c1", command, 5000, &result, &err) == 0, "%s",
                  err_text(&err));
    ck_assert_int_eq(result.exit_code, 3);
    ck_assert_str_eq(buf_cstr(&result.output), "hi x");
    podman_exec_fini(&result);
    ck_assert_msg(podman_exec(podman, "loud", command, 5000, &result, &err) == 0, "%s",
                  err_text(&err)); /* which costs it nothing */
    ck_assert_int_eq(result.exit_code, 0);
    ck_assert_int_gt(result.output.len, 60000);
    ck_assert_int_lt(result.output.len, 70000);
    teardown();
}
END_TEST

START_TEST(test_nobody_there)
{
    struct podman_limits limits;
    SCOPED(err_fini) struct err err = {0};
    setup();
    ck_assert_int_eq(podman_limits(podman, &limits, &err), 0); /* the peer is this process */
    ck_assert_int_gt(limits.nofile, 0);
    ck_assert_int_le(limits.nproc, 32768);
    peer_stop(peer);
    unlink(path);
    ck_assert_int_lt(podman_ping(podman, &err), 0);
    ck_assert_int_eq(podman_limits(podman, &limits, &err), -ERR_UNAVAILABLE);
    peer = peer_start(path, engine, NULL);
    teardown();
}
END_TEST

START_TEST(test_inspection_becomes_an_instance)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(instance_fini) struct instance i = {0};
    ck_assert_int_eq(
        json_parse_str(
            "{\"Id\":\"x\",\"Image\":\"y\",\"Created\":\"2026-01-02T03:04:05.5Z\",\"State\":{"
            "\"Status\":\"exited\",\"ExitCode\":9,\"OOMKilled\":true,\"StartedAt\":"
            "\"2026-01-02T03:04:06Z\",\"FinishedAt\":\"0001-01-01T00:00:00Z\"},\"Config\":{"
            "\"StopSignal\":2,\"Labels\":{\"" LABEL_CONTAINER "\":\"main\",\"" LABEL_ATTEMPT
            "\":\"4\",\"" LABEL_STEP "\":\"-1\"}},\"NetworkSettings\":{\"Networks\":{\"net\":{"
            "\"IPAddress\":\"10.0.0.9\"}}}}",
            &tree, NULL),
        0);
    instance_read(tree, "net", &i);
    ck_assert_str_eq(i.name, "main");
    ck_assert_str_eq(i.ip, "10.0.0.9");
    ck_assert_int_eq(i.state, INSTANCE_EXITED);
    ck_assert_int_eq(i.exit_code, 9);
    ck_assert_int_eq(i.stop_signal, 2);
    ck_assert(i.is_oom_killed);
    ck_assert_uint_eq(i.attempt, 4);
    ck_assert_uint_eq(i.step, 0);
    ck_assert_int_eq(i.started_ms - i.created_ms, 500);
    ck_assert_int_eq(i.finished_ms, 0);
}
END_TEST

/* As the engine shows them after a restart of the machine. */
START_TEST(test_what_ran_when_the_machine_went_down_has_ended)
{
    static const struct {
        const char *started;
        enum instance_state state;
    } cases[] = {{"2026-01-02T03:04:06Z", INSTANCE_EXITED},
                 {"0001-01-01T00:00:00Z", INSTANCE_CREATED}};
    for (size_t n = 0; n < ARRAY_LEN(cases); n++) {
        SCOPED_FREE char *text = xasprintf(
            "{\"State\":{\"Status\":\"created\",\"ExitCode\":0,\"StartedAt\":\"%s\",\"FinishedAt\":"
            "\"0001-01-01T00:00:00Z\"}}",
            cases[n].started);
        SCOPED(json_free_p) cJSON *tree = NULL;
        SCOPED(instance_fini) struct instance i = {0};
        ck_assert_int_eq(json_parse_str(text, &tree, NULL), 0);
        instance_read(tree, "net", &i);
        ck_assert_int_eq(i.state, cases[n].state);
        if (i.state == INSTANCE_EXITED) {
            ck_assert_int_eq(i.exit_code, 137);
            ck_assert_str_eq(i.reason, "ContainerStatusUnknown");
        }
    }
}
END_TEST

SUITE(podman)
{
    TESTS("podman", test_images, test_containers, test_command, test_nobody_there,
          test_inspection_becomes_an_instance, test_what_ran_when_the_machine_went_down_has_ended);
}
