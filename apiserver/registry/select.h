/* Label and field selectors: parsed once, matched against objects. Texts of errors as
 * kube-apiserver's (docs/kubernetes-api.md 25). Pure; any thread. */
#pragma once

#include "apiserver/base/err.h"
#include "apiserver/registry/object.h"

struct selector; /* labels and fields together */
/* Of any kind: fields are name and namespace. label_text and field_text may be NULL or ""
 * (everything). Errors: ERR_BAD_REQUEST. */
int selector_parse(const char *label_text, const char *field_text, struct selector **ret,
                   struct err *err);
/* The same over the fields that objects of that kind are selected by. */
int selector_parse_of(const struct kind *kind, const char *label_text, const char *field_text,
                      struct selector **ret, struct err *err);
/* That in two steps, between which kube-apiserver looks at other parameters: the grammar, then
 * whether the kind has the fields. */
int selector_read(const struct kind *kind, const char *label_text, const char *field_text,
                  struct selector **ret, struct err *err);
int selector_check(const struct selector *s, struct err *err);
/* Demands that name as metadata.name=NAME does. */
void selector_add_name(struct selector *s, const char *name);
bool selector_has_fields(const struct selector *s);
void selector_free(struct selector *s);
bool selector_is_empty(const struct selector *s);
bool selector_matches(const struct selector *s, const struct object *o);
/* The name that a field selector metadata.name=X demands, or NULL (RBAC's resourceNames on watches
 * rely on it). */
const char *selector_name(const struct selector *s);
/* The selectors as requirements for a SubjectAccessReview: {"requirements":[...]}, owned by the
 * caller; NULL when there are none. */
cJSON *selector_label_requirements(const struct selector *s);
cJSON *selector_field_requirements(const struct selector *s);
