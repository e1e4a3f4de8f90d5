/* Volumes of a server without a cluster: which one a claim gets, one that is made for it, and what
 * holds either of them. */
#include "tests/unit/reconcile/house_fixture.h"

static bool without_finalizers(void *ctx, cJSON *object)
{
    (void)ctx;
    json_remove(json_get(object, "metadata"), "finalizers");
    return true;
}

static void look_at_claim(const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *key = pass_key("x", name);
    int rc = house_claim_pass(&env, links, key, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err_text(&err));
}

static void look_at_volume(const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    int rc = house_volume_pass(&env, name, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err_text(&err));
}

/* spec: JSON text of further members. */
static struct object *make_claim(const char *name, const char *size, const char *spec)
{
    SCOPED_FREE char *members =
        xasprintf("\"metadata\":{\"name\":\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                  "\"resources\":{\"requests\":{\"storage\":\"%s\"}}%s}",
                  name, size, spec);
    return make(&kind_persistent_volume_claim, "x", members);
}

static void make_volume(const char *name, const char *size, const char *labels, const char *spec)
{
    SCOPED_FREE char *members = xasprintf(
        "\"metadata\":{\"name\":\"%s\",\"labels\":{%s}},\"spec\":{\"accessModes\":["
        "\"ReadWriteOnce\",\"ReadOnlyMany\"],\"capacity\":{\"storage\":\"%s\"},\"hostPath\":{"
        "\"path\":\"/srv/%s\"}%s}",
        name, labels, size, name, spec);
    make_and_forget(&kind_persistent_volume, "", members);
}

static void expect_text(const struct kind *kind, const char *namespace_name, const char *name,
                        const char *path, const char *expected)
{
    SCOPED(json_free_p) cJSON *tree = get(kind, namespace_name, name);
    ck_assert_msg(tree != NULL, "%s is not there", name);
    const char *text = json_str_or(tree, path, "");
    ck_assert_msg(strcmp(text, expected) == 0, "%s of %s: \"%s\"", path, name, text);
}
#define EXPECT_CLAIM(name, path, expected)                                                         \
    expect_text(&kind_persistent_volume_claim, "x", name, path, expected)
#define EXPECT_VOLUME(name, path, expected)                                                        \
    expect_text(&kind_persistent_volume, "", name, path, expected)

static void setup_volumes(void)
{
    setup();
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(house_class_pass(&env, &err), 0);
    ck_assert_int_eq(house_class_pass(&env, &err), 0); /* made once */
}

START_TEST(test_claim_gets_a_volume_of_its_own)
{
    SCOPED(object_unref_p) struct object *claim = make_claim("c", "1Gi", "");
    SCOPED_FREE char *volume = xasprintf("pvc-%s", claim->uid);
    look_at_claim("c");
    EXPECT_CLAIM("c", "status.phase", "Bound");
    EXPECT_CLAIM("c", "status.capacity.storage", "1Gi");
    EXPECT_CLAIM("c", "spec.volumeName", volume);
    EXPECT_CLAIM("c", "spec.storageClassName", "standard");
    EXPECT_VOLUME(volume, "spec.csi.volumeHandle", claim->uid);
    EXPECT_VOLUME(volume, "spec.claimRef.name", "c");
    EXPECT_VOLUME(volume, "spec.persistentVolumeReclaimPolicy", "Delete");
    look_at_volume(volume);
    EXPECT_VOLUME(volume, "status.phase", "Bound");
    drop(&kind_persistent_volume, "", volume, NULL);
    look_at_volume(volume);
    ck_assert(is_there(&kind_persistent_volume, "", volume)); /* it is in use */
    drop(&kind_persistent_volume_claim, "x", "c", NULL);
    ck_assert(is_there(&kind_persistent_volume_claim, "x", "c")); /* held until it was looked at */
    look_at_claim("c");
    ck_assert(!is_there(&kind_persistent_volume_claim, "x", "c"));
    look_at_volume(volume);
    ck_assert(!is_there(&kind_persistent_volume, "", volume));
}
END_TEST

/* A crash between the two writes: the volume is there, and the claim does not know. */
START_TEST(test_claim_finds_the_volume_that_was_made_for_it)
{
    SCOPED(object_unref_p) struct object *claim = make_claim("c", "1Gi", "");
    SCOPED_FREE char *volume = xasprintf("pvc-%s", claim->uid);
    SCOPED_FREE char *ref =
        xasprintf(",\"storageClassName\":\"standard\",\"claimRef\":{\"namespace\":\"x\",\"name\":"
                  "\"c\",\"uid\":\"%s\"}",
                  claim->uid);
    make_volume(volume, "1Gi", "", ref);
    look_at_claim("c");
    EXPECT_CLAIM("c", "spec.volumeName", volume);
    EXPECT_CLAIM("c", "status.phase", "Bound");
}
END_TEST

