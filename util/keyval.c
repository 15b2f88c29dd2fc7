/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KeyVal: life, the dotted spelling, edits.
 *
 * Both spellings end as one ordered array of (key, value).  The dotted one is
 * edited in the array; the JSON one in its tree (keyval-json.c), from which
 * the array is made anew, so that what nobody touched is printed as it came.
 *
 * Grammar of the dotted spelling:
 *
 *     text  = [ first *( "," param ) ] [ "," ]
 *     first = value-without-"=" (the implied key's) | param
 *     param = key "=" value | key
 *
 * where a value ends at a comma that is not doubled, a key at "=" or comma.
 */
#include "keyval-internal.h"

#include <assert.h>
#include <string.h>

#include "util/report.h"

/* ---- entries --------------------------------------------------------- */

void keyval_add(KeyVal *kv, KeyValEntry entry)
{
    entry.key = g_string_chunk_insert_const(kv->strings, entry.key);
    entry.value = g_string_chunk_insert_const(kv->strings, entry.value);
    if (entry.member) {
        entry.member = g_string_chunk_insert_const(kv->strings, entry.member);
    }
    g_array_append_val(kv->entries, entry);
}

const KeyValEntry *keyval_find(const KeyVal *kv, const char *key)
{
    for (guint i = kv->entries->len; i-- > 0;) {
        if (!strcmp(keyval_at(kv, i)->key, key)) {
            return keyval_at(kv, i);
        }
    }
    return NULL;
}

static void keyval_update_subject(KeyVal *kv)
{
    const char *type = kv->implied ? keyval_peek(kv, kv->implied) : NULL;
    const char *id = keyval_peek(kv, "id");

    if (kv->implied && !strcmp(kv->implied, "id")) {
        id = NULL;
    }
    g_free(kv->subject);
    kv->subject = g_strconcat(kv->what, type ? " " : "", type ? type : "",
                              !id ? "" : type ? ",id=" : " id=",
                              id ? id : "", NULL);
}

/* ---- parsing --------------------------------------------------------- */

/* Copies up to an undoubled comma; returns what follows it, or the end. */
static const char *parse_value(const char *p, GString *out)
{
    g_string_truncate(out, 0);
    for (; *p; p++) {
        if (*p == ',') {
            if (p[1] != ',') {
                return p + 1;
            }
            p++;
        }
        g_string_append_c(out, *p);
    }
    return p;
}

static bool dotted_parse(KeyVal *kv, const char *text, GError **errp)
{
    g_autoptr(GString) value = g_string_new(NULL);
    const char *p = text;

    while (*p) {
        size_t len = strcspn(p, "=,");
        g_autofree char *key = NULL;

        if (p == text && kv->implied && p[len] != '=') {
            p = parse_value(p, value);
            key = g_strdup(value->len ? kv->implied : "");
            kv->implied_form = true;
        } else {
            key = g_strndup(p, len);
            p += len;
            if (*p == '=') {
                p = parse_value(p + 1, value);
            } else {
                p += *p == ',';
                g_string_assign(value, "on");
            }
        }
        /* As a first word after an edit, '{' would make it JSON. */
        if (!*key || *key == '{') {
            vnet_set_error(errp, "%s: invalid parameter name '%s' in '%s', "
                           "expected key=value,key=value", kv->what, key,
                           text);
            return false;
        }
        keyval_add(kv, (KeyValEntry) { .key = key, .value = value->str });
    }
    return true;
}

KeyVal *keyval_parse(const char *what, const char *text, const char *implied,
                     GError **errp)
{
    KeyVal *kv = g_new0(KeyVal, 1);

    kv->what = g_strdup(what);
    kv->implied = g_strdup(implied);
    kv->strings = g_string_chunk_new(256);
    kv->entries = g_array_new(FALSE, FALSE, sizeof(KeyValEntry));
    kv->asked = g_ptr_array_new();
    if (!(*text == '{' ? keyval_json_parse(kv, text, errp)
                       : dotted_parse(kv, text, errp))) {
        keyval_free(kv);
        return NULL;
    }
    keyval_update_subject(kv);
    return kv;
}

void keyval_free(KeyVal *kv)
{
    if (!kv) {
        return;
    }
    g_clear_pointer(&kv->root, json_node_unref);
    g_ptr_array_free(kv->asked, TRUE);
    g_array_free(kv->entries, TRUE);
    g_string_chunk_free(kv->strings);
    g_free(kv->subject);
    g_free(kv->implied);
    g_free(kv->what);
    g_free(kv);
}

const char *keyval_what(const KeyVal *kv)
{
    return kv->what;
}

const char *keyval_subject(const KeyVal *kv)
{
    return kv->subject;
}

void keyval_foreach(const KeyVal *kv, KeyValFunc *fn, void *opaque)
{
    for (guint i = 0; i < kv->entries->len; i++) {
        fn(keyval_at(kv, i)->key, keyval_at(kv, i)->value, opaque);
    }
}

/* ---- edits ----------------------------------------------------------- */

/* Drop the entries of @key from @from on. */
static bool entries_remove(KeyVal *kv, const char *key, guint from)
{
    bool found = false;

    for (guint i = kv->entries->len; i-- > from;) {
        if (!strcmp(keyval_at(kv, i)->key, key)) {
            g_array_remove_index(kv->entries, i);
            found = true;
        }
    }
    return found;
}

static void entries_set(KeyVal *kv, const char *key, const char *value)
{
    for (guint i = 0; i < kv->entries->len; i++) {
        if (!strcmp(keyval_at(kv, i)->key, key)) {
            keyval_at(kv, i)->value = g_string_chunk_insert(kv->strings,
                                                            value);
            entries_remove(kv, key, i + 1);
            return;
        }
    }
    keyval_add(kv, (KeyValEntry) { .key = key, .value = value });
}

static void keyval_set_node(KeyVal *kv, const char *key, const char *value,
                            JsonNode *node)
{
    assert(*key);
    if (kv->root) {
        keyval_json_set(kv, key, node);
    } else {
        entries_set(kv, key, value);
        json_node_unref(node);
    }
    keyval_update_subject(kv);
}

void keyval_set(KeyVal *kv, const char *key, const char *value)
{
    keyval_set_node(kv, key, value,
                    json_node_init_string(json_node_alloc(), value));
}

void keyval_set_bool(KeyVal *kv, const char *key, bool value)
{
    keyval_set_node(kv, key, value ? "on" : "off",
                    json_node_init_boolean(json_node_alloc(), value));
}

void keyval_set_uint(KeyVal *kv, const char *key, uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, value);

    assert(value <= INT64_MAX);
    keyval_set_node(kv, key, text,
                    json_node_init_int(json_node_alloc(), value));
}

