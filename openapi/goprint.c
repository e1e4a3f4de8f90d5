/* Values as Go prints them; see goprint.h. Source: Go's fmt and strconv; apimachinery's
 * field.Error. */
#include "openapi/goprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

bool goprint_is_int64(const cJSON *number)
{
    int64_t v;
    return json_node_is_int(number) && json_node_i64(number, &v) == 0;
}

void goprint_quoted(const char *s, struct buf *out)
{
    static const char names[] = "abtnvfr"; /* of the control characters from 7 on */
    buf_putc(out, '"');
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        if (*p == '"' || *p == '\\')
            buf_printf(out, "\\%c", *p);
        else if (*p >= 7 && *p < 7 + sizeof names - 1)
            buf_printf(out, "\\%c", names[*p - 7]);
        else if (*p < 0x20 || *p == 0x7f)
            buf_printf(out, "\\x%02x", *p);
        else if (str_has_prefix((const char *)p, STR_NUL)) {
            buf_puts(out, "\\x00");
            p++;
        } else if (p[0] == 0xe2 && p[1] == 0x80 &&
                   (p[2] == 0xa8 || p[2] == 0xa9)) { /* line and paragraph separator */
            buf_puts(out, p[2] == 0xa8 ? "\\u2028" : "\\u2029");
            p += 2;
        } else
            buf_putc(out, (char)*p);
    }
    buf_putc(out, '"');
}

/* The shortest digits that read back as v, with an exponent from 1e6 on and below 1e-4. */
static void print_double(double v, struct buf *out)
{
    char text[40];
    int precision = 0;
    do
        (void)snprintf(text, sizeof text, "%.*e", precision, v);
    while (strtod(text, NULL) != v && ++precision < 17);
    const char *e = strchr(text, 'e');
    long exponent = e ? strtol(e + 1, NULL, 10) : 0;
    if (exponent < -4 || exponent >= 6)
        buf_puts(out, text);
    else
        buf_printf(out, "%.*f", precision > exponent ? (int)(precision - exponent) : 0, v);
}

void goprint_number(const cJSON *number, struct buf *out)
{
    int64_t v;
    if (goprint_is_int64(number) && json_node_i64(number, &v) == 0)
        buf_printf(out, "%lld", (long long)v);
    else
        print_double(number->valuedouble, out);
}

/* Go prints maps by key, so members are sorted first, at all depths at once. */
static const cJSON *sorted(const cJSON *value, cJSON **space)
{
    if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
        return value;
    *space = json_copy(value);
    json_sort(*space);
    return *space;
}

static void print_sorted(const cJSON *value, struct buf *out)
{
    const cJSON *child;
    if (cJSON_IsObject(value) || cJSON_IsArray(value)) {
        buf_puts(out, cJSON_IsObject(value) ? "map[" : "[");
        cJSON_ArrayForEach(child, value)
        {
            if (child != value->child)
                buf_putc(out, ' ');
            if (cJSON_IsObject(value))
                buf_printf(out, "%s:", child->string);
            print_sorted(child, out);
        }
        buf_putc(out, ']');
    } else if (cJSON_IsString(value)) {
        buf_puts(out, value->valuestring);
    } else if (cJSON_IsNumber(value)) {
        goprint_number(value, out);
    } else {
        buf_puts(out, cJSON_IsBool(value) ? (cJSON_IsTrue(value) ? "true" : "false") : "<nil>");
    }
}

void goprint_value(const cJSON *value, struct buf *out)
{
    SCOPED(json_free_p) cJSON *space = NULL;
    print_sorted(sorted(value, &space), out);
}

static void print_sorted_syntax(const cJSON *value, struct buf *out)
{
    const cJSON *child;
    if (cJSON_IsObject(value) || cJSON_IsArray(value)) {
        buf_printf(out, "%s{", goprint_type(value));
        cJSON_ArrayForEach(child, value)
        {
            if (child != value->child)
                buf_puts(out, ", ");
            if (cJSON_IsObject(value)) {
                goprint_quoted(child->string, out);
                buf_putc(out, ':');
            }
            print_sorted_syntax(child, out);
        }
        buf_putc(out, '}');
    } else if (cJSON_IsString(value)) {
        goprint_quoted(value->valuestring, out);
    } else if (cJSON_IsNull(value)) {
        buf_puts(out, "interface {}(nil)");
    } else {
        print_sorted(value, out);
    }
}

void goprint_syntax(const cJSON *value, struct buf *out)
{
    SCOPED(json_free_p) cJSON *space = NULL;
    print_sorted_syntax(sorted(value, &space), out);
}

const char *goprint_type(const cJSON *value)
{
    if (cJSON_IsObject(value))
        return "map[string]interface {}";
    if (cJSON_IsArray(value))
        return "[]interface {}";
    if (cJSON_IsString(value))
        return "string";
    if (cJSON_IsNumber(value))
        return goprint_is_int64(value) ? "int64" : "float64";
    return cJSON_IsBool(value) ? "bool" : "<nil>";
}

static void print_json(const cJSON *value, struct buf *out)
{
    SCOPED(json_free_p) cJSON *sorted = json_copy(value);
    SCOPED(buf_fini) struct buf text = {0};
    json_sort(sorted);
    json_print(sorted, &text);
    for (const char *p = buf_cstr(&text); *p; p++) { /* these stand inside strings only */
        if (*p == '<' || *p == '>' || *p == '&')
            buf_printf(out, "\\u%04x", *p);
        else
            buf_putc(out, *p);
    }
}

void goprint_bad_value(const cJSON *value, struct buf *out)
{
    if (cJSON_IsString(value))
        goprint_quoted(value->valuestring, out);
    else if (cJSON_IsNumber(value))
        goprint_number(value, out);
    else if (cJSON_IsBool(value))
        buf_puts(out, cJSON_IsTrue(value) ? "true" : "false");
    else if (cJSON_IsNull(value))
        buf_puts(out, "null");
    else
        print_json(value, out);
}
