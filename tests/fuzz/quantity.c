/* Fuzz target for quantities in openapi/semantic: what is none stays as it is; the form of one is a
 * quantity that is its own form, and a plus sign in front changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "openapi/pattern.h"
#include "openapi/semantic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_form(const char *text, const char *want)
{
    SCOPED(buf_fini) struct buf form = {0};
    semantic_quantity(text, &form);
    require(strcmp(buf_cstr(&form), want) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED_FREE char *text = xstrndup((const char *)data, size);
    SCOPED(buf_fini) struct buf form = {0};
    semantic_quantity(text, &form);
    if (!pattern_matches(PATTERN_QUANTITY, text)) {
        require(strcmp(buf_cstr(&form), text) == 0);
        return 0;
    }
    require(pattern_matches(PATTERN_QUANTITY, buf_cstr(&form)));
    require_form(buf_cstr(&form), buf_cstr(&form));
    if (*text == '+' || *text == '-' || strcmp(buf_cstr(&form), text) == 0)
        return 0;
    SCOPED_FREE char *with_sign = xasprintf("+%s", text);
    require_form(with_sign, buf_cstr(&form));
    return 0;
}