bool keyval_remove(KeyVal *kv, const char *key)
{
    if (!keyval_find(kv, key)) {
        return false;
    }
    if (kv->root) {
        keyval_json_remove(kv, key);
    } else {
        entries_remove(kv, key, 0);
    }
    keyval_update_subject(kv);
    return true;
}

/* ---- formatting ------------------------------------------------------ */

static void append_value(GString *out, const char *value)
{
    for (; *value; value++) {
        if (*value == ',') {
            g_string_append_c(out, ',');
        }
        g_string_append_c(out, *value);
    }
}

/* A value that the parser would take for something else needs its key. */
static bool may_omit_key(const KeyVal *kv, const KeyValEntry *e)
{
    return kv->implied_form && !strcmp(e->key, kv->implied) &&
           *e->value && *e->value != '{' && !strchr(e->value, '=');
}

char *keyval_format(const KeyVal *kv)
{
    GString *out;

    if (kv->root) {
        return keyval_json_format(kv);
    }
    out = g_string_new(NULL);
    for (guint i = 0; i < kv->entries->len; i++) {
        const KeyValEntry *e = keyval_at(kv, i);

        if (i > 0) {
            g_string_append_c(out, ',');
        }
        if (i > 0 || !may_omit_key(kv, e)) {
            g_string_append_printf(out, "%s=", e->key);
        }
        append_value(out, e->value);
    }
    return g_string_free(out, FALSE);
}
