#include "node/spdy_block.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "apiserver/base/mem.h"
#include "node/spdy.h"

/* ---- the dictionary -------------------------------------------------------------------------- */

/* What the dictionary begins with, each with its length before it. */
static const char *const dictionary_words[] = {
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
};
/* The rest of it, as it is. */
static const char dictionary_text[] =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

void spdy_put_u32(struct buf *b, uint32_t v)
{
    uint32_t wire = htonl(v);
    buf_append(b, &wire, sizeof wire);
}

uint32_t spdy_get_u32(const char *p)
{
    uint32_t wire;
    memcpy(&wire, p, sizeof wire);
    return ntohl(wire);
}

static void put_text(struct buf *b, const char *p, size_t n)
{
    spdy_put_u32(b, (uint32_t)n);
    buf_append(b, p, n);
}

static void make_dictionary(struct buf *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(dictionary_words); i++)
        put_text(ret, dictionary_words[i], strlen(dictionary_words[i]));
    buf_puts(ret, dictionary_text);
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Our blocks are a few bytes: 2 KiB of window hold the dictionary, and 10 KiB the whole state. */
#define PACKER_WINDOW_BITS 11
#define PACKER_MEMORY_LEVEL 1

struct spdy_packer {
    z_stream z;
};

static void require_zlib(bool holds) /* only memory can be missing */
{
    if (!holds)
        abort();
}

struct spdy_packer *spdy_packer_new(void)
{
    struct spdy_packer *p = xcalloc(1, sizeof *p);
    SCOPED(buf_fini) struct buf dictionary = {0};
    make_dictionary(&dictionary);
    require_zlib(deflateInit2(&p->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, PACKER_WINDOW_BITS,
                              PACKER_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK);
    require_zlib(
        deflateSetDictionary(&p->z, (const Bytef *)dictionary.data, (uInt)dictionary.len) == Z_OK);
    return p;
}

void spdy_packer_free(struct spdy_packer *p)
{
    if (p == NULL)
        return;
    deflateEnd(&p->z);
    free(p);
}

/* All values of the i-th header's name, zero bytes between them; false when that was put before. */
static bool put_values(struct buf *text, const struct pairs *headers, size_t i)
{
    const char *name = headers->v[i].name;
    if (pairs_get(headers, name) != headers->v[i].value)
        return false;
    SCOPED(buf_fini) struct buf values = {0};
    buf_puts(&values, headers->v[i].value);
    for (size_t k = i + 1; k < headers->n; k++)
        if (str_equal(headers->v[k].name, name)) {
            buf_putc(&values, '\0');
            buf_puts(&values, headers->v[k].value);
        }
    put_text(text, name, strlen(name));
    put_text(text, buf_cstr(&values), values.len);
    return true;
}

void spdy_pack(struct spdy_packer *p, const struct pairs *headers, struct buf *out)
{
    SCOPED(buf_fini) struct buf names = {0}, text = {0};
    uint32_t n_names = 0;
    for (size_t i = 0; i < headers->n; i++)
        n_names += put_values(&names, headers, i);
    spdy_put_u32(&text, n_names);
    buf_append(&text, names.data, names.len);
    unsigned char piece[512];
    p->z.next_in = (Bytef *)text.data;
    p->z.avail_in = (uInt)text.len;
    do {
        p->z.next_out = piece;
        p->z.avail_out = sizeof piece;
        deflate(&p->z, Z_SYNC_FLUSH);
        buf_append(out, piece, sizeof piece - p->z.avail_out);
    } while (p->z.avail_out == 0);
}

/* ---- unpacking ------------------------------------------------------------------------------- */

struct spdy_unpacker {
    z_stream z;
    struct buf dictionary; /* until the other side names it, at its first block */
};

struct spdy_unpacker *spdy_unpacker_new(void)
{
    struct spdy_unpacker *u = xcalloc(1, sizeof *u);
    make_dictionary(&u->dictionary);
    require_zlib(inflateInit(&u->z) == Z_OK);
    return u;
}

void spdy_unpacker_free(struct spdy_unpacker *u)
{
    if (u == NULL)
        return;
    inflateEnd(&u->z);
    buf_fini(&u->dictionary);
    free(u);
}

/* One step of zlib; false when the bytes are not what they must be. */
static bool unpack_step(struct spdy_unpacker *u)
{
    int r = inflate(&u->z, Z_SYNC_FLUSH);
    require_zlib(r != Z_MEM_ERROR);
    if (r == Z_NEED_DICT)
        return inflateSetDictionary(&u->z, (const Bytef *)u->dictionary.data,
                                    (uInt)u->dictionary.len) == Z_OK;
    return r == Z_OK || r == Z_BUF_ERROR; /* the latter: nothing to do */
}

/* All the text of a block. */
static int unpack_text(struct spdy_unpacker *u, struct str packed, struct buf *ret, struct err *err)
{
    unsigned char piece[1024];
    u->z.next_in = (Bytef *)(uintptr_t)packed.p; /* zlib only reads it */
    u->z.avail_in = (uInt)packed.n;
    do {
        u->z.next_out = piece;
        u->z.avail_out = sizeof piece;
        if (!unpack_step(u))
            return err_set(err, ERR_BAD_REQUEST, "a header block cannot be unpacked");
        buf_append(ret, piece, sizeof piece - u->z.avail_out);
        if (buf_failed(ret))
            return err_set(err, ERR_TOO_LARGE, "a header block unpacks to more than %d bytes",
                           SPDY_BLOCK_MAX);
    } while (u->z.avail_in > 0 || u->z.avail_out == 0);
    return 0;
}

/* ---- names and values ------------------------------------------------------------------------ */

static bool take_u32(struct str *s, uint32_t *ret)
{
    if (s->n < 4)
        return false;
    *ret = spdy_get_u32(s->p);
    *s = (struct str){s->p + 4, s->n - 4};
    return true;
}

static bool take_text(struct str *s, struct str *ret)
{
    uint32_t n;
    if (!take_u32(s, &n) || n > s->n)
        return false;
    *ret = (struct str){s->p, n};
    *s = (struct str){s->p + n, s->n - n};
    return true;
}

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = name.p[i];
        if (c <= ' ' || c >= 0x7f || (c >= 'A' && c <= 'Z'))
            return false;
    }
    return name.n > 0;
}

