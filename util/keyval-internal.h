/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What keyval.c (dotted spelling, edits), keyval-json.c (JSON spelling) and
 * keyval-take.c (readers) share.
 */
#ifndef UTIL_KEYVAL_INTERNAL_H
#define UTIL_KEYVAL_INTERNAL_H

#include <json-glib/json-glib.h>

#include "util/keyval.h"

typedef struct KeyValEntry {
    const char *key;            /* in kv->strings, as is value */
    const char *value;
    /* JSON: the outermost member this came from that is not in an array. */
    JsonObject *parent;
    const char *member;
    bool direct;                /* it has the same key: no index in between */
} KeyValEntry;

struct KeyVal {
    char *what;
    char *implied;              /* or NULL */
    bool implied_form;          /* the first word came without its key */
    char *subject;
    /*
     * Owns every key and value, edited ones too, until the end: readers keep
     * what they have taken.
     */
    GStringChunk *strings;
    GArray *entries;            /* of KeyValEntry, in order */
    GPtrArray *asked;           /* keys that were taken or tried */
    JsonNode *root;             /* JSON spelling, else NULL */
};

/* keyval_add: append a copy of @entry, its strings included. */
void keyval_add(KeyVal *kv, KeyValEntry entry);

/* keyval_find: the last entry of @key, or NULL. */
const KeyValEntry *keyval_find(const KeyVal *kv, const char *key);

/* keyval_at: entry @i. */
static inline KeyValEntry *keyval_at(const KeyVal *kv, guint i)
{
    return &g_array_index(kv->entries, KeyValEntry, i);
}

/* keyval_json_parse: fill @kv from JSON text. */
bool keyval_json_parse(KeyVal *kv, const char *text, GError **errp);

/* keyval_json_format: the tree as text.  Caller frees. */
char *keyval_json_format(const KeyVal *kv);

/* keyval_json_set: edit the tree and list it again.  Takes @node. */
void keyval_json_set(KeyVal *kv, const char *key, JsonNode *node);

/* keyval_json_remove: as keyval_json_set(). */
void keyval_json_remove(KeyVal *kv, const char *key);

#endif /* UTIL_KEYVAL_INTERNAL_H */
