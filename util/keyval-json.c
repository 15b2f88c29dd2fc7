/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KeyVal: the JSON spelling.
 *
 * json-glib does the parsing, but takes some texts for others without a word:
 * integers beyond 64 bits become -1, "\u0000" cuts a string short, octal and
 * hexadecimal numbers, comments and a second value after the first pass, and
 * of a repeated member the last one stays.  What is passed on to QEMU must
 * mean what the user wrote, so json_screen() refuses those first.
 *
 * The tree is kept, edited in place, and listed as dotted keys:
 *
 *     {"a": {"b": 1}}                  a.b=1
 *     {"l": ["x", {"str": "y"}]}       l=x l=y
 *     {"l": [{"b": 1}, [2]]}           l.0.b=1 l.1=2
 *     true, false, null                on, off, null
 *
 * Limits: empty objects and arrays have no entry.  Editing a key that comes
 * from inside an array replaces the array.
 */
#include "keyval-internal.h"

#include <errno.h>
#include <string.h>

#include "util/report.h"

#define JSON_MAX_DEPTH  64

/* ---- screening ------------------------------------------------------- */

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
        if (*p == '\\' && !strncmp(p, "\\u0000", 6)) {
            *why = "NUL character in a string";
            return NULL;
        }
        if (*p == '\\' && p[1]) {
            p++;
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

/* ---- listing --------------------------------------------------------- */

typedef struct JsonWalk {
    KeyVal *kv;
    JsonObject *parent;     /* outermost owner, see KeyValEntry */
    const char *member;
} JsonWalk;

static void list_object(JsonWalk w, JsonObject *object, const char *prefix,
                        bool in_array);

static void list_scalar(JsonWalk w, JsonNode *node, const char *key)
{
    g_autofree char *text = NULL;

    if (JSON_NODE_HOLDS_NULL(node)) {
        keyval_add(w.kv, key, "null", w.parent, w.member);
    } else if (json_node_get_value_type(node) == G_TYPE_STRING) {
        keyval_add(w.kv, key, json_node_get_string(node), w.parent, w.member);
    } else if (json_node_get_value_type(node) == G_TYPE_BOOLEAN) {
        keyval_add(w.kv, key, json_node_get_boolean(node) ? "on" : "off",
                   w.parent, w.member);
    } else {
        text = json_to_string(node, FALSE);
        keyval_add(w.kv, key, text, w.parent, w.member);
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

static const KeyValEntry *json_find_first(const KeyVal *kv, const char *key)
{
    for (guint i = 0; i < kv->entries->len; i++) {
        if (!strcmp(keyval_at(kv, i)->key, key)) {
            return keyval_at(kv, i);
        }
    }
    return NULL;
}

/*
 * Follow (and make) the objects of all but the last fragment.  Where one is
 * in the way that is no object, the rest of the key is a plain name.
 */
static JsonObject *json_make_path(JsonObject *object, const char **key)
{
    const char *dot;

    while ((dot = strchr(*key, '.'))) {
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

void keyval_json_set(KeyVal *kv, const char *key, JsonNode *node)
{
    const KeyValEntry *e = json_find_first(kv, key);

    if (e) {
        json_object_set_member(e->parent, e->member, node);
    } else {
        JsonObject *object = json_node_get_object(kv->root);

        object = json_make_path(object, &key);
        json_object_set_member(object, key, node);
    }
    keyval_json_list(kv);
}

void keyval_json_remove(KeyVal *kv, const char *key)
{
    const KeyValEntry *e;

    while ((e = json_find_first(kv, key))) {
        json_object_remove_member(e->parent, e->member);
        keyval_json_list(kv);
    }
}
