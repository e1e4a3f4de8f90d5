/* The frames as moby/spdystream 0.5.1 writes them, read in every split; our own, read again; and
 * what no peer should send. */
#include "node/spdy.h"

#include "node/spdy_block.h"
#include "tests/lib/suite.h"

static void add_hex(struct buf *b, const char *hex)
{
    for (; *hex != '\0'; hex += 2)
        buf_putc(b, (char)(str_hex_digit(hex[0]) << 4 | str_hex_digit(hex[1])));
}

/* Frames as one line each. The pieces of a DATA frame are put together, since they fall as the
 * input does. */
static void describe(struct buf *lines, const struct spdy_frame *f, bool *is_in_data)
{
    static const char *const names[SPDY_TYPES] = {
        [SPDY_SYN_STREAM] = "syn_stream",
        [SPDY_SYN_REPLY] = "syn_reply",
        [SPDY_RST_STREAM] = "rst",
        [SPDY_SETTINGS] = "settings",
        [SPDY_PING] = "ping",
        [SPDY_GOAWAY] = "goaway",
        [SPDY_HEADERS] = "headers",
        [SPDY_WINDOW_UPDATE] = "window",
        [SPDY_DATA] = "data",
    };
    if (*is_in_data && f->type != SPDY_DATA)
        buf_putc(lines, '\n');
    if (!*is_in_data || f->type != SPDY_DATA)
        buf_printf(lines, "%s %u", names[f->type], f->id);
    *is_in_data = f->type == SPDY_DATA && !(f->flags & SPDY_FLAG_FIN);
    if (f->type == SPDY_DATA && f->data.n > 0) {
        buf_putc(lines, '.');
        buf_append(lines, f->data.p, f->data.n);
    }
    if (f->value != 0)
        buf_printf(lines, " =%u", f->value);
    for (int id = 1; id <= SPDY_SETTING_LAST; id++)
        if (f->has_setting & 1u << id)
            buf_printf(lines, " %d:%u", id, f->settings[id]);
    for (size_t i = 0; i < f->headers.n; i++)
        buf_printf(lines, " %s=%s", f->headers.v[i].name, f->headers.v[i].value);
    if (f->flags & SPDY_FLAG_FIN)
        buf_puts(lines, " fin");
    if (f->fault != 0)
        buf_printf(lines, " fault %d", (int)f->fault);
    if (!*is_in_data)
        buf_putc(lines, '\n');
}

/* All frames of in, read in two pieces. */
static int read_split(struct str in, size_t at, struct buf *lines)
{
    struct spdy *s = spdy_new();
    int r = 0;
    bool is_in_data = false;
    const struct str pieces[] = {{in.p, at}, {in.p + at, in.n - at}};
    for (size_t i = 0; i < 2; i++) {
        struct str left = pieces[i];
        for (bool is_done = false; r == 0 && !is_done;) {
            SCOPED(spdy_frame_fini) struct spdy_frame f = {0};
            size_t used;
            r = spdy_read(s, left.p, left.n, &used, &f, NULL);
            ck_assert_uint_le(used, left.n);
            left = (struct str){left.p + used, left.n - used};
            is_done = f.type == SPDY_NONE;
            ck_assert(r < 0 || !is_done || left.n == 0);
            if (r == 0 && !is_done)
                describe(lines, &f, &is_in_data);
        }
    }
    spdy_free(s);
    return r;
}

/* The lines of in, the same in all splits; the code of its error. */
static int read_all(struct str in, struct buf *lines)
{
    int r = read_split(in, in.n, lines);
    for (size_t at = 0; at < in.n; at++) {
        SCOPED(buf_fini) struct buf again = {0};
        ck_assert_int_eq(read_split(in, at, &again), r);
        /* Pieces of data have dots between them, and are else the same. */
        SCOPED(buf_fini) struct buf a = {0}, b = {0};
        for (const char *c = buf_cstr(lines); *c; c++)
            if (*c != '.')
                buf_putc(&a, *c);
        for (const char *c = buf_cstr(&again); *c; c++)
            if (*c != '.')
                buf_putc(&b, *c);
        ck_assert_str_eq(buf_cstr(&b), buf_cstr(&a));
    }
    return r;
}

