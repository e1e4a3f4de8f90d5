/* Whole exchanges without a socket: each file of tests/http/scenarios is a sequence of requests and
 * the answers that must come, through every filter, over a fresh store. With HTTP_PRINT=FOLDER the
 * exchanges are written there with the answers that came, to be read and kept.
 *
 * An exchange is a head, a line of four dashes and the answer (http_fixture_text); a line of four
 * equals signs stands between two. In the head come first a note (#) and directives: @user NAME,
 * @user none, @capture NAME PATH, @watch LINES, @advance MS; then the request. ${A} and ${E} are
 * the two group-versions, ${B}, ${C}, ${T}, ${W} the four collections in namespace ns, others
 * captured.
 */
#include <dirent.h>
#include <stdio.h>

#include "apiserver/base/json.h"
#include "tests/lib/http_fixture.h"
#include "tests/lib/suite.h"

#define FOLDER "tests/http/scenarios"
#define WATCH_WAIT_MS 3000

static struct dirent **files;
static int n_files;

struct run {
    struct http_fixture fixture;
    struct pairs vars, uids;
    const char *file;
    FILE *print; /* NULL = compare */
    size_t n_exchanges;
};

static char *read_file(const char *path)
{
    struct buf text = {0};
    char block[4096];
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        buf_append(&text, block, n);
    fclose(f);
    return buf_take(&text, NULL);
}

/* Replaces ${name}. */
static char *fill(const struct pairs *vars, const char *text)
{
    struct buf out = {0};
    while (*text) {
        const char *end = str_has_prefix(text, "${") ? strchr(text, '}') : NULL;
        SCOPED_FREE char *name = end ? xstrndup(text + 2, (size_t)(end - text - 2)) : NULL;
        const char *value = name ? pairs_get(vars, name) : NULL;
        if (value)
            buf_puts(&out, value);
        else
            buf_putc(&out, *text);
        text = value ? end + 1 : text + 1;
    }
    return buf_take(&out, NULL);
}

struct exchange {
    const char *note, *user, *capture; /* capture: NAME PATH */
    size_t watch_lines;                /* 0 = no watch */
    int64_t advance_ms;
    char *request; /* rest of the head */
};

/* Directives and notes are cut from the front of text, which is changed. */
static struct exchange parse_head(char *text)
{
    struct exchange x = {.note = "", .user = "admin"};
    for (;;) {
        char *eol = strchr(text, '\n');
        bool is_more = eol && (*text == '#' || *text == '@' || *text == '\n');
        if (!is_more)
            break;
        *eol = '\0';
        if (*text == '#')
            x.note = text + 1;
        else if (str_has_prefix(text, "@user "))
            x.user = text + 6;
        else if (str_has_prefix(text, "@capture "))
            x.capture = text + 9;
        else if (str_has_prefix(text, "@watch "))
            x.watch_lines = (size_t)strtoul(text + 7, NULL, 10);
        else if (str_has_prefix(text, "@advance "))
            x.advance_ms = strtol(text + 9, NULL, 10);
        else
            ck_assert_msg(!*text, "what is %s?", text);
        text = eol + 1;
    }
    x.request = text;
    return x;
}

static void capture(struct run *run, const char *what, const struct response *resp)
{
    const char *blank = strchr(what, ' ');
    SCOPED_FREE char *name = xstrndup(what, (size_t)(blank - what));
    SCOPED(json_free_p) cJSON *tree = NULL;
    ck_assert(json_parse(buf_cstr(&resp->body), resp->body.len, NULL, &tree, NULL) == 0);
    const char *value = json_str(tree, blank + 1);
    ck_assert_msg(value != NULL, "%s", what);
    pairs_remove_ci(&run->vars, name);
    pairs_add(&run->vars, name, value);
}

/* The end of the file is not part of an answer. */
static void trim_end(char *s)
{
    for (size_t n = strlen(s); n && s[n - 1] == '\n';)
        s[--n] = '\0';
}

/* The expected answer in the same normal form: its JSON is sorted, so that the file may be written
 * as it reads best. */
static char *normal_answer(struct run *run, const char *text)
{
    SCOPED_FREE char *filled = fill(&run->vars, text);
    struct buf out = {0};
    for (char *line = filled; line && *line;) {
        char *eol = strchr(line, '\n');
        if (eol)
            *eol = '\0';
        SCOPED(json_free_p) cJSON *tree = NULL;
        if (*line == '{' && json_parse_str(line, &tree, NULL) == 0) {
            json_sort(tree);
            json_print(tree, &out);
        } else {
            buf_puts(&out, line);
        }
        buf_putc(&out, '\n');
        line = eol ? eol + 1 : NULL;
    }
    return buf_take(&out, NULL);
}

