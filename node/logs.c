#include "node/logs.h"

#include <strings.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/lookup.h"

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

/* ---- options ---- */

static bool flag_of(const struct pairs *query, const char *name)
{
    const char *value = pairs_get(query, name);
    return value && strcasecmp(value, "false") != 0 && strcmp(value, "0") != 0;
}

/* A number that is at least min; *ret stays when there is none. */
static int number_of(const struct pairs *query, const char *name, int64_t min, int64_t *ret,
                     struct err *err)
{
    const char *value = pairs_get(query, name);
    int64_t n;
    if (!value || !*value)
        return 0;
    if (str_to_i64(value, &n) < 0 || n < min)
        return err_set(err, ERR_INVALID, "%s: \"%s\" is no number of at least %d", name, value,
                       (int)min);
    *ret = n;
    return 0;
}

/* Of a second; the digits behind the point, as many as there are. */
static int64_t fraction_ns(const char *text)
{
    const char *point = strchr(text, '.');
    int64_t ns = 0, unit = NS_PER_S / 10;
    for (const char *at = point ? point + 1 : ""; *at >= '0' && *at <= '9'; at++, unit /= 10)
        ns += (*at - '0') * unit;
    return ns;
}

static int parse_time(const char *text, int64_t *ret_ns)
{
    int64_t ms;
    if (clock_parse_rfc3339(text, &ms) < 0 || ms > INT64_MAX / NS_PER_MS - 1000 ||
        ms < INT64_MIN / NS_PER_MS + 1000)
        return -1;
    int64_t s = ms >= 0 ? ms / 1000 : -((999 - ms) / 1000);
    *ret_ns = s * NS_PER_S + fraction_ns(text);
    return 0;
}

static int read_since(const struct pairs *query, int64_t now_unix_ms, struct log_options *o,
                      struct err *err)
{
    int64_t seconds = 0;
    const char *time = pairs_get(query, "sinceTime");
    int rc = number_of(query, "sinceSeconds", 1, &seconds, err);
    if (rc < 0)
        return rc;
    if (seconds > 0)
        o->since_ns =
            seconds > now_unix_ms / 1000 ? INT64_MIN : (now_unix_ms - seconds * 1000) * NS_PER_MS;
    if (time && *time && parse_time(time, &o->since_ns) < 0)
        return err_set(err, ERR_INVALID, "sinceTime: \"%s\" is no time", time);
    return 0;
}

static int read_stream(const struct pairs *query, struct log_options *o, struct err *err)
{
    static const char *const names[] = {"Stdout", "Stderr"};
    const char *value = pairs_get(query, "stream");
    bool is_all = !value || !*value || strcmp(value, "All") == 0, is_known = is_all;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bool is_it = !is_all && strcmp(value, names[i]) == 0;
        o->streams[i] = is_all || is_it;
        is_known |= is_it;
    }
    return is_known
               ? 0
               : err_set(err, ERR_INVALID, "stream: \"%s\" is none of All, Stdout, Stderr", value);
}

int log_options_read(const struct pairs *query, int64_t now_unix_ms, struct log_options *ret,
                     struct err *err)
{
    struct log_options o = {
        .follows = flag_of(query, "follow"),
        .previous = flag_of(query, "previous"),
        .timestamps = flag_of(query, "timestamps"),
        .tail = -1,
        .limit = -1,
        .since_ns = INT64_MIN,
    };
    int rc = number_of(query, "tailLines", 0, &o.tail, err);
    if (rc == 0)
        rc = number_of(query, "limitBytes", 1, &o.limit, err);
    if (rc == 0)
        rc = read_since(query, now_unix_ms, &o, err);
    if (rc == 0)
        rc = read_stream(query, &o, err);
    if (rc == 0)
        *ret = o;
    return rc;
}

/* ---- whose ---- */

/* Why it has not begun, in the words of a kubelet. */
static int waits_for(const char *container, const char *pod, const char *reason, struct err *err)
{
    static const char *const words[][2] = {
        {"ErrImagePull", "image can't be pulled"},
        {"ImagePullBackOff", "trying and failing to pull image"},
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(reason, words[i][0]) == 0)
            reason = words[i][1];
    }
    return err_set(err, ERR_BAD_REQUEST, "container \"%s\" in pod \"%s\" is waiting to start: %s",
                   container, pod, reason);
}

