/* The inside of the CEL interpreter, shared by its files only: the tree of an expression, values
 * and the functions by name. */
#pragma once

#include "admission/cel.h"

enum cel_op {
    CEL_OP_LITERAL,
    CEL_OP_VARIABLE,
    CEL_OP_SELECT,
    CEL_OP_HAS,
    CEL_OP_OPTIONAL_SELECT, /* x.?y */
    CEL_OP_INDEX,
    CEL_OP_OPTIONAL_INDEX, /* x[?y] */
    CEL_OP_CALL,
    CEL_OP_MAKE_LIST,
    CEL_OP_MAKE_MAP,
    CEL_OP_IF_PRESENT, /* ?x in a list or map: an optional that is left out without value */
    CEL_OP_NOT,
    CEL_OP_NEGATE,
    CEL_OP_AND,
    CEL_OP_OR,
    CEL_OP_CHOOSE,
    CEL_OP_ADD,
    CEL_OP_SUBTRACT,
    CEL_OP_MULTIPLY,
    CEL_OP_DIVIDE,
    CEL_OP_MODULO,
    CEL_OP_EQUAL,
    CEL_OP_NOT_EQUAL,
    CEL_OP_LESS,
    CEL_OP_LESS_EQUAL,
    CEL_OP_GREATER,
    CEL_OP_GREATER_EQUAL,
    CEL_OP_IN,
    /* macros: a range, then bodies that see the variables: filter and transform, or one of them */
    CEL_OP_ALL,
    CEL_OP_EXISTS,
    CEL_OP_EXISTS_ONE,
    CEL_OP_FILTER,
    CEL_OP_MAP, /* also transformList */
    CEL_OP_TRANSFORM_MAP,
    CEL_OP_TRANSFORM_ENTRY,
    CEL_OP_OPTIONAL_MAP, /* these two over an optional */
    CEL_OP_OPTIONAL_FLAT_MAP,
};

struct cel_ctx {
    struct arena *arena;
    uint64_t steps; /* left */
    bool is_exhausted;
};
typedef struct cel_value (*cel_call)(struct cel_ctx *c, const struct cel_value *args, size_t n);
/* One form of a function. types: a letter for each argument, of a method behind its target and a
 * dot, then a colon and the result: "s.si:i". Letters: cel_call.c. */
struct cel_function {
    const char *name; /* NULL ends a table */
    const char *types;
    cel_call call;
};
extern const struct cel_function cel_text_functions[], cel_conversions[], cel_time_functions[],
    cel_list_functions[], cel_optional_functions[], cel_address_functions[], cel_format_functions[];

struct cel_node {
    enum cel_op op;
    int depth;
    bool is_root;                            /* of a variable: not one of the macros around */
    const char *name;                        /* variable, member, function, variable of a macro */
    const char *second;                      /* variable of a macro with two */
    struct cel_value value;                  /* literal */
    const struct cel_function *const *forms; /* of a call */
    size_t n_forms;
    const struct cel_node *const *args;
    size_t n;
};

/* ---- values (cel_value.c) ---- */
struct cel_value cel_error(const char *text);
struct cel_value cel_no_overload(void);
struct cel_value cel_spent(void); /* what an evaluation gives that ran out of steps */
struct cel_value cel_bool(bool b);
struct cel_value cel_int(int64_t i);
struct cel_value cel_uint(uint64_t u);
struct cel_value cel_double(double d);
struct cel_value cel_string(const char *p, size_t n);
struct cel_value cel_list(const struct cel_value *v, size_t n);
struct cel_value cel_duration(int64_t ns);
struct cel_value cel_some(struct cel_ctx *c, const struct cel_value *inner);
/* Takes n steps; false when there are not that many left. */
bool cel_spend(struct cel_ctx *c, uint64_t n);
/* Zeroed memory that is paid with steps; NULL when there are not that many left. */
void *cel_alloc(struct cel_ctx *c, size_t n, size_t size);
/* Items instead of a node; an error when the steps are spent. */
struct cel_value cel_open(struct cel_ctx *c, const struct cel_value *v);
bool cel_equal(struct cel_ctx *c, const struct cel_value *a, const struct cel_value *b);
enum cel_order { CEL_BEFORE, CEL_SAME, CEL_AFTER, CEL_UNORDERED, CEL_INCOMPARABLE };
enum cel_order cel_compare(const struct cel_value *a, const struct cel_value *b);
/* The member of a map by key; false when there is none. */
bool cel_find(struct cel_ctx *c, const struct cel_value *map, const struct cel_value *key,
              struct cel_value *ret);

