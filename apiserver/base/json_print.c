/* The JSON printer: walks the tree with a stack of the containers it is in. */
#include "apiserver/base/json_node.h"
#include "apiserver/base/mem.h"

struct printer {
    struct buf *out;
    bool pretty;
    struct json_stack open;
};

static void new_line(struct printer *p)
{
    if (!p->pretty)
        return;
    buf_putc(p->out, '\n');
    for (size_t i = 0; i < p->open.n; i++)
        buf_append(p->out, "  ", 2);
}

static bool is_container(const cJSON *node)
{
    return cJSON_IsObject(node) || cJSON_IsArray(node);
}

static void put_scalar(struct buf *out, const cJSON *node)
{
    char space[JSON_NUMBER_SIZE];
    if (cJSON_IsString(node))
        buf_json_string(out, node->valuestring, strlen(node->valuestring));
    else if (cJSON_IsNumber(node))
        buf_puts(out, json_node_number(node, space));
    else if (cJSON_IsRaw(node))
        buf_puts(out, node->valuestring);
    else if (cJSON_IsBool(node))
        buf_puts(out, cJSON_IsTrue(node) ? "true" : "false");
    else
        buf_puts(out, "null");
}

/* A scalar whole, of a container only the opening bracket; both if it is empty. */
static void put_start(struct printer *p, const cJSON *node)
{
    if (!is_container(node))
        put_scalar(p->out, node);
    else if (node->child)
        buf_putc(p->out, cJSON_IsObject(node) ? '{' : '[');
    else
        buf_puts(p->out, cJSON_IsObject(node) ? "{}" : "[]");
}

static void put_name(struct printer *p, const cJSON *node)
{
    if (!cJSON_IsObject(p->open.v[p->open.n - 1].seen))
        return;
    const char *name = node->string ? node->string : "";
    buf_json_string(p->out, name, strlen(name));
    buf_puts(p->out, p->pretty ? ": " : ":");
}

/* Closes what ends after node and returns the next node to print, NULL at the end. */
static const cJSON *put_ends(struct printer *p, const cJSON *node)
{
    while (p->open.n > 0) {
        if (node->next) {
            buf_putc(p->out, ',');
            return node->next;
        }
        node = p->open.v[--p->open.n].seen;
        new_line(p);
        buf_putc(p->out, cJSON_IsObject(node) ? '}' : ']');
    }
    return NULL;
}

static void print(const cJSON *tree, struct buf *out, bool pretty)
{
    struct printer p = {.out = out, .pretty = pretty};
    const cJSON *node = tree;
    if (!tree)
        buf_puts(out, "null");
    while (node && !buf_failed(out)) {
        if (p.open.n > 0) {
            new_line(&p);
            put_name(&p, node);
        }
        put_start(&p, node);
        if (is_container(node) && node->child) {
            json_stack_push(&p.open, (union json_ref){.seen = node});
            node = node->child;
        } else {
            node = put_ends(&p, node);
        }
    }
    json_stack_fini(&p.open);
}

void json_print(const cJSON *tree, struct buf *out)
{
    print(tree, out, false);
}

void json_print_pretty(const cJSON *tree, struct buf *out)
{
    print(tree, out, true);
}

char *json_to_str(const cJSON *tree)
{
    struct buf out = {.max = SIZE_MAX / 2}; /* bounded by the tree */
    json_print(tree, &out);
    return buf_take(&out, NULL);
}
