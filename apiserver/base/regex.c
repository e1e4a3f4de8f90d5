/* Programs of regular expressions: made from the tree, and run by Pike's machine. A thread is a
 * place in the program and the place in the text where its match began; the threads at one place in
 * the text are a list by preference without repetition, so there are never more of them than
 * instructions. */
#include "apiserver/base/regex.h"

#include "apiserver/base/mem.h"
#include "apiserver/base/regex_tree.h"

enum op {
    OP_RUNE,   /* one character of a set, then on to the next instruction */
    OP_ASSERT, /* on to the next if it holds */
    OP_SPLIT,  /* on to to[0], or else to to[1] */
    OP_JUMP,   /* on to to[0] */
    OP_MATCH,
};

struct inst {
    enum op op;
    enum regex_assert assert;
    unsigned to[2];
    const struct regex_class *set;
    uint32_t ascii[4]; /* of OP_RUNE: a bit for each character below 128 that it takes */
};

struct regex {
    const struct inst *v;
    unsigned n;
};

/* ---- from the tree to the program ---- */

struct emitter {
    struct inst *v;
    unsigned n, cap;
    bool is_full;
};

static unsigned emit(struct emitter *e, struct inst inst)
{
    if (e->n == REGEX_SIZE_MAX) {
        e->is_full = true;
        return 0;
    }
    if (e->n == e->cap) {
        e->cap = e->cap ? e->cap * 2 : 32;
        e->v = xrealloc(e->v, e->cap * sizeof *e->v);
    }
    e->v[e->n] = inst;
    return e->n++;
}

static bool is_in_set(const struct regex_class *set, uint32_t rune)
{
    for (size_t i = 0; i < set->n; i++)
        if (rune >= set->v[i].from && rune <= set->v[i].to)
            return !set->is_negated;
    return set->is_negated;
}

static void emit_class(struct emitter *e, const struct regex_class *set)
{
    struct inst inst = {.op = OP_RUNE, .set = set};
    for (uint32_t c = 0; c < 128; c++)
        if (is_in_set(set, c))
            inst.ascii[c / 32] |= UINT32_C(1) << c % 32;
    emit(e, inst);
}

static void emit_node(struct emitter *e, const struct regex_node *x);

/* A choice whose first way begins right behind it; the other is set later. */
static unsigned emit_split(struct emitter *e)
{
    unsigned at = emit(e, (struct inst){.op = OP_SPLIT});
    e->v[at].to[0] = e->n;
    return at;
}

static void set_other_way(struct emitter *e, unsigned split, unsigned to, bool is_preferred)
{
    struct inst *inst = &e->v[split];
    inst->to[1] = to;
    if (is_preferred) {
        inst->to[1] = inst->to[0];
        inst->to[0] = to;
    }
}

static void emit_either(struct emitter *e, const struct regex_node *x)
{
    unsigned split = emit_split(e);
    emit_node(e, x->left);
    unsigned jump = emit(e, (struct inst){.op = OP_JUMP});
    set_other_way(e, split, e->n, false);
    emit_node(e, x->right);
    e->v[jump].to[0] = e->n;
}

/* Any number of times, or not at all. */
static void emit_star(struct emitter *e, const struct regex_node *x)
{
    unsigned split = emit_split(e);
    emit_node(e, x->left);
    emit(e, (struct inst){.op = OP_JUMP, .to = {split}});
    set_other_way(e, split, e->n, x->is_lazy);
}

static void emit_repeat(struct emitter *e, const struct regex_node *x)
{
    for (int i = 0; i < x->min && !e->is_full; i++)
        emit_node(e, x->left);
    if (x->max < 0) {
        emit_star(e, x);
        return;
    }
    /* x?x?x? leads to the same texts as x(x(x)?)? and needs no patching from within */
    for (int i = x->min; i < x->max && !e->is_full; i++) {
        unsigned split = emit_split(e);
        emit_node(e, x->left);
        set_other_way(e, split, e->n, x->is_lazy);
    }
}

