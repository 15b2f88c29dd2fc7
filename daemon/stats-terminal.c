/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The terminal under --stats.
 */
#include "stats-terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define OTHER_SCREEN "\033[?1049h\033[?25l"     /* and no cursor */
#define OWN_SCREEN   "\033[?25h\033[?1049l"
#define TOP_LEFT     "\033[H"

static struct termios saved;
static bool begun;

bool terminal_usable(void)
{
    const char *term = getenv("TERM");

    return term && *term && strcmp(term, "dumb") != 0 &&
           isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

bool terminal_write(const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(STDOUT_FILENO, text, len);

        if (n > 0) {
            text += n;
            len -= n;
        } else if (n < 0 && errno == EAGAIN) {
            /* Somebody else has made it non-blocking. */
            poll(&(struct pollfd) { STDOUT_FILENO, POLLOUT }, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

bool terminal_draw(const char *text)
{
    return terminal_write(TOP_LEFT, strlen(TOP_LEFT)) &&
           terminal_write(text, strlen(text));
}

void terminal_begin(void)
{
    struct termios raw;

    if (begun || tcgetattr(STDIN_FILENO, &saved) < 0) {
        return;
    }
    raw = saved;
    raw.c_lflag &= ~(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    raw.c_cc[VQUIT] = _POSIX_VDISABLE;
    begun = true;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    terminal_write(OTHER_SCREEN, strlen(OTHER_SCREEN));
}

void terminal_end(void)
{
    if (begun) {
        begun = false;
        terminal_write(OWN_SCREEN, strlen(OWN_SCREEN));
        tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    }
}

void terminal_size(unsigned *columns, unsigned *rows)
{
    struct winsize size;

    *columns = 80;
    *rows = 24;
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col &&
        size.ws_row) {
        *columns = size.ws_col;
        *rows = size.ws_row;
    }
}
