/* Our tables against the CustomResourceDefinitions of the original, member by member, where a
 * folder with them is at hand: $AGENT_SANDBOX_SHARED, or ../shared beside the tree. Only what is
 * listed here may differ. Skipped without the folder. */
#include <stdio.h>

#include "apiserver/base/json.h"
#include "apiserver/base/yaml.h"
#include "openapi/doc.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

static const struct {
    const char *suffix; /* of the path */
    const char *reason;
} allowed[] = {
    {".x-kubernetes-validations", "our own wording of the same rule, and the later rule on names"},
    {".metadata.properties", "the name, which that rule points at"},
    {".spec.podFailurePolicy", "added after the snapshot"},
    {".status.conditions", "ours: SandboxWarmPool says what keeps it from filling"},
    {".evictionResponders", "PodSpec of 1.37"},
    {".bindMountOptions", "PodSpec of 1.37"},
    {".httpGet.protocol", "PodSpec of 1.37"},
    {".grpc.mode", "PodSpec of 1.37"},
    {".emptyDir.mode", "PodSpec of 1.37"},
    {".defaultUser", "PodSpec of 1.37"},
    {"[].user", "PodSpec of 1.37: owner of a projected file"},
    {".clusterTrustBundle.user", "PodSpec of 1.37"},
    {".podCertificate.user", "PodSpec of 1.37"},
    {".serviceAccountToken.user", "PodSpec of 1.37"},
};

static bool is_allowed(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (str_has_suffix(path, allowed[i].suffix))
            return true;
    return false;
}

static size_t differences;

static void differ(const char *path, const char *what)
{
    if (is_allowed(path))
        return;
    (void)printf("# %s: %s\n", path, what);
    differences++;
}

static void compare(const cJSON *ours, const cJSON *theirs, const char *path);

/* Members of a schema or of properties; a property's name becomes part of the path, a keyword's
 * only where it is named. */
static void compare_members(const cJSON *ours, const cJSON *theirs, const char *path,
                            bool are_properties)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, ours)
    {
        SCOPED_FREE char *here = xasprintf("%s.%s", path, member->string);
        if (!are_properties && strcmp(member->string, "description") == 0)
            continue;
        const cJSON *other = json_get(theirs, member->string);
        if (!other)
            differ(here, "only in ours");
        else if (are_properties)
            compare(member, other, here);
    }
    cJSON_ArrayForEach(member, theirs)
    {
        SCOPED_FREE char *here = xasprintf("%s.%s", path, member->string);
        if (!json_get(ours, member->string))
            differ(here, "only in theirs");
    }
}

static void compare(const cJSON *ours, const cJSON *theirs, const char *path)
{
    compare_members(ours, theirs, path, false);
    const cJSON *member;
    cJSON_ArrayForEach(member, ours)
    {
        const cJSON *other = json_get(theirs, member->string);
        SCOPED_FREE char *below = xasprintf("%s[]", path);
        SCOPED_FREE char *here = xasprintf("%s.%s", path, member->string);
        if (!other || strcmp(member->string, "description") == 0)
            continue;
        if (strcmp(member->string, "properties") == 0)
            compare_members(member, other, path, true);
        else if (strcmp(member->string, "items") == 0 ||
                 strcmp(member->string, "additionalProperties") == 0)
            compare(member, other, below);
        else if (!json_equal(member, other))
            differ(here, "differs");
    }
}

static bool read_file(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    char chunk[65536];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_append(out, chunk, n);
    return fclose(f) == 0;
}

static const cJSON *version_of(const cJSON *crd, const char *name)
{
    const cJSON *version;
    cJSON_ArrayForEach(version,
                       json_at(crd, "spec.versions")) if (str_equal(json_str(version, "name"),
                                                                    name)) return version;
    return NULL;
}

static void compare_equal(const cJSON *ours, const cJSON *theirs, const char *path)
{
    bool both_empty =
        !json_len(ours) && !json_len(theirs) && !cJSON_IsString(ours) && !cJSON_IsString(theirs);
    if (!both_empty && !json_equal(ours, theirs))
        differ(path, "differs");
}

START_TEST(test_kind)
{
    const struct kind *kind = kinds_all[_i];
    const char *shared = getenv("AGENT_SANDBOX_SHARED");
    SCOPED_FREE char *path = xasprintf("%s/data/crds/%s_%s.yaml", shared ? shared : "../shared",
                                       kind->group, kind->plural);
    SCOPED(buf_fini) struct buf text = {0}, printed = {0};
    if (!read_file(path, &text)) {
        (void)printf("# skip: no %s\n", path);
        return;
    }
    SCOPED(json_free_p) cJSON *theirs = NULL;
    SCOPED(json_free_p) cJSON *ours = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(yaml_parse(text.data, text.len, NULL, &theirs, &err) == 0, "%s", err_text(&err));
    doc_crd_print(kind, &printed);
    ck_assert_int_eq(json_parse(printed.data, printed.len, NULL, &ours, NULL), 0);

    const cJSON *our_version = version_of(ours, "v1beta1"),
                *their_version = version_of(theirs, "v1beta1");
    ck_assert(our_version && their_version);
    compare(json_at(our_version, "schema.openAPIV3Schema"),
            json_at(their_version, "schema.openAPIV3Schema"), "");
    static const char *const parts[] = {"additionalPrinterColumns", "subresources", "served",
                                        "storage"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        compare_equal(json_get(our_version, parts[i]), json_get(their_version, parts[i]), parts[i]);
    static const char *const spec_parts[] = {"group", "names", "scope"};
    for (size_t i = 0; i < ARRAY_LEN(spec_parts); i++)
        compare_equal(json_get(json_get(ours, "spec"), spec_parts[i]),
                      json_get(json_get(theirs, "spec"), spec_parts[i]), spec_parts[i]);
    ck_assert_msg(differences == 0, "%s: %zu differences, listed above", kind->kind, differences);
}
END_TEST

SUITE(crd_compare)
{
    LOOP("kinds", test_kind, 0, 4);
}
