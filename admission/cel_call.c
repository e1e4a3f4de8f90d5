/* Functions of CEL by name and types of arguments: where they are looked up, and how the form for
 * the values at hand is found. */
#include "admission/cel_tree.h"
#include "apiserver/base/mem.h"

static const struct cel_function *const tables[] = {
    cel_text_functions,     cel_conversions,       cel_time_functions,   cel_list_functions,
    cel_optional_functions, cel_address_functions, cel_format_functions,
};

/* What Kubernetes has beside: known here, so that a rule with it is refused by the right words. */
static const char *const absent[] = {
    "url",     "isURL",    "getScheme",      "getHost",  "getHostname",
    "getPort", "getQuery", "getEscapedPath", "quantity", "isQuantity",
    "semver",  "isSemver", "format.named",
};

/* ---- types ---- */

/* Letters in the types of functions. '?' is any type. */
static const struct {
    char letter;
    const char *name;
} types[CEL_TYPES] = {
    [CEL_NULL] = {'n', "null_type"},
    [CEL_BOOL] = {'b', "bool"},
    [CEL_INT] = {'i', "int"},
    [CEL_UINT] = {'u', "uint"},
    [CEL_DOUBLE] = {'d', "double"},
    [CEL_STRING] = {'s', "string"},
    [CEL_BYTES] = {'y', "bytes"},
    [CEL_LIST] = {'l', "list"},
    [CEL_MAP] = {'m', "map"},
    [CEL_TYPE] = {'T', "type"},
    [CEL_TIMESTAMP] = {'t', "google.protobuf.Timestamp"},
    [CEL_DURATION] = {'D', "google.protobuf.Duration"},
    [CEL_OPTIONAL] = {'o', "optional_type"},
    [CEL_IP] = {'p', "net.IP"},
    [CEL_CIDR] = {'c', "net.CIDR"},
};

bool cel_type_of_name(const char *name, enum cel_type *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].name && str_equal(types[i].name, name)) {
            *ret = (enum cel_type)i;
            return true;
        }
    return false;
}

const char *cel_type_name(enum cel_type type)
{
    return types[type].name;
}

/* ---- looking up ---- */

static bool is_method(const struct cel_function *f)
{
    return f->types[0] != ':' && f->types[1] == '.';
}

static size_t count_args(const struct cel_function *f)
{
    return strcspn(f->types, ":") - is_method(f);
}

static bool is_form(const struct cel_function *f, const char *name, bool wants_method)
{
    return str_equal(f->name, name) && is_method(f) == wants_method;
}

/* Whether there is a function of that name at all. */
static bool is_known(const char *name, bool wants_method)
{
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        for (const struct cel_function *f = tables[i]; f->name; f++)
            if (is_form(f, name, wants_method))
                return true;
    return false;
}

static bool is_absent(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        if (str_equal(absent[i], name))
            return true;
    return false;
}

/* All forms of a name for n arguments into out, where there is room for all; returns how many. */
static size_t collect(const char *name, bool wants_method, size_t n,
                      const struct cel_function **out)
{
    size_t found = 0;
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        for (const struct cel_function *f = tables[i]; f->name; f++)
            if (is_form(f, name, wants_method) && count_args(f) == n && found < CEL_FORMS_MAX)
                out[found++] = f;
    return found;
}

size_t cel_function_find(struct arena *arena, const char *name, bool wants_method, size_t n,
                         const struct cel_function *const **ret, const char **ret_mistake)
{
    const struct cel_function **forms = arena_alloc(arena, CEL_FORMS_MAX * sizeof *forms);
    size_t found = collect(name, wants_method, n, forms);
    *ret = forms;
    if (found > 0)
        return found;
    const char *what = is_known(name, wants_method) ? "a function with another number of arguments"
                       : is_absent(name) ? "a function of Kubernetes that is not supported here"
                                         : "a function that does not exist";
    *ret_mistake = arena_printf(arena, "%s: %s", what, name);
    return 0;
}

bool cel_function_is_qualified(const char *name)
{
    return strchr(name, '.') && (is_known(name, false) || is_absent(name));
}

/* ---- calling ---- */

/* Whether a form takes arguments of these types; what is of any type fits where that is allowed. */
static bool takes(const struct cel_function *f, const struct cel_value *args, bool allows_any)
{
    size_t i = 0;
    for (const char *t = f->types; *t != ':'; t++) {
        if (*t == '.')
            continue;
        bool is_any = *t == '?' || (allows_any && args[i].type == CEL_ERROR);
        if (!is_any && *t != types[args[i].type].letter)
            return false;
        i++;
    }
    return true;
}

bool cel_function_may_take(const struct cel_function *f, const struct cel_value *args)
{
    return takes(f, args, true);
}

enum cel_type cel_function_result(const struct cel_function *f)
{
    char letter = f->types[strcspn(f->types, ":") + 1];
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].letter == letter)
            return (enum cel_type)i;
    return CEL_ERROR;
}

struct cel_value cel_function_call(struct cel_ctx *c, const struct cel_node *call,
                                   const struct cel_value *args)
{
    for (size_t i = 0; i < call->n_forms; i++)
        if (takes(call->forms[i], args, false))
            return call->forms[i]->call(c, args, call->n);
    return cel_no_overload();
}
