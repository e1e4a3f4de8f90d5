/* The wire format of protocol buffers: fields one after the other, each a number and a value.
 * Source: protobuf.dev, "Encoding"; errors are those of Go's generated code. Pure; any thread. */
#pragma once

#include "apiserver/base/err.h"
#include "apiserver/base/str.h"

enum pb_type { PB_VARINT, PB_FIXED64, PB_BYTES, PB_GROUP, PB_GROUP_END, PB_FIXED32 };
struct pb_field {
    int32_t number; /* not looked at: also 0 and less */
    uint64_t tag;   /* as it was read */
    enum pb_type type;
    uint64_t value;   /* PB_VARINT */
    struct str bytes; /* PB_BYTES, borrowed */
};

/* The next field of *rest, which moves behind it; a group counts as one and is stepped over. 1, 0
 * at the end. Errors: ERR_BAD_REQUEST. */
int pb_next(struct str *rest, struct pb_field *ret, struct err *err);
/* A number without a tag, as packed lists have them. */
int pb_varint(struct str *rest, uint64_t *ret, struct err *err);
