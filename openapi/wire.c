/* Decoding goes along the bytes, then once over the tree: what Go's JSON leaves out goes, what it
 * always has comes. A message that is there twice is merged, a value replaced, as Go does. */
#include "openapi/wire.h"

#include <stdlib.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/pb.h"
#include "openapi/pattern.h"

const struct wire_message *wire_find(const char *api_version, const char *kind)
{
    for (const struct wire_root *r = wire_roots; r->kind; r++)
        if (strcmp(r->kind, kind) == 0 &&
            (!api_version || strcmp(r->api_version, api_version) == 0))
            return r->message;
    return NULL;
}

/* ---- fields ------------------------------------------------------------------------------- */

/* What every message refuses. 1, or 0 at the end. */
static int next_field(const char *message, struct str *rest, struct pb_field *ret, struct err *err)
{
    int r = pb_next(rest, ret, err);
    if (r <= 0)
        return r;
    if (ret->type == PB_GROUP_END)
        return err_set(err, ERR_BAD_REQUEST, "proto: %s: wiretype end group for non-group",
                       message);
    if (ret->number <= 0)
        return err_set(err, ERR_BAD_REQUEST, "proto: %s: illegal tag %d (wire type %llu)", message,
                       ret->number, (unsigned long long)ret->tag);
    return 1;
}

static int expect(const struct pb_field *f, enum pb_type type, const char *name, struct err *err)
{
    if (f->type == type)
        return 0;
    return err_set(err, ERR_BAD_REQUEST, "proto: wrong wireType = %d for field %s", (int)f->type,
                   name);
}

/* A message of a few members that is no object in JSON, or an envelope: the last value of each. */
#define SMALL_MAX 3
struct small_shape {
    const char *name;
    struct {
        const char *name;
        enum pb_type type;
    } members[SMALL_MAX];
};
struct small {
    uint64_t number[SMALL_MAX];
    struct str bytes[SMALL_MAX];
};

static int read_small(const struct small_shape *shape, struct str rest, struct small *ret,
                      struct err *err)
{
    struct pb_field f;
    int r;
    while ((r = next_field(shape->name, &rest, &f, err)) > 0) {
        size_t i = (size_t)f.number - 1;
        if (i >= SMALL_MAX || !shape->members[i].name)
            continue;
        if ((r = expect(&f, shape->members[i].type, shape->members[i].name, err)) < 0)
            return r;
        ret->number[i] = f.value;
        ret->bytes[i] = f.bytes;
    }
    return r;
}

/* ---- the envelope --------------------------------------------------------------------------- */

static const char magic[] = {'k', '8', 's', 0};

int wire_open(struct str bytes, struct wire_envelope *ret, struct err *err)
{
    static const struct small_shape unknown = {"Unknown",
                                               {{"TypeMeta", PB_BYTES}, {"Raw", PB_BYTES}}},
                                    type_meta = {"TypeMeta",
                                                 {{"APIVersion", PB_BYTES}, {"Kind", PB_BYTES}}};
    struct small outer = {0}, type = {0};
    if (!bytes.n)
        return err_set(err, ERR_BAD_REQUEST, "empty data");
    if (bytes.n < sizeof magic || memcmp(bytes.p, magic, sizeof magic) != 0)
        return err_set(err, ERR_BAD_REQUEST,
                       "provided data does not appear to be a protobuf message, expected prefix "
                       "[107 56 115 0]");
    if (bytes.n == sizeof magic)
        return err_set(err, ERR_BAD_REQUEST, "empty body");
    struct str rest = {bytes.p + sizeof magic, bytes.n - sizeof magic};
    int r = read_small(&unknown, rest, &outer, err);
    if (r == 0)
        r = read_small(&type_meta, outer.bytes[0], &type, err);
    if (r < 0)
        return r;
    *ret = (struct wire_envelope){type.bytes[0], type.bytes[1], outer.bytes[1]};
    return 0;
}

/* ---- values --------------------------------------------------------------------------------- */

struct decoder {
    size_t left; /* values that may still be made */
    struct err *err;
};

static int count(struct decoder *d)
{
    if (d->left == 0)
        return err_set(d->err, ERR_TOO_LARGE, "the object has more than %d values", WIRE_NODES_MAX);
    d->left--;
    return 0;
}

