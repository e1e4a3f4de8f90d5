/* GET and LIST. Both are answered from the cache: references are taken under the table's lock,
 * nothing is parsed. Only a list at an old revision, of a kind that has changed since, is read from
 * the store. */
#include <assert.h>
#include <inttypes.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/cache.h"
#include "apiserver/registry/continue.h"

#define STORE_PAGE_KEYS 500

static const char too_old_continue[] =
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder "
    "of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were "
    "created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list.";
static const char too_old_version[] = "The resourceVersion for the provided list is too old.";

/* ---- get ---- */

int current_cached(struct registry *r, struct table *t, const char *namespace_name,
                   const char *name, struct object **ret)
{
    SCOPED_FREE char *item = key_of_item(namespace_name, name);
    (void)r;
    pthread_rwlock_rdlock(&t->lock);
    struct object *o = omap_get(t->objects, item);
    bool is_unreadable = !o && omap_get(t->unreadable, item);
    if (o)
        *ret = object_ref(o);
    pthread_rwlock_unlock(&t->lock);
    return o ? 0 : is_unreadable ? -ERR_INTERNAL : -ERR_NOT_FOUND;
}

int registry_get(struct registry *r, const struct kind *kind, const char *namespace_name,
                 const char *name, struct read_version version, int64_t deadline_ms,
                 struct object **ret, struct err *err)
{
    int rc = registry_reach(r, kind, "get", version, deadline_ms, err);
    if (rc < 0)
        return rc;
    rc = current_cached(r, registry_table(r, kind), namespace_name, name, ret);
    if (rc == -ERR_INTERNAL)
        return refuse_unreadable(kind, name, err);
    return rc == 0 ? 0 : refuse_not_found(kind, name, err);
}

/* ---- list ---- */

/* One list on its way. */
struct lister {
    const struct list_request *req;
    struct table *table;
    char *prefix;  /* NAMESPACE/ or "" */
    char *from;    /* first item that may come */
    int64_t limit; /* INT64_MAX = none */
    struct list_result result;
    size_t cap;
    bool has_more, is_unreadable;
    int64_t n_after; /* items behind the page, when there is no selector */
};

static void list_add(struct lister *l, struct object *take_o)
{
    struct list_result *res = &l->result;
    if (res->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        res->objects = xreallocarray(res->objects, l->cap, sizeof *res->objects);
    }
    res->objects[res->n++] = take_o;
}

static bool is_full(const struct lister *l)
{
    return (int64_t)l->result.n >= l->limit;
}

static bool in_prefix(const struct lister *l, const char *item)
{
    return str_has_prefix(item, l->prefix);
}

static bool list_step(void *ctx, const char *item, void *value)
{
    struct lister *l = ctx;
    if (!in_prefix(l, item))
        return false;
    if (!selector_matches(l->req->selector, value))
        return true;
    if (!is_full(l)) {
        list_add(l, object_ref(value));
        return true;
    }
    l->has_more = true;
    l->n_after++;
    return selector_is_empty(l->req->selector); /* then go on counting */
}

static bool note_unreadable(void *ctx, const char *item, void *value)
{
    struct lister *l = ctx;
    (void)value;
    l->is_unreadable = in_prefix(l, item);
    return false; /* the first one behind from decides */
}

/* From the cache as it is now; rev > 0: only if the table is as it was then, else false. */
static bool list_cached(struct lister *l, int64_t rev)
{
    struct table *t = l->table;
    pthread_rwlock_rdlock(&t->lock);
    bool is_same = rev <= 0 || t->last_change <= rev;
    if (is_same) {
        l->result.rev = rev > 0 ? rev : table_rev(t);
        omap_each(t->objects, l->from, list_step, l);
        omap_each(t->unreadable, l->from, note_unreadable, l);
    }
    pthread_rwlock_unlock(&t->lock);
    return is_same;
}

/* One page of the store's; sets *from behind it, and has_more when keys are left. */
static int list_store_page(struct lister *l, int64_t rev, char **from, const char *end,
                           int64_t deadline_ms, struct err *err)
{
    struct table *t = l->table;
    SCOPED(store_page_fini) struct store_page page = {0};
    int rc = store_range(t->registry->store, *from, end, STORE_PAGE_KEYS, rev, false, deadline_ms,
                         &page, err);
    if (rc < 0)
        return rc;
    size_t i = 0;
    for (; i < page.n && !is_full(l); i++) {
        struct store_kv *kv = &page.kvs[i];
        struct object *o = NULL;
        if ((rc = alias_object(t->kind, kv, &o, err)) < 0)
            return rc;
        if (selector_matches(l->req->selector, o))
            list_add(l, o);
        else
            object_unref(o);
    }
    l->has_more = i < page.n || page.more;
    l->n_after = page.count - (int64_t)i;
    if (i > 0) {
        free(*from);
        *from = xasprintf("%s\001", page.kvs[i - 1].key);
    }
    return 0;
}

