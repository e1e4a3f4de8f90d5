/* The YAML reader: libyaml's events into JSON nodes, with a stack of open containers as in
 * json_parse.c. A text that is JSON is read as such, which is much faster and takes the characters
 * and escapes that YAML 1.1 refuses; libyaml sees everything else. Every anchored value is copied
 * aside when it is complete and copied again for each alias; both are charged to one allowance, so
 * that a short text cannot grow large. Error texts and line numbers are those of Go's YAML decoder,
 * which is a port of libyaml. */
#include "apiserver/base/yaml.h"

#include <stdio.h>
#include <yaml.h>

#include "apiserver/base/json_node.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/yaml_scalar.h"

/* What a text may become, copies for aliases included, grows with its length: its memory is paid
 * for with bytes that were sent. Without aliases a value has a byte of its own. */
#define NODES_MAX ((size_t)1000000)
#define NODES_FREE ((size_t)10000)
#define BYTES_MAX ((size_t)64 << 20) /* of strings */
#define BYTES_FREE ((size_t)1 << 20)
#define GROWTH 10 /* times the length of the text, beyond what is free */
#define DUPLICATES_MAX 100
#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define TAG_PREFIX "tag:yaml.org,2002:"

struct frame {
    cJSON *node;
    struct json_keys keys; /* of a map */
    cJSON *member;         /* the member whose value comes next; NULL when a key does */
    bool is_repeated;      /* it had a value already */
    cJSON *merged;         /* what member is when the key is <<; owned, no member of the map */
    bool is_quoted;        /* its key is a string, not a number or such */
    size_t value_line;     /* where the value starts, from 1 */
    int anchor;            /* index into anchors, -1 = none */
};

struct anchor {
    cJSON *value; /* NULL while it is being read */
    size_t nodes, bytes;
};

struct reader {
    yaml_parser_t yaml;
    unsigned flags;
    size_t max_depth, nodes_left, bytes_left;
    struct pairs duplicates;
    cJSON *root;
    struct frame *frames;
    size_t depth, cap;
    cJSON *anchor_names; /* object; a member's valueint is an index into anchors */
    struct json_keys anchor_keys;
    struct anchor *anchors;
    size_t n_anchors;
    struct err *err;
};

static size_t line_of(const yaml_event_t *event)
{
    return event->start_mark.line + 1;
}

static bool fail(struct reader *r, const yaml_event_t *event, const char *text)
{
    err_set(r->err, ERR_BAD_REQUEST, "yaml: line %zu: %s", line_of(event), text);
    return false;
}

static bool fail_plainly(struct reader *r, const char *text)
{
    err_set(r->err, ERR_BAD_REQUEST, "yaml: %s", text);
    return false;
}

/* What libyaml found, with the line that Go's port reports. */
static bool fail_syntax(struct reader *r)
{
    const yaml_parser_t *y = &r->yaml;
    const char *problem = y->problem ? y->problem : "unknown problem parsing YAML content";
    size_t line = y->context_mark.line;
    if (y->problem_mark.line)
        line = y->problem_mark.line + (y->error == YAML_SCANNER_ERROR);
    if (line)
        err_set(r->err, ERR_BAD_REQUEST, "yaml: line %zu: %s", line, problem);
    else
        err_set(r->err, ERR_BAD_REQUEST, "yaml: %s", problem);
    return false;
}

/* ---- the allowance and anchors ---- */

static bool charge(struct reader *r, const yaml_event_t *event, size_t nodes, size_t bytes)
{
    if (nodes > r->nodes_left || bytes > r->bytes_left) {
        err_set(r->err, ERR_TOO_LARGE,
                "yaml: line %zu: document contains too many values or excessive aliasing",
                line_of(event));
        return false;
    }
    r->nodes_left -= nodes;
    r->bytes_left -= bytes;
    return true;
}