static int choose(const cJSON *status, const char *container, const char *pod, bool previous,
                  const char **ret, struct err *err)
{
    const char *last = json_str_or(status, "lastState.terminated.containerID", "");
    const char *now = json_at(status, "state.running")
                          ? json_str_or(status, "containerID", "")
                          : json_str_or(status, "state.terminated.containerID", "");
    *ret = previous || !*now ? last : now;
    if (**ret)
        return 0;
    if (previous)
        return err_set(err, ERR_BAD_REQUEST,
                       "previous terminated container \"%s\" in pod \"%s\" not found", container,
                       pod);
    if (json_at(status, "state.terminated") || json_at(status, "lastState.terminated"))
        return err_set(err, ERR_BAD_REQUEST, "container \"%s\" in pod \"%s\" is terminated",
                       container, pod);
    if (json_at(status, "state.waiting"))
        return waits_for(container, pod, json_str_or(status, "state.waiting.reason", ""), err);
    return err_set(err, ERR_BAD_REQUEST,
                   "container \"%s\" in pod \"%s\" is waiting to start - no logs yet", container,
                   pod);
}

int log_choose(const cJSON *pod, const char *container, bool previous, char **ret_id,
               struct err *err)
{
    const char *name = json_str_or(pod, "metadata.name", ""), *id = "";
    if (!lookup_spec(pod, container))
        return err_set(err, ERR_NOT_FOUND, "container \"%s\" not found in pod \"%s\"", container,
                       name);
    const cJSON *status = lookup_status(pod, container);
    if (!status)
        return err_set(err, ERR_BAD_REQUEST, "container \"%s\" in pod \"%s\" is not available",
                       container, name);
    int rc = choose(status, container, name, previous, &id, err);
    if (rc == 0)
        *ret_id = xstrdup(lookup_engine_id(id));
    return rc;
}

/* ---- lines ---- */

void log_reader_fini(struct log_reader *r)
{
    buf_fini(&r->line);
}

static void put(struct log_reader *r, const char *p, size_t n, struct buf *out)
{
    int64_t left = r->options.limit < 0 ? INT64_MAX : r->options.limit - r->printed;
    if ((int64_t)n >= left) {
        n = (size_t)left;
        r->is_full = true;
    }
    buf_append(out, p, n);
    r->printed += (int64_t)n;
}

/* 2026-01-02T03:04:05.123456789+00:00 stdout F the text; P = its line goes on in the next. */
static void take_line(struct log_reader *r, const char *line, size_t n, struct buf *out)
{
    const char *end = line + n;
    const char *stream = memchr(line, ' ', n);
    const char *mark = stream ? memchr(stream + 1, ' ', (size_t)(end - stream - 1)) : NULL;
    if (!mark || end - mark < 3 || mark[2] != ' ')
        return; /* not the engine's */
    bool is_part = mark[1] == 'P', is_first = !r->is_inside;
    bool is_skipped = r->lines < r->skip;
    size_t which = str_has_prefix(stream + 1, "stderr ");
    int64_t at_ns = INT64_MAX;
    SCOPED_FREE char *time = xstrndup(line, (size_t)(stream - line));
    r->is_inside = is_part;
    r->lines += !is_part;
    if (is_skipped || !r->options.streams[which])
        return;
    if (r->options.since_ns != INT64_MIN && parse_time(time, &at_ns) == 0 &&
        at_ns < r->options.since_ns)
        return;
    if (r->options.timestamps && is_first) {
        put(r, time, strlen(time), out);
        put(r, " ", 1, out);
    }
    put(r, mark + 3, (size_t)(end - mark) - 3, out);
    if (!is_part)
        put(r, "\n", 1, out);
}

void log_read(struct log_reader *r, const char *p, size_t n, struct buf *out)
{
    r->line.max = LOG_LINE_MAX;
    while (n > 0 && !r->is_full) {
        const char *end = memchr(p, '\n', n);
        size_t len = end ? (size_t)(end - p) : n;
        buf_append(&r->line, p, len);
        if (end && !buf_failed(&r->line))
            take_line(r, buf_cstr(&r->line), r->line.len, out);
        if (end)
            buf_clear(&r->line);
        len += end != NULL;
        p += len;
        n -= len;
    }
}
