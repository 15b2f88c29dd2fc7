/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages on stderr: one line, one write, from any thread.
 *
 * A line is built first and written with a single write(2), so that lines of
 * several threads do not mix.  Control characters, which a guest or a peer
 * may have put into a name, become blanks: one message stays one line.
 *
 * Limits: no levels and no log file.  Whoever wants a file redirects stderr.
 */
#include "util/report.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "util/clock.h"

static char *program;

G_DEFINE_QUARK(vnet-error-quark, vnet_error)

void report_init(const char *argv0)
{
    g_free(program);
    program = g_path_get_basename(argv0);
}

const char *report_program(void)
{
    return program ? program : "qemu-virtio-net";
}

static void report_write(const char *line, size_t len)
{
    while (len) {
        ssize_t ret = write(STDERR_FILENO, line, len);

        if (ret < 0 && errno == EINTR) {
            continue;
        }
        if (ret <= 0) {
            return;     /* stderr is gone: there is nobody left to tell */
        }
        line += ret;
        len -= ret;
    }
}

static void report_line(const char *prefix, uint64_t suppressed,
                        const char *fmt, va_list ap)
{
    GString *line = g_string_new(report_program());

    g_string_append(line, ": ");
    g_string_append(line, prefix);
    g_string_append_vprintf(line, fmt, ap);
    if (suppressed) {
        g_string_append_printf(line, " (%" G_GUINT64_FORMAT
                               " like it not shown)", suppressed);
    }
    for (gsize i = 0; i < line->len; i++) {
        if (g_ascii_iscntrl(line->str[i])) {
            line->str[i] = ' ';
        }
    }
    g_string_append_c(line, '\n');
    report_write(line->str, line->len);
    g_string_free(line, TRUE);
}

void report_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report_line("", 0, fmt, ap);
    va_end(ap);
}

void report_warning(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report_line("warning: ", 0, fmt, ap);
    va_end(ap);
}

void report_info(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report_line("", 0, fmt, ap);
    va_end(ap);
}

void report_gerror(GError *err)
{
    report_error("%s", err->message);
    g_error_free(err);
}

bool report_limit_pass(ReportLimit *limit, int64_t now_ns,
                       uint64_t *suppressed)
{
    if (!limit->in_window ||
        now_ns - limit->window_start_ns >= REPORT_LIMIT_WINDOW_NS) {
        limit->window_start_ns = now_ns;
        limit->in_window = 0;
    }
    if (limit->in_window == REPORT_LIMIT_BURST) {
        limit->suppressed++;
        return false;
    }
    limit->in_window++;
    *suppressed = limit->suppressed;
    limit->suppressed = 0;
    return true;
}

void report_guest(ReportLimit *limit, const char *fmt, ...)
{
    uint64_t suppressed;
    va_list ap;

    if (!report_limit_pass(limit, clock_now_ns(clock_monotonic()),
                           &suppressed)) {
        return;
    }
    va_start(ap, fmt);
    report_line("guest: ", suppressed, fmt, ap);
    va_end(ap);
}
