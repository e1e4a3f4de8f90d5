/* sandbox-apiserver: its options, its parts from start to stop, and signals. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "admission/rules.h"
#include "apiserver/app.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/spare.h"
#include "apiserver/http/server.h"
#include "openapi/kinds.h"

static char *make_identity(const struct options *o)
{
    char host[256] = "";
    if (o->identity)
        return xstrdup(o->identity);
    if (o->standalone) /* nobody else leads, so one that starts again need not wait */
        return xstrdup("standalone");
    gethostname(host, sizeof host - 1);
    return xasprintf("%s-%ld", host, (long)getpid());
}

static void report_table(void *ctx, const char *text)
{
    (void)ctx;
    log_error("kind table: %s", text);
}

static bool tables_are_good(void)
{
    return kinds_check(report_table, NULL) + rules_check(report_table, NULL) == 0;
}

/* Until SIGTERM or SIGINT; SIGHUP reads the certificate again. */
static void wait_for_end(struct app *a, const sigset_t *signals)
{
    struct spare spare = {0};
    for (;;) {
        int sig = spare_wait_signal(&spare, signals);
        if (sig != SIGHUP) {
            log_info("ending signal=%d", sig);
            return;
        }
        SCOPED(err_fini) struct err err = {0};
        if (server_reload(a->server, &err) < 0)
            log_warn("certificate not reloaded, the old one stays: %s", err_text(&err));
    }
}

/* The exit status. */
static int run(struct app *a)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* inherited by every thread */
    signal(SIGPIPE, SIG_IGN);
    SCOPED(err_fini) struct err err = {0};
    int rc = app_start(a, &err);
    if (rc == 0)
        wait_for_end(a, &signals);
    else
        log_error("cannot start: %s", err_text(&err));
    app_stop(a);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct app app = {0};
    int status;
    mem_share_pools();
    if (options_parse(argc, argv, &app.options, &status) == 0) {
        log_set_level(app.options.level);
        if (app.options.standalone)
            kinds_served = kinds_standalone;
        app.identity = make_identity(&app.options);
        log_info("starting version=%s identity=%s", VERSION, app.identity);
        status = tables_are_good() ? run(&app) : EXIT_FAILURE;
    }
    free(app.identity);
    options_fini(&app.options);
    return status;
}
