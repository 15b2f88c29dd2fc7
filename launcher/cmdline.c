/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU command lines.
 *
 * QEMU's rules: a word that does not start with '-' is a disk image; one or
 * two dashes; the argument is the next word, whatever it looks like.
 */
#include "cmdline.h"

#include <string.h>

#include "qemu-options.h"

static void opt_clear(gpointer p)
{
    CmdOpt *opt = p;

    g_clear_pointer(&opt->before, g_ptr_array_unref);
    g_clear_pointer(&opt->edited, g_free);
}

CmdLine *cmdline_parse(int argc, char **argv)
{
    CmdLine *cmd = g_new0(CmdLine, 1);

    cmd->argv0 = argc > 0 ? argv[0] : NULL;
    cmd->opts = g_array_new(FALSE, TRUE, sizeof(CmdOpt));
    g_array_set_clear_func(cmd->opts, opt_clear);
    cmd->appended = g_ptr_array_new_with_free_func(g_free);
    for (int i = 1; i < argc; i++) {
        CmdOpt opt = { .flag = argv[i] };

        if (*argv[i] != '-') {
            opt.value = argv[i];
        } else {
            opt.name = argv[i] + (argv[i][1] == '-' ? 2 : 1);
            if (i + 1 < argc && qemu_option_has_arg(opt.name)) {
                opt.value = argv[++i];
            }
        }
        g_array_append_val(cmd->opts, opt);
    }
    return cmd;
}

void cmdline_free(CmdLine *cmd)
{
    g_array_free(cmd->opts, TRUE);
    g_ptr_array_free(cmd->appended, TRUE);
    g_free(cmd);
}

guint cmdline_next(const CmdLine *cmd, const char *name, guint i)
{
    for (; i < cmd->opts->len; i++) {
        const CmdOpt *opt = cmdline_at(cmd, i);

        if (opt->name && !strcmp(opt->name, name)) {
            break;
        }
    }
    return i;
}

bool cmdline_has(const CmdLine *cmd, const char *name)
{
    return cmdline_next(cmd, name, 0) < cmd->opts->len;
}

/* ---- edits ------------------------------------------------------------- */

void cmdline_edit(CmdLine *cmd, guint i, char *value)
{
    CmdOpt *opt = cmdline_at(cmd, i);

    g_free(opt->edited);
    opt->edited = value;
}

void cmdline_drop(CmdLine *cmd, guint i)
{
    cmdline_at(cmd, i)->dropped = true;
}

static void add_option(GPtrArray *words, const char *flag, char *value)
{
    g_ptr_array_add(words, g_strdup(flag));
    g_ptr_array_add(words, value);
}

void cmdline_insert(CmdLine *cmd, guint i, const char *flag, char *value)
{
    CmdOpt *opt = cmdline_at(cmd, i);

    if (!opt->before) {
        opt->before = g_ptr_array_new_with_free_func(g_free);
    }
    add_option(opt->before, flag, value);
}

void cmdline_append(CmdLine *cmd, const char *flag, char *value)
{
    add_option(cmd->appended, flag, value);
}

/* ---- back to words ----------------------------------------------------- */

static void add_copies(GPtrArray *words, const GPtrArray *from)
{
    for (guint i = 0; from && i < from->len; i++) {
        g_ptr_array_add(words, g_strdup(from->pdata[i]));
    }
}

static void format_opt(GPtrArray *words, const CmdOpt *opt)
{
    const char *value = opt->edited ? opt->edited : opt->value;

    add_copies(words, opt->before);
    if (opt->dropped) {
        return;
    }
    if (opt->name) {
        g_ptr_array_add(words, g_strdup(opt->flag));
    }
    if (value) {
        g_ptr_array_add(words, g_strdup(value));
    }
}

GPtrArray *cmdline_format(const CmdLine *cmd, const char *argv0)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(words, g_strdup(argv0));
    for (guint i = 0; i < cmd->opts->len; i++) {
        format_opt(words, cmdline_at(cmd, i));
    }
    add_copies(words, cmd->appended);
    g_ptr_array_add(words, NULL);
    return words;
}

void cmdline_add_key(GString *out, const char *key, const char *value)
{
    g_auto(GStrv) parts = g_strsplit(value, ",", -1);
    g_autofree char *escaped = g_strjoinv(",,", parts);

    g_string_append_printf(out, ",%s=%s", key, escaped);
}
