/* What a client accepts: media type, transformation (Table, PartialObjectMetadata), layout. Decided
 * before anything is read or written. Source: docs/kubernetes-api.md 12.1. Pure; any thread. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/err.h"
#include "apiserver/base/str.h"

enum media { MEDIA_JSON, MEDIA_YAML };
enum transform { TRANSFORM_NONE, TRANSFORM_TABLE, TRANSFORM_PARTIAL, TRANSFORM_PARTIAL_LIST };

struct negotiated {
    enum media media;
    enum transform transform;
    const char
        *transform_version; /* meta.k8s.io/v1 or .../v1beta1 (static); NULL without a transform */
    bool is_pretty;
};

enum negotiate_for {
    NEGOTIATE_RESOURCE, /* transforms are allowed */
    NEGOTIATE_WATCH,    /* and JSON alone */
    NEGOTIATE_PLAIN,    /* discovery, errors: no transforms */
};

/* headers are the request's, params its query. Errors: ERR_NOT_ACCEPTABLE. */
int negotiate(const struct pairs *headers, const struct pairs *params, enum negotiate_for purpose,
              struct negotiated *ret, struct err *err);
/* The form of an error's body: what was asked for, JSON when nothing fits. */
struct negotiated negotiate_error(const struct pairs *headers, const struct pairs *params);
/* The first acceptable clause of GET /apis: "v2", "v2beta1" (aggregated), or NULL for the plain
 * document in *ret_plain. */
int negotiate_discovery(const struct pairs *headers, const struct pairs *params,
                        const char **ret_aggregated, struct negotiated *ret_plain, struct err *err);
/* Does Accept (absent counts) take JSON, as the OpenAPI endpoints mean it: by type alone, whatever
 * the parameters? */
bool negotiate_takes_json(const struct pairs *headers);
/* Accept-Encoding names gzip; q is not looked at. */
bool negotiate_takes_gzip(const struct pairs *headers);

enum body_type {
    BODY_JSON,
    BODY_YAML,
    BODY_PROTOBUF,
    BODY_JSON_PATCH,
    BODY_MERGE_PATCH,
    BODY_STRATEGIC_PATCH,
    BODY_APPLY
};
/* From Content-Type (absent = JSON) of POST, PUT and DELETE; takes_protobuf: of a kind of
 * Kubernetes itself. Errors: ERR_UNSUPPORTED_MEDIA. Source: 12.2. */
int negotiate_body(const struct pairs *headers, bool takes_protobuf, enum body_type *ret,
                   struct err *err);
/* The same for PATCH; takes_strategic: of a kind that takes that form, too. */
int negotiate_patch(const struct pairs *headers, bool takes_strategic, enum body_type *ret,
                    struct err *err);