static const struct {
    const char *claim;    /* of its spec */
    const char *expected; /* the volume it gets, or nothing */
} choices[] = {
    {",\"storageClassName\":\"\"", "middle"}, /* the smallest that is large enough */
    {",\"storageClassName\":\"\",\"selector\":{\"matchLabels\":{\"tier\":\"gold\"}}", "large"},
    {",\"storageClassName\":\"\",\"selector\":{\"matchExpressions\":[{\"key\":\"tier\","
     "\"operator\":\"In\",\"values\":[\"iron\",\"gold\"]}]}",
     "large"},
    {",\"storageClassName\":\"\",\"selector\":{\"matchExpressions\":[{\"key\":\"tier\","
     "\"operator\":\"DoesNotExist\"}]}",
     "middle"},
    {",\"storageClassName\":\"\",\"selector\":{\"matchLabels\":{\"tier\":\"tin\"}}", ""},
    {",\"storageClassName\":\"fast\"", "fast"},
    {",\"storageClassName\":\"slow\"", ""}, /* nobody makes volumes of that class */
    {",\"storageClassName\":\"\",\"volumeMode\":\"Block\"", "block"},
    {",\"storageClassName\":\"\",\"accessModes\":[\"ReadWriteMany\"]", ""},
    {",\"storageClassName\":\"\",\"volumeName\":\"large\"", "large"},
    {",\"storageClassName\":\"\",\"volumeName\":\"taken\"", NULL},
};

START_TEST(test_choice)
{
    make_volume("small", "10Mi", "", "");
    make_volume("large", "3Gi", "\"tier\":\"gold\"", "");
    make_volume("middle", "1Gi", "", "");
    make_volume("fast", "2Gi", "", ",\"storageClassName\":\"fast\"");
    make_volume("block", "2Gi", "", ",\"volumeMode\":\"Block\"");
    make_volume("taken", "1Gi", "",
                ",\"claimRef\":{\"namespace\":\"x\",\"name\":\"c\",\"uid\":\"another\"}");
    SCOPED_FREE char *spec = xasprintf(
        "\"metadata\":{\"name\":\"c\"},\"spec\":{\"resources\":{\"requests\":{\"storage\":"
        "\"0.5Gi\"}}%s%s}",
        strstr(choices[_i].claim, "accessModes") ? "" : ",\"accessModes\":[\"ReadWriteOnce\"]",
        choices[_i].claim);
    make_and_forget(&kind_persistent_volume_claim, "x", spec);
    SCOPED(err_fini) struct err err = {0};
    int rc = house_claim_pass(&env, links, "x/c", &err);
    ck_assert_int_eq(rc, choices[_i].expected ? 0 : -ERR_CONFLICT);
    const char *expected = choices[_i].expected ? choices[_i].expected : "taken";
    EXPECT_CLAIM("c", "spec.volumeName", expected);
    EXPECT_CLAIM("c", "status.phase", choices[_i].expected && *expected ? "Bound" : "Pending");
    if (!choices[_i].expected || !*expected)
        return;
    EXPECT_VOLUME(expected, "status.phase", "Bound");
    EXPECT_VOLUME(expected, "spec.claimRef.name", "c");
    drop(&kind_persistent_volume_claim, "x", "c", NULL);
    look_at_claim("c");
    look_at_volume(expected);
    EXPECT_VOLUME(expected, "status.phase", "Released"); /* such ones are kept */
    look_at_volume("small");
    EXPECT_VOLUME("small", "status.phase", "Available");
}
END_TEST

/* To name a volume is not enough. */
static const char *const mismatches[] = {
    ",\"volumeName\":\"v\"", /* too small */
    ",\"volumeName\":\"large\",\"storageClassName\":\"other\"",
    ",\"volumeName\":\"large\",\"volumeMode\":\"Block\"",
};

START_TEST(test_named_volume_that_does_not_suit)
{
    make_volume("v", "1Gi", "", "");
    make_volume("large", "5Gi", "", "");
    object_unref(make_claim("c", "2Gi", mismatches[_i]));
    look_at_claim("c");
    EXPECT_CLAIM("c", "status.phase", "Pending");
    look_at_volume("v");
    look_at_volume("large");
    EXPECT_VOLUME("v", "status.phase", "Available");
    EXPECT_VOLUME("large", "status.phase", "Available");
    object_unref(make_claim("d", "2Gi", ",\"volumeName\":\"large\""));
    look_at_claim("d");
    EXPECT_CLAIM("d", "status.phase", "Bound");
}
END_TEST

