/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KeyVal: the readers.
 *
 * To ask for a key is to know it: the keys that were asked for are both what
 * has been taken and the list of what would have been accepted.
 */
#include "keyval-internal.h"

#include <errno.h>
#include <string.h>

#include "util/report.h"

static bool keyval_asked(const KeyVal *kv, const char *key)
{
    for (guint i = 0; i < kv->asked->len; i++) {
        if (!strcmp(g_ptr_array_index(kv->asked, i), key)) {
            return true;
        }
    }
    return false;
}

const char *keyval_peek(const KeyVal *kv, const char *key)
{
    const KeyValEntry *e = keyval_find(kv, key);

    return e ? e->value : NULL;
}

bool keyval_has_prefix(const KeyVal *kv, const char *prefix)
{
    size_t len = strlen(prefix);

    for (guint i = 0; i < kv->entries->len; i++) {
        const char *key = keyval_at(kv, i)->key;

        if (!strncmp(key, prefix, len) && key[len] == '.') {
            return true;
        }
    }
    return false;
}

const char *keyval_take(KeyVal *kv, const char *key)
{
    if (!keyval_asked(kv, key)) {
        g_ptr_array_add(kv->asked,
                        g_string_chunk_insert_const(kv->strings, key));
    }
    return keyval_peek(kv, key);
}

const char *keyval_take_required(KeyVal *kv, const char *key, GError **errp)
{
    const char *value = keyval_take(kv, key);

    if (!value) {
        vnet_set_error(errp, "%s: parameter '%s' is missing", kv->subject,
                       key);
    }
    return value;
}

const char **keyval_take_list(KeyVal *kv, const char *key)
{
    GPtrArray *list = g_ptr_array_new();

    keyval_take(kv, key);
    for (guint i = 0; i < kv->entries->len; i++) {
        if (!strcmp(keyval_at(kv, i)->key, key)) {
            g_ptr_array_add(list, (void *)keyval_at(kv, i)->value);
        }
    }
    g_ptr_array_add(list, NULL);
    return (const char **)g_ptr_array_free(list, FALSE);
}

void keyval_bad_value(const KeyVal *kv, const char *key, const char *value,
                      const char *expects, GError **errp)
{
    vnet_set_error(errp, "%s: parameter '%s' expects %s, not '%s'",
                   kv->subject, key, expects, value);
}

bool keyval_take_bool(KeyVal *kv, const char *key, bool *out, GError **errp)
{
    static const char *const on[] = { "on", "yes", "true", "y", NULL };
    static const char *const off[] = { "off", "no", "false", "n", NULL };
    const char *value = keyval_take(kv, key);

    if (!value) {
        return true;
    }
    if (!g_strv_contains(on, value) && !g_strv_contains(off, value)) {
        keyval_bad_value(kv, key, value, "'on' or 'off'", errp);
        return false;
    }
    *out = g_strv_contains(on, value);
    return true;
}

/* Plain digits: no sign, no blanks.  Returns what follows, NULL if none. */
static const char *parse_digits(const char *text, uint64_t *out)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hex ? text + 2 : text;
    char *end;

    if (hex ? !g_ascii_isxdigit(*digits) : !g_ascii_isdigit(*digits)) {
        return NULL;
    }
    errno = 0;
    *out = g_ascii_strtoull(digits, &end, hex ? 16 : 10);
    return errno ? NULL : end;
}

static bool parse_uint(const char *text, uint64_t *out)
{
    const char *end = parse_digits(text, out);

    return end && !*end;
}

static bool parse_size(const char *text, uint64_t *out)
{
    static const char suffixes[] = "KMGT";
    const char *end = parse_digits(text, out);
    const char *suffix;
    unsigned shift;

    if (!end || !*end) {
        return end;
    }
    suffix = strchr(suffixes, g_ascii_toupper(*end));
    if (!suffix || end[1]) {
        return false;
    }
    shift = 10 * (suffix - suffixes + 1);
    if (*out > UINT64_MAX >> shift) {
        return false;
    }
    *out <<= shift;
    return true;
}

bool keyval_take_uint(KeyVal *kv, const char *key, uint64_t min, uint64_t max,
                      uint64_t *out, GError **errp)
{
    const char *value = keyval_take(kv, key);
    g_autofree char *expects = NULL;
    uint64_t number;

    if (!value) {
        return true;
    }
    if (parse_uint(value, &number) && number >= min && number <= max) {
        *out = number;
        return true;
    }
    expects = g_strdup_printf("a number between %" G_GUINT64_FORMAT " and %"
                              G_GUINT64_FORMAT, min, max);
    keyval_bad_value(kv, key, value, expects, errp);
    return false;
}

bool keyval_take_size(KeyVal *kv, const char *key, uint64_t min, uint64_t max,
                      uint64_t *out, GError **errp)
{
    const char *value = keyval_take(kv, key);
    g_autofree char *expects = NULL;
    uint64_t size;

    if (!value) {
        return true;
    }
    if (parse_size(value, &size) && size >= min && size <= max) {
        *out = size;
        return true;
    }
    expects = g_strdup_printf("a size between %" G_GUINT64_FORMAT " and %"
                              G_GUINT64_FORMAT " bytes (suffixes k, M, G, T)",
                              min, max);
    keyval_bad_value(kv, key, value, expects, errp);
    return false;
}

/* "'a', 'b' or 'c'" */
static char *enum_choices(const char *const *names)
{
    GString *out = g_string_new(NULL);

    for (unsigned i = 0; names[i]; i++) {
        g_string_append_printf(out, "%s'%s'",
                               i == 0 ? "" : names[i + 1] ? ", " : " or ",
                               names[i]);
    }
    return g_string_free(out, FALSE);
}

bool keyval_take_enum(KeyVal *kv, const char *key, const char *const *names,
                      unsigned *out, GError **errp)
{
    const char *value = keyval_take(kv, key);
    g_autofree char *expects = NULL;

    if (!value) {
        return true;
    }
    for (unsigned i = 0; names[i]; i++) {
        if (!strcmp(value, names[i])) {
            *out = i;
            return true;
        }
    }
    expects = enum_choices(names);
    keyval_bad_value(kv, key, value, expects, errp);
    return false;
}

bool keyval_check_empty(const KeyVal *kv, GError **errp)
{
    for (guint i = 0; i < kv->entries->len; i++) {
        const KeyValEntry *e = keyval_at(kv, i);
        g_autoptr(GString) known = NULL;

        if (keyval_asked(kv, e->key)) {
            continue;
        }
        known = g_string_new(NULL);
        for (guint j = 0; j < kv->asked->len; j++) {
            g_string_append_printf(known, "%s%s", j ? ", " : "",
                                   (char *)g_ptr_array_index(kv->asked, j));
        }
        vnet_set_error(errp, "%s: unknown parameter '%s' (value '%s'), "
                       "accepted are: %s", kv->subject, e->key, e->value,
                       known->str);
        return false;
    }
    return true;
}
