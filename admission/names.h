/* Name checks of admission itself; those for others are in admit.h. Each adds its failures as
 * causes on field and returns their number. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "apiserver/base/err.h"
#include "openapi/shape.h"

/* An object's name of that form, or a generateName (is_prefix). */
size_t name_check_object(const char *s, bool is_prefix, enum name_form form, const char *field,
                         struct err *causes);
/* As a label's key, upper case allowed in the prefix part. */
size_t name_check_annotation_key(const char *s, const char *field, struct err *causes);
