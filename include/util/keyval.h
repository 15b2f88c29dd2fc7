/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KeyVal: the argument of -netdev, -device, --object and --export.
 *
 * Two spellings, as in QEMU: "type,key=value,key=value" where ",," stands for
 * a comma inside a value, a lone key means key=on ("nokey" is NOT key=off), a
 * trailing comma is legal, a dotted key nests ("addr.type=unix") and stays
 * dotted here; or a JSON object, whose nested members become dotted keys and
 * whose booleans and numbers become strings ("on", "off", "42").
 *
 * A reader takes keys one by one (keyval_take_*); what is left over at the
 * end is an error that names the first unknown key.  Every message is one
 * line that names option, key, value, and what would be accepted:
 *
 *   -netdev user,id=n0: parameter 'restrict' expects 'on' or 'off', not 'x'
 *
 * A KeyVal belongs to one thread at a time.
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
 * Repeated keys are kept ("hostfwd=..,hostfwd=.."): a list to
 * keyval_take_list(), and the last one counts for the other readers.  In
 * JSON an array takes their place and a repeated member is an error.
 *
 * Returns NULL with @errp set on a syntax error, which an empty name and one
 * that begins with '{' are; in JSON also for integers outside 64 bits signed,
 * NUL characters and more than 64 levels of nesting.
 * Free with keyval_free().
 */
KeyVal *keyval_parse(const char *what, const char *text, const char *implied,
                     GError **errp);

/* keyval_free: NULL is allowed. */
void keyval_free(KeyVal *kv);

/* keyval_what: the @what it was parsed with. */
const char *keyval_what(const KeyVal *kv);

/*
 * keyval_subject: whom a message is about: "-netdev user,id=n0" (what there
 * is of the implied key and the id).  Valid until @kv is edited or freed.
 */
const char *keyval_subject(const KeyVal *kv);

/*
 * keyval_bad_value: set the message for a value that a reader cannot accept.
 * @expects: completes "parameter 'key' expects ...": "a MAC address"
 */
void keyval_bad_value(const KeyVal *kv, const char *key, const char *value,
                      const char *expects, GError **errp);

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
 * keyval_take_enum: one of @names (NULL-terminated); *out is its index.
 *
 * @out is left alone if the key is absent.  Return false with @errp set if
 * the value is not acceptable.
 */
bool keyval_take_bool(KeyVal *kv, const char *key, bool *out, GError **errp);
bool keyval_take_uint(KeyVal *kv, const char *key, uint64_t min, uint64_t max,
                      uint64_t *out, GError **errp);
bool keyval_take_size(KeyVal *kv, const char *key, uint64_t min, uint64_t max,
                      uint64_t *out, GError **errp);
bool keyval_take_enum(KeyVal *kv, const char *key, const char *const *names,
                      unsigned *out, GError **errp);

/*
 * keyval_check_empty: false with @errp set if a key has not been taken.  The
 * message lists the keys that a reader has asked for, present or not.
 */
bool keyval_check_empty(const KeyVal *kv, GError **errp);

/*
 * keyval_foreach: all (key, value) pairs in order, taken or not.
 */
typedef void KeyValFunc(const char *key, const char *value, void *opaque);
void keyval_foreach(const KeyVal *kv, KeyValFunc *fn, void *opaque);

/*
 * keyval_set, keyval_set_bool, keyval_set_uint: edit, for a command line that
 * is passed on.  The value takes the place of the first of that key, repeats
 * go away; a new key comes last.  In JSON the result is a string, a boolean
 * or a number: a stock QEMU insists on the type of its property.
 *
 * keyval_remove: all of that key.  Returns false if there was none.
 */
void keyval_set(KeyVal *kv, const char *key, const char *value);
void keyval_set_bool(KeyVal *kv, const char *key, bool value);
void keyval_set_uint(KeyVal *kv, const char *key, uint64_t value);
bool keyval_remove(KeyVal *kv, const char *key);

/*
 * keyval_format: back to the spelling it came in (dotted with ",," escapes,
 * or JSON, where what has not been edited keeps its type and nesting).
 * Caller frees.
 */
char *keyval_format(const KeyVal *kv);

#endif /* UTIL_KEYVAL_H */
