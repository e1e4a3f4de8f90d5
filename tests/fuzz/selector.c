/* Fuzz target for registry/select and registry/continue: the first line is a label selector, the
 * second a field selector, the third a continue token. What parses can be matched, and what it says
 * to a review is well formed; what is refused says why. A token that parses names a place that
 * prints as a token for the same place. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/continue.h"
#include "apiserver/registry/select.h"
#include "openapi/kinds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static struct object *sample(void)
{
    static const char json[] = "{\"apiVersion\":\"agents.x-k8s.io/"
                               "v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"labels\":{"
                               "\"app\":\"web\",\"e\":\"\",\"k\":\"10\"},\"name\":\"a\","
                               "\"namespace\":\"ns\",\"uid\":\"u\"}}";
    struct object *o = NULL;
    require(object_from_bytes(&kind_sandbox, xstrdup(json), sizeof json - 1, 1, &o, NULL) == 0);
    return o;
}

static void check_requirements(cJSON *whole)
{
    const cJSON *r;
    cJSON_ArrayForEach(r, json_get(whole, "requirements"))
        require(json_str(r, "key") && json_str(r, "operator"));
    json_free(whole);
}

static void check_selector(const char *label, const char *field)
{
    struct selector *s = NULL;
    SCOPED(err_fini) struct err err = {0};
    SCOPED(object_unref_p) struct object *o = sample();
    if (selector_parse(label, field, &s, &err) < 0) {
        require(!s && err.code == ERR_BAD_REQUEST && *err_text(&err));
        return;
    }
    require(err.code == ERR_NONE);
    bool matches = selector_matches(s, o);
    require(matches || !selector_is_empty(s));
    if (matches && selector_name(s))
        require(strcmp(selector_name(s), o->name) == 0);
    check_requirements(selector_label_requirements(s));
    check_requirements(selector_field_requirements(s));
    selector_free(s);
}

static void check_token(const char *token)
{
    SCOPED(continue_point_fini) struct continue_point point = {0}, again = {0};
    SCOPED(err_fini) struct err err = {0};
    if (continue_parse(token, &point, &err) < 0) {
        require(!point.start && *err_text(&err));
        return;
    }
    SCOPED_FREE char *printed = continue_print(point.rev, point.start);
    require(continue_parse(printed, &again, NULL) == 0);
    require(again.rev == point.rev && strcmp(again.start, point.start) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED_FREE char *label = xstrndup((const char *)data, size);
    char *field = strchr(label, '\n');
    if (field)
        *field++ = '\0';
    char *token = field ? strchr(field, '\n') : NULL;
    if (token)
        *token++ = '\0';
    check_selector(label, field ? field : "");
    if (token)
        check_token(token);
    return 0;
}
