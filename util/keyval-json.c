/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KeyVal: the JSON spelling.
 *
 * json-glib does the parsing, between json_text_check() and
 * json_text_append(): what is passed on to QEMU must mean what the user wrote.
 * Of a repeated member json-glib keeps the last one; that is refused here.
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

#include <string.h>

#include "util/json-text.h"
#include "util/report.h"

#define KEYVAL_MAX_DEPTH 64

char *keyval_json_format(const KeyVal *kv)
{
    return json_text_format(kv->root);
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
        json_text_append(number, node);
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
    const char *why = json_text_check(text, KEYVAL_MAX_DEPTH);

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
