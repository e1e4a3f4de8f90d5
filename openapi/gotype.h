/* Whether trees have the types of Go's structs, which clients and tests know by the texts of Go's
 * decoder, for what kube-apiserver does not hold against a schema: metadata, and Scale. Pure; any
 * thread. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/err.h"

/* The text of the first wrong member, owned; NULL when all are right. A null is right anywhere. */
char *gotype_check_metadata(const cJSON *metadata);
char *gotype_check_scale(const cJSON *scale); /* without apiVersion and kind */
/* Whether apiVersion is the one that is served. */
int gotype_check_version(const cJSON *object, const char *expected, struct err *err);
/* Takes away times and numbers of metadata that are none: what apply has made is no text, and Go
 * reads it member by member without refusing one. */
void gotype_forget_unreadable(cJSON *metadata);
/* What Go makes of null: nothing of a member, the empty text or struct of an item; and of times.
 * metadata is right. */
void gotype_settle_metadata(cJSON *metadata);
