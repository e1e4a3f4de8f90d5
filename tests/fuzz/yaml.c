/* Fuzz target for base/yaml: whatever parses prints as YAML that parses again, equal and printing
 * the same, and as JSON that the YAML reader takes for the same. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* A deep tree may print too large, or nest deeper than YAML may. */
static void check_yaml(const cJSON *tree)
{
    SCOPED(buf_fini) struct buf text = {0}, twice = {0};
    SCOPED(json_free_p) cJSON *again = NULL;
    SCOPED(err_fini) struct err err = {0};
    yaml_print(tree, &text);
    if (buf_failed(&text))
        return;
    if (yaml_parse(text.data, text.len, NULL, &again, &err) < 0) {
        require(err.code == ERR_TOO_LARGE || strstr(err_text(&err), "max depth"));
        return;
    }
    require(json_equal(tree, again));
    yaml_print(again, &twice);
    require(text.len == twice.len && memcmp(text.data, twice.data, text.len) == 0);
}

static void check_json(const cJSON *tree)
{
    SCOPED(json_free_p) cJSON *again = NULL;
    SCOPED_FREE char *text = json_to_str(tree);
    require(yaml_parse(text, strlen(text), NULL, &again, NULL) == 0);
    require(json_equal(tree, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED(pairs_fini) struct pairs repeated = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    const struct json_opts opts = {.flags = JSON_KEEP_LAST_DUPLICATE | JSON_REPLACE_BAD_UTF8,
                                   .duplicates = &repeated};
    int r = yaml_parse((const char *)data, size, &opts, &tree, &err);
    require((r == 0) == (tree != NULL) && r == -(int)err.code);
    require(r == 0 || *err_text(&err));
    if (tree) {
        check_yaml(tree);
        check_json(tree);
    }
    return 0;
}
