/* Two kinds over the same stored objects, as Events have two groups: the store holds one form, the
 * table of the other kind is made of it, member by member. Pure; any thread. */
#pragma once

#include "apiserver/registry/object.h"
#include "storage/store.h"

/* The kind whose form is stored: its own, mostly. */
const struct kind *alias_stored_kind(const struct kind *kind);
/* An object of that kind from what the store holds; takes the value of kv. Errors: as
 * object_from_bytes. */
int alias_object(const struct kind *kind, struct store_kv *kv, struct object **ret,
                 struct err *err);
/* What is stored of an object of that kind; NULL = the very same bytes. Owned by the caller. */
char *alias_stored_bytes(const struct kind *kind, const char *json, size_t len, size_t *ret_len);