static bool is_value(struct str value)
{
    for (size_t i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] < ' ' || value.p[i] == 0x7f)
            return false;
    return true;
}

/* The values of one name have zero bytes between them. */
static bool add_values(const char *name, struct str values, struct pairs *ret)
{
    for (;;) {
        const char *end = values.n > 0 ? memchr(values.p, '\0', values.n) : NULL;
        struct str one = {values.p, end != NULL ? (size_t)(end - values.p) : values.n};
        if (ret->n == SPDY_BLOCK_HEADERS_MAX || !is_value(one))
            return false;
        SCOPED_FREE char *value = xstrndup(one.p, one.n);
        pairs_add(ret, name, value);
        if (end == NULL)
            return true;
        values = (struct str){end + 1, values.n - one.n - 1};
    }
}

static bool parse_block(struct str text, struct pairs *ret)
{
    uint32_t count;
    if (!take_u32(&text, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct str name, values;
        if (!take_text(&text, &name) || !take_text(&text, &values) || !is_name(name))
            return false;
        SCOPED_FREE char *key = xstrndup(name.p, name.n);
        if (pairs_get(ret, key) != NULL || !add_values(key, values, ret))
            return false;
    }
    return text.n == 0;
}

int spdy_unpack(struct spdy_unpacker *u, struct str packed, struct pairs *ret, bool *ret_is_good,
                struct err *err)
{
    SCOPED(buf_fini) struct buf text = {.max = SPDY_BLOCK_MAX};
    SCOPED(pairs_fini) struct pairs headers = {0};
    int r = unpack_text(u, packed, &text, err);
    if (r < 0)
        return r;
    *ret_is_good = parse_block(buf_str(&text), &headers);
    if (*ret_is_good)
        *ret = steal(&headers);
    return 0;
}
