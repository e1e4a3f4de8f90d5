#include "reconcile/peek.h"

#include "apiserver/base/json.h"
#include "apiserver/base/scan.h"

/* The value of that member of the object at s. */
static bool find_member(struct scan *s, const char *name, struct scan_piece *ret)
{
    bool is_first = true, failed = false;
    struct scan_piece key;
    if (!scan_enter(s, '{'))
        return false;
    while (scan_member(s, &is_first, &key, &failed)) {
        if (!scan_value(s, ret))
            return false;
        if (scan_key_is(key, name))
            return true;
    }
    return false;
}

cJSON *object_peek(const struct object *o, const char *outer, const char *inner)
{
    struct scan s = {o->json, o->json + o->json_len};
    struct scan_piece piece;
    if (!find_member(&s, outer, &piece))
        return NULL;
    s = (struct scan){piece.p, piece.p + piece.n};
    cJSON *tree = NULL;
    if (find_member(&s, inner, &piece))
        json_parse(piece.p, piece.n, NULL, &tree, NULL);
    return tree;
}
