/* What the rules between fields cost, kind by kind:
 *
 *   rules_bench [OBJECTS]
 *
 * Validates that many objects of each kind (10,000 by default) by the rules of its table, as an
 * update that changes nothing, and prints microseconds of processor time an object: of the rules
 * alone, and of the whole validation with the table's types and bounds. The rule "regex" is one of
 * the bench: the pattern of a DNS label on a name of 63 characters. Exit code 1 when an object is
 * refused. */
#include <stdio.h>
#include <time.h>

#include "admission/rules.h"
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/validate.h"

#define NAME "a-name-of-sixty-three-characters-that-a-service-may-have-as-well"
#define POD                                                                                        \
    "\"podTemplate\":{\"metadata\":{\"labels\":{\"app\":\"a\"}},\"spec\":{\"containers\":[{"       \
    "\"name\":\"main\",\"image\":\"example.org/app:1\",\"ports\":[{\"containerPort\":8080,"        \
    "\"protocol\":\"TCP\"}],\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"}}"  \
    "}]}}"
#define VOLUMES                                                                                    \
    "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":["      \
    "\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}},{\"metadata\":{"      \
    "\"name\":\"cache\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{"            \
    "\"requests\":{\"storage\":\"1Gi\"}}}}]"
#define META "\"metadata\":{\"name\":\"" NAME "\",\"namespace\":\"default\",\"uid\":\"u\"}"

static const struct rule regex_rules[] = {
    {.rule = "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", .message = "a label"},
    {0}};
static const struct field regex_fields[] = {{.name = "metadata", .type = F_META}, {0}};
static const struct shape regex_shape = {
    .name = "Regex", .fields = regex_fields, .rules = regex_rules};
static const struct kind regex_kind = {.kind = "regex", .shape = &regex_shape};

static const struct {
    const struct kind *kind;
    const char *object;
} cases[] = {
    {&kind_sandbox, "{" META ",\"spec\":{" POD "," VOLUMES ",\"service\":true}}"},
    {&kind_sandbox_template, "{" META ",\"spec\":{" POD "," VOLUMES "}}"},
    {&kind_sandbox_claim, "{" META ",\"spec\":{\"warmPoolRef\":{\"name\":\"p\"}," VOLUMES
                          "},\"status\":{\"sandbox\":{\"name\":\"s\"}}}"},
    {&kind_sandbox_warm_pool, "{" META ",\"spec\":{\"replicas\":3,\"sandboxTemplateRef\":{"
                              "\"name\":\"t\"}}}"},
    {&regex_kind, "{" META "}"},
};

static double processor_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Microseconds an object; negative when one is refused. */
static double measure(const struct kind *kind, cJSON *object, const cJSON *old, long objects,
                      bool is_whole)
{
    const struct admit_request req = {.kind = kind, .old = old};
    const struct admission a = {.req = &req, .object = object};
    const struct validate_opts opts = {.old = old};
    double start = processor_us();
    for (long i = 0; i < objects; i++) {
        SCOPED(err_fini) struct err causes = {0};
        if (is_whole)
            validate_tree(object, kind->shape, &opts, &causes, NULL);
        rules_validate(&a, false, &causes);
        if (causes.n_causes > 0) {
            fprintf(stderr, "%s: %s: %s\n", kind->kind, causes.causes[0].field,
                    causes.causes[0].message);
            return -1;
        }
    }
    return (processor_us() - start) / (double)objects;
}

int main(int argc, char **argv)
{
    int64_t objects = 10000;
    if (argc > 2 || (argc == 2 && (str_to_i64(argv[1], &objects) < 0 || objects < 1))) {
        fprintf(stderr, "usage: %s [OBJECTS]\n", argv[0]);
        return 2;
    }
    printf("%-18s %10s %10s\n", "kind", "rules, us", "whole, us");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        SCOPED(json_free_p) cJSON *object = NULL, *old = NULL;
        if (json_parse_str(cases[i].object, &object, NULL) < 0)
            return 1;
        old = json_copy(object);
        double rules = measure(cases[i].kind, object, old, (long)objects, false),
               whole = measure(cases[i].kind, object, old, (long)objects, true);
        if (rules < 0 || whole < 0)
            return 1;
        printf("%-18s %10.2f %10.2f\n", cases[i].kind->kind, rules, whole);
    }
    return 0;
}
