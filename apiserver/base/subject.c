#include "apiserver/base/subject.h"

#include <openssl/x509.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

/* Source: kube-apiserver 1.33, client certificates may carry the user's uid. */
static const char uid_oid[] = "1.3.6.1.4.1.57683.2";

void subject_fini(struct subject *s)
{
    strv_free(s->organizations);
    free(s->common_name);
    free(s->uid);
    *s = (struct subject){0};
}

/* NULL when it is no text or has a NUL inside, which would cut a name short. */
static char *text_of(const X509_NAME_ENTRY *entry)
{
    unsigned char *utf8 = NULL;
    int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
    char *text = NULL;
    if (n >= 0 && !memchr(utf8, 0, (size_t)n))
        text = xstrndup((const char *)utf8, (size_t)n);
    OPENSSL_free(utf8);
    return text;
}

static void replace(char **to, char *take)
{
    free(*to);
    *to = take;
}

static bool is_uid(const X509_NAME_ENTRY *entry)
{
    char oid[64];
    OBJ_obj2txt(oid, sizeof oid, X509_NAME_ENTRY_get_object(entry), 1);
    return strcmp(oid, uid_oid) == 0;
}

static bool take_entry(struct subject *s, const X509_NAME_ENTRY *entry)
{
    int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (nid != NID_commonName && nid != NID_organizationName && !is_uid(entry))
        return true;
    char *text = text_of(entry);
    if (!text)
        return false;
    if (nid == NID_commonName)
        replace(&s->common_name, text);
    else if (nid == NID_organizationName)
        strv_add(&s->organizations, text);
    else
        replace(&s->uid, text);
    return true;
}

int subject_read(X509 *certificate, struct subject *ret, struct err *err)
{
    SCOPED(subject_fini) struct subject s = {.common_name = xstrdup(""), .uid = xstrdup("")};
    s.organizations = xcalloc(1, sizeof(char *));
    const X509_NAME *name = X509_get_subject_name(certificate);
    for (int i = 0; i < X509_NAME_entry_count(name); i++)
        if (!take_entry(&s, X509_NAME_get_entry(name, i)))
            return err_set(err, ERR_UNAUTHORIZED, "certificate's subject is not readable");
    *ret = steal(&s);
    return 0;
}