START_TEST(test_reads_what_spdystream_writes)
{
    static const char *const frames[] = {
        "800300010000003e0000000100000000000078f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45"
        "e01c60616061c0c0c0c0590489c64c50f2663400000000ffff",
        "80030001010000180000000300000000a000c2aa19540e2512d60b000000ffff",
        "000000010000000568656c6c6f",
        "0000000101000000",
        "800300060000000480000001",
        "80030003000000080000000300000005",
        "800300040000001c0000000301000007000003e800000004000000640000006300000001",
        "80030007000000080000000500000001",
        "8003000801000013000000010211205c012e88199200000000ffff",
        "80030009000000080000000100010000",
        "800300020000000e000000036260606000000000ffff",
    };
    SCOPED(buf_fini) struct buf in = {0}, lines = {0};
    for (size_t i = 0; i < ARRAY_LEN(frames); i++)
        add_hex(&in, frames[i]);
    ck_assert_int_eq(read_all(buf_str(&in), &lines), 0);
    ck_assert_str_eq(buf_cstr(&lines), "syn_stream 1 streamtype=error port=8080 requestid=0\n"
                                       "syn_stream 3 streamtype=data port=8080 requestid=0 fin\n"
                                       "data 1.hello fin\n"
                                       "ping 2147483649\n"
                                       "rst 3 =5\n"
                                       "settings 0 4:100 7:1000\n"
                                       "goaway 5 =1\n"
                                       "headers 1 x=a x=b fin\n"
                                       "window 1 =65536\n"
                                       "syn_reply 3\n");
}
END_TEST

START_TEST(test_reads_what_it_writes)
{
    struct spdy *s = spdy_new();
    SCOPED(pairs_fini) struct pairs headers = {0};
    SCOPED(buf_fini) struct buf long_value = {0};
    for (int i = 0; i < 3000; i++)
        buf_printf(&long_value, "%x", (unsigned)(i * i * 7 >> 4) & 15u);
    pairs_add(&headers, "streamtype", "stdout");
    pairs_add(&headers, "long", buf_cstr(&long_value));
    pairs_add(&headers, "streamtype", "stderr");
    const struct spdy_frame frames[] = {
        {.type = SPDY_SYN_STREAM, .id = 1, .value = 9, .flags = SPDY_FLAG_FIN, .headers = headers},
        {.type = SPDY_SYN_REPLY, .id = 1},
        {.type = SPDY_HEADERS, .id = SPDY_ID_MAX, .headers = headers},
        {.type = SPDY_RST_STREAM, .id = 7, .value = SPDY_RST_REFUSED_STREAM},
        {.type = SPDY_SETTINGS, .has_setting = 1u << 4 | 1u << 7, .settings = {[4] = 5, [7] = 6}},
        {.type = SPDY_PING, .id = 0xffffffff},
        {.type = SPDY_GOAWAY, .id = 3, .value = SPDY_GOAWAY_INTERNAL_ERROR},
        {.type = SPDY_WINDOW_UPDATE, .id = 0, .value = SPDY_ID_MAX},
        {.type = SPDY_DATA, .id = 1, .data = STR("some bytes")},
        {.type = SPDY_DATA, .id = 1, .flags = SPDY_FLAG_FIN},
    };
    SCOPED(buf_fini) struct buf out = {0}, lines = {0}, want = {0};
    for (size_t i = 0; i < ARRAY_LEN(frames); i++)
        spdy_write(s, &frames[i], &out);
    spdy_free(s);
    ck_assert_int_eq(read_all(buf_str(&out), &lines), 0);
    buf_printf(&want,
               "syn_stream 1 =9 streamtype=stdout streamtype=stderr long=%s fin\nsyn_reply 1\n"
               "headers 2147483647 streamtype=stdout streamtype=stderr long=%s\nrst 7 =3\nsettings "
               "0 4:5 7:6\n"
               "ping 4294967295\ngoaway 3 =2\nwindow 0 =2147483647\ndata 1.some bytes fin\n",
               buf_cstr(&long_value), buf_cstr(&long_value));
    ck_assert_str_eq(buf_cstr(&lines), buf_cstr(&want));
}
END_TEST

