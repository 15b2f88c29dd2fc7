/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KeyVal: the JSON spelling.
 *
 * json-glib does the parsing, but takes some texts for others without a word:
 * integers beyond 64 bits become -1, "\u0000" cuts a string short, half a
 * surrogate pair becomes something else, octal and
 * hexadecimal numbers, comments and a second value after the first pass, and
 * of a repeated member the last one stays.  What is passed on to QEMU must
 * mean what the user wrote, so json_screen() refuses those first.  Its
 * generator writes doubles like 1e30 as "1e+30.0", so that is done here.
 *
 * The tree is kept, edited in place, and listed as dotted keys:
 *
 *     {"a": {"b": 1}}                  a.b=1
 *     {"l": ["x", {"str": "y"}]}       l=x l=y
 *     {"l": [{"b": 1}, [2]]}           l.0.b=1 l.1=2
 *     true, false, null                on, off, null
 *
 * Limits: empty objects and arrays have no entry.  Editing or removing a key
 * that comes from inside an array takes the array away.
 */
#include "keyval-internal.h"

#include <errno.h>
#include <string.h>

#include "util/report.h"

#define JSON_MAX_DEPTH  64

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

/* Returns NULL if the text may go to json-glib, else what is wrong. */
static const char *json_screen(const char *text)
{
    const char *why = NULL;
    unsigned depth = 0;

    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\'') {
            p = screen_string(p, &why);
        } else if (*p == '-' || g_ascii_isdigit(*p)) {
            p = screen_number(p, &why);
        } else if (*p == '{' || *p == '[') {
            if (++depth > JSON_MAX_DEPTH) {
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

    if (JSON_NODE_HOLDS_VALUE(node) &&
        json_node_get_value_type(node) == G_TYPE_DOUBLE) {
        emit_double(out, json_node_get_double(node));
    } else {
        text = json_to_string(node, FALSE);
        g_string_append(out, text);
    }
}

static void emit_name(GString *out, const char *name)
{
    g_autoptr(JsonNode) node = json_node_init_string(json_node_alloc(), name);

    emit_scalar(out, node);
    g_string_append_c(out, ':');
}

static void emit_node(GString *out, JsonNode *node);

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
        emit_node(out, node);
        comma = ",";
    }
    g_string_append_c(out, '}');
}

static void emit_array(GString *out, JsonArray *array)
{
    g_string_append_c(out, '[');
    for (guint i = 0; i < json_array_get_length(array); i++) {
        g_string_append(out, i ? "," : "");
        emit_node(out, json_array_get_element(array, i));
    }
    g_string_append_c(out, ']');
}

static void emit_node(GString *out, JsonNode *node)
{
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        emit_object(out, json_node_get_object(node));
    } else if (JSON_NODE_HOLDS_ARRAY(node)) {
        emit_array(out, json_node_get_array(node));
    } else {
        emit_scalar(out, node);
    }
}

char *keyval_json_format(const KeyVal *kv)
{
    GString *out = g_string_new(NULL);

    emit_node(out, kv->root);
    return g_string_free(out, FALSE);
}

/* ---- listing --------------------------------------------------------- */

/* Where the walk is: what to write into each entry. */
typedef struct JsonWalk {
    KeyVal *kv;
    JsonObject *parent;     /* see KeyValEntry */
    const char *member;
    const char *member_key; /* dotted */
} JsonWalk;

static void list_object(JsonWalk w, JsonObject *object, const char *prefix,
                        bool in_array);

static void list_value(JsonWalk w, const char *key, const char *value)
{
    keyval_add(w.kv, (KeyValEntry) {
        .key = key,
        .value = value,
        .parent = w.parent,
        .member = w.member,
        .direct = !strcmp(key, w.member_key),
    });
}

static void list_scalar(JsonWalk w, JsonNode *node, const char *key)
{
    g_autoptr(GString) number = NULL;

    if (JSON_NODE_HOLDS_NULL(node)) {
        list_value(w, key, "null");
    } else if (json_node_get_value_type(node) == G_TYPE_STRING) {
        list_value(w, key, json_node_get_string(node));
    } else if (json_node_get_value_type(node) == G_TYPE_BOOLEAN) {
        list_value(w, key, json_node_get_boolean(node) ? "on" : "off");
    } else {
        number = g_string_new(NULL);
        emit_scalar(number, node);
        list_value(w, key, number->str);
    }
}

/* The string of {"str": "..."}, or NULL. */
static JsonNode *boxed_string(JsonNode *node)
{
    JsonObject *object;
    JsonNode *str;

    if (!JSON_NODE_HOLDS_OBJECT(node)) {
        return NULL;
    }
    object = json_node_get_object(node);
    str = json_object_get_member(object, "str");
    if (!str || json_object_get_size(object) != 1 ||
        !JSON_NODE_HOLDS_VALUE(str) ||
        json_node_get_value_type(str) != G_TYPE_STRING) {
        return NULL;
    }
    return str;
}

static void list_array(JsonWalk w, JsonArray *array, const char *key)
{
    for (guint i = 0; i < json_array_get_length(array); i++) {
        JsonNode *node = json_array_get_element(array, i);
        JsonNode *str = boxed_string(node);
        g_autofree char *sub = g_strdup_printf("%s.%u", key, i);

        if (str) {
            list_scalar(w, str, key);
        } else if (JSON_NODE_HOLDS_OBJECT(node)) {
            list_object(w, json_node_get_object(node), sub, true);
        } else if (JSON_NODE_HOLDS_ARRAY(node)) {
            list_array(w, json_node_get_array(node), sub);
        } else {
            list_scalar(w, node, key);
        }
    }
}

