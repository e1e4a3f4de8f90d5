/* Source: SPDY protocol draft 3.1, sections 2.2 (framing), 2.6 (control frames), 2.6.8 (window
 * updates). */
#include "node/spdy.h"

#include <assert.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "node/spdy_block.h"

#define VERSION_BITS 0x8003 /* the bit of a control frame, and version 3: 3.1 has the same */
#define HEAD 8

/* What a control frame consists of. */
struct layout {
    const char *name;
    uint8_t numbers;  /* 32 bits each: id, then value */
    uint8_t skipped;  /* bytes: priority and slot */
    bool has_block;   /* a header block fills the rest */
    bool has_entries; /* a count of settings, and those */
};
static const struct layout layouts[SPDY_TYPES] = {
    [SPDY_SYN_STREAM] = {"SYN_STREAM", 2, 2, .has_block = true},
    [SPDY_SYN_REPLY] = {"SYN_REPLY", 1, .has_block = true},
    [SPDY_RST_STREAM] = {"RST_STREAM", 2},
    [SPDY_SETTINGS] = {"SETTINGS", 0, .has_entries = true},
    [SPDY_PING] = {"PING", 1},
    [SPDY_GOAWAY] = {"GOAWAY", 2},
    [SPDY_HEADERS] = {"HEADERS", 1, .has_block = true},
    [SPDY_WINDOW_UPDATE] = {"WINDOW_UPDATE", 2},
};

struct spdy {
    struct spdy_packer *packer;
    struct spdy_unpacker *unpacker;
    struct buf head;     /* of the frame that is read, until it is whole */
    struct buf control;  /* its bytes, when it is a control frame that we know */
    enum spdy_type type; /* of that frame; SPDY_NONE: it is passed over */
    uint8_t flags;       /* ... */
    uint32_t id;         /* ... DATA: its stream */
    size_t left;         /* bytes of it still to come */
    bool is_inside;      /* its head was read */
};

void spdy_frame_fini(struct spdy_frame *f)
{
    pairs_fini(&f->headers);
    *f = (struct spdy_frame){0};
}

struct spdy *spdy_new(void)
{
    struct spdy *s = xcalloc(1, sizeof *s);
    s->packer = spdy_packer_new();
    s->unpacker = spdy_unpacker_new();
    return s;
}

