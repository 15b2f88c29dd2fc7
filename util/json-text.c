/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON text where json-glib is not strict.
 *
 * Its parser takes some texts for others without a word: integers beyond 64
 * bits become -1, huge numbers infinity, "\u0000" cuts a string short, half a
 * surrogate pair becomes something else, octal and hexadecimal numbers,
 * comments and a second value after the first pass.  Its generator writes
 * doubles like 1e30 as "1e+30.0", and strings as bytes: those of its own error
 * messages may end within a character.
 */
#include "util/json-text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* ---- screening ------------------------------------------------------- */

/* The value of "\\uXXXX" at @p, or -1. */
static int unicode_escape(const char *p)
{
    int code = 0;

    if (p[0] != '\\' || p[1] != 'u') {
        return -1;
    }
    for (unsigned i = 2; i < 6; i++) {
        if (!g_ascii_isxdigit(p[i])) {
            return -1;
        }
        code = code * 16 + g_ascii_xdigit_value(p[i]);
    }
    return code;
}

/* Returns the last character of an escape, or NULL with *@why set. */
static const char *screen_escape(const char *p, const char **why)
{
    int code = unicode_escape(p);

    *why = "unknown escape in a string";
    if (p[1] != 'u') {
        return p[1] && strchr("\"'\\/bfnrt", p[1]) ? p + 1 : NULL;
    }
    if (code == 0) {
        *why = "NUL character in a string";
    }
    if (code <= 0 || (code & 0xfc00) == 0xdc00) {
        return NULL;
    }
    if ((code & 0xfc00) != 0xd800) {
        return p + 5;
    }
    /* The first half of a pair. */
    return (unicode_escape(p + 6) & ~0x3ff) == 0xdc00 ? p + 11 : NULL;
}

/* Returns the closing quote, or NULL with *@why set. */
static const char *screen_string(const char *p, const char **why)
{
    char quote = *p++;

    for (; *p != quote; p++) {
        if ((unsigned char)*p < ' ') {
            *why = *p ? "control character in a string"
                      : "string without an end";
            return NULL;
        }
        if (*p == '\\') {
            p = screen_escape(p, why);
        }
        if (!p) {
            return NULL;
        }
    }
    return p;
}

/* Returns the last character, or NULL with *@why set. */
static const char *screen_number(const char *p, const char **why)
{
    const char *digits = *p == '-' ? p + 1 : p;
    size_t len = strspn(p, "+-.0123456789abcdefABCDEFxX");
    bool is_int = strspn(digits, "0123456789") == (size_t)(p + len - digits);

    *why = "number that is not plain decimal";
    if (digits[0] == '0' && (g_ascii_isdigit(digits[1]) ||
                             g_ascii_tolower(digits[1]) == 'x')) {
        return NULL;
    }
    *why = "number out of range";
    errno = 0;
    if (is_int) {
        g_ascii_strtoll(p, NULL, 10);
    } else {
        g_ascii_strtod(p, NULL);
    }
    return errno ? NULL : p + len - 1;
}

const char *json_text_check(const char *text, unsigned max_depth)
{
    const char *why = NULL;
    unsigned depth = 0;

    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\'') {
            p = screen_string(p, &why);
        } else if (*p == '-' || g_ascii_isdigit(*p)) {
            p = screen_number(p, &why);
        } else if (*p == '{' || *p == '[') {
            if (++depth > max_depth) {
                return "too many levels of nesting";
            }
        } else if (*p == '}' || *p == ']') {
            if (--depth == 0) {
                p += strspn(p + 1, " \t\r\n");
                return p[1] ? "text after the end of the object" : NULL;
            }
        } else if (*p == '/' || *p == '#') {
            return "comment";
        }
        if (!p) {
            return why;
        }
    }
    return "object without an end";
}

/* ---- formatting ------------------------------------------------------ */

/* The shortest of the usual precisions that reads back as the same value. */
static void emit_double(GString *out, double value)
{
    static const char *const formats[] = { "%.15g", "%.16g", "%.17g" };
    char buf[G_ASCII_DTOSTR_BUF_SIZE];

    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_ascii_formatd(buf, sizeof(buf), formats[i], value);
        if (g_ascii_strtod(buf, NULL) == value) {
            break;
        }
    }
    g_string_append(out, buf);
    if (!strpbrk(buf, ".e")) {
        g_string_append(out, ".0");     /* it was no integer */
    }
}

static void emit_scalar(GString *out, JsonNode *node)
{
    g_autofree char *text = NULL;
    g_autofree char *valid = NULL;

    if (JSON_NODE_HOLDS_VALUE(node) &&
        json_node_get_value_type(node) == G_TYPE_DOUBLE) {
        emit_double(out, json_node_get_double(node));
    } else {
        text = json_to_string(node, FALSE);
        valid = g_utf8_make_valid(text, -1);
        g_string_append(out, valid);
    }
}

static void emit_name(GString *out, const char *name)
{
    g_autoptr(JsonNode) node = json_node_init_string(json_node_alloc(), name);

    emit_scalar(out, node);
    g_string_append_c(out, ':');
}

static void emit_object(GString *out, JsonObject *object)
{
    const char *comma = "";
    JsonObjectIter iter;
    const char *name;
    JsonNode *node;

    g_string_append_c(out, '{');
    json_object_iter_init_ordered(&iter, object);
    while (json_object_iter_next_ordered(&iter, &name, &node)) {
        g_string_append(out, comma);
        emit_name(out, name);
        json_text_append(out, node);
        comma = ",";
    }
    g_string_append_c(out, '}');
}

static void emit_array(GString *out, JsonArray *array)
{
    g_string_append_c(out, '[');
    for (guint i = 0; i < json_array_get_length(array); i++) {
        g_string_append(out, i ? "," : "");
        json_text_append(out, json_array_get_element(array, i));
    }
    g_string_append_c(out, ']');
}

void json_text_append(GString *out, JsonNode *node)
{
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        emit_object(out, json_node_get_object(node));
    } else if (JSON_NODE_HOLDS_ARRAY(node)) {
        emit_array(out, json_node_get_array(node));
    } else {
        emit_scalar(out, node);
    }
}

char *json_text_format(JsonNode *node)
{
    GString *out = g_string_new(NULL);

    json_text_append(out, node);
    return g_string_free(out, FALSE);
}