static void list_object(JsonWalk w, JsonObject *object, const char *prefix,
                        bool in_array)
{
    JsonObjectIter iter;
    const char *name;
    JsonNode *node;

    json_object_iter_init_ordered(&iter, object);
    while (json_object_iter_next_ordered(&iter, &name, &node)) {
        g_autofree char *key = *prefix ? g_strconcat(prefix, ".", name, NULL)
                                       : g_strdup(name);

        if (!in_array) {
            w.parent = object;
            w.member = name;
            w.member_key = key;
        }
        if (JSON_NODE_HOLDS_OBJECT(node)) {
            list_object(w, json_node_get_object(node), key, in_array);
        } else if (JSON_NODE_HOLDS_ARRAY(node)) {
            list_array(w, json_node_get_array(node), key);
        } else {
            list_scalar(w, node, key);
        }
    }
}

static void keyval_json_list(KeyVal *kv)
{
    g_array_set_size(kv->entries, 0);
    list_object((JsonWalk) { .kv = kv }, json_node_get_object(kv->root), "",
                false);
}

/* ---- parsing --------------------------------------------------------- */

typedef struct MemberCheck {
    GHashTable *seen;           /* JsonObject to number of members parsed */
    char *bad;                  /* first empty or repeated name */
} MemberCheck;

/* One more member was parsed than the object holds: it replaced another. */
static void member_parsed(JsonParser *parser, JsonObject *object,
                          const char *name, void *opaque)
{
    MemberCheck *check = opaque;
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(check->seen, object)) + 1;

    g_hash_table_insert(check->seen, object, GUINT_TO_POINTER(n));
    if (!check->bad && (!*name || n != json_object_get_size(object))) {
        check->bad = g_strdup(name);
    }
}

bool keyval_json_parse(KeyVal *kv, const char *text, GError **errp)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GError) err = NULL;
    MemberCheck check = { .seen = seen };
    const char *why = json_screen(text);

    g_signal_connect(parser, "object-member", G_CALLBACK(member_parsed),
                     &check);
    if (!why && !json_parser_load_from_data(parser, text, -1, &err)) {
        why = err->message;
    }
    if (why) {
        vnet_set_error(errp, "%s: invalid JSON '%s': %s", kv->what, text,
                       why);
    } else if (check.bad) {
        vnet_set_error(errp, "%s: %s parameter name '%s' in '%s', expected "
                       "each name once", kv->what,
                       *check.bad ? "repeated" : "empty", check.bad, text);
    } else {
        kv->root = json_parser_steal_root(parser);
        keyval_json_list(kv);
    }
    g_free(check.bad);
    return kv->root;
}

/* ---- edits ----------------------------------------------------------- */

/*
 * Follow (and make) the objects of all but the last fragment.  Where one is
 * in the way that is no object, or a fragment is empty, the rest of the key
 * is a plain name: it lists as the same key.
 */
static JsonObject *json_make_path(JsonObject *object, const char **key)
{
    const char *dot;

    while ((dot = strchr(*key, '.')) && dot != *key && dot[1]) {
        g_autofree char *name = g_strndup(*key, dot - *key);
        JsonNode *node = json_object_get_member(object, name);

        if (!node) {
            json_object_set_object_member(object, name, json_object_new());
            node = json_object_get_member(object, name);
        } else if (!JSON_NODE_HOLDS_OBJECT(node)) {
            break;
        }
        object = json_node_get_object(node);
        *key = dot + 1;
    }
    return object;
}

/* An entry of @key that is not @member of @parent, or NULL. */
static const KeyValEntry *json_find_other(const KeyVal *kv, const char *key,
                                          JsonObject *parent,
                                          const char *member)
{
    for (guint i = 0; i < kv->entries->len; i++) {
        const KeyValEntry *e = keyval_at(kv, i);

        if (!strcmp(e->key, key) &&
            (e->parent != parent || strcmp(e->member, member))) {
            return e;
        }
    }
    return NULL;
}

/* "a.b" and "a": {"b": ..} are one key, so there may be several. */
static void json_remove_others(KeyVal *kv, const char *key,
                               JsonObject *parent, const char *member)
{
    const KeyValEntry *e;

    while ((e = json_find_other(kv, key, parent, member))) {
        json_object_remove_member(e->parent, e->member);
        keyval_json_list(kv);
    }
}

void keyval_json_set(KeyVal *kv, const char *key, JsonNode *node)
{
    const KeyValEntry *e = json_find_other(kv, key, NULL, "");
    JsonObject *parent;
    const char *member = key;

    if (e && e->direct) {
        parent = e->parent;
        member = e->member;
    } else {
        keyval_json_remove(kv, key);
        parent = json_make_path(json_node_get_object(kv->root), &member);
    }
    json_object_set_member(parent, member, node);
    keyval_json_list(kv);
    json_remove_others(kv, key, parent, member);
}

void keyval_json_remove(KeyVal *kv, const char *key)
{
    json_remove_others(kv, key, NULL, "");
}