void spdy_free(struct spdy *s)
{
    if (s == NULL)
        return;
    spdy_packer_free(s->packer);
    spdy_unpacker_free(s->unpacker);
    buf_fini(&s->head);
    buf_fini(&s->control);
    free(s);
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct str skip(struct str s, size_t n)
{
    return (struct str){s.p + n, s.n - n};
}

static bool type_is_known(unsigned type)
{
    return type < SPDY_DATA && layouts[type].name != NULL;
}

/* What the first 8 bytes of a frame say. */
static int read_head(struct spdy *s, struct err *err)
{
    uint32_t word = spdy_get_u32(s->head.data), length = spdy_get_u32(s->head.data + 4);
    s->flags = (uint8_t)(length >> 24);
    s->left = length & SPDY_DATA_MAX;
    s->is_inside = true;
    s->type = SPDY_DATA;
    s->id = word;
    buf_clear(&s->head);
    if (word == 0)
        return err_set(err, ERR_BAD_REQUEST, "a DATA frame of stream 0");
    if (word <= SPDY_ID_MAX)
        return 0;
    if (word >> 16 != VERSION_BITS)
        return err_set(err, ERR_BAD_REQUEST, "a frame of version %u", word >> 16 & 0x7fff);
    s->type = type_is_known(word & 0xffff) ? (enum spdy_type)(word & 0xffff) : SPDY_NONE;
    if (s->type != SPDY_NONE && s->left > SPDY_CONTROL_MAX)
        return err_set(err, ERR_TOO_LARGE, "a %s frame of %zu bytes", layouts[s->type].name,
                       s->left);
    return 0;
}

/* Takes what is missing of want bytes in b. */
static size_t gather(struct buf *b, size_t want, struct str from)
{
    size_t n = want < from.n ? want : from.n;
    buf_append(b, from.p, n);
    return n;
}

/* Settings that nobody knows are passed over; of two with one id the first counts. */
static bool read_settings(struct str entries, struct spdy_frame *ret)
{
    if (entries.n < 4 || (entries.n - 4) % 8 != 0 || spdy_get_u32(entries.p) != (entries.n - 4) / 8)
        return false;
    for (entries = skip(entries, 4); entries.n > 0; entries = skip(entries, 8)) {
        uint32_t id = spdy_get_u32(entries.p) & 0xffffff;
        if (id == 0 || id > SPDY_SETTING_LAST || ret->has_setting & 1u << id)
            continue;
        ret->has_setting |= 1u << id;
        ret->settings[id] = spdy_get_u32(entries.p + 4);
    }
    return true;
}

/* A block that was unpacked but does not follow the rules is the fault of its stream alone. */
static int read_block(struct spdy *s, struct str block, struct spdy_frame *ret, struct err *err)
{
    bool is_good;
    int r = spdy_unpack(s->unpacker, block, &ret->headers, &is_good, err);
    if (r == 0 && !is_good)
        ret->fault = SPDY_RST_PROTOCOL_ERROR;
    return r;
}

static int read_control(struct spdy *s, struct spdy_frame *ret, struct err *err)
{
    const struct layout *l = &layouts[s->type];
    struct str rest = buf_str(&s->control);
    size_t fixed = (size_t)l->numbers * 4 + l->skipped;
    bool is_sized = l->has_block || l->has_entries ? rest.n >= fixed : rest.n == fixed;
    if (!is_sized)
        return err_set(err, ERR_BAD_REQUEST, "a %s frame of %zu bytes", l->name, rest.n);
    struct spdy_frame f = {.type = s->type, .flags = s->flags};
    if (l->numbers > 0)
        f.id = spdy_get_u32(rest.p);
    if (l->numbers > 1)
        f.value = spdy_get_u32(rest.p + 4);
    if (s->type != SPDY_PING)
        f.id &= SPDY_ID_MAX;
    if (s->type == SPDY_WINDOW_UPDATE || s->type == SPDY_SYN_STREAM)
        f.value &= SPDY_ID_MAX;
    if (f.id == 0 && (l->has_block || s->type == SPDY_RST_STREAM))
        return err_set(err, ERR_BAD_REQUEST, "a %s frame of stream 0", l->name);
    if (l->has_entries && !read_settings(rest, &f))
        return err_set(err, ERR_BAD_REQUEST, "a SETTINGS frame that does not hold what it says");
    int r = l->has_block ? read_block(s, skip(rest, fixed), &f, err) : 0;
    if (r == 0)
        *ret = f;
    return r;
}

/* A piece of a DATA frame; its end is the frame's. */
static void read_data(struct spdy *s, struct str piece, struct spdy_frame *ret)
{
    uint8_t flags = s->left == 0 ? s->flags & SPDY_FLAG_FIN : 0;
    *ret = (struct spdy_frame){.type = SPDY_DATA, .flags = flags, .id = s->id, .data = piece};
}

/* Takes bytes of the frame whose head was read. */
static int read_inside(struct spdy *s, struct str in, size_t *ret_used, struct spdy_frame *ret,
                       struct err *err)
{
    size_t n = in.n < s->left ? in.n : s->left;
    bool is_control = s->type != SPDY_DATA && s->type != SPDY_NONE;
    if (is_control)
        gather(&s->control, n, in);
    s->left -= n;
    *ret_used = n;
    s->is_inside = s->left > 0;
    if (s->type == SPDY_DATA && (n > 0 || s->left == 0))
        read_data(s, (struct str){in.p, n}, ret);
    if (!is_control || s->left > 0)
        return 0;
    int r = read_control(s, ret, err);
    buf_clear(&s->control);
    return r;
}

int spdy_read(struct spdy *s, const char *p, size_t n, size_t *ret_used, struct spdy_frame *ret,
              struct err *err)
{
    int r = 0;
    *ret_used = 0;
    while (r == 0 && ret->type == SPDY_NONE && (*ret_used < n || (s->is_inside && s->left == 0))) {
        struct str in = {p + *ret_used, n - *ret_used};
        size_t used = 0;
        if (s->is_inside) {
            r = read_inside(s, in, &used, ret, err);
        } else {
            used = gather(&s->head, HEAD - s->head.len, in);
            if (s->head.len == HEAD)
                r = read_head(s, err);
        }
        *ret_used += used;
    }
    return r;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_head(struct buf *out, uint32_t word, uint8_t flags, size_t length)
{
    assert(length <= SPDY_DATA_MAX);
    spdy_put_u32(out, word);
    spdy_put_u32(out, (uint32_t)flags << 24 | (uint32_t)length);
}

static void put_settings(struct buf *b, const struct spdy_frame *f)
{
    spdy_put_u32(b, (uint32_t)__builtin_popcount(f->has_setting));
    for (uint32_t id = 1; id <= SPDY_SETTING_LAST; id++)
        if (f->has_setting & 1u << id) {
            spdy_put_u32(b, id);
            spdy_put_u32(b, f->settings[id]);
        }
}

void spdy_write(struct spdy *s, const struct spdy_frame *f, struct buf *out)
{
    if (f->type == SPDY_DATA) {
        put_head(out, f->id, f->flags, f->data.n);
        buf_append(out, f->data.p, f->data.n);
        return;
    }
    assert(type_is_known(f->type));
    const struct layout *l = &layouts[f->type];
    SCOPED(buf_fini) struct buf body = {0};
    if (l->numbers > 0)
        spdy_put_u32(&body, f->id);
    if (l->numbers > 1)
        spdy_put_u32(&body, f->value);
    buf_append(&body, "\0\0", l->skipped);
    if (l->has_entries)
        put_settings(&body, f);
    if (l->has_block)
        spdy_pack(s->packer, &f->headers, &body);
    put_head(out, (uint32_t)VERSION_BITS << 16 | f->type, f->flags, body.len);
    buf_append(out, body.data, body.len);
}
