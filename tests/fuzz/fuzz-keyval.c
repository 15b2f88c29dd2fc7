/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: option arguments in both spellings.
 *
 * Any text is parsed or refused with a message; what parses survives a round
 * trip (format, parse again: the same pairs, the same text), every reader,
 * and edits of its own keys.
 *
 * Limits: an empty object or array has no pairs, so the round trip of those
 * shows in the text only.
 */
#include <stdlib.h>
#include <string.h>

#include "util/keyval.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void append_pair(const char *key, const char *value, void *opaque)
{
    g_string_append_printf(opaque, "%zu:%s=%zu:%s;", strlen(key), key,
                           strlen(value), value);
}

static GString *dump(const KeyVal *kv)
{
    GString *out = g_string_new(NULL);

    keyval_foreach(kv, append_pair, out);
    return out;
}

static void check_round_trip(const KeyVal *kv, const char *implied)
{
    g_autofree char *text = keyval_format(kv);
    KeyVal *again = keyval_parse("-fuzz", text, implied, NULL);
    g_autofree char *text_again = NULL;
    GString *pairs = dump(kv), *pairs_again;

    check(again);
    text_again = keyval_format(again);
    pairs_again = dump(again);
    check(!strcmp(text, text_again));
    check(g_string_equal(pairs, pairs_again));
    g_string_free(pairs, TRUE);
    g_string_free(pairs_again, TRUE);
    keyval_free(again);
}

static void collect_key(const char *key, const char *value, void *opaque)
{
    g_ptr_array_add(opaque, g_strdup(key));
}

static void read_key(KeyVal *kv, const char *key)
{
    static const char *const names[] = { "bh", "timer", NULL };
    g_autofree const char **list = keyval_take_list(kv, key);
    uint64_t number;
    unsigned choice;
    bool flag;

    check(list[0]);
    check(keyval_take(kv, key) == keyval_peek(kv, key));
    keyval_take_bool(kv, key, &flag, NULL);
    keyval_take_uint(kv, key, 0, UINT64_MAX, &number, NULL);
    keyval_take_size(kv, key, 0, UINT64_MAX, &number, NULL);
    keyval_take_enum(kv, key, names, &choice, NULL);
}

static void edit_key(KeyVal *kv, const char *key, unsigned turn)
{
    switch (turn % 4) {
    case 0:
        if (keyval_remove(kv, key)) {
            check(!keyval_peek(kv, key));
        }
        break;
    case 1:
        keyval_set_uint(kv, key, turn);
        break;
    case 2:
        keyval_set_bool(kv, key, turn & 4);
        break;
    default:
        keyval_set(kv, key, "a,b={");
        check(!strcmp(keyval_peek(kv, key), "a,b={"));
        break;
    }
}

static void fuzz(const char *text, const char *implied)
{
    GError *err = NULL;
    KeyVal *kv = keyval_parse("-fuzz", text, implied, &err);
    GPtrArray *keys;

    check(!kv == !!err);
    if (!kv) {
        check(g_str_has_prefix(err->message, "-fuzz: "));
        g_error_free(err);
        return;
    }
    check_round_trip(kv, implied);
    keys = g_ptr_array_new_with_free_func(g_free);
    keyval_foreach(kv, collect_key, keys);
    check(keyval_check_empty(kv, NULL) == !keys->len);
    for (guint i = 0; i < keys->len; i++) {
        read_key(kv, g_ptr_array_index(keys, i));
    }
    check(keyval_check_empty(kv, NULL));
    for (guint i = 0; i < keys->len; i++) {
        edit_key(kv, g_ptr_array_index(keys, i), i + strlen(text));
        check_round_trip(kv, implied);
    }
    g_ptr_array_free(keys, TRUE);
    keyval_free(kv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);

    fuzz(text, "type");
    fuzz(text, NULL);
    return 0;
}