/* ---- evaluation (cel_eval.c, cel_macro.c) ---- */
/* Variables of the macros around, the innermost first. */
struct cel_scope {
    const char *name, *second_name; /* NULL = the macro has one only */
    struct cel_value value, second;
    const struct cel_scope *up;
};
/* What a variable of the macros around stands for; NULL when it is none of them. */
const struct cel_value *cel_scope_find(const struct cel_scope *scope,
                                       const struct cel_node *variable);
struct cel_eval {
    struct cel_ctx *c;
    const struct cel_variable *vars;
};
struct cel_value cel_eval_node(const struct cel_eval *e, const struct cel_node *x,
                               const struct cel_scope *scope);
struct cel_value cel_eval_macro(const struct cel_eval *e, const struct cel_node *x,
                                const struct cel_scope *scope);
/* A truth value or an error as it is, no such overload for all others. */
struct cel_value cel_as_logic(struct cel_value v);
/* Adds an entry to a map that has room for it; gives what is wrong with it as an error, else
 * null. */
struct cel_value cel_map_put(struct cel_ctx *c, struct cel_value *items, size_t *n,
                             const struct cel_value *key, const struct cel_value *value);

/* ---- functions (cel_call.c) ---- */
#define CEL_FORMS_MAX 12 /* of one name with one number of arguments */
/* The forms of a function for n arguments, the target among them; 0 when there is none, and why. */
size_t cel_function_find(struct arena *arena, const char *name, bool is_method, size_t n,
                         const struct cel_function *const **ret, const char **ret_mistake);
/* Whether a name is one of functions in a namespace, like optional.of. */
bool cel_function_is_qualified(const char *name);
/* Calls the form that takes these arguments. */
struct cel_value cel_function_call(struct cel_ctx *c, const struct cel_node *call,
                                   const struct cel_value *args);
/* Whether a form may take arguments of these types (CEL_ERROR = anything), and the type of what it
 * gives then. */
bool cel_function_may_take(const struct cel_function *f, const struct cel_value *args);
enum cel_type cel_function_result(const struct cel_function *f);
/* The type that a name means, and back. */
bool cel_type_of_name(const char *name, enum cel_type *ret);
const char *cel_type_name(enum cel_type type);

/* ---- times (cel_time.c) ---- */
struct cel_value cel_timestamp(struct str text); /* RFC 3339; an error when it is none */

/* ---- conversions (cel_convert.c) ---- */
/* As string() does it; an error for what it does not take. */
struct cel_value cel_to_string(struct cel_ctx *c, const struct cel_value *v);

/* ---- arithmetic (cel_arith.c) ---- */
/* + - * / %, by the operator. */
struct cel_value cel_arithmetic(struct cel_ctx *c, enum cel_op op, const struct cel_value *a,
                                const struct cel_value *b);
struct cel_value cel_negate(const struct cel_value *v);

/* ---- words (cel_lex.c) ---- */
enum cel_token_kind {
    CEL_T_END,
    CEL_T_NAME,
    CEL_T_QUOTED_NAME,
    CEL_T_INT,
    CEL_T_UINT,
    CEL_T_DOUBLE,
    CEL_T_STRING,
    CEL_T_BYTES,
    CEL_T_SIGN,
    CEL_T_BAD,
};
struct cel_token {
    enum cel_token_kind kind;
    struct str text;     /* as written; a string's contents */
    const char *mistake; /* of CEL_T_BAD */
};
/* Reads one token from *p on and steps over it. */
struct cel_token cel_lex(struct arena *arena, const char **p);
/* The number of a token, negative when told; an error when it is out of range. */
struct cel_value cel_number(struct arena *arena, const struct cel_token *t, bool is_negative);
