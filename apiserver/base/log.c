/* Lines are put together on the stack of the thread that logs and leave in one write, so nothing is
 * locked or allocated, and what is logged last before a crash is out. */
#include "apiserver/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/clock.h"

#define LINE_MAX_BYTES 8192 /* with the newline; what is longer ends in "..." */
#define ID_MAX_BYTES 63

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static atomic_int min_level = LOG_INFO;
static _Thread_local char thread_id[ID_MAX_BYTES + 1];

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*sink_fn)(void *ctx, const char *line); /* under sink_lock */
static void *sink_ctx;                               /* under sink_lock */
static atomic_bool has_sink;

void log_set_level(enum log_level level)
{
    atomic_store(&min_level, (int)level);
}

int log_parse_level(const char *s, enum log_level *ret)
{
    for (int i = LOG_DEBUG; i <= LOG_ERROR; i++) {
        if (strcmp(s, level_names[i]) == 0) {
            *ret = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

void log_set_id(const char *id)
{
    snprintf(thread_id, sizeof thread_id, "%s", id != NULL ? id : "");
}

void log_set_sink(void (*sink)(void *ctx, const char *line), void *ctx)
{
    pthread_mutex_lock(&sink_lock);
    sink_fn = sink;
    sink_ctx = ctx;
    atomic_store(&has_sink, sink != NULL);
    pthread_mutex_unlock(&sink_lock);
}

struct line {
    char text[LINE_MAX_BYTES + 1];
    size_t len;
    bool is_cut;
};

/* Room is kept for "..." and the newline. */
static void add(struct line *l, const char *s, size_t n)
{
    if (l->is_cut || l->len + n > LINE_MAX_BYTES - 4) {
        l->is_cut = true;
        return;
    }
    memcpy(l->text + l->len, s, n);
    l->len += n;
}

static void add_str(struct line *l, const char *s)
{
    add(l, s, strlen(s));
}

/* Control bytes would let a logged text forge a line or drive a terminal. */
static void add_escaped(struct line *l, const char *s)
{
    char hex[5];
    for (; *s != '\0' && !l->is_cut; s++) {
        unsigned char c = (unsigned char)*s;
        if (c >= 0x20 && c != 0x7f) {
            add(l, s, 1);
        } else {
            snprintf(hex, sizeof hex, "\\x%02x", c);
            add(l, hex, 4);
        }
    }
}

static void add_head(struct line *l, enum log_level level, const char *file, int line_no)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    char at[CLOCK_TEXT_SIZE], head[64];
    clock_print_rfc3339_micro((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000, at);
    snprintf(head, sizeof head, "ts=%.23sZ level=%s src=", at, level_names[level]);
    add_str(l, head);
    add_str(l, file);
    snprintf(head, sizeof head, ":%d ", line_no);
    add_str(l, head);
    if (thread_id[0] != '\0') {
        add_str(l, "id=");
        add_escaped(l, thread_id);
        add_str(l, " ");
    }
}

/* One call a line, so lines of several threads and processes do not mix. A log that cannot be
 * written is lost. */
static void write_stderr(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(STDERR_FILENO, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return;
        p += done;
        n -= (size_t)done;
    }
}

static bool write_sink(const struct line *l)
{
    if (!atomic_load(&has_sink))
        return false;
    pthread_mutex_lock(&sink_lock);
    bool is_written = sink_fn != NULL;
    if (is_written)
        sink_fn(sink_ctx, l->text);
    pthread_mutex_unlock(&sink_lock);
    return is_written;
}

static void end_line(struct line *l)
{
    if (l->is_cut) {
        memcpy(l->text + l->len, "...", 3);
        l->len += 3;
    }
    l->text[l->len] = '\0';
}

void log_write(enum log_level level, const char *file, int line, const char *fmt, ...)
{
    if ((int)level < atomic_load(&min_level))
        return;
    int saved_errno = errno;
    char text[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct line l;
    l.len = 0;
    l.is_cut = false;
    add_head(&l, level, file, line);
    add_escaped(&l, text);
    end_line(&l);
    if (!write_sink(&l)) {
        l.text[l.len++] = '\n';
        write_stderr(l.text, l.len);
    }
    errno = saved_errno;
}