static void measure(const cJSON *tree, size_t *ret_nodes, size_t *ret_bytes)
{
    SCOPED(json_stack_fini) struct json_stack todo = {0};
    json_stack_push(&todo, (union json_ref){.seen = tree});
    *ret_nodes = *ret_bytes = 0;
    while (todo.n > 0) {
        const cJSON *node = todo.v[--todo.n].seen, *child;
        ++*ret_nodes;
        *ret_bytes += node->valuestring ? strlen(node->valuestring) : 0;
        *ret_bytes += node->string ? strlen(node->string) : 0;
        cJSON_ArrayForEach(child, node)
        {
            json_stack_push(&todo, (union json_ref){.seen = child});
        }
    }
}

/* Gives to the value of from, which is consumed. */
static void move_value(cJSON *to, cJSON *take_from)
{
    to->type = take_from->type;
    to->child = take_from->child;
    to->valuestring = take_from->valuestring;
    to->valuedouble = take_from->valuedouble;
    to->valueint = take_from->valueint;
    free(take_from->string);
    free(take_from);
}

/* A new anchor, which a later one of the same name hides. -1 when name is NULL. */
static int open_anchor(struct reader *r, const yaml_char_t *name)
{
    const char *text = (const char *)name;
    if (!text)
        return -1;
    cJSON *entry = json_keys_find(&r->anchor_keys, r->anchor_names, text);
    if (!entry) {
        entry = json_node_new(cJSON_Number);
        entry->string = xstrdup(text);
        json_node_append(r->anchor_names, entry);
        json_keys_add(&r->anchor_keys, r->anchor_names, entry);
    }
    if ((r->n_anchors & (r->n_anchors - 1)) == 0) /* grows at powers of two */
        r->anchors =
            xreallocarray(r->anchors, r->n_anchors ? r->n_anchors * 2 : 1, sizeof *r->anchors);
    r->anchors[r->n_anchors] = (struct anchor){0};
    entry->valueint = (int)r->n_anchors++;
    return entry->valueint;
}

static bool close_anchor(struct reader *r, const yaml_event_t *event, int index, const cJSON *value)
{
    if (index < 0)
        return true;
    struct anchor *a = &r->anchors[index];
    measure(value, &a->nodes, &a->bytes);
    if (!charge(r, event, a->nodes, a->bytes))
        return false;
    a->value = json_copy(value);
    return true;
}

static const struct anchor *find_anchor(struct reader *r, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    const cJSON *entry = json_keys_find(&r->anchor_keys, r->anchor_names, name);
    if (!entry) {
        err_set(r->err, ERR_BAD_REQUEST, "yaml: unknown anchor '%s' referenced", name);
        return NULL;
    }
    const struct anchor *a = &r->anchors[entry->valueint];
    if (!a->value) {
        err_set(r->err, ERR_BAD_REQUEST, "yaml: anchor '%s' value contains itself", name);
        return NULL;
    }
    return charge(r, event, a->nodes, a->bytes) ? a : NULL;
}

static void forget_anchors(struct reader *r)
{
    for (size_t i = 0; i < r->n_anchors; i++)
        json_free(r->anchors[i].value);
    free(r->anchors);
    r->anchors = NULL;
    r->n_anchors = 0;
    json_keys_fini(&r->anchor_keys);
    json_free(r->anchor_names);
    r->anchor_names = json_object();
}

/* ---- scalars ---- */

/* The short name of a tag: !!str for tag:yaml.org,2002:str. */
static const char *short_tag(const char *tag, char out[32])
{
    if (!str_has_prefix(tag, TAG_PREFIX))
        return tag;
    snprintf(out, 32, "!!%.28s", tag + strlen(TAG_PREFIX));
    return out;
}

