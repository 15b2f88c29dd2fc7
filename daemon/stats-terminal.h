/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The terminal under --stats: a screen of its own, keys without Enter.
 *
 * Escape sequences are written directly, those that every terminal of the
 * last decades knows: one table that is drawn anew each second needs a few
 * of them only, and a screen library would bring a state, signal handlers and
 * a dependency on its terminal database into a program that is a daemon else.
 */
#ifndef DAEMON_STATS_TERMINAL_H
#define DAEMON_STATS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * terminal_usable: standard input and output are a terminal with a screen
 * (TERM is neither unset nor "dumb").
 */
bool terminal_usable(void);

/*
 * terminal_begin: go to the other screen; keys come one by one, unseen.
 * Ctrl-C still is a signal; Ctrl-Z and Ctrl-\ are nothing, since who suspends
 * or kills this would find a screen that is not his.  terminal_end() puts
 * everything back; both may be called in any state.
 */
void terminal_begin(void);
void terminal_end(void);

/* terminal_size: 80 by 24 if the terminal does not know. */
void terminal_size(unsigned *columns, unsigned *rows);

/* terminal_draw: write a screen from its top left corner. */
bool terminal_draw(const char *text);

/*
 * terminal_write: write to standard output, all of it.  False with errno set
 * if nobody reads there any more.
 */
bool terminal_write(const char *text, size_t len);

#endif /* DAEMON_STATS_TERMINAL_H */