/* As text in a tree: broken UTF-8 becomes U+FFFD. */
static char *text_of(struct str s)
{
    struct buf clean = {.max = 3 * s.n + 1};
    while (s.n) {
        uint32_t rune;
        size_t n = str_utf8_decode(s.p, s.n, &rune);
        bool is_broken = n == 0 || (n == 2 && rune == 0); /* STR_NUL is ours */
        if (is_broken)
            n = 1;
        buf_append(&clean, is_broken ? "\xef\xbf\xbd" : s.p, is_broken ? 3 : n);
        s = (struct str){s.p + n, s.n - n};
    }
    size_t len;
    SCOPED_FREE char *text = buf_take(&clean, &len);
    return str_hold(text, len);
}

static cJSON *string_of(struct str s)
{
    SCOPED_FREE char *text = text_of(s);
    return json_string(text);
}

static cJSON *base64_of(struct str s)
{
    SCOPED(buf_fini) struct buf text = {.max = 2 * s.n + 8};
    buf_base64(&text, s.p, s.n);
    return json_string(buf_cstr(&text));
}

#define SECONDS_OF_DAY 86400
/* Years 0 to 9999, which RFC 3339 can say. */
#define TIME_MIN ((int64_t)-719528 * SECONDS_OF_DAY)
#define TIME_MAX ((int64_t)2932897 * SECONDS_OF_DAY)
#define TIME_ZERO ((int64_t)-719162 * SECONDS_OF_DAY) /* year 1: no time at all, for Go */

static int time_of(struct str bytes, bool is_micro, cJSON **ret, struct err *err)
{
    static const struct small_shape timestamp = {"Timestamp",
                                                 {{"Seconds", PB_VARINT}, {"Nanos", PB_VARINT}}};
    struct small t = {0};
    char text[CLOCK_TEXT_SIZE];
    int r = read_small(&timestamp, bytes, &t, err);
    int64_t seconds = (int64_t)t.number[0],
            us = is_micro ? (int32_t)(uint32_t)t.number[1] / 1000 : 0;
    if (r < 0 || !bytes.n)
        return r;
    if (seconds < TIME_MIN || seconds >= TIME_MAX || us < 0 || us >= 1000000)
        return err_set(err, ERR_BAD_REQUEST, "Time.MarshalJSON: year outside of range [0,9999]");
    if (seconds == TIME_ZERO && us == 0)
        return 0;
    if (is_micro)
        clock_print_rfc3339_micro(seconds * 1000000 + us, text);
    else
        clock_print_rfc3339(seconds, text);
    *ret = json_string(text);
    return 0;
}