/* Copies text with every broken byte replaced; false when that is not allowed. */
static bool repair_utf8(struct reader *r, const struct buf *text, struct buf *out)
{
    uint32_t rune;
    for (size_t i = 0, n; i < text->len; i += n) {
        n = str_utf8_decode(text->data + i, text->len - i, &rune);
        n = n && rune == 0 && text->data[i] ? 0 : n; /* STR_NUL is ours */
        if (n == 0 && !(r->flags & JSON_REPLACE_BAD_UTF8))
            return false;
        if (n == 0)
            buf_puts(out, "\xef\xbf\xbd");
        else
            buf_append(out, text->data + i, n);
        n += n == 0;
    }
    return true;
}

static bool read_binary(struct reader *r, const yaml_event_t *event, cJSON *node)
{
    SCOPED(buf_fini) struct buf bytes = {0}, text = {0};
    if (!buf_unbase64(&bytes, (const char *)event->data.scalar.value, event->data.scalar.length))
        return fail_plainly(r, "!!binary value contains invalid base64 data");
    if (!repair_utf8(r, &bytes, &text))
        return fail(r, event, "!!binary value is no UTF-8 text");
    json_node_set_string(node, str_hold(text.data, text.len));
    return true;
}

/* kind is what the text looks like, tag what it is said to be. */
static bool agrees(enum yaml_kind kind, const char *tag)
{
    return strcmp(yaml_kind_tag(kind), tag) == 0 ||
           (strcmp(tag, "!!float") == 0 && kind == YAML_KIND_INT);
}

/* Whether the value has to be what the tag says. Of any other tag it is a string. */
static bool demands_kind(const char *tag)
{
    static const char *const demanding[] = {"!!int", "!!float", "!!bool", "!!null"};
    for (size_t i = 0; i < ARRAY_LEN(demanding); i++)
        if (strcmp(tag, demanding[i]) == 0)
            return true;
    return false;
}

static bool read_tagged(struct reader *r, const yaml_event_t *event, cJSON *node)
{
    char space[32];
    const char *text = (const char *)event->data.scalar.value;
    const char *tag = short_tag((const char *)event->data.scalar.tag, space);
    if (strcmp(tag, "!!binary") == 0)
        return read_binary(r, event, node);
    if (!demands_kind(tag)) {
        json_node_set_string(node, xstrdup(text));
        return true;
    }
    enum yaml_kind kind = yaml_resolve(text, node);
    if (agrees(kind, tag))
        return true;
    err_set(r->err, ERR_BAD_REQUEST, "yaml: cannot decode %s `%s` as a %s", yaml_kind_tag(kind),
            text, tag);
    return false;
}

/* Infinities and NaN have no JSON, except as the text of a key. */
static bool refuse_no_json(struct reader *r, const char *text)
{
    char last = text[strlen(text) - 1];
    const char *name = last == 'n' || last == 'N' ? "NaN" : *text == '-' ? "-Inf" : "+Inf";
    err_set(r->err, ERR_BAD_REQUEST, "json: unsupported value: %s", name);
    return false;
}

static bool read_scalar(struct reader *r, const yaml_event_t *event, cJSON *node)
{
    const char *text = (const char *)event->data.scalar.value;
    if (!charge(r, event, 1, event->data.scalar.length))
        return false;
    if (strlen(text) != event->data.scalar.length) { /* NUL can be written in quotes only */
        json_node_set_string(node, str_hold(text, event->data.scalar.length));
        return true;
    }
    if (event->data.scalar.tag) {
        if (!read_tagged(r, event, node))
            return false;
    } else if (event->data.scalar.plain_implicit) {
        yaml_resolve(text, node);
    } else {
        json_node_set_string(node, xstrdup(text));
    }
    return node->type != cJSON_Invalid || refuse_no_json(r, text);
}

/* ---- structure ---- */

static struct frame *top(struct reader *r)
{
    return r->depth ? &r->frames[r->depth - 1] : NULL;
}

/* The map that waits for a key; NULL when the next value is none. */
static struct frame *map_at_key(struct reader *r)
{
    struct frame *f = top(r);
    return f && cJSON_IsObject(f->node) && !f->member ? f : NULL;
}

