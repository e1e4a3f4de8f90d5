#include "tests/lib/certs.h"

#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apiserver/base/mem.h"

extern char **environ;
static char dir[] = "/tmp/certs.XXXXXX";
static pid_t owner;

static void fail(const char *what)
{
    fprintf(stderr, "certs: %s\n", what);
    exit(EXIT_FAILURE);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_dir(void)
{
    if (getpid() == owner) /* not in the tests' processes */
        nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void certs_init(void)
{
    if (owner == getpid())
        return;
    if (!mkdtemp(dir))
        fail("no temporary directory");
    owner = getpid();
    atexit(remove_dir);
    /* The machine's own configuration is of no interest, and one more name is known: Kubernetes'
     * attribute for a user's uid. */
    certs_write("openssl.cnf", "oid_section = oids\n[oids]\nuserUid = 1.3.6.1.4.1.57683.2\n[req]\n"
                               "distinguished_name = dn\n[dn]\n");
}

const char *certs_path(const char *name)
{
    static char *paths[64]; /* reachable, so no leak */
    size_t i = 0;
    size_t n = strlen(dir) + 1;
    for (; i < ARRAY_LEN(paths) && paths[i]; i++)
        if (strcmp(paths[i] + n, name) == 0)
            return paths[i];
    if (i == ARRAY_LEN(paths))
        fail("too many files");
    return paths[i] = xasprintf("%s/%s", dir, name);
}

static const char *path_of(const char *name, const char *suffix)
{
    SCOPED_FREE char *file = xasprintf("%s%s", name, suffix);
    return certs_path(file);
}

static void run(char *const *argv)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int status = -1;
    if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) < 0 || status != 0)
        fail(argv[1]);
    posix_spawn_file_actions_destroy(&actions);
}

void certs_write(const char *name, const char *text)
{
    FILE *f = fopen(certs_path(name), "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        fail(name);
}

#define ARGS_MAX 32

static void add(char **argv, size_t *n, const char *arg)
{
    if (*n + 1 >= ARGS_MAX)
        fail("too many arguments");
    argv[(*n)++] = xstrdup(arg);
    argv[*n] = NULL;
}

static void run_text(const char *const *args)
{
    char *argv[ARGS_MAX];
    size_t n = 0;
    for (; *args; args++)
        add(argv, &n, *args);
    run(argv);
    while (n > 0)
        free(argv[--n]);
}

void certs_make(const char *name, const char *issuer, const char *subject, const char *ext,
                int days)
{
    char days_text[16];
    snprintf(days_text, sizeof days_text, "%d", days);
    const char *key = path_of(name, ".key"), *csr = path_of(name, ".csr"),
               *crt = path_of(name, ".crt");
    SCOPED_FREE char *ext_name = xasprintf("%s.ext", name);
    certs_write(ext_name, ext ? ext : "basicConstraints=CA:FALSE\n");
    run_text((const char *[]){"openssl", "req", "-config", certs_path("openssl.cnf"), "-new",
                              "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                              "-keyout", key, "-out", csr, "-subj", subject, NULL});
    const char *sign[ARGS_MAX] = {"openssl",
                                  "x509",
                                  "-req",
                                  "-in",
                                  csr,
                                  "-out",
                                  crt,
                                  "-days",
                                  days_text,
                                  "-extfile",
                                  certs_path(ext_name)};
    size_t n = 11;
    if (issuer) {
        sign[n++] = "-CA";
        sign[n++] = path_of(issuer, ".crt");
        sign[n++] = "-CAkey";
        sign[n++] = path_of(issuer, ".key");
        sign[n++] = "-CAcreateserial";
    } else {
        sign[n++] = "-signkey";
        sign[n++] = key;
    }
    run_text(sign);
}

void certs_join(const char *out, const char *const *names)
{
    FILE *to = fopen(certs_path(out), "we");
    if (!to)
        fail(out);
    for (; *names; names++) {
        FILE *from = fopen(certs_path(*names), "re");
        int c;
        if (!from)
            fail(*names);
        while ((c = getc(from)) != EOF)
            putc(c, to);
        fclose(from);
    }
    fclose(to);
}
