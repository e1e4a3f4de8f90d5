/* One reader for all of it; groups, which nobody writes any more, are stepped over without
 * recursion. */
#include "apiserver/base/pb.h"

static int cut_off(struct err *err)
{
    return err_set(err, ERR_BAD_REQUEST, "unexpected EOF");
}

/* Bits beyond the 64th are dropped. */
int pb_varint(struct str *rest, uint64_t *ret, struct err *err)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (!rest->n)
            return cut_off(err);
        unsigned char c = (unsigned char)*rest->p;
        *rest = (struct str){rest->p + 1, rest->n - 1};
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            *ret = v;
            return 0;
        }
    }
    return err_set(err, ERR_BAD_REQUEST, "proto: integer overflow");
}

static int take(struct str *rest, uint64_t n, struct str *ret, struct err *err)
{
    if (n > INT64_MAX)
        return err_set(err, ERR_BAD_REQUEST, "proto: negative length found during unmarshaling");
    if (n > rest->n)
        return cut_off(err);
    *ret = (struct str){rest->p, (size_t)n};
    *rest = (struct str){rest->p + n, rest->n - (size_t)n};
    return 0;
}

static int read_tag(struct str *rest, struct pb_field *f, struct err *err)
{
    int r = pb_varint(rest, &f->tag, err);
    if (r < 0)
        return r;
    f->number = (int32_t)(uint32_t)(f->tag >> 3);
    f->type = (enum pb_type)(f->tag & 7);
    return 0;
}

static int read_value(struct str *rest, struct pb_field *f, struct err *err)
{
    struct str skipped;
    switch (f->type) {
    case PB_VARINT:
        return pb_varint(rest, &f->value, err);
    case PB_FIXED64:
        return take(rest, 8, &skipped, err);
    case PB_FIXED32:
        return take(rest, 4, &skipped, err);
    case PB_BYTES: {
        int r = pb_varint(rest, &f->value, err);
        return r < 0 ? r : take(rest, f->value, &f->bytes, err);
    }
    case PB_GROUP:
    case PB_GROUP_END:
        return 0;
    }
    return err_set(err, ERR_BAD_REQUEST, "proto: illegal wireType %d", (int)f->type);
}

static int read_field(struct str *rest, struct pb_field *f, struct err *err)
{
    int r = read_tag(rest, f, err);
    return r < 0 ? r : read_value(rest, f, err);
}

static int skip_group(struct str *rest, struct err *err)
{
    for (size_t depth = 1; depth > 0;) {
        struct pb_field f;
        int r = read_field(rest, &f, err);
        if (r < 0)
            return r;
        depth += f.type == PB_GROUP;
        depth -= f.type == PB_GROUP_END;
    }
    return 0;
}

int pb_next(struct str *rest, struct pb_field *ret, struct err *err)
{
    struct pb_field f = {0};
    if (!rest->n)
        return 0;
    int r = read_field(rest, &f, err);
    if (r == 0 && f.type == PB_GROUP)
        r = skip_group(rest, err);
    if (r < 0)
        return r;
    *ret = f;
    return 1;
}