/* The node that the value at hand goes to. */
static cJSON *take_target(struct reader *r, const yaml_event_t *event)
{
    struct frame *f = top(r);
    if (f && cJSON_IsObject(f->node)) {
        f->value_line = line_of(event);
        return f->member;
    }
    cJSON *node = json_node_new(cJSON_Invalid);
    if (f)
        json_node_append(f->node, node);
    else
        r->root = node;
    return node;
}

static void note_duplicate(struct reader *r, const struct frame *f)
{
    SCOPED(buf_fini) struct buf text = {0};
    const char *key = f->member->string;
    if (r->duplicates.n >= DUPLICATES_MAX)
        return;
    buf_printf(&text, "line %zu: key ", f->value_line);
    if (f->is_quoted)
        buf_go_quote(&text, key, strlen(key));
    else
        buf_puts(&text, key);
    buf_puts(&text, " already set in map");
    pairs_add(&r->duplicates, buf_cstr(&text), "");
}

static char *key_text(const cJSON *node)
{
    return cJSON_IsString(node) ? xstrdup(node->valuestring) : json_to_str(node);
}

/* The member whose value comes next. */
static void start_member(struct frame *f, char *take_key, bool is_quoted)
{
    SCOPED_FREE char *key = take_key;
    f->is_quoted = is_quoted;
    f->member = json_keys_find(&f->keys, f->node, key);
    f->is_repeated = f->member != NULL;
    if (f->member) {
        json_node_clear(f->member);
        return;
    }
    f->member = json_node_new(cJSON_Invalid);
    f->member->string = steal(&key);
    json_node_append(f->node, f->member);
    json_keys_add(&f->keys, f->node, f->member);
}

static void end_member(struct reader *r, struct frame *f)
{
    if (f->is_repeated)
        note_duplicate(r, f);
    f->member = NULL;
}

/* The members of map, which is left empty, as if they stood where it does. */
static void merge_map(struct reader *r, struct frame *f, cJSON *map)
{
    while (map->child) {
        cJSON *member = json_detach_item(map, map->child);
        start_member(f, steal(&member->string), true);
        move_value(f->member, member);
        end_member(r, f);
    }
}

/* The value of << is complete: a map, or a list of them, of which the last comes first. */
static bool merge_value(struct reader *r, struct frame *f)
{
    SCOPED(json_free_p) cJSON *value = steal(&f->merged);
    f->member = NULL;
    bool are_maps = cJSON_IsArray(value);
    cJSON *item;
    cJSON_ArrayForEach(item, value) are_maps &= cJSON_IsObject(item);
    if (!are_maps && !cJSON_IsObject(value))
        return fail_plainly(r, "map merge requires map or sequence of maps as the value");
    if (cJSON_IsObject(value)) {
        merge_map(r, f, value);
        return true;
    }
    for (item = value->child ? value->child->prev : NULL; item; item = item->prev) {
        merge_map(r, f, item);
        if (item == value->child)
            break;
    }
    return true;
}

/* A value is complete; the container it is in waits for the next one. */
static bool end_value(struct reader *r)
{
    struct frame *f = top(r);
    if (!f || !cJSON_IsObject(f->node))
        return true;
    if (f->merged)
        return merge_value(r, f);
    end_member(r, f);
    return true;
}

static bool is_merge(const yaml_event_t *event)
{
    const char *tag = (const char *)event->data.scalar.tag;
    return strcmp((const char *)event->data.scalar.value, "<<") == 0 &&
           (tag ? strcmp(tag, TAG_PREFIX "merge") == 0 : event->data.scalar.plain_implicit);
}

static bool on_scalar(struct reader *r, const yaml_event_t *event)
{
    struct frame *map = map_at_key(r);
    if (map && is_merge(event)) {
        map->member = map->merged = json_node_new(cJSON_Invalid);
        return true;
    }
    SCOPED(json_free_p) cJSON *key = map ? json_node_new(cJSON_Invalid) : NULL;
    cJSON *node = map ? key : take_target(r, event);
    int anchor = open_anchor(r, event->data.scalar.anchor);
    if (!read_scalar(r, event, node) || !close_anchor(r, event, anchor, node))
        return false;
    if (!map)
        return end_value(r);
    start_member(map, key_text(node), cJSON_IsString(node));
    return true;
}

