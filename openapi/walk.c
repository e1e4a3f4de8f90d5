/* Paths of the visitors; see walk.h. */
#include "openapi/walk.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

void walk_path_print(const struct walk_path *path, struct buf *out)
{
    if (!path)
        return;
    walk_path_print(path->up, out);
    if (!path->name) {
        buf_printf(out, "[%zu]", path->index);
        return;
    }
    if (path->up)
        buf_putc(out, '.');
    buf_puts(out, path->name);
}

struct field walk_item_field(const struct field *f)
{
    return (struct field){
        .name = f->name, .type = f->item, .of = f->of, .is_atomic = f->items_atomic, .doc = f->doc};
}

/* Most defaults are plain words: those need no parser. */
cJSON *walk_default(const struct field *f)
{
    size_t n = strlen(f->dflt);
    if (n >= 2 && *f->dflt == '"' && !memchr(f->dflt, '\\', n)) {
        SCOPED_FREE char *word = xstrndup(f->dflt + 1, n - 2);
        return json_string(word);
    }
    cJSON *tree = NULL;
    return json_parse_str(f->dflt, &tree, NULL) == 0
               ? tree
               : json_null(); /* kinds_check finds those that do not parse */
}
