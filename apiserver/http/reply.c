/* A machine of a few states over the bytes. Interim answers (100 and the like) are skipped. Source:
 * RFC 9112, 4 to 7. */
#include "apiserver/http/reply.h"

#include <strings.h>

#include "apiserver/base/mem.h"

#define HEAD_MAX ((size_t)32 << 10)
#define LINE_MAX_BYTES ((size_t)1 << 10) /* of a chunk's size and extensions, or a trailer */
#define SIZE_DIGITS 15                   /* of a chunk's size: what fits 64 bits in any case */

void reply_fini(struct reply *r)
{
    pairs_fini(&r->headers);
    buf_fini(&r->line);
    *r = (struct reply){0};
}

/* ---- the head ---- */

static bool read_status(struct reply *r, const char *line)
{
    static const char start[] = "HTTP/1.";
    size_t n = sizeof start - 1;
    if (strncmp(line, start, n) != 0 || (line[n] != '0' && line[n] != '1') || line[n + 1] != ' ')
        return false;
    const char *digits = line + n + 2;
    if (strspn(digits, "0123456789") != 3 || digits[0] == '0')
        return false;
    r->status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
    return true;
}

static bool read_header(struct reply *r, char *line)
{
    char *colon = strchr(line, ':');
    if (!colon || colon == line || strcspn(line, " \t") < (size_t)(colon - line))
        return false;
    *colon = '\0';
    char *value = colon + 1 + strspn(colon + 1, " \t"), *end = value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    pairs_add(&r->headers, line, value);
    return true;
}

/* What the head says about the body. */
static bool judge_body(struct reply *r)
{
    const char *length = pairs_get_ci(&r->headers, "Content-Length"),
               *coding = pairs_get_ci(&r->headers, "Transfer-Encoding");
    if (r->status == 101) {
        r->state = REPLY_RAW;
    } else if (r->status < 200) {
        pairs_fini(&r->headers);
        r->state = REPLY_HEAD;
    } else if (r->status == 204 || r->status == 304) {
        r->state = REPLY_OVER;
    } else if (coding) {
        r->state = REPLY_SIZE;
        return strcasecmp(coding, "chunked") == 0;
    } else if (length) {
        r->state = REPLY_LENGTH;
        if (str_to_u64(length, &r->left) < 0)
            return false;
        r->state = r->left ? REPLY_LENGTH : REPLY_OVER;
    } else {
        r->state = REPLY_TO_END;
    }
    return true;
}

static bool read_head(struct reply *r)
{
    SCOPED_FREE char *text = xstrdup(buf_cstr(&r->line));
    bool is_good = strlen(text) == r->line.len, is_first = true;
    buf_fini(&r->line);
    for (char *rest = text, *line; is_good && (line = strsep(&rest, "\n")) != NULL;) {
        line[strcspn(line, "\r")] = '\0';
        if (*line)
            is_good = is_first ? read_status(r, line) : read_header(r, line);
        is_first = false;
    }
    return is_good && judge_body(r);
}

/* Up to the empty line. */
static bool feed_head(struct reply *r, const char *p, size_t n, size_t *ret_used)
{
    size_t i = 0;
    r->line.max = HEAD_MAX;
    while (i < n && !buf_failed(&r->line)) {
        buf_putc(&r->line, p[i++]);
        if (p[i - 1] == '\n' && (str_has_suffix(buf_cstr(&r->line), "\r\n\r\n") ||
                                 str_has_suffix(buf_cstr(&r->line), "\n\n"))) {
            *ret_used = i;
            return read_head(r);
        }
    }
    *ret_used = i;
    return !buf_failed(&r->line);
}

/* ---- the body ---- */

static bool read_size(struct reply *r)
{
    const char *text = buf_cstr(&r->line);
    size_t n = strspn(text, "0123456789abcdefABCDEF");
    if (n == 0 || n > SIZE_DIGITS || !strchr(" \t;\r\n", text[n]))
        return false;
    r->left = 0;
    for (size_t i = 0; i < n; i++)
        r->left = r->left * 16 + (uint64_t)str_hex_digit(text[i]);
    r->state = r->left ? REPLY_CHUNK : REPLY_TRAILER;
    return true;
}

/* One line of the framing; the empty one ends the trailer, and a chunk. */
static bool feed_line(struct reply *r, const char *p, size_t n, size_t *ret_used)
{
    const char *end = memchr(p, '\n', n);
    enum reply_state was = r->state;
    *ret_used = end ? (size_t)(end - p) + 1 : n;
    r->line.max = LINE_MAX_BYTES;
    buf_append(&r->line, p, *ret_used);
    if (!end || buf_failed(&r->line))
        return !buf_failed(&r->line);
    bool is_empty = buf_cstr(&r->line)[strspn(buf_cstr(&r->line), "\r\n")] == '\0';
    bool is_good = r->state == REPLY_SIZE ? read_size(r) : r->state == REPLY_TRAILER || is_empty;
    buf_fini(&r->line);
    if (is_empty && was == REPLY_TRAILER)
        r->state = REPLY_OVER;
    else if (was == REPLY_CHUNK)
        r->state = REPLY_SIZE;
    return is_good;
}

static size_t feed_body(struct reply *r, const char *p, size_t n, struct buf *body)
{
    size_t take = r->state != REPLY_TO_END && r->left < n ? (size_t)r->left : n;
    buf_append(body, p, take);
    if (r->state == REPLY_TO_END)
        return take;
    r->left -= take;
    if (r->left == 0 && r->state == REPLY_LENGTH)
        r->state = REPLY_OVER;
    return take;
}

bool reply_feed(struct reply *r, const char *p, size_t n, size_t *ret_used, struct buf *body)
{
    if (r->state == REPLY_HEAD)
        return feed_head(r, p, n, ret_used);
    bool is_good = true;
    size_t used = 0;
    while (used < n && is_good && r->state != REPLY_OVER && r->state != REPLY_RAW) {
        size_t took = 0;
        bool is_data = r->state == REPLY_LENGTH || r->state == REPLY_TO_END ||
                       (r->state == REPLY_CHUNK && r->left > 0);
        if (is_data)
            took = feed_body(r, p + used, n - used, body);
        else
            is_good = feed_line(r, p + used, n - used, &took);
        used += took;
    }
    *ret_used = used;
    return is_good;
}
