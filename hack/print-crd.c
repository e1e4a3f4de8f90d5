/* Prints the kinds as the CustomResourceDefinitions that they could have been, as one List that
 * kubectl takes. For tests that ask kube-apiserver itself what it would have answered.
 *
 *   print-crd [-s SUFFIX] [KIND...]
 *
 * SUFFIX takes the place of x-k8s.io in the groups, so that both can be in one cluster. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/doc.h"
#include "openapi/kinds.h"

static const char own_suffix[] = "x-k8s.io";

static bool is_wanted(const struct kind *kind, char **names)
{
    bool is_any = !*names;
    for (; *names; names++)
        is_any = is_any || str_equal(*names, kind->kind);
    return is_any;
}

static void print(const struct kind *kind, const char *suffix, struct buf *out)
{
    struct kind renamed = *kind;
    size_t own_len = strlen(own_suffix), len = strlen(kind->group);
    SCOPED_FREE char *group = xasprintf("%.*s%s", (int)(len - own_len), kind->group, suffix);
    if (str_has_suffix(kind->group, own_suffix))
        renamed.group = group;
    doc_crd_print(&renamed, out);
}

int main(int argc, char **argv)
{
    const char *suffix = own_suffix, *comma = "";
    SCOPED(buf_fini) struct buf out = {0};
    for (int c; (c = getopt(argc, argv, "s:")) != -1;) {
        if (c != 's') {
            fputs("usage: print-crd [-s SUFFIX] [KIND...]\n", stderr);
            return 2;
        }
        suffix = optarg;
    }
    buf_puts(&out, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
    for (size_t i = 0; kinds_all[i]; i++) {
        if (!is_wanted(kinds_all[i], argv + optind))
            continue;
        buf_puts(&out, comma);
        print(kinds_all[i], suffix, &out);
        comma = ",";
    }
    buf_puts(&out, "]}");
    return puts(buf_cstr(&out)) < 0;
}
