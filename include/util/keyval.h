/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KeyVal: the argument of -netdev, -device, --object and --export.
 *
 * Two spellings, as in QEMU: "type,key=value,key=value" where ",," stands for
 * a comma inside a value, a lone key means key=on ("nokey" is NOT key=off), a
 * trailing comma is legal, a dotted key nests ("addr.type=unix") and stays
 * dotted here; or a JSON object, whose nested members become dotted keys and
 * whose booleans and numbers become strings.
 *
 * A reader takes keys one by one (keyval_take_*); what is left over at the
 * end is an error that names the first unknown key.  Every message names
 * option, value, and what would be accepted.
 */
#ifndef UTIL_KEYVAL_H
#define UTIL_KEYVAL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct KeyVal KeyVal;

/*
 * keyval_parse: parse either spelling (JSON if the text starts with '{').
 * @what: the option, for messages: "-netdev"
 * @implied: key of a first word without '=' ("type", "driver"), or NULL
 *
 * Returns NULL with @errp set on a syntax error or a key that occurs twice
 * with list semantics ("hostfwd" style repeats are kept: see
 * keyval_take_list()).  Free with keyval_free().
 */
KeyVal *keyval_parse(const char *what, const char *text, const char *implied,
                     GError **errp);
void keyval_free(KeyVal *kv);

/* keyval_what: the @what it was parsed with, for messages. */
const char *keyval_what(const KeyVal *kv);

/* keyval_peek: the last value of @key, or NULL; does not take it. */
const char *keyval_peek(const KeyVal *kv, const char *key);

/* keyval_has_prefix: true if a key starts with "@prefix." */
bool keyval_has_prefix(const KeyVal *kv, const char *prefix);

/*
 * keyval_take: take a string.  The last one counts if a key is repeated.
 * Returns NULL if the key is absent.  The string lives as long as @kv.
 */
const char *keyval_take(KeyVal *kv, const char *key);

/* keyval_take_required: as keyval_take(), absent is an error. */
const char *keyval_take_required(KeyVal *kv, const char *key, GError **errp);

/*
 * keyval_take_list: take all values of a repeated key in order of appearance
 * ("hostfwd=..,hostfwd=.."; JSON "hostfwd": [{"str": ..}, ..] or [".."]).
 * Returns a NULL-terminated array, to be freed with g_free() (the strings
 * belong to @kv); empty if absent.
 */
const char **keyval_take_list(KeyVal *kv, const char *key);

/*
 * keyval_take_bool: on|yes|true|y, off|no|false|n.
 * keyval_take_uint: decimal or 0x, between @min and @max inclusive.
 * keyval_take_size: as uint, with the suffixes k, M, G, T (powers of 1024).
 *
 * @out is left alone if the key is absent.  Return false with @errp set if
 * the value is not acceptable.
 */
bool keyval_take_bool(KeyVal *kv, const char *key, bool *out, GError **errp);
bool keyval_take_uint(KeyVal *kv, const char *key, uint64_t min, uint64_t max,
                      uint64_t *out, GError **errp);
bool keyval_take_size(KeyVal *kv, const char *key, uint64_t min, uint64_t max,
                      uint64_t *out, GError **errp);

/* keyval_check_empty: false with @errp set if a key has not been taken. */
bool keyval_check_empty(const KeyVal *kv, GError **errp);

/*
 * keyval_foreach: all (key, value) pairs in order, taken or not.
 * keyval_set / keyval_remove: edit, for a command line that is passed on.
 * keyval_format: back to the spelling it came in (dotted with ",," escapes,
 * or JSON).  Caller frees.
 */
typedef void KeyValFunc(const char *key, const char *value, void *opaque);
void keyval_foreach(const KeyVal *kv, KeyValFunc *fn, void *opaque);
void keyval_set(KeyVal *kv, const char *key, const char *value);
bool keyval_remove(KeyVal *kv, const char *key);
char *keyval_format(const KeyVal *kv);

#endif /* UTIL_KEYVAL_H */
