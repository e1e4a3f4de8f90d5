/* What the tests of decisions about a Sandbox share: Sandboxes and metadata as JSON text. */
#pragma once

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

#define NOW_S 1767225600 /* 2026-01-01T00:00:00Z */
#define HASH "374de8f5"  /* of my-sandbox */
#define OWNER(uid)                                                                                 \
    "\"ownerReferences\":[{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\","       \
    "\"name\":\"my-sandbox\",\"uid\":\"" uid                                                       \
    "\",\"controller\":true,\"blockOwnerDeletion\":true}]"
#define OURS OWNER("u-1")
#define META(more)                                                                                 \
    "\"metadata\":{\"name\":\"my-sandbox\",\"namespace\":\"ns\",\"uid\":\"p-1\"" more "}"

static inline cJSON *parse(const char *text)
{
    cJSON *tree;
    struct err err = {0};
    if (json_parse_str(text, &tree, &err) < 0)
        ck_abort_msg("%s: %s", err_text(&err), text);
    return tree;
}

static inline cJSON *sandbox_with(const char *meta, const char *spec, const char *status)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":"
        "\"my-sandbox\",\"namespace\":\"ns\",\"uid\":\"u-1\",\"generation\":3%s},\"spec\":{"
        "\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}%s},"
        "\"status\":%s}",
        meta, spec, status);
    return parse(text);
}