/* Writes the exchange as the file would have it. */
static void print_exchange(struct run *run, const char *head, const char *got)
{
    fprintf(run->print, "%s%s----\n%s\n", run->n_exchanges++ ? "====\n" : "", head, got);
}

static void run_exchange(struct run *run, char *head, const char *answer)
{
    SCOPED_FREE char *unchanged = xstrdup(head);
    struct exchange x = parse_head(head);
    SCOPED(response_fini) struct response resp = {0};
    SCOPED_FREE char *request = fill(&run->vars, x.request);
    trim_end(request);
    clock_fake_advance(&run->fixture.clock, x.advance_ms);
    http_fixture_send(&run->fixture, x.user, request, strlen(request), &resp);
    if (x.watch_lines)
        http_fixture_pull(&resp, x.watch_lines, WATCH_WAIT_MS);
    SCOPED_FREE char *got = http_fixture_text(&resp, &run->uids);
    SCOPED_FREE char *expected = normal_answer(run, answer);
    trim_end(got);
    trim_end(expected);
    if (run->print)
        print_exchange(run, unchanged, got);
    else
        ck_assert_msg(strcmp(got, expected) == 0, "%s:%s\n%.*s\ngave\n%s\ninstead of\n%s",
                      run->file, x.note, (int)strcspn(x.request, "\n"), x.request, got, expected);
    if (x.capture)
        capture(run, x.capture, &resp);
}

static void set_vars(struct pairs *vars)
{
    static const char a[] = "/apis/agents.x-k8s.io/v1beta1",
                      e[] = "/apis/extensions.agents.x-k8s.io/v1beta1";
    static const char *const collections[][2] = {
        {"C", "sandboxclaims"}, {"T", "sandboxtemplates"}, {"W", "sandboxwarmpools"}};
    SCOPED_FREE char *b = xasprintf("%s/namespaces/ns/sandboxes", a);
    pairs_add(vars, "A", a);
    pairs_add(vars, "E", e);
    pairs_add(vars, "B", b);
    for (size_t i = 0; i < ARRAY_LEN(collections); i++) {
        SCOPED_FREE char *path = xasprintf("%s/namespaces/ns/%s", e, collections[i][1]);
        pairs_add(vars, collections[i][0], path);
    }
}

/* Cuts text at the next line that is exactly mark; NULL when there is none. */
static char *cut_at(char *text, const char *mark)
{
    size_t n = strlen(mark);
    for (char *line = text; line;) {
        if (strncmp(line, mark, n) == 0 && (line[n] == '\n' || !line[n])) {
            char *rest = line[n] ? line + n + 1 : line + n;
            *line = '\0';
            return rest;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return NULL;
}

static FILE *open_print(const char *name)
{
    const char *folder = getenv("HTTP_PRINT");
    SCOPED_FREE char *path = folder ? xasprintf("%s/%s", folder, name) : NULL;
    return path ? fopen(path, "w") : NULL;
}

START_TEST(test_file)
{
    SCOPED_FREE char *path = xasprintf(FOLDER "/%s", files[_i]->d_name);
    SCOPED_FREE char *text = read_file(path);
    struct run run = {.file = files[_i]->d_name};
    http_fixture_open(&run.fixture, NULL);
    set_vars(&run.vars);
    run.print = open_print(files[_i]->d_name);
    for (char *at = text; at && *at;) {
        char *rest = cut_at(at, "===="), *answer = cut_at(at, "----");
        ck_assert_msg(answer != NULL, "%s: no answer to %s", path, at);
        run_exchange(&run, at, answer);
        at = rest;
    }
    if (run.print)
        fclose(run.print);
    http_fixture_close(&run.fixture);
    pairs_fini(&run.vars);
    pairs_fini(&run.uids);
}
END_TEST

static int is_scenario(const struct dirent *d)
{
    return str_has_suffix(d->d_name, ".http");
}

SUITE(scenarios)
{
    http_fixture_init();
    n_files = scandir(FOLDER, &files, is_scenario, alphasort);
    LOOP("file", test_file, 0, n_files > 0 ? n_files : 0);
}