static bool on_alias(struct reader *r, const yaml_event_t *event)
{
    const struct anchor *a = find_anchor(r, event);
    if (!a)
        return false;
    struct frame *map = map_at_key(r);
    if (!map) {
        move_value(take_target(r, event), json_copy(a->value));
        return end_value(r);
    }
    if (cJSON_IsObject(a->value) || cJSON_IsArray(a->value))
        return fail(r, event, "invalid map key");
    start_member(map, key_text(a->value), cJSON_IsString(a->value));
    return true;
}

static bool open_container(struct reader *r, const yaml_event_t *event, int type,
                           const yaml_char_t *anchor)
{
    if (map_at_key(r))
        return fail(r, event, "invalid map key");
    if (r->depth >= r->max_depth) {
        err_set(r->err, ERR_BAD_REQUEST, "yaml: exceeded max depth of %zu", r->max_depth);
        return false;
    }
    if (!charge(r, event, 1, 0))
        return false;
    cJSON *node = take_target(r, event);
    node->type = type;
    if (r->depth == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 16;
        r->frames = xreallocarray(r->frames, r->cap, sizeof *r->frames);
    }
    r->frames[r->depth++] = (struct frame){.node = node, .anchor = open_anchor(r, anchor)};
    return true;
}

static bool close_container(struct reader *r, const yaml_event_t *event)
{
    struct frame f = r->frames[--r->depth];
    json_keys_fini(&f.keys);
    return close_anchor(r, event, f.anchor, f.node) && end_value(r);
}

