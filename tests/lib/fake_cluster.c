#include "tests/lib/fake_cluster.h"

#include <check.h>
#include <stdio.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "reconcile/child.h"
#include "reconcile/child_cache.h"

static struct fake_cluster *fake(struct cluster *c)
{
    return (struct fake_cluster *)c;
}

static char *object_key(enum child child, const char *ns, const char *name)
{
    return xasprintf("%s/%s/%s", child_kind_of(child)->plural, ns, name);
}

static bool fails(struct cluster *c, struct err *err)
{
    struct fake_cluster *f = fake(c);
    if (++f->calls != f->fail_at)
        return false;
    err_set(err, f->fail_code, "made to fail");
    return true;
}

static int fake_get(struct cluster *c, enum child child, const char *ns, const char *name,
                    bool live, cJSON **ret, struct err *err)
{
    (void)live;
    if (fails(c, err))
        return -(int)fake(c)->fail_code;
    SCOPED_FREE char *key = object_key(child, ns, name);
    *ret = json_copy(omap_get(fake(c)->objects, key));
    return 0;
}

struct collected {
    cJSON *list;
    const char *plural, *hash;
};

static bool collect(void *ctx, const char *key, void *value)
{
    struct collected *to = ctx;
    if (str_has_prefix(key, to->plural) &&
        str_equal(meta_label(value, "agents.x-k8s.io/sandbox-name-hash"), to->hash))
        json_push(to->list, json_copy(value));
    return true;
}

static cJSON *fake_list(struct cluster *c, enum child child, const char *ns, const char *hash)
{
    (void)ns;
    struct collected to = {
        .list = json_array(), .plural = child_kind_of(child)->plural, .hash = hash};
    omap_each(fake(c)->objects, NULL, collect, &to);
    return to.list;
}

void fake_cluster_put(struct fake_cluster *f, enum child child, const char *ns, cJSON *take_object)
{
    SCOPED_FREE char *key = object_key(child, ns, meta_name(take_object));
    json_free(omap_put(f->objects, key, take_object));
}

static int fake_create(struct cluster *c, enum child child, const char *ns, const cJSON *body,
                       cJSON **ret, struct err *err)
{
    struct fake_cluster *f = fake(c);
    if (fails(c, err))
        return -(int)f->fail_code;
    f->creates++;
    if (f->before_create)
        f->before_create(child);
    if (child == CHILD_POD && f->refuse_pods)
        return err_set(err, f->refuse_code ? f->refuse_code : ERR_INVALID, "%s", f->refuse_pods);
    SCOPED_FREE char *key = object_key(child, ns, meta_name(body));
    if (omap_get(f->objects, key))
        return err_set(err, ERR_ALREADY_EXISTS, "%s already exists", key);
    cJSON *object = json_copy(body);
    SCOPED_FREE char *uid = xasprintf("uid-%d", f->creates);
    json_set_str(json_get(object, "metadata"), "uid", uid);
    if (child == CHILD_POD)
        json_set_str(json_ensure_object(object, "status"), "phase", "Pending");
    *ret = json_copy(object);
    fake_cluster_put(f, child, ns, object);
    return 0;
}

static void merge(cJSON *into, const cJSON *patch)
{
    const cJSON *p;
    cJSON_ArrayForEach(p, patch)
    {
        if (cJSON_IsNull(p))
            json_remove(into, p->string);
        else if (cJSON_IsObject(p))
            merge(json_ensure_object(into, p->string), p);
        else
            json_set(into, p->string, json_copy(p));
    }
}

static int fake_patch(struct cluster *c, enum child child, const char *ns, const char *name,
                      const cJSON *patch, cJSON **ret, struct err *err)
{
    struct fake_cluster *f = fake(c);
    if (fails(c, err))
        return -(int)f->fail_code;
    f->patches++;
    SCOPED_FREE char *key = object_key(child, ns, name);
    cJSON *object = omap_get(f->objects, key);
    ck_assert_ptr_nonnull(object);
    merge(object, patch);
    *ret = json_copy(object);
    return 0;
}

static int fake_update(struct cluster *c, enum child child, const char *ns, const char *name,
                       const cJSON *body, cJSON **ret, struct err *err)
{
    (void)name;
    if (fails(c, err))
        return -(int)fake(c)->fail_code;
    fake(c)->updates++;
    fake_cluster_put(fake(c), child, ns, json_copy(body));
    *ret = json_copy(body);
    return 0;
}

static int fake_del(struct cluster *c, enum child child, const char *ns, const char *name,
                    const char *uid, struct err *err)
{
    struct fake_cluster *f = fake(c);
    if (fails(c, err))
        return -(int)f->fail_code;
    f->deletes++;
    SCOPED_FREE char *key = object_key(child, ns, name);
    cJSON *object = omap_get(f->objects, key);
    if (!object)
        return err_set(err, ERR_NOT_FOUND, "%s not found", key);
    ck_assert_str_eq(meta_uid(object), uid);
    if (child == CHILD_POD && f->hold_deleted)
        json_set_str(json_get(object, "metadata"), "deletionTimestamp", "2026-01-01T00:00:00Z");
    else
        json_free(omap_del(f->objects, key));
    return 0;
}

static void fake_emit(struct cluster *c, const char *ns, cJSON *take_event)
{
    (void)ns;
    fake(c)->events++;
    const char *reason = json_str_or(take_event, "reason", "");
    memcpy(fake(c)->last_event, reason, strlen(reason) + 1);
    snprintf(fake(c)->last_note, sizeof fake(c)->last_note, "%s",
             json_str_or(take_event, "note", ""));
    json_free(take_event);
}

static const struct cluster_vtable fake_vtable = {
    .get = fake_get,
    .list = fake_list,
    .create = fake_create,
    .patch = fake_patch,
    .update = fake_update,
    .del = fake_del,
    .emit = fake_emit,
};

void fake_cluster_init(struct fake_cluster *f)
{
    *f = (struct fake_cluster){.base.v = &fake_vtable, .objects = omap_new()};
}

static bool free_object(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    json_free(value);
    return true;
}

void fake_cluster_fini(struct fake_cluster *f)
{
    omap_each(f->objects, NULL, free_object, NULL);
    omap_free(f->objects);
}

cJSON *fake_cluster_find(struct fake_cluster *f, enum child child, const char *ns, const char *name)
{
    SCOPED_FREE char *key = object_key(child, ns, name);
    return omap_get(f->objects, key);
}

void fake_cluster_remove(struct fake_cluster *f, enum child child, const char *ns, const char *name)
{
    SCOPED_FREE char *key = object_key(child, ns, name);
    json_free(omap_del(f->objects, key));
}
