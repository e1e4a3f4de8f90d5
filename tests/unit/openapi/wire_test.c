/* Kinds as protocol buffers: the tables against the shapes, and what bytes become. */
#include "openapi/wire.h"

#include "apiserver/base/json.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

/* ---- the tables ---- */

static const struct wire_field *find_row(const struct wire_message *m, const char *name)
{
    for (const struct wire_field *row = m->fields; row->name; row++) {
        const struct wire_field *inside = row->flags & WIRE_INLINE ? find_row(row->of, name) : NULL;
        if (inside || strcmp(row->name, name) == 0)
            return inside ? inside : row;
    }
    return NULL;
}

/* What the values of a field are there. */
static bool fits(const struct field *f, enum field_type type, const struct wire_field *row)
{
    switch (type) {
    case F_LIST:
        return row->flags & WIRE_REPEATED && fits(f, f->item, row);
    case F_MAP:
        return row->flags & WIRE_MAP && fits(f, f->item, row);
    case F_STRING:
        return row->type == WIRE_STRING || row->type == WIRE_BYTES;
    case F_BOOL:
        return row->type == WIRE_BOOL;
    case F_INT32:
        return row->type == WIRE_INT32;
    case F_INT64:
        return row->type == WIRE_INT64;
    case F_TIME:
        return row->type == WIRE_TIME || row->type == WIRE_MICRO_TIME;
    case F_QUANTITY:
        return row->type == WIRE_QUANTITY;
    case F_INT_OR_STRING:
        return row->type == WIRE_INT_OR_STRING;
    case F_ANY:
        return row->type == WIRE_RAW ||
               row->type == WIRE_STRINGS; /* shapes have no lists in maps */
    case F_OBJECT:
    case F_EMPTY:
    case F_META:
        return row->type == WIRE_MESSAGE;
    case F_NUMBER:
        break;
    }
    return false;
}

static size_t members(const struct wire_message *m)
{
    size_t n = 0;
    for (const struct wire_field *row = m->fields; row->name; row++)
        n += row->flags & WIRE_INLINE ? members(row->of) : 1;
    return n;
}

/* Every field has a number, and every number a field. */
static void compare(const struct shape *s, const struct wire_message *m, bool is_root)
{
    size_t n = 0;
    for (const struct field *f = s->fields; f->name; f++) {
        if (is_root && (strcmp(f->name, "apiVersion") == 0 || strcmp(f->name, "kind") == 0))
            continue;
        const struct wire_field *row = find_row(m, f->name);
        ck_assert_msg(row && fits(f, f->type, row), "%s.%s", s->name, f->name);
        n++;
        if (f->of)
            compare(f->of, row->of, false);
    }
    ck_assert_msg(n == members(m), "%s: %zu fields, %zu numbers", s->name, n, members(m));
}

START_TEST(test_tables_match_shapes)
{
    size_t n = 0;
    for (const struct kind *const *k = kinds_standalone; *k; k++) {
        SCOPED_FREE char *version = kind_api_version(*k);
        const struct wire_message *m = wire_find(version, (*k)->kind);
        /* CustomResourceDefinitions are only read */
        ck_assert_msg(!m == (!(*k)->is_builtin || (*k)->is_read_only), "%s", (*k)->kind);
        if (!m)
            continue;
        compare((*k)->shape, m, true);
        n++;
    }
    ck_assert_uint_ge(n, 20);
}
END_TEST

static void check_numbers(const struct wire_message *m)
{
    for (const struct wire_field *row = m->fields; row->name; row++) {
        ck_assert_int_gt(row->number, 0);
        ck_assert_msg(!row->of == (row->type != WIRE_MESSAGE), "%s.%s", m->name, row->name);
        for (const struct wire_field *other = row + 1; other->name; other++)
            ck_assert_msg(row->number != other->number, "%s.%s", m->name, row->name);
        if (row->of)
            check_numbers(row->of);
    }
}

START_TEST(test_numbers_are_unique)
{
    for (const struct wire_root *r = wire_roots; r->kind; r++)
        check_numbers(r->message);
}
END_TEST

START_TEST(test_find)
{
    ck_assert_ptr_nonnull(wire_find("v1", "Event"));
    ck_assert_ptr_ne(wire_find("v1", "Event"), wire_find("events.k8s.io/v1", "Event"));
    ck_assert_ptr_eq(wire_find(NULL, "TokenRequest"),
                     wire_find("authentication.k8s.io/v1", "TokenRequest"));
    ck_assert_ptr_null(wire_find("v1", "Sandbox"));
    ck_assert_ptr_null(wire_find("v2", "Pod"));
}
END_TEST

/* ---- bytes ---- */