static bool on_event(struct reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(r, event);
    case YAML_ALIAS_EVENT:
        return on_alias(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_container(r, event, cJSON_Array, event->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        return open_container(r, event, cJSON_Object, event->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_container(r, event);
    default: /* stream and document marks carry nothing */
        return true;
    }
}

/* Reads up to the end of the next document; *ret_more is false when the stream ended instead. */
static bool read_document(struct reader *r, bool *ret_more)
{
    forget_anchors(r);
    for (;;) {
        SCOPED(yaml_event_delete) yaml_event_t event;
        if (!yaml_parser_parse(&r->yaml, &event)) {
            memset(&event, 0, sizeof event);
            return fail_syntax(r);
        }
        if (!on_event(r, &event))
            return false;
        if (event.type != YAML_DOCUMENT_END_EVENT && event.type != YAML_STREAM_END_EVENT)
            continue;
        *ret_more = event.type == YAML_DOCUMENT_END_EVENT;
        return true;
    }
}

/* Repeated keys are an error unless the caller wants to know them. */
static bool check_duplicates(struct reader *r)
{
    SCOPED(buf_fini) struct buf text = {0};
    if ((r->flags & JSON_KEEP_LAST_DUPLICATE) || r->duplicates.n == 0)
        return true;
    for (size_t i = 0; i < r->duplicates.n; i++)
        buf_printf(&text, "\n  %s", r->duplicates.v[i].name);
    err_set(r->err, ERR_BAD_REQUEST, "yaml: unmarshal errors:%s", buf_cstr(&text));
    return false;
}

static size_t allowance(size_t text_bytes, size_t n_free, size_t max)
{
    return text_bytes < (max - n_free) / GROWTH ? n_free + text_bytes * GROWTH : max;
}

static void reader_init(struct reader *r, const char *p, size_t n, const struct json_opts *opts,
                        struct err *err)
{
    size_t depth = opts && opts->max_depth ? opts->max_depth : YAML_DEPTH_MAX;
    size_t nodes = allowance(n, NODES_FREE, NODES_MAX);
    *r = (struct reader){
        .flags = opts ? opts->flags : 0,
        .max_depth = depth < YAML_DEPTH_MAX ? depth : YAML_DEPTH_MAX,
        .nodes_left = opts && opts->max_nodes && opts->max_nodes < nodes ? opts->max_nodes : nodes,
        .bytes_left = allowance(n, BYTES_FREE, BYTES_MAX),
        .err = err,
    };
    if (!yaml_parser_initialize(&r->yaml))
        abort(); /* out of memory */
    yaml_parser_set_encoding(&r->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->yaml, (const unsigned char *)(n ? p : ""), n);
}

static void reader_fini(struct reader *r)
{
    yaml_parser_delete(&r->yaml);
    for (size_t i = 0; i < r->depth; i++) {
        json_keys_fini(&r->frames[i].keys);
        json_free(r->frames[i].merged);
    }
    free(r->frames);
    json_free(r->root);
    forget_anchors(r);
    json_free(r->anchor_names);
    pairs_fini(&r->duplicates);
}

/* The document, or null if there is none; a second one is refused unless it does not matter. */
static bool read_only_document(struct reader *r)
{
    bool more;
    if (!read_document(r, &more))
        return false;
    if (!r->root)
        r->root = json_null();
    if (!more || (r->flags & YAML_FIRST_DOCUMENT))
        return check_duplicates(r);
    cJSON *first = steal(&r->root);
    if (read_document(r, &more) && r->root && !cJSON_IsNull(r->root))
        err_set(r->err, ERR_BAD_REQUEST, "yaml: only one document is expected");
    json_free(r->root);
    r->root = first;
    return !r->err->code && check_duplicates(r);
}

/* ---- JSON texts ---- */

static bool may_be_json(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
        i++;
    return i < n && memchr("{[\"", p[i], 3);
}

/* Numbers with fraction or exponent become what the YAML reader would have made of them: 2.0 is
 * 2. */
static void round_numbers(cJSON *tree)
{
    SCOPED(json_stack_fini) struct json_stack todo = {0};
    json_stack_push(&todo, (union json_ref){.owned = tree});
    while (todo.n > 0) {
        cJSON *node = todo.v[--todo.n].owned, *child;
        if (cJSON_IsNumber(node) && node->valuestring) {
            SCOPED_FREE char *text = steal(&node->valuestring);
            json_node_clear(node);
            yaml_resolve(text, node);
        }
        cJSON_ArrayForEach(child, node)
        {
            if (child->child || child->valuestring)
                json_stack_push(&todo, (union json_ref){.owned = child});
        }
    }
}

/* Only a text without fault: whatever is wrong with it, the YAML reader shall say. */
static bool read_as_json(const char *p, size_t n, const struct json_opts *opts, cJSON **ret)
{
    struct json_opts strict = {
        .max_depth = opts ? opts->max_depth : 0,
        .max_nodes = opts && opts->max_nodes ? opts->max_nodes : NODES_MAX,
    };
    if (!may_be_json(p, n) || json_parse(p, n, &strict, ret, NULL) < 0)
        return false;
    round_numbers(*ret);
    return true;
}

int yaml_parse(const char *p, size_t n, const struct json_opts *opts, cJSON **ret, struct err *err)
{
    SCOPED(err_fini) struct err own = {0};
    SCOPED(reader_fini) struct reader r;
    if (n >= strlen(BYTE_ORDER_MARK) && memcmp(p, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0) {
        p += strlen(BYTE_ORDER_MARK);
        n -= strlen(BYTE_ORDER_MARK);
    }
    reader_init(&r, p, n, opts, &own);
    if (read_as_json(p, n, opts, ret))
        return 0;
    if (!read_only_document(&r))
        return err_move(err, &own);
    for (size_t i = 0; opts && opts->duplicates && i < r.duplicates.n; i++)
        pairs_add(opts->duplicates, r.duplicates.v[i].name, "");
    *ret = steal(&r.root);
    return 0;
}
