/* Fuzz target for admission/cel: the first line is an expression, the rest the JSON of self. What
 * does not parse says why, and so does what does not fit the types of a Sandbox; what parses ends
 * within its steps, twice with the same result, and a text that it gives is UTF-8. Regular
 * expressions come along; they have a target of their own too. */
#include <stdint.h>
#include <stdlib.h>

#include "admission/cel.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 20000 /* fewer than a server allows, for the speed of this test */
#define SELF_DEPTH_MAX 50

static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool is_utf8(struct str s)
{
    uint32_t rune;
    for (size_t i = 0, n; i < s.n; i += n)
        if ((n = str_utf8_decode(s.p + i, s.n - i, &rune)) == 0)
            return false;
    return true;
}

/* As a rule of the kind, whatever it gives. */
static void check_types(struct arena *arena, const struct cel_node *expr)
{
    SCOPED(err_fini) struct err err = {0};
    const struct cel_value self = cel_typed(kind_sandbox.shape);
    const struct cel_variable vars[] = {{"self", self}, {"oldSelf", self}, {0}};
    if (cel_check(arena, expr, vars, CEL_BOOL, &err) < 0)
        require(err.code == ERR_BAD_REQUEST && *err_text(&err));
}

static void check_part(void *ctx, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        require(*cel_member_name(ctx, names[i]) || !*names[i]);
}

static void check_value(struct arena *arena, const struct cel_node *expr,
                        const struct cel_variable *vars)
{
    uint64_t taken = 0;
    struct cel_value once = cel_eval(arena, expr, vars, STEPS_MAX, &taken),
                     twice = cel_eval(arena, expr, vars, STEPS_MAX, NULL);
    require(taken <= STEPS_MAX);
    require(once.type == twice.type);
    if (once.type == CEL_ERROR)
        require(*once.error && strcmp(once.error, twice.error) == 0);
    if (once.type == CEL_STRING)
        require(is_utf8(once.s) && twice.s.n == once.s.n &&
                memcmp(once.s.p, twice.s.p, once.s.n) == 0);
    if (once.type == CEL_BOOL)
        require(once.b == twice.b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"self", "oldSelf", NULL};
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *self = NULL;
    SCOPED_FREE char *text = xstrndup((const char *)data, size);
    char *json = strchr(text, '\n');
    if (json)
        *json++ = '\0';
    const struct cel_node *expr = NULL;
    if (cel_parse(&arena, text, names, &expr, &err) < 0) {
        require(!expr && err.code == ERR_BAD_REQUEST && *err_text(&err));
        return 0;
    }
    check_types(&arena, expr);
    cel_each_part(expr, "self", check_part, &arena);
    const struct json_opts opts = {.max_depth = SELF_DEPTH_MAX};
    if (!json || json_parse(json, strlen(json), &opts, &self, NULL) < 0)
        self = json_object();
    const struct cel_variable vars[] = {
        {"self", cel_from_json(self, NULL)}, {"oldSelf", cel_from_json(self, NULL)}, {0}};
    check_value(&arena, expr, vars);
    return 0;
}
