/* One line per event on stderr: ts= level= src= id= and the text, which is key=value too; values
 * that may hold blanks stand in quotes that the caller writes. No line carries a token, a secret or
 * a body. Any thread. */
#pragma once

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_set_level(enum log_level level);                /* default LOG_INFO */
int log_parse_level(const char *s, enum log_level *ret); /* debug info warn error; 0 or -1 */
/* Id put into every line of this thread until changed (a request's Audit-Id); NULL = none. The
 * string is copied, cut at 63 bytes, and control bytes in any logged text are written as \xNN. */
void log_set_id(const char *id);
void log_write(enum log_level level, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Where lines go instead of stderr, for tests; NULL = stderr. */
void log_set_sink(void (*sink)(void *ctx, const char *line), void *ctx);

#define log_debug(...) log_write(LOG_DEBUG, __FILE__, __LINE__, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __FILE__, __LINE__, __VA_ARGS__)