#define BYTES(text)                                                                                \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

static const struct {
    const char *name, *version, *kind;
    struct str bytes;
    const char *json; /* with ' for "; or the error's text behind an exclamation mark */
} rows[] = {
    {"nothing is what Go has always", "v1", "ConfigMap", BYTES(""), "{'metadata':{}}"},
    {"a text", "v1", "ConfigMap", BYTES("\x0a\x03\x0a\x01x"), "{'metadata':{'name':'x'}}"},
    {"an empty text is none", "v1", "ConfigMap", BYTES("\x0a\x02\x0a\x00"), "{'metadata':{}}"},
    {"the last value counts", "v1", "ConfigMap", BYTES("\x0a\x06\x0a\x01x\x0a\x01y"),
     "{'metadata':{'name':'y'}}"},
    {"messages are merged", "v1", "ConfigMap", BYTES("\x0a\x03\x0a\x01x\x0a\x03\x1a\x01z"),
     "{'metadata':{'name':'x','namespace':'z'}}"},
    {"a map", "v1", "ConfigMap", BYTES("\x12\x06\x0a\x01k\x12\x01v"),
     "{'metadata':{},'data':{'k':'v'}}"},
    {"of a repeated key the last value counts", "v1", "ConfigMap",
     BYTES("\x12\x06\x0a\x01k\x12\x01v\x12\x06\x0a\x01j\x12\x01u\x12\x06\x12\x01w\x0a\x01k"),
     "{'metadata':{},'data':{'k':'w','j':'u'}}"},
    {"an entry without a value, and one without a key", "v1", "ConfigMap",
     BYTES("\x12\x03\x0a\x01k\x12\x03\x12\x01v"), "{'metadata':{},'data':{'k':'','':'v'}}"},
    {"bytes", "v1", "ConfigMap", BYTES("\x1a\x07\x0a\x01k\x12\x02\x00\xff"),
     "{'metadata':{},'binaryData':{'k':'AP8='}}"},
    {"an empty value of a pointer stays", "v1", "ConfigMap", BYTES("\x20\x00"),
     "{'metadata':{},'immutable':false}"},
    {"broken UTF-8", "v1", "ConfigMap", BYTES("\x0a\x05\x0a\x03\xc0\x80y"),
     "{'metadata':{'name':'\xef\xbf\xbd\xef\xbf\xbdy'}}"},
    {"NUL", "v1", "ConfigMap", BYTES("\x0a\x05\x0a\x03x\x00y"),
     "{'metadata':{'name':'x\\u0000y'}}"},
    {"time", "v1", "ConfigMap", BYTES("\x0a\x0a\x42\x08\x08\x80\xe7\x84\x0f\x10\xe8\x07"),
     "{'metadata':{'creationTimestamp':'1971-01-01T00:00:00Z'}}"},
    {"the epoch is a time", "v1", "ConfigMap", BYTES("\x0a\x04\x42\x02\x08\x00"),
     "{'metadata':{'creationTimestamp':'1970-01-01T00:00:00Z'}}"},
    {"no time", "v1", "ConfigMap", BYTES("\x0a\x02\x42\x00"), "{'metadata':{}}"},
    {"no time instead of one", "v1", "ConfigMap", BYTES("\x0a\x06\x42\x02\x08\x01\x42\x00"),
     "{'metadata':{}}"},
    {"a quantity that is none", "v1", "Pod",
     BYTES("\x12\x10\x12\x0e\x42\x0c\x0a\x0a\x0a\x03"
           "cpu\x12\x03\x0a\x01x"),
     "!quantities must match the regular expression"},
    {"the year 1 is no time", "v1", "ConfigMap",
     BYTES("\x0a\x0d\x42\x0b\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01"), "{'metadata':{}}"},
    {"a time that is too late", "v1", "ConfigMap",
     BYTES("\x0a\x09\x42\x07\x08\x80\x98\xfa\xff\xff\x7f"),
     "!Time.MarshalJSON: year outside of range [0,9999]"},
    {"JSON inside", "v1", "ConfigMap", BYTES("\x0a\x0c\x8a\x01\x09\x3a\x07\x0a\x05{\"a\"}"),
     "!invalid character '}' after object key"},
    {"fieldsV1", "v1", "ConfigMap", BYTES("\x0a\x0b\x8a\x01\x08\x3a\x06\x0a\x04{  }"),
     "{'metadata':{'managedFields':[{'fieldsV1':{}}]}}"},
    {"fieldsV1 that are empty the second time", "v1", "ConfigMap",
     BYTES("\x0a\x0b\x8a\x01\x08\x3a\x04\x0a\x02{}\x3a\x00"),
     "{'metadata':{'managedFields':[{'fieldsV1':{}}]}}"},
    {"numbers one by one", "v1", "Pod", BYTES("\x12\x08\x72\x06\x20\x01\x20\x80\x80\x04"),
     "{'metadata':{},'spec':{'securityContext':{'supplementalGroups':[1,65536]}},'"
     "status':{}}"},
    {"numbers packed", "v1", "Pod", BYTES("\x12\x06\x72\x04\x22\x02\x01\x02"),
     "{'metadata':{},'spec':{'securityContext':{'supplementalGroups':[1,2]}},'"
     "status':{}}"},
    {"members of a message that is inline", "v1", "Pod",
     BYTES("\x12\x0a\x0a\x08\x0a\x02vv\x12\x02\x12\x00"),
     "{'metadata':{},'spec':{'volumes':[{'name':'vv','emptyDir':{}}]},'status':{}"
     "}"},
    {"what a container always has", "v1", "Pod", BYTES("\x12\x02\x12\x00"),
     "{'metadata':{},'spec':{'containers':[{'name':'','resources':{}}]},'status':{}}"},
    {"a quantity", "v1", "Pod",
     BYTES("\x12\x13\x12\x11\x42\x0f\x0a\x0d\x0a\x03"
           "cpu\x12\x06\x0a\x04"
           "100m"),
     "{'metadata':{},'spec':{'containers':[{'name':'','resources':{'limits':{'cpu':'100m'}}}]},'"
     "status':{}}"},
    {"an empty quantity", "v1", "Pod",
     BYTES("\x12\x0d\x12\x0b\x42\x09\x0a\x07\x0a\x03"
           "cpu\x12\x00"),
     "{'metadata':{},'spec':{'containers':[{'name':'','resources':{'limits':{'cpu':'0'}}}]},'"
     "status':{}}"},
    {"a number or a text", "v1", "Service",
     BYTES("\x12\x1d\x0a\x0b\x18\x50\x22\x07\x08\x01\x10\x07\x1a\x01h\x0a\x08\x18\x51\x22\x04\x08"
           "\x00\x10\x09\x0a\x04\x22\x02\x10\x03"),
     "{'metadata':{},'spec':{'ports':[{'port':80,'targetPort':'h'},{'port':81,'targetPort':9},{'"
     "port':0,'targetPort':3}]},'status':{'loadBalancer':{}}}"},
    {"neither", "v1", "Service", BYTES("\x12\x06\x0a\x04\x22\x02\x08\x02"),
     "!impossible IntOrString.Type"},
    {"a negative number of 32 bits", "v1", "Service",
     BYTES("\x12\x0d\x0a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
     "{'metadata':{},'spec':{'ports':[{'port':-1,'targetPort':0}]},'status':{'loadBalancer':{}}}"},
    {"lists in a map", "authentication.k8s.io/v1", "TokenReview",
     BYTES("\x1a\x0e\x12\x0c\x22\x0a\x0a\x01k\x12\x05\x0a\x01x\x0a\x00"),
     "{'metadata':{},'spec':{},'status':{'user':{'extra':{'k':['x','']}}}}"},
    {"microseconds", "coordination.k8s.io/v1", "Lease",
     BYTES("\x12\x0a\x22\x08\x08\x01\x10\x88\xce\xed\xe6\x01"),
     "{'metadata':{},'spec':{'renewTime':'1970-01-01T00:00:01.484140Z'}}"},
    {"what is not known is stepped over: each type, and a group", "v1", "ConfigMap",
     BYTES("\x98\x06\x01\x99\x06"
           "12345678\x9a\x06\x01x\x9b\x06\x08\x01\x0b\x0c\x9c\x06\x9d\x06"
           "1234\x0a\x03\x0a\x01x"),
     "{'metadata':{'name':'x'}}"},
    {"cut off in a length", "v1", "ConfigMap", BYTES("\x0a\x80"), "!unexpected EOF"},
    {"cut off in a value", "v1", "ConfigMap", BYTES("\x0a\x05\x0a"), "!unexpected EOF"},
    {"cut off in a group", "v1", "ConfigMap", BYTES("\x9b\x06\x08\x01"), "!unexpected EOF"},
    {"a length beyond the inner message", "v1", "ConfigMap", BYTES("\x0a\x02\x0a\x01xxx"),
     "!unexpected EOF"},
    {"a number that is too long", "v1", "ConfigMap",
     BYTES("\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "!proto: integer overflow"},
    {"a negative length", "v1", "ConfigMap", BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
     "!proto: negative length found during unmarshaling"},
    {"another type", "v1", "ConfigMap", BYTES("\x08\x01"),
     "!proto: wrong wireType = 0 for field metadata"},
    {"no type", "v1", "ConfigMap", BYTES("\x0f"), "!proto: illegal wireType 7"},
    {"the end of a group that has none", "v1", "ConfigMap", BYTES("\x0a\x01\x0c"),
     "!proto: ObjectMeta: wiretype end group for non-group"},
    {"number 0", "v1", "ConfigMap", BYTES("\x00\x01"),
     "!proto: ConfigMap: illegal tag 0 (wire type 0)"},
};

static cJSON *parse(const char *text)
{
    SCOPED_FREE char *copy = xstrdup(text);
    cJSON *tree = NULL;
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    ck_assert_int_eq(json_parse_str(copy, &tree, NULL), 0);
    return tree;
}

START_TEST(test_decode)
{
    const struct wire_message *m = wire_find(rows[_i].version, rows[_i].kind);
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *tree = NULL, *want = NULL;
    const char *json = rows[_i].json;
    int r = wire_decode(m, rows[_i].bytes, &tree, &err);
    if (*json == '!') {
        ck_assert_msg(r == -ERR_BAD_REQUEST && !tree, "%s", rows[_i].name);
        ck_assert_msg(str_has_prefix(err_text(&err), json + 1), "%s: %s", rows[_i].name,
                      err_text(&err));
        return;
    }
    ck_assert_msg(r == 0, "%s: %s", rows[_i].name, err_text(&err));
    want = parse(json);
    SCOPED_FREE char *got = json_to_str(tree);
    ck_assert_msg(json_equal(tree, want), "%s: %s", rows[_i].name, got);
}
END_TEST

static void check_too_large(struct str piece, size_t times)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    SCOPED(err_fini) struct err err = {0};
    cJSON *tree = NULL;
    for (size_t i = 0; i < times; i++)
        buf_append(&bytes, piece.p, piece.n);
    ck_assert_int_eq(wire_decode(wire_find("v1", "Pod"), buf_str(&bytes), &tree, &err),
                     -ERR_TOO_LARGE);
    ck_assert_ptr_null(tree);
}

/* Two bytes of a container become many in a tree. */
START_TEST(test_too_many_values)
{
    check_too_large((struct str)BYTES("\x12\x02\x12\x00"), WIRE_NODES_MAX / 2);
    check_too_large((struct str)BYTES("\x0a\x02\x72\x00"), WIRE_NODES_MAX);
    check_too_large((struct str)BYTES("\x12\x04\x72\x02\x20\x01"), WIRE_NODES_MAX);
}
END_TEST

/* ---- the envelope ---- */

static const struct {
    const char *name;
    struct str bytes;
    const char *error; /* or NULL */
    const char *version, *kind, *raw;
} envelopes[] = {
    {"whole", BYTES("k8s\x00\x0a\x0b\x0a\x02v1\x12\x05Thing\x12\x03raw\x1a\x00\x22\x00"), NULL,
     "v1", "Thing", "raw"},
    {"without a kind", BYTES("k8s\x00\x12\x01x"), NULL, "", "", "x"},
    {"nothing", BYTES(""), "empty data", NULL, NULL, NULL},
    {"magic alone", BYTES("k8s\x00"), "empty body", NULL, NULL, NULL},
    {"other magic", BYTES("k8s\x01\x12\x00"),
     "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]", NULL,
     NULL, NULL},
    {"cut off", BYTES("k8s\x00\x0a\x05\x0a"), "unexpected EOF", NULL, NULL, NULL},
    {"a broken kind", BYTES("k8s\x00\x0a\x02\x08\x01"),
     "proto: wrong wireType = 0 for field APIVersion", NULL, NULL, NULL},
};

START_TEST(test_envelope)
{
    struct wire_envelope e = {0};
    SCOPED(err_fini) struct err err = {0};
    int r = wire_open(envelopes[_i].bytes, &e, &err);
    if (envelopes[_i].error) {
        ck_assert_int_eq(r, -ERR_BAD_REQUEST);
        ck_assert_str_eq(err_text(&err), envelopes[_i].error);
        return;
    }
    ck_assert_msg(r == 0, "%s: %s", envelopes[_i].name, err_text(&err));
    ck_assert(str_eq(e.api_version, envelopes[_i].version));
    ck_assert(str_eq(e.kind, envelopes[_i].kind));
    ck_assert(str_eq(e.raw, envelopes[_i].raw));
}
END_TEST

SUITE(wire)
{
    TESTS("tables", test_tables_match_shapes, test_numbers_are_unique, test_find);
    LOOP("decode", test_decode, 0, ARRAY_LEN(rows));
    TESTS("ceilings", test_too_many_values);
    LOOP("envelope", test_envelope, 0, ARRAY_LEN(envelopes));
}
