/* Request bodies as trees, with kube-apiserver's texts for what does not decode. Source:
 * docs/kubernetes-api.md 15, 18.1, 22.2, 27. Any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/http/negotiate.h"
#include "apiserver/http/request.h"
#include "apiserver/registry/registry.h"

/* The JSON type of a node in the words of Go's decoder: string, number, bool, array, object. */
const char *body_go_type(const cJSON *node);
/* Kubernetes' own kinds may come as protocol buffers; custom resources may not. */
bool body_may_be_protobuf(const struct request *req);
/* -ERR_TOO_LARGE when more came than is allowed. */
int body_check_size(const struct request *req, struct err *err);

/* The object of POST or PUT. Repeated fields go to findings as texts, for admission. ret is owned
 * by the caller. Its kind is any but there, its apiVersion that of kind. Errors:
 * ERR_UNSUPPORTED_MEDIA, ERR_TOO_LARGE, ERR_BAD_REQUEST. */
int body_decode_object(const struct request *req, const struct kind *kind,
                       enum field_validation validation, struct pairs *findings, cJSON **ret,
                       struct err *err);
/* Options (DeleteOptions) or a foreign kind: kind and apiVersion may be absent, and are the given
 * ones then. Repeated fields go to findings unless that is NULL. Errors as above. */
int body_decode_options(const struct request *req, const char *api_version, const char *kind,
                        struct pairs *findings, cJSON **ret, struct err *err);
/* Whether kind and apiVersion are texts, and the latter a group and version. */
int body_check_head(const cJSON *tree, struct err *err);
/* no kind "X" is registered for version "Y" */
int body_unregistered(const char *kind, const char *version, struct err *err);
/* Checks what of a decoded object Go decodes into typed fields, apiVersion and kind. The error's
 * text has no prefix. */
int body_check_type_meta(const cJSON *tree, struct str text, struct err *err);
/* The body of a JSON or merge patch, whatever its shape. Repeated fields go to findings. Errors:
 * ERR_BAD_REQUEST, ERR_TOO_LARGE. */
int body_decode_patch(const struct request *req, enum body_type type, struct pairs *findings,
                      cJSON **ret, struct err *err);
/* Whether it is a list of operations, an object. */
int body_check_patch(const cJSON *tree, enum body_type type, struct err *err);
/* The body of an apply: any tree, null when it is empty. Repeated keys go to findings as texts.
 * Errors: ERR_BAD_REQUEST for what is no YAML, ERR_TOO_LARGE. */
int body_decode_apply(const struct request *req, struct pairs *findings, cJSON **ret,
                      struct err *err);