/* ---- what no peer should send ---- */

static const struct {
    const char *name, *hex;
    int code;          /* of the error; 0 = none */
    const char *lines; /* what is read before */
} broken[] = {
    {"another version",
     "8002000600000004"
     "00000001",
     ERR_BAD_REQUEST, ""},
    {"data of stream 0",
     "0000000000000001"
     "00",
     ERR_BAD_REQUEST, ""},
    {"a stream 0",
     "800300010000000a"
     "00000000000000000000",
     ERR_BAD_REQUEST, ""},
    {"headers of stream 0",
     "8003000800000004"
     "00000000",
     ERR_BAD_REQUEST, ""},
    {"a reset of stream 0",
     "8003000300000008"
     "0000000000000001",
     ERR_BAD_REQUEST, ""},
    {"a ping too long",
     "8003000600000005"
     "0000000100",
     ERR_BAD_REQUEST, ""},
    {"a ping too short", "8003000600000000", ERR_BAD_REQUEST, ""},
    {"a reset too short",
     "8003000300000007"
     "00000001000000",
     ERR_BAD_REQUEST, ""},
    {"a stream too short",
     "8003000100000009"
     "000000010000000000",
     ERR_BAD_REQUEST, ""},
    {"settings too short",
     "8003000400000003"
     "000000",
     ERR_BAD_REQUEST, ""},
    {"settings that are not there",
     "8003000400000004"
     "00000001",
     ERR_BAD_REQUEST, ""},
    {"settings without number",
     "800300040000000c"
     "00000001"
     "00000000"
     "00000001",
     0, "settings 0\n"},
    {"settings said twice",
     "8003000400000014"
     "00000002"
     "0000000400000001"
     "0000000400000002",
     0, "settings 0 4:1\n"},
    {"a control frame too large", "8003000100004001", ERR_TOO_LARGE, ""},
    {"an unknown one may be that",
     "8003000b00000003"
     "010203"
     "800300060000000400000001",
     0, "ping 1\n"},
    {"an unknown one without bytes",
     "8003000500000000"
     "800300060000000400000001",
     0, "ping 1\n"},
    {"a credential frame",
     "8003000a00000001"
     "00"
     "800300060000000400000001",
     0, "ping 1\n"},
    {"a block that is no zlib",
     "8003000800000008"
     "00000001"
     "ffffffff",
     ERR_BAD_REQUEST, ""},
    {"another dictionary",
     "800300080000000b"
     "00000001"
     "78f900000001"
     "02",
     ERR_BAD_REQUEST, ""},
    {"no block",
     "8003000800000004"
     "00000001",
     0, "headers 1 fault 1\n"},
    {"the reserved bit of a stream",
     "8003000900000008"
     "8000000180000002",
     0, "window 1 =2\n"},
};

START_TEST(test_refuses)
{
    SCOPED(buf_fini) struct buf in = {0}, lines = {0};
    add_hex(&in, broken[_i].hex);
    int r = read_all(buf_str(&in), &lines);
    ck_assert_msg(r == -broken[_i].code, "%s: %d", broken[_i].name, r);
    ck_assert_msg(strcmp(buf_cstr(&lines), broken[_i].lines) == 0, "%s: %s", broken[_i].name,
                  buf_cstr(&lines));
}
END_TEST

/* ---- header blocks ---- */

/* A block of any text. It is packed as one that has no headers, then one byte for every byte. */
static void pack_text(struct str text, struct buf *out)
{
    add_hex(out, "78f9e3c6a7c2");
    for (size_t i = 0; i < text.n; i++) { /* stored, as deflate has it: length, its complement */
        add_hex(out, "000100feff");
        buf_putc(out, text.p[i]);
    }
}

