/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -accel X ... | -machine accel=X:Y | -enable-kvm
 *
 * QEMU takes the first accelerator of the list that works; several -accel are
 * a list as well, -enable-kvm is short for -machine accel=kvm, and nothing
 * means TCG.
 */
#include "accel.h"

#include <string.h>

#include "util/keyval.h"

/* Adds to @list; replaces it if the words stand for the whole list. */
static void take_words(GPtrArray *list, const char *words, bool replace)
{
    g_auto(GStrv) split = g_strsplit(words, ":", -1);

    if (replace) {
        g_ptr_array_set_size(list, 0);
    }
    for (char **word = split; *word; word++) {
        g_ptr_array_add(list, g_strdup(*word));
    }
}

static char *option_key(const CmdOpt *opt, const char *implied,
                        const char *key)
{
    KeyVal *kv = keyval_parse(opt->flag, opt->value, implied, NULL);
    char *value = kv ? g_strdup(keyval_peek(kv, key)) : NULL;

    keyval_free(kv);
    return value;
}

static bool is_machine(const CmdOpt *opt)
{
    return opt->name && opt->value &&
           (!strcmp(opt->name, "machine") || !strcmp(opt->name, "M"));
}

char *machine_option(const CmdLine *cmd, const char *key)
{
    char *value = NULL;

    for (guint i = 0; i < cmd->opts->len; i++) {
        const CmdOpt *opt = cmdline_at(cmd, i);
        char *other = is_machine(opt) ? option_key(opt, "type", key) : NULL;

        if (other) {
            g_free(value);
            value = other;
        }
    }
    return value;
}

static GPtrArray *accel_list(const CmdLine *cmd)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < cmd->opts->len; i++) {
        const CmdOpt *opt = cmdline_at(cmd, i);
        g_autofree char *words = NULL;

        if (opt->name && !strcmp(opt->name, "enable-kvm")) {
            take_words(list, "kvm", true);
        } else if (opt->name && opt->value && !strcmp(opt->name, "accel")) {
            words = option_key(opt, "accel", "accel");
            take_words(list, words ? words : opt->value, false);
        } else if (is_machine(opt)) {
            words = option_key(opt, "type", "accel");
            if (words) {
                take_words(list, words, true);
            }
        }
    }
    return list;
}

bool accel_is_tcg(const CmdLine *cmd, bool kvm_usable)
{
    g_autoptr(GPtrArray) list = accel_list(cmd);

    for (guint i = 0; i < list->len; i++) {
        const char *name = list->pdata[i];

        if (!strcmp(name, "tcg")) {
            return true;
        }
        if (strcmp(name, "kvm") != 0 || kvm_usable) {
            return false;
        }
    }
    return list->len == 0;
}

bool accel_is_qtest(const CmdLine *cmd)
{
    g_autoptr(GPtrArray) list = accel_list(cmd);

    return list->len > 0 && !strcmp(list->pdata[0], "qtest");
}
