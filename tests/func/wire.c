/* What openapi/wire makes of protocol buffers, for a test in Go to compare (tests/compat/wire): a
 * line `APIVERSION KIND BASE64` in, a line of JSON out, or an exclamation mark and the error. */
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/wire.h"

static void decode(char *line, struct buf *out)
{
    char *version = line, *kind = strchr(version, ' '), *text = kind ? strchr(kind + 1, ' ') : NULL;
    SCOPED(buf_fini) struct buf bytes = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (!text)
        exit(2);
    *kind++ = *text++ = '\0';
    const struct wire_message *m = wire_find(version, kind);
    if (!m || !buf_unbase64(&bytes, text, strlen(text)))
        exit(2);
    if (wire_decode(m, buf_str(&bytes), &tree, &err) == 0)
        json_print(tree, out);
    else
        buf_printf(out, "!%s", err_text(&err));
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    while ((n = getline(&line, &size, stdin)) > 0) {
        SCOPED(buf_fini) struct buf out = {0};
        line[n - 1] = '\0';
        decode(line, &out);
        (void)puts(buf_cstr(&out));
        (void)fflush(stdout);
    }
    free(line);
    return 0;
}