#define N(n) "\0\0\0" n
static const struct {
    const char *name;
    struct str text;
    bool is_good;
} blocks[] = {
#define BLOCK(name, text, good)                                                                    \
    {                                                                                              \
        name, {text, sizeof(text) - 1}, good                                                       \
    }
    BLOCK("none", N("\0"), true),
    BLOCK("one", N("\1") N("\1") "a" N("\2") "bc", true),
    BLOCK("no value", N("\1") N("\1") "a" N("\0"), true),
    BLOCK("two values", N("\1") N("\1") "a" N("\3") "b\0c", true),
    BLOCK("no name", N("\1") N("\0") N("\1") "b", false),
    BLOCK("upper case", N("\1") N("\1") "A" N("\1") "b", false),
    BLOCK("blank in a name", N("\1") N("\3") "a b" N("\1") "b", false),
    BLOCK("zero in a name", N("\1") N("\3") "a\0b" N("\1") "b", false),
    BLOCK("newline in a value", N("\1") N("\1") "a" N("\3") "b\nc", false),
    BLOCK("the same name twice", N("\2") N("\1") "a" N("\1") "b" N("\1") "a" N("\1") "c", false),
    BLOCK("fewer than it says", N("\2") N("\1") "a" N("\1") "b", false),
    BLOCK("more than it says", N("\0") N("\1") "a" N("\1") "b", false),
    BLOCK("a value cut off", N("\1") N("\1") "a" N("\2") "b", false),
    BLOCK("a name of 4 GiB",
          N("\1") "\xff\xff\xff\xff"
                  "a",
          false),
    BLOCK("4 G of headers", "\xff\xff\xff\xff", false),
};

START_TEST(test_block)
{
    struct spdy_unpacker *u = spdy_unpacker_new();
    SCOPED(buf_fini) struct buf packed = {0};
    SCOPED(pairs_fini) struct pairs headers = {0};
    bool is_good = !blocks[_i].is_good;
    pack_text(blocks[_i].text, &packed);
    ck_assert_int_eq(spdy_unpack(u, buf_str(&packed), &headers, &is_good, NULL), 0);
    ck_assert_msg(is_good == blocks[_i].is_good, "%s", blocks[_i].name);
    ck_assert(is_good || headers.n == 0);
    spdy_unpacker_free(u);
}
END_TEST

static void unpack_many(size_t n_headers, size_t value_bytes, int want, bool want_good)
{
    struct spdy_unpacker *u = spdy_unpacker_new();
    struct spdy_packer *p = spdy_packer_new();
    SCOPED(buf_fini) struct buf packed = {0}, value = {0};
    SCOPED(pairs_fini) struct pairs headers = {0}, again = {0};
    bool is_good = false;
    for (size_t i = 0; i < value_bytes; i++)
        buf_putc(&value, 'v');
    for (size_t i = 0; i < n_headers; i++) {
        SCOPED_FREE char *name = xasprintf("h%zu", i);
        pairs_add(&headers, name, buf_cstr(&value));
    }
    spdy_pack(p, &headers, &packed);
    ck_assert_uint_lt(packed.len, SPDY_CONTROL_MAX);
    ck_assert_int_eq(spdy_unpack(u, buf_str(&packed), &again, &is_good, NULL), want);
    ck_assert_int_eq(is_good, want_good);
    ck_assert_uint_eq(again.n, want_good ? n_headers : 0);
    spdy_packer_free(p);
    spdy_unpacker_free(u);
}

START_TEST(test_blocks_have_ceilings)
{
    unpack_many(SPDY_BLOCK_HEADERS_MAX, 10, 0, true);
    unpack_many(SPDY_BLOCK_HEADERS_MAX + 1, 10, 0, false);
    unpack_many(1, SPDY_BLOCK_MAX - 100, 0, true);
    unpack_many(1, SPDY_BLOCK_MAX, -ERR_TOO_LARGE, false);
    unpack_many(1, 1 << 20, -ERR_TOO_LARGE, false); /* a thousand times what it is packed */
}
END_TEST

SUITE(spdy)
{
    TESTS("frames", test_reads_what_spdystream_writes, test_reads_what_it_writes);
    LOOP("broken", test_refuses, 0, ARRAY_LEN(broken));
    LOOP("blocks", test_block, 0, ARRAY_LEN(blocks));
    TESTS("ceilings", test_blocks_have_ceilings);
}