static void emit_node(struct emitter *e, const struct regex_node *x)
{
    if (e->is_full)
        return;
    switch (x->kind) {
    case REGEX_EMPTY:
        return;
    case REGEX_CLASS:
        emit_class(e, &x->set);
        return;
    case REGEX_ASSERT:
        emit(e, (struct inst){.op = OP_ASSERT, .assert = x->assert});
        return;
    case REGEX_THEN:
        emit_node(e, x->left);
        emit_node(e, x->right);
        return;
    case REGEX_EITHER:
        emit_either(e, x);
        return;
    case REGEX_REPEAT:
        emit_repeat(e, x);
        return;
    }
}

const struct regex *regex_compile(struct arena *arena, struct str pattern, const char **ret_mistake)
{
    const struct regex_node *tree = regex_parse(arena, pattern, ret_mistake);
    if (!tree)
        return NULL;
    struct emitter e = {0};
    emit_node(&e, tree);
    emit(&e, (struct inst){.op = OP_MATCH});
    SCOPED_FREE struct inst *program = e.v;
    if (e.is_full) {
        *ret_mistake = "the pattern is too large";
        return NULL;
    }
    struct inst *copy = arena_alloc(arena, e.n * sizeof *copy);
    memcpy(copy, program, e.n * sizeof *copy);
    struct regex *made = arena_alloc(arena, sizeof *made);
    *made = (struct regex){copy, e.n};
    return made;
}

size_t regex_cost(const struct regex *re, size_t text_bytes)
{
    return (text_bytes + 1) * re->n;
}

/* ---- running ---- */

struct thread {
    unsigned pc;
    size_t start;
};

/* Threads at one place of the text. has[pc] is the place + 1 when pc is in the list for it. */
struct threads {
    struct thread *v;
    size_t *has;
    unsigned n;
};

/* What is around a place of the text, for assertions; -1 = nothing. */
struct around {
    size_t at;
    int64_t before, behind;
};

struct machine {
    const struct regex *re;
    struct threads now, next;
    unsigned *todo; /* places of the program yet to be followed */
};

static bool is_word(int64_t rune)
{
    return (rune >= '0' && rune <= '9') || (rune >= 'a' && rune <= 'z') ||
           (rune >= 'A' && rune <= 'Z') || rune == '_';
}

static bool holds(enum regex_assert what, const struct around *place)
{
    switch (what) {
    case REGEX_TEXT_START:
        return place->before < 0;
    case REGEX_TEXT_END:
        return place->behind < 0;
    case REGEX_LINE_START:
        return place->before < 0 || place->before == '\n';
    case REGEX_LINE_END:
        return place->behind < 0 || place->behind == '\n';
    case REGEX_WORD_EDGE:
        return is_word(place->before) != is_word(place->behind);
    case REGEX_NO_WORD_EDGE:
        return is_word(place->before) == is_word(place->behind);
    }
    return false;
}

/* Adds a thread and, following all that takes no character, those that it becomes, by preference.
 * Each place is entered once, so the stack holds at most two entries a place. */
static void add_thread(struct machine *m, struct threads *list, struct thread t,
                       const struct around *place)
{
    size_t n = 0;
    m->todo[n++] = t.pc;
    while (n > 0) {
        unsigned pc = m->todo[--n];
        const struct inst *inst = &m->re->v[pc];
        if (list->has[pc] == place->at + 1)
            continue;
        list->has[pc] = place->at + 1;
        if (inst->op == OP_JUMP) {
            m->todo[n++] = inst->to[0];
        } else if (inst->op == OP_SPLIT) {
            m->todo[n++] = inst->to[1];
            m->todo[n++] = inst->to[0];
        } else if (inst->op == OP_ASSERT) {
            if (holds(inst->assert, place))
                m->todo[n++] = pc + 1;
        } else {
            list->v[list->n++] = (struct thread){pc, t.start};
        }
    }
}

