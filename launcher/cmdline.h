/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CmdLine: a QEMU command line as a list of options that can be edited and
 * written back; what nobody edits comes back byte for byte, where it was.
 *
 * Pure.
 */
#ifndef LAUNCHER_CMDLINE_H
#define LAUNCHER_CMDLINE_H

#include <glib.h>
#include <stdbool.h>

typedef struct CmdOpt {
    const char *name;           /* without dashes; NULL: a disk image */
    const char *value;          /* as given; NULL: none */
    const char *flag;           /* the word itself: "-m", "--m" */
    GPtrArray *before;          /* words inserted before it, or NULL */
    char *edited;               /* what stands in for value, or NULL */
    bool dropped;
} CmdOpt;

typedef struct CmdLine {
    const char *argv0;
    GArray *opts;               /* of CmdOpt */
    GPtrArray *appended;        /* words at the end */
} CmdLine;

/*
 * cmdline_parse: split words into options.  Never fails: what QEMU would
 * refuse is passed on for it to refuse.  @argv must outlive the result.
 */
CmdLine *cmdline_parse(int argc, char **argv);
void cmdline_free(CmdLine *cmd);

static inline CmdOpt *cmdline_at(const CmdLine *cmd, guint i)
{
    return &g_array_index(cmd->opts, CmdOpt, i);
}

/*
 * cmdline_next: the first option called @name at or after index @i, or the
 * number of options.
 */
guint cmdline_next(const CmdLine *cmd, const char *name, guint i);

/* For all options of a name that have a value; @i is the caller's guint. */
#define CMDLINE_FOREACH(cmd, name_, i)                                  \
    for ((i) = cmdline_next(cmd, name_, 0); (i) < (cmd)->opts->len;     \
         (i) = cmdline_next(cmd, name_, (i) + 1))                       \
        if (cmdline_at(cmd, i)->value)

bool cmdline_has(const CmdLine *cmd, const char *name);

/* cmdline_edit: give option @i another value, which is taken over. */
void cmdline_edit(CmdLine *cmd, guint i, char *value);

/* cmdline_drop: leave option @i out. */
void cmdline_drop(CmdLine *cmd, guint i);

/*
 * cmdline_insert, cmdline_append: another option before option @i, or at
 * the end.  @value is taken over.
 */
void cmdline_insert(CmdLine *cmd, guint i, const char *flag, char *value);
void cmdline_append(CmdLine *cmd, const char *flag, char *value);

/*
 * cmdline_format: back to words; the first one is @argv0, the last NULL.
 * Free with g_ptr_array_free(, TRUE), which frees the words.
 */
GPtrArray *cmdline_format(const CmdLine *cmd, const char *argv0);

/*
 * cmdline_add_key: append ",key=value" to an option's argument, with commas
 * in @value doubled.
 */
void cmdline_add_key(GString *out, const char *key, const char *value);

#endif /* LAUNCHER_CMDLINE_H */
