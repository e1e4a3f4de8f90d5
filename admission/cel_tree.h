/* The inside of the CEL interpreter, shared by its files only: the tree of an expression, values
 * and the functions by name. */
#pragma once

#include "admission/cel.h"

enum cel_op {
    CEL_OP_LITERAL,
    CEL_OP_VARIABLE,
    CEL_OP_SELECT,
    CEL_OP_HAS,
    CEL_OP_INDEX,
    CEL_OP_CALL,
    CEL_OP_MAKE_LIST,
    CEL_OP_MAKE_MAP,
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
    /* macros over a list or map: range, then bodies that see the variable */
    CEL_OP_ALL,
    CEL_OP_EXISTS,
    CEL_OP_EXISTS_ONE,
    CEL_OP_FILTER,
    CEL_OP_MAP,        /* range, transform */
    CEL_OP_MAP_FILTER, /* range, filter, transform */
};

struct cel_ctx {
    struct arena *arena;
    uint64_t steps; /* left */
    bool is_exhausted;
};
typedef struct cel_value (*cel_call)(struct cel_ctx *c, const struct cel_value *args, size_t n);
struct cel_function {
    const char *name;          /* NULL ends a table */
    bool is_global, is_method; /* f(x), x.f() */
    size_t min, max;           /* arguments, the target among them */
    cel_call call;
};
extern const struct cel_function cel_text_functions[], cel_conversions[];

struct cel_node {
    enum cel_op op;
    int depth;
    const char *name;       /* variable, member */
    struct cel_value value; /* literal */
    const struct cel_function *fn;
    const struct cel_node *const *args;
    size_t n;
};

/* ---- values ---- */
struct cel_value cel_error(const char *text);
struct cel_value cel_no_overload(void);
struct cel_value cel_bool(bool b);
struct cel_value cel_int(int64_t i);
struct cel_value cel_uint(uint64_t u);
struct cel_value cel_double(double d);
struct cel_value cel_string(const char *p, size_t n);
struct cel_value cel_list(const struct cel_value *v, size_t n);
/* Takes n steps; false when there are not that many left. */
bool cel_spend(struct cel_ctx *c, uint64_t n);
struct cel_value cel_open(struct cel_ctx *c,
                          const struct cel_value *v); /* items instead of a node */
bool cel_equal(struct cel_ctx *c, const struct cel_value *a, const struct cel_value *b);
enum cel_order { CEL_BEFORE, CEL_SAME, CEL_AFTER, CEL_UNORDERED, CEL_INCOMPARABLE };
enum cel_order cel_compare(const struct cel_value *a, const struct cel_value *b);
/* The member of a map by key; false when there is none. */
bool cel_find(struct cel_ctx *c, const struct cel_value *map, const struct cel_value *key,
              struct cel_value *ret);
struct cel_value cel_size(struct cel_ctx *c, const struct cel_value *v);

/* ---- cel_arith.c ---- */
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