static bool takes(const struct inst *inst, int64_t rune)
{
    if (rune < 0)
        return false;
    if (rune < 128)
        return inst->ascii[rune / 32] >> rune % 32 & 1;
    return is_in_set(inst->set, (uint32_t)rune);
}

/* The character at a place and its length; -1 at the end. */
static int64_t rune_at(struct str text, size_t at, size_t *ret_length)
{
    uint32_t rune = 0xFFFD;
    if (at >= text.n)
        return -1;
    if ((unsigned char)text.p[at] < 0x80) {
        *ret_length = 1;
        return text.p[at];
    }
    size_t n = str_utf8_decode(text.p + at, text.n - at, &rune);
    *ret_length = n ? n : 1;
    return n ? rune : 0xFFFD;
}

struct found {
    bool is_match;
    size_t start, end;
};

/* Lets every thread take the character behind a place. A match ends those that are less wanted. */
static void step(struct machine *m, int64_t rune, const struct around *here,
                 const struct around *there, struct found *found)
{
    for (unsigned i = 0; i < m->now.n; i++) {
        struct thread t = m->now.v[i];
        const struct inst *inst = &m->re->v[t.pc];
        if (inst->op == OP_MATCH) {
            *found = (struct found){true, t.start, here->at};
            return;
        }
        if (takes(inst, rune))
            add_thread(m, &m->next, (struct thread){t.pc + 1, t.start}, there);
    }
}

static void swap_lists(struct machine *m)
{
    struct threads now = m->now;
    m->now = m->next;
    m->next = now;
    m->next.n = 0;
}

/* The last character before a place; -1 at the start. Bytes that are no character each count as
 * one. */
static int64_t rune_before(struct str text, size_t at)
{
    size_t start = at, length = 0;
    if (at == 0)
        return -1;
    do
        start--;
    while (start > 0 && at - start < 4 && (text.p[start] & 0xC0) == 0x80);
    int64_t rune = rune_at(text, start, &length);
    return start + length == at ? rune : 0xFFFD;
}

static struct found run(struct machine *m, struct str text, size_t from, bool any_will_do)
{
    struct found found = {0};
    size_t length = 0, next_length = 0;
    struct around here = {.at = from, .before = rune_before(text, from)};
    here.behind = rune_at(text, from, &length);
    for (;;) {
        if (!found.is_match)
            add_thread(m, &m->now, (struct thread){0, here.at}, &here);
        if (m->now.n == 0 && found.is_match)
            return found;
        struct around there = {.at = here.at + length, .before = here.behind};
        there.behind = here.behind < 0 ? -1 : rune_at(text, there.at, &next_length);
        step(m, here.behind, &here, &there, &found);
        if (here.behind < 0 || (found.is_match && any_will_do))
            return found;
        swap_lists(m);
        here = there;
        length = next_length;
    }
}

/* The room that a machine needs, in one piece. */
static void *machine_init(struct machine *m, const struct regex *re)
{
    size_t n = re->n;
    char *room = xcalloc(n, 2 * sizeof(struct thread) + 2 * sizeof(size_t) + 2 * sizeof(unsigned));
    *m = (struct machine){.re = re};
    m->now.v = (struct thread *)(void *)room;
    m->next.v = m->now.v + n;
    m->now.has = (size_t *)(void *)(m->next.v + n);
    m->next.has = m->now.has + n;
    m->todo = (unsigned *)(void *)(m->next.has + n);
    return room;
}

bool regex_find(const struct regex *re, struct str text, size_t from, size_t *ret_start,
                size_t *ret_end)
{
    struct machine m;
    SCOPED_FREE void *room = machine_init(&m, re);
    struct found found = run(&m, text, from, false);
    if (found.is_match) {
        *ret_start = found.start;
        *ret_end = found.end;
    }
    return found.is_match;
}

bool regex_matches(const struct regex *re, struct str text)
{
    struct machine m;
    SCOPED_FREE void *room = machine_init(&m, re);
    return run(&m, text, 0, true).is_match;
}
