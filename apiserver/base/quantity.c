#include "apiserver/base/quantity.h"

#include <stddef.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

static const struct suffix {
    const char *text;
    int64_t times;   /* or */
    int64_t divided; /* of thousandths */
} suffixes[] = {
    {"", 1000, 1},
    {"m", 1, 1},
    {"u", 1, 1000},
    {"n", 1, 1000000},
    {"k", 1000LL * 1000, 1},
    {"M", 1000LL * 1000000, 1},
    {"G", 1000LL * 1000000000, 1},
    {"T", 1000LL * 1000000000000, 1},
    {"P", 1000LL * 1000000000000000, 1},
    {"Ki", 1000LL << 10, 1},
    {"Mi", 1000LL << 20, 1},
    {"Gi", 1000LL << 30, 1},
    {"Ti", 1000LL << 40, 1},
    {"Pi", 1000LL << 50, 1},
};

static const struct suffix *suffix_find(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (strcmp(text, suffixes[i].text) == 0)
            return &suffixes[i];
    }
    return NULL;
}

/* Numbers in 128 bits, so that nothing that fits in the end is lost on the way. */
int quantity_parse_milli(const char *text, int64_t *ret)
{
    static const __int128 limit = INT64_MAX;
    __int128 value = 0, scale = 1;
    bool has_digits = false, has_point = false;
    if (*text == '+')
        text++;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !has_point); text++) {
        if (*text == '.') {
            has_point = true;
            continue;
        }
        has_digits = true;
        if (value > limit || scale > limit / 10)
            return -1;
        value = value * 10 + (*text - '0');
        scale *= has_point ? 10 : 1;
    }
    const struct suffix *suffix = suffix_find(text);
    if (!has_digits || !suffix)
        return -1;
    if (value > limit)
        value = limit;
    __int128 by = scale * suffix->divided;
    /* at most 2^63 * 2^60 */
    __int128 milli = (value * suffix->times + by - 1) / by;
    *ret = milli > limit ? INT64_MAX : (int64_t)milli;
    return 0;
}

int quantity_read_milli(const cJSON *quantity, int64_t *ret)
{
    if (cJSON_IsString(quantity))
        return quantity_parse_milli(quantity->valuestring, ret);
    if (!cJSON_IsNumber(quantity))
        return -1;
    SCOPED_FREE char *text = json_to_str(quantity);
    return quantity_parse_milli(text, ret);
}
