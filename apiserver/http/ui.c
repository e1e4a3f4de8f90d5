/* /ui/: the files of the page, part of the program. They hold no data: what the page shows it asks
 * the API for, as whom its user says. So what is left here is to tell browsers how little the page
 * may do: run its own scripts, and talk to this server. Source: Content Security Policy Level 3;
 * Fetch, cross-origin policies. */
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/http/handler.h"

/* The file's bytes from NAME_begin to NAME_end, in this object. Makefile names what this file is
 * made of. */
#define EMBED(name, file)                                                                          \
    __asm__(".pushsection .rodata\n" #name "_begin:\n"                                             \
            ".incbin \"" file "\"\n" #name "_end:\n"                                               \
            ".popsection\n");                                                                      \
    extern const char name##_begin[] __attribute__((visibility("hidden")));                        \
    extern const char name##_end[] __attribute__((visibility("hidden")))

EMBED(ui_page, "ui/index.html");
EMBED(ui_style, "ui/style.css");
EMBED(ui_icon, "ui/icon.svg");
EMBED(ui_app, "ui/app.mjs");
EMBED(ui_dom, "ui/dom.mjs");
EMBED(ui_api, "ui/api.mjs");
EMBED(ui_follow, "ui/follow.mjs");
EMBED(ui_objects, "ui/objects.mjs");
EMBED(ui_rows, "ui/rows.mjs");
EMBED(ui_detail, "ui/detail.mjs");
EMBED(ui_screen, "ui/screen.mjs");
EMBED(ui_exec, "ui/exec.mjs");
EMBED(ui_terminal, "ui/terminal.mjs");
EMBED(ui_yaml, "ui/yaml.mjs");

#define HTML "text/html; charset=utf-8"
#define CSS "text/css; charset=utf-8"
#define SVG "image/svg+xml"
#define SCRIPT "text/javascript; charset=utf-8"

static const struct ui_file {
    const char *path; /* below /ui */
    const char *type, *begin, *end;
} files[] = {
    {"", HTML, ui_page_begin, ui_page_end},
    {"/index.html", HTML, ui_page_begin, ui_page_end},
    {"/style.css", CSS, ui_style_begin, ui_style_end},
    {"/icon.svg", SVG, ui_icon_begin, ui_icon_end},
    {"/app.mjs", SCRIPT, ui_app_begin, ui_app_end},
    {"/dom.mjs", SCRIPT, ui_dom_begin, ui_dom_end},
    {"/api.mjs", SCRIPT, ui_api_begin, ui_api_end},
    {"/follow.mjs", SCRIPT, ui_follow_begin, ui_follow_end},
    {"/objects.mjs", SCRIPT, ui_objects_begin, ui_objects_end},
    {"/rows.mjs", SCRIPT, ui_rows_begin, ui_rows_end},
    {"/detail.mjs", SCRIPT, ui_detail_begin, ui_detail_end},
    {"/screen.mjs", SCRIPT, ui_screen_begin, ui_screen_end},
    {"/exec.mjs", SCRIPT, ui_exec_begin, ui_exec_end},
    {"/terminal.mjs", SCRIPT, ui_terminal_begin, ui_terminal_end},
    {"/yaml.mjs", SCRIPT, ui_yaml_begin, ui_yaml_end},
};

static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     "require-trusted-types-for 'script'; trusted-types 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Embedder-Policy", "require-corp"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-cache"}, /* kept, but asked about: a new server has a new page */
};

/* path: as it came, or with one slash at its end. */
static const struct ui_file *find_file(const char *path)
{
    const char *below = path + strlen("/ui");
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (strcmp(files[i].path, strcmp(below, "/") == 0 ? "" : below) == 0)
            return &files[i];
    return NULL;
}

static void hash_file(const struct ui_file *f, char hash[129])
{
    digest_sha512_hex(f->begin, (size_t)(f->end - f->begin), hash);
}

int ui_serve(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    char hash[129];
    const struct ui_file *f = find_file(req->route.path);
    bool reads = strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;
    (void)p;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        respond_header(resp, headers[i].name, headers[i].value);
    if (!f)
        return err_set(err, ERR_NOT_FOUND, "the page has no file %s", req->route.path);
    if (!reads) {
        respond_header(resp, "Allow", "GET, HEAD");
        return err_set(err, ERR_METHOD_NOT_ALLOWED, "the page is only for GET and HEAD");
    }
    hash_file(f, hash);
    if (respond_etag(req, hash, resp))
        return 0;
    resp->status = 200;
    respond_header(resp, "Content-Type", f->type);
    buf_append(&resp->body, f->begin, (size_t)(f->end - f->begin));
    return 0;
}
