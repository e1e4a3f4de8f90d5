/* The head of a request of HTTP/1.1: its first line and its headers, as they came. Bodies are not
 * known here: what is asked of a node has none. Pure. */
#pragma once

#include "apiserver/base/err.h"
#include "apiserver/base/str.h"

#define HEAD_MAX ((size_t)32 << 10) /* bytes, the empty line included */

struct head { /* head_fini */
    char *method;
    char *path;           /* unescaped, without the query */
    struct pairs query;   /* unescaped, in order, repeated names kept */
    struct pairs headers; /* the same */
    bool is_old;          /* HTTP/1.0 */
};
void head_fini(struct head *h);

/* Length of the head that p[0..n) begins with, the empty line included; 0 = it is not whole yet. */
size_t head_length(const char *p, size_t n);
/* p[0..n) is a whole head. Errors: ERR_BAD_REQUEST. */
int head_parse(const char *p, size_t n, struct head *ret, struct err *err);
/* The words of all headers of a name, in order: their lists are divided by commas. */
struct head_tokens { /* starts with head and name */
    const struct head *head;
    const char *name;
    size_t at; /* header */
    struct str rest;
};
bool head_next_token(struct head_tokens *t, struct str *ret); /* false = there are no more */
/* Whether one of the headers of that name has the token in its list, without case. */
bool head_has_token(const struct head *h, const char *name, const char *token);
