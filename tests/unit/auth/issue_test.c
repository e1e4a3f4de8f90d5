/* Certificates that we make ourselves, and the folder of a server without a cluster. */
#include "apiserver/auth/issue.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/auth/local.h"
#include "apiserver/base/file.h"
#include "tests/lib/suite.h"

static struct pair_pem ca;

static void make_ca(void)
{
    ck_assert_int_eq(
        issue(&(struct issue_request){.common_name = "ca", .is_authority = true, .days = 10}, &ca,
              NULL),
        0);
}

static struct issue_request server(const struct pair_pem *from)
{
    return (struct issue_request){.common_name = "server",
                                  .alternatives = "DNS:localhost,IP:127.0.0.1",
                                  .is_server = true,
                                  .from = from,
                                  .days = 5};
}

START_TEST(test_a_leaf_is_good_for_what_it_was_made)
{
    SCOPED(pair_pem_fini) struct pair_pem leaf = {0};
    make_ca();
    struct issue_request asked = server(&ca), other = asked;
    ck_assert_int_eq(issue(&asked, &leaf, NULL), 0);
    ck_assert(issue_is_good(&leaf, &asked, 4));
    ck_assert(!issue_is_good(&leaf, &asked, 6));
    other.alternatives = "DNS:localhost,DNS:elsewhere";
    ck_assert(!issue_is_good(&leaf, &other, 4));
    other.alternatives = "IP:127.0.0.2";
    ck_assert(!issue_is_good(&leaf, &other, 4));
    other = asked;
    other.is_client = true;
    ck_assert(!issue_is_good(&leaf, &other, 4));
    pair_pem_fini(&ca);
}
END_TEST

START_TEST(test_a_leaf_of_another_authority_is_not)
{
    SCOPED(pair_pem_fini) struct pair_pem leaf = {0}, first = {0};
    make_ca();
    struct issue_request asked = server(&ca);
    ck_assert_int_eq(issue(&asked, &leaf, NULL), 0);
    first = steal(&ca);
    make_ca();
    ck_assert(!issue_is_good(&leaf, &asked, 1));
    pair_pem_fini(&ca);
}
END_TEST

START_TEST(test_no_authority_no_leaf)
{
    SCOPED(pair_pem_fini) struct pair_pem leaf = {0}, nobody = {0};
    buf_puts(&nobody.cert, "nothing");
    struct issue_request asked = server(&nobody);
    ck_assert_int_eq(issue(&asked, &leaf, NULL), -ERR_INVALID);
}
END_TEST

static void check_private(const char *dir, const char *name)
{
    SCOPED_FREE char *path = xasprintf("%s/%s", dir, name);
    struct stat st;
    ck_assert_msg(stat(path, &st) == 0, "%s", path);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
}

static void read_text(const char *path, struct buf *ret)
{
    ck_assert_int_eq(file_read(path, 1 << 16, ret, NULL), 0);
}

static void remove_folder(const char *dir, const char *below)
{
    SCOPED_FREE char *between = xasprintf("%s/a", dir);
    DIR *d = opendir(below);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        SCOPED_FREE char *path = xasprintf("%s/%s", below, e->d_name);
        (void)unlink(path);
    }
    closedir(d);
    ck_assert_int_eq(rmdir(below) | rmdir(between) | rmdir(dir), 0);
}

/* What is there stays, so that kubeconfigs that were given away go on working. */
START_TEST(test_folder_is_made_once)
{
    static const char *const files[] = {
        "ca.crt",         "ca.key", "serving.key", "admin.kubeconfig", "server.kubeconfig",
        "node.kubeconfig"};
    char dir[] = "/tmp/issue-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    SCOPED_FREE char *below = xasprintf("%s/a/b", dir);
    SCOPED(buf_fini) struct buf before = {0}, after = {0};
    for (int i = 0; i < 2; i++) {
        SCOPED(local_identity_fini) struct local_identity l = {0};
        ck_assert_int_eq(local_identity_prepare(below, "127.0.0.1", &l, NULL), 0);
        ck_assert_int_eq(local_identity_publish(&l, "https://127.0.0.1:1", NULL), 0);
        read_text(l.admin_config, i == 0 ? &before : &after);
    }
    for (int i = 0; i < 2; i++) { /* the token, at the end, says when it was signed */
        char *token = strstr(i == 0 ? before.data : after.data, "    token: ");
        ck_assert_ptr_nonnull(token);
        *token = '\0';
    }
    ck_assert_str_eq(buf_cstr(&before), buf_cstr(&after));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&after), "server: https://127.0.0.1:1\n"));
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        check_private(below, files[i]);
    remove_folder(dir, below);
}
END_TEST

SUITE(issue)
{
    TESTS("issue", test_a_leaf_is_good_for_what_it_was_made,
          test_a_leaf_of_another_authority_is_not, test_no_authority_no_leaf,
          test_folder_is_made_once);
}