START_TEST(test_reserved_volume)
{
    make_volume("small", "1Gi", "", "");
    make_volume("mine", "5Gi", "", ",\"claimRef\":{\"namespace\":\"x\",\"name\":\"c\"}");
    look_at_volume("mine");
    EXPECT_VOLUME("mine", "status.phase", "Available");
    object_unref(make_claim("other", "2Gi", ",\"storageClassName\":\"\""));
    look_at_claim("other");
    EXPECT_CLAIM("other", "status.phase", "Pending"); /* the only one large enough is reserved */
    SCOPED(object_unref_p)
    struct object *claim = make_claim("c", "1Gi", ",\"storageClassName\":\"\"");
    look_at_claim("c");
    EXPECT_CLAIM("c", "spec.volumeName", "mine");
    EXPECT_VOLUME("mine", "spec.claimRef.uid", claim->uid);
    make_volume("alien", "1Gi", "",
                ",\"persistentVolumeReclaimPolicy\":\"Delete\",\"claimRef\":{\"namespace\":\"x\","
                "\"name\":\"gone\",\"uid\":\"u\"}");
    look_at_volume("alien"); /* nobody here deletes its data */
    EXPECT_VOLUME("alien", "status.phase", "Failed");
}
END_TEST

START_TEST(test_claim_in_use)
{
    SCOPED(object_unref_p) struct object *claim = make_claim("c", "1Gi", "");
    make_and_forget(&kind_pod, "x",
                    "\"metadata\":{\"name\":\"p\"},\"spec\":{\"volumes\":[{\"name\":\"v\","
                    "\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]," CONTAINERS "}");
    SCOPED(object_unref_p) struct object *pod = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(pass_get(&env, &kind_pod, "x", "p", &pod, &err), 0);
    links_set(links, "x/p", house_claims_of(pod));
    make_node("plain", "", "True");
    look_at_pod("p", "", "False"); /* its claim has no volume yet */
    look_at_claim("c");
    look_at_pod("p", "plain", "True");
    drop(&kind_persistent_volume_claim, "x", "c", NULL);
    look_at_claim("c");
    ck_assert(is_there(&kind_persistent_volume_claim, "x", "c"));
    make_and_forget(&kind_pod, "x",
                    "\"metadata\":{\"name\":\"late\"},\"spec\":{\"volumes\":[{\"name\":\"v\","
                    "\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]," CONTAINERS "}");
    look_at_pod("late", "", "False"); /* which may be gone before it gets to a node */
    drop(&kind_pod, "x", "p", NULL);  /* marked; its node has to end it */
    look_at_claim("c");
    ck_assert(is_there(&kind_persistent_volume_claim, "x", "c"));
    make_and_forget(&kind_pod, "x",
                    "\"metadata\":{\"name\":\"ended\"},\"spec\":{\"nodeName\":\"plain\","
                    "\"restartPolicy\":\"Never\"," CONTAINERS
                    "},\"status\":{\"phase\":\"Failed\"}");
    char **of_ended = NULL;
    strv_add(&of_ended, xstrdup("x/c"));
    links_set(links, "x/ended", of_ended); /* one that has ended holds nothing */
    links_set(links, "x/p", NULL);
    look_at_claim("c");
    ck_assert(!is_there(&kind_persistent_volume_claim, "x", "c"));
}
END_TEST

START_TEST(test_lost_volume)
{
    SCOPED(object_unref_p) struct object *claim = make_claim("c", "1Gi", "");
    SCOPED_FREE char *volume = xasprintf("pvc-%s", claim->uid);
    SCOPED(err_fini) struct err err = {0};
    look_at_claim("c");
    drop(&kind_persistent_volume, "", volume, NULL);
    struct pass_update update = {.kind = &kind_persistent_volume,
                                 .namespace_name = "",
                                 .name = volume,
                                 .change = without_finalizers};
    ck_assert_int_eq(pass_update(&env, &update, NULL, &err), 0);
    ck_assert(!is_there(&kind_persistent_volume, "", volume));
    look_at_claim("c");
    EXPECT_CLAIM("c", "status.phase", "Lost");
}
END_TEST

SUITE(house_volumes)
{
    TCase *tc = tcase_create("volumes");
    tcase_add_checked_fixture(tc, setup_volumes, teardown);
    tcase_add_test(tc, test_claim_gets_a_volume_of_its_own);
    tcase_add_test(tc, test_claim_finds_the_volume_that_was_made_for_it);
    tcase_add_loop_test(tc, test_choice, 0, ARRAY_LEN(choices));
    tcase_add_loop_test(tc, test_named_volume_that_does_not_suit, 0, ARRAY_LEN(mismatches));
    tcase_add_test(tc, test_reserved_volume);
    tcase_add_test(tc, test_claim_in_use);
    tcase_add_test(tc, test_lost_volume);
    suite_add_tcase(s, tc);
}