static int quantity_of(struct str bytes, cJSON **ret, struct err *err)
{
    static const struct small_shape quantity = {"Quantity", {{"String_", PB_BYTES}}};
    struct small q = {0};
    int r = read_small(&quantity, bytes, &q, err);
    if (r < 0)
        return r;
    SCOPED_FREE char *text = q.bytes[0].p ? text_of(q.bytes[0]) : xstrdup("0");
    if (!pattern_matches(PATTERN_QUANTITY, text))
        return err_set(err, ERR_BAD_REQUEST,
                       "quantities must match the regular expression "
                       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    *ret = json_string(text);
    return 0;
}

static int int_or_string_of(struct str bytes, cJSON **ret, struct err *err)
{
    static const struct small_shape int_or_string = {
        "IntOrString", {{"Type", PB_VARINT}, {"IntVal", PB_VARINT}, {"StrVal", PB_BYTES}}};
    struct small v = {0};
    int r = read_small(&int_or_string, bytes, &v, err);
    if (r < 0)
        return r;
    if (v.number[0] > 1)
        return err_set(err, ERR_BAD_REQUEST, "impossible IntOrString.Type");
    *ret = v.number[0] ? string_of(v.bytes[2]) : json_int((int32_t)(uint32_t)v.number[1]);
    return 0;
}

static int raw_of(struct decoder *d, struct str bytes, cJSON **ret)
{
    static const struct small_shape raw = {"RawExtension", {{"Raw", PB_BYTES}}};
    const struct json_opts opts = {.flags = JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE,
                                   .max_nodes = (unsigned)d->left + 1};
    struct small v = {0};
    int r = read_small(&raw, bytes, &v, d->err);
    if (r < 0 || !v.bytes[0].n)
        return r;
    r = json_parse(v.bytes[0].p, v.bytes[0].n, &opts, ret, d->err);
    d->left -= d->left < v.bytes[0].n / 2 ? d->left : v.bytes[0].n / 2; /* at most so many values */
    return r;
}

static int strings_of(struct decoder *d, struct str rest, cJSON **ret)
{
    SCOPED(json_free_p) cJSON *list = json_array();
    struct pb_field f;
    int r;
    while ((r = next_field("Strings", &rest, &f, d->err)) > 0) {
        if (f.number != 1)
            continue;
        if (expect(&f, PB_BYTES, "Items", d->err) < 0 || count(d) < 0)
            return -(int)d->err->code;
        json_push(list, string_of(f.bytes));
    }
    if (r == 0)
        *ret = steal(&list);
    return r;
}

static bool is_number(enum wire_type type)
{
    return type == WIRE_BOOL || type == WIRE_INT32 || type == WIRE_INT64;
}

static cJSON *number_of(enum wire_type type, uint64_t v)
{
    if (type == WIRE_BOOL)
        return json_boolean(v != 0);
    return json_int(type == WIRE_INT32 ? (int32_t)(uint32_t)v : (int64_t)v);
}

static int decode_fields(struct decoder *d, const struct wire_message *m, struct str rest,
                         cJSON *object);

static int message_of(struct decoder *d, const struct wire_message *m, struct str bytes,
                      cJSON **ret)
{
    SCOPED(json_free_p) cJSON *object = json_object();
    int r = decode_fields(d, m, bytes, object);
    if (r == 0)
        *ret = steal(&object);
    return r;
}

static int decode_bytes(struct decoder *d, const struct wire_field *row, struct str bytes,
                        cJSON **ret)
{
    switch (row->type) {
    case WIRE_STRING:
        *ret = string_of(bytes);
        return 0;
    case WIRE_BYTES:
        *ret = base64_of(bytes);
        return 0;
    case WIRE_MESSAGE:
        return message_of(d, row->of, bytes, ret);
    case WIRE_TIME:
    case WIRE_MICRO_TIME:
        return time_of(bytes, row->type == WIRE_MICRO_TIME, ret, d->err);
    case WIRE_QUANTITY:
        return quantity_of(bytes, ret, d->err);
    case WIRE_INT_OR_STRING:
        return int_or_string_of(bytes, ret, d->err);
    case WIRE_RAW:
        return raw_of(d, bytes, ret);
    case WIRE_STRINGS:
        return strings_of(d, bytes, ret);
    case WIRE_BOOL:
    case WIRE_INT32:
    case WIRE_INT64:
        break;
    }
    return 0;
}

/* *ret stays NULL for what JSON would have as null. */
static int decode_value(struct decoder *d, const struct wire_field *row, const struct pb_field *f,
                        cJSON **ret)
{
    bool is_plain = is_number(row->type);
    if (expect(f, is_plain ? PB_VARINT : PB_BYTES, row->name, d->err) < 0 || count(d) < 0)
        return -(int)d->err->code;
    if (!is_plain)
        return decode_bytes(d, row, f->bytes, ret);
    *ret = number_of(row->type, f->value);
    return 0;
}

/* What the value is when it is not written. */
static cJSON *zero_of(enum wire_type type)
{
    switch (type) {
    case WIRE_BOOL:
        return json_boolean(false);
    case WIRE_INT32:
    case WIRE_INT64:
    case WIRE_INT_OR_STRING:
        return json_int(0);
    case WIRE_QUANTITY:
        return json_string("0");
    case WIRE_MESSAGE:
        return json_object();
    case WIRE_STRINGS:
        return json_array();
    case WIRE_TIME:
    case WIRE_MICRO_TIME:
    case WIRE_RAW:
        return NULL;
    case WIRE_STRING:
    case WIRE_BYTES:
        break;
    }
    return json_string("");
}

/* ---- members -------------------------------------------------------------------------------- */

static cJSON *ensure(cJSON *object, const char *name, cJSON *(*make)(void))
{
    cJSON *node = json_get(object, name);
    if (!node)
        json_add(object, name, node = make());
    return node;
}

static int decode_packed(struct decoder *d, const struct wire_field *row, struct str rest,
                         cJSON *list)
{
    while (rest.n) {
        uint64_t v;
        if (pb_varint(&rest, &v, d->err) < 0 || count(d) < 0)
            return -(int)d->err->code;
        json_push(list, number_of(row->type, v));
    }
    return 0;
}

static int decode_item(struct decoder *d, const struct wire_field *row, const struct pb_field *f,
                       cJSON *object)
{
    cJSON *list = ensure(object, row->name, json_array), *item = NULL;
    if (is_number(row->type) && f->type == PB_BYTES)
        return decode_packed(d, row, f->bytes, list);
    int r = decode_value(d, row, f, &item);
    if (item)
        json_push(list, item);
    return r;
}

/* A message of two: key and value. */
static int decode_entry(struct decoder *d, const struct wire_field *row, struct str rest,
                        cJSON *map)
{
    SCOPED_FREE char *key = xstrdup("");
    SCOPED(json_free_p) cJSON *value = zero_of(row->type);
    struct pb_field f;
    int r;
    while ((r = next_field(row->name, &rest, &f, d->err)) > 0) {
        if (f.number == 1) {
            if ((r = expect(&f, PB_BYTES, row->name, d->err)) < 0)
                return r;
            free(key);
            key = text_of(f.bytes);
        } else if (f.number == 2) {
            json_free(steal(&value));
            if ((r = decode_value(d, row, &f, &value)) < 0)
                return r;
        }
    }
    if (r < 0 || (r = count(d)) < 0)
        return r;
    if (value)
        json_add(map, key, steal(&value));
    return 0;
}

static int decode_field(struct decoder *d, const struct wire_field *row, const struct pb_field *f,
                        cJSON *object)
{
    cJSON *value = NULL;
    if (row->flags & WIRE_REPEATED)
        return decode_item(d, row, f, object);
    if (row->type == WIRE_MESSAGE || row->flags & WIRE_MAP) {
        int r = expect(f, PB_BYTES, row->name, d->err);
        if (r < 0 || (r = count(d)) < 0)
            return r;
    }
    if (row->flags & WIRE_MAP)
        return decode_entry(d, row, f->bytes, ensure(object, row->name, json_object));
    if (row->flags & WIRE_INLINE)
        return decode_fields(d, row->of, f->bytes, object);
    if (row->type == WIRE_MESSAGE)
        return decode_fields(d, row->of, f->bytes, ensure(object, row->name, json_object));
    int r = decode_value(d, row, f, &value);
    if (value)
        json_set(object, row->name, value);
    else if (row->type != WIRE_RAW) /* whose message is merged, and empty changes nothing */
        json_remove(object, row->name);
    return r;
}

static const struct wire_field *find_field(const struct wire_message *m, int32_t number)
{
    for (const struct wire_field *row = m->fields; row->name; row++)
        if (row->number == number)
            return row;
    return NULL;
}

static int decode_fields(struct decoder *d, const struct wire_message *m, struct str rest,
                         cJSON *object)
{
    struct pb_field f;
    int r;
    while ((r = next_field(m->name, &rest, &f, d->err)) > 0) {
        const struct wire_field *row = find_field(m, f.number);
        if (row && (r = decode_field(d, row, &f, object)) < 0)
            return r;
    }
    return r;
}

/* ---- as Go's JSON has it
 * ---------------------------------------------------------------------- */

/* Of a repeated key the last value wins. */
static void drop_repeated(cJSON *map)
{
    struct map *seen = map_new();
    for (cJSON *node = map->child; node; node = node->next) {
        cJSON *older = map_put(seen, node->string, node);
        if (older)
            json_remove_node(map, older);
    }
    map_free(seen);
}

static bool is_empty(const cJSON *node)
{
    if (cJSON_IsString(node))
        return !*node->valuestring;
    return cJSON_IsFalse(node) || (cJSON_IsNumber(node) && node->valuedouble == 0);
}

static int settle(struct decoder *d, const struct wire_message *m, cJSON *object);

static int settle_value(struct decoder *d, const struct wire_field *row, cJSON *node)
{
    cJSON *item;
    if (row->flags & WIRE_MAP)
        drop_repeated(node);
    if (row->type != WIRE_MESSAGE)
        return 0;
    if (!(row->flags & (WIRE_MAP | WIRE_REPEATED)))
        return settle(d, row->of, node);
    cJSON_ArrayForEach(item, node)
    {
        int r = settle(d, row->of, item);
        if (r < 0)
            return r;
    }
    return 0;
}

static int settle(struct decoder *d, const struct wire_message *m, cJSON *object)
{
    for (const struct wire_field *row = m->fields; row->name; row++) {
        cJSON *node = row->flags & WIRE_INLINE ? object : json_get(object, row->name);
        int r = 0;
        if (!node && row->flags & WIRE_ALWAYS) {
            if ((r = count(d)) < 0)
                return r;
            json_add(object, row->name, node = zero_of(row->type));
        }
        if (node && !row->flags && is_empty(node))
            json_remove_node(object, node);
        else if (node)
            r = settle_value(d, row, node);
        if (r < 0)
            return r;
    }
    return 0;
}

int wire_decode(const struct wire_message *m, struct str raw, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *object = json_object();
    SCOPED(err_fini) struct err e = {0};
    struct decoder d = {WIRE_NODES_MAX, &e};
    if (decode_fields(&d, m, raw, object) < 0 || settle(&d, m, object) < 0)
        return err_move(err, &e);
    *ret = steal(&object);
    return 0;
}