static int list_stored(struct lister *l, int64_t rev, int64_t deadline_ms, struct err *err)
{
    const char *table_prefix = l->table->prefix;
    SCOPED_FREE char *whole = xasprintf("%s%s", table_prefix, l->prefix);
    SCOPED_FREE char *end = store_prefix_end(whole);
    SCOPED_FREE char *from = xasprintf("%s%s", table_prefix, l->from);
    do {
        int rc = list_store_page(l, rev, &from, end, deadline_ms, err);
        if (rc < 0)
            return rc;
    } while (l->has_more && !is_full(l));
    l->result.rev = rev;
    if (l->has_more)
        l->result.continue_token = continue_print(rev, from + strlen(whole));
    return 0;
}

static void list_finish(struct lister *l)
{
    struct list_result *res = &l->result;
    res->remaining = l->has_more && selector_is_empty(l->req->selector) ? l->n_after : -1;
    if (!l->has_more || res->continue_token)
        return;
    assert(res->n > 0); /* a page is full before there is more */
    const struct object *last = res->objects[res->n - 1];
    SCOPED_FREE char *item = key_of_item(last->namespace_name, last->name);
    SCOPED_FREE char *start = xasprintf("%s\001", item + strlen(l->prefix));
    res->continue_token = continue_print(res->rev, start);
}

static void lister_fini(struct lister *l)
{
    free(l->prefix);
    free(l->from);
    list_result_fini(&l->result);
}

/* At exactly that revision. */
static int list_at(struct lister *l, int64_t rev, int64_t deadline_ms, struct err *err)
{
    if (list_cached(l, rev))
        return 0;
    SCOPED(err_fini) struct err e = {0};
    if (list_stored(l, rev, deadline_ms, &e) == 0)
        return 0;
    if (e.code != ERR_EXPIRED)
        return refuse_store(l->table->kind, "list", &e, err);
    if (!l->req->continue_token || !l->req->continue_token[0])
        return err_set(err, ERR_EXPIRED, "%s", too_old_version);
    err_set(err, ERR_EXPIRED, "%s", too_old_continue);
    if (err)
        err->continue_token = continue_print(-1, l->from + strlen(l->prefix));
    return -ERR_EXPIRED;
}

/* Which revision the list is at: 0 = the newest that the cache has. Waits until the cache is as
 * far. */
static int list_version(struct registry *r, struct lister *l, int64_t token_rev,
                        int64_t deadline_ms, int64_t *ret, struct err *err)
{
    struct read_version version = l->req->version;
    if (token_rev > 0)
        version = (struct read_version){READ_EXACT, token_rev};
    else if (token_rev < 0)
        version = (struct read_version){READ_LATEST, 0};
    *ret = version.match == READ_EXACT ? version.rev : 0;
    return registry_reach(r, l->req->kind, "list", version, deadline_ms, err);
}

/* Where the list begins: a token's start, which counts from the namespace asked for. */
static int list_start(struct lister *l, int64_t *ret_token_rev, struct err *err)
{
    const struct list_request *req = l->req;
    bool is_namespaced = req->namespace_name && req->namespace_name[0];
    l->prefix = is_namespaced ? xasprintf("%s/", req->namespace_name) : xstrdup("");
    *ret_token_rev = 0;
    SCOPED(continue_point_fini) struct continue_point point = {0};
    if (req->continue_token && req->continue_token[0]) {
        int rc = continue_parse(req->continue_token, &point, err);
        if (rc < 0)
            return rc;
        *ret_token_rev = point.rev;
    }
    l->from = xasprintf("%s%s", l->prefix, point.start ? point.start : "");
    return 0;
}

int registry_list(struct registry *r, const struct list_request *req, struct list_result *ret,
                  struct err *err)
{
    SCOPED(lister_fini)
    struct lister l = {.req = req,
                       .table = registry_table(r, req->kind),
                       .limit = req->limit > 0 ? req->limit : INT64_MAX};
    int64_t deadline_ms = req->deadline_ms, token_rev, rev;
    deadline_default(&deadline_ms);
    int rc = list_start(&l, &token_rev, err);
    if (rc < 0 || (rc = list_version(r, &l, token_rev, deadline_ms, &rev, err)) < 0)
        return rc;
    if (rev > 0)
        rc = list_at(&l, rev, deadline_ms, err);
    else
        list_cached(&l, 0);
    if (rc < 0)
        return rc;
    if (l.is_unreadable)
        return refuse_unreadable(req->kind, l.prefix, err);
    list_finish(&l);
    *ret = steal(&l.result);
    return 0;
}

void list_result_fini(struct list_result *l)
{
    for (size_t i = 0; i < l->n; i++)
        object_unref(l->objects[i]);
    free(l->objects);
    free(l->continue_token);
    *l = (struct list_result){0};
}
