/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --stats.
 *
 * A QMP client like any other, so that what is shown is what scripts get, and
 * the daemon does nothing for it between two questions.  One timer: it asks
 * each interval; the answer draws.  A new size of the window draws as well.
 */
#include "stats-view.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "monitor/qmp-client.h"
#include "process.h"
#include "stats-table.h"
#include "stats-terminal.h"
#include "util/aio.h"
#include "util/report.h"

typedef struct StatsView {
    AioContext *ctx;
    const char *path;
    int64_t interval_ns;
    bool on_terminal;

    QmpClient *client;
    AioTimer timer;
    int64_t start_ns;
    int64_t asked_ns;
    StatsSample *now, *before;
    double seconds;                 /* between the two */
    int64_t now_ns;                 /* when the later one came */

    int signal_fd, winch_fd;
    AioHandler *signals, *winch, *keys;
    bool done;
    GError *err;                    /* why, if not by the user */
} StatsView;

static void view_fail(StatsView *v, const char *why)
{
    if (!v->err) {
        vnet_set_error(&v->err, "--stats '%s': %s", v->path, why);
    }
    v->done = true;
}

/* ---- showing ----------------------------------------------------------- */

static bool show_screen(StatsView *v)
{
    g_autofree char *title = g_strdup_printf("%s %s", report_program(),
                                             v->path);
    g_autofree char *text = NULL;
    unsigned columns, rows;

    terminal_begin();
    terminal_size(&columns, &rows);
    text = stats_table_screen(v->now, v->before, v->seconds, title, columns,
                              rows);
    return terminal_draw(text);
}

static bool show_lines(StatsView *v, bool header)
{
    g_autofree char *text = stats_table_lines(
        v->now, v->before, v->seconds,
        (double)(v->now_ns - v->start_ns) / NS_PER_SEC, header);

    return terminal_write(text, strlen(text));
}

/* Lines are for what has happened: there are none for the first reading. */
static void show(StatsView *v, bool header)
{
    if (!v->now || (!v->on_terminal && !v->before)) {
        return;
    }
    if (!(v->on_terminal ? show_screen(v) : show_lines(v, header))) {
        g_autofree char *why = g_strdup_printf("cannot write: %s",
                                               g_strerror(errno));

        view_fail(v, why);
    }
}

/* ---- asking ------------------------------------------------------------ */

static void view_ask(void *opaque)
{
    StatsView *v = opaque;

    v->asked_ns = aio_now_ns(v->ctx);
    qmp_client_execute(v->client, "query-virtio-net-stats");
}

static void view_ready(void *opaque)
{
    StatsView *v = opaque;

    v->start_ns = aio_now_ns(v->ctx);
    view_ask(v);
}

static void view_reply(void *opaque, JsonNode *value)
{
    StatsView *v = opaque;
    int64_t now_ns = aio_now_ns(v->ctx);
    bool header = v->now && !v->before;
    g_autoptr(GError) err = NULL;
    StatsSample *sample = stats_sample_new(value, &err);

    if (!sample) {
        view_fail(v, err->message);
        return;
    }
    stats_sample_free(v->before);
    v->before = v->now;
    v->now = sample;
    v->seconds = (double)(now_ns - v->now_ns) / NS_PER_SEC;
    v->now_ns = now_ns;
    show(v, header);
    aio_timer_mod_ns(&v->timer, v->asked_ns + v->interval_ns);
}

static void view_failed(void *opaque, const char *why)
{
    StatsView *v = opaque;
    g_autofree char *text = v->now
        ? g_strdup_printf("the daemon has gone (%s)", why)
        : g_strdup_printf("not the monitor of a qemu-net-daemon (%s): give "
                          "the socket of its --qmp", why);

    view_fail(v, text);
}

static const QmpClientOps client_ops = {
    .ready = view_ready,
    .reply = view_reply,
    .failed = view_failed,
};

/* ---- keys and signals -------------------------------------------------- */

static void view_signal(void *opaque)
{
    StatsView *v = opaque;

    v->done = true;
}

static void view_winch(void *opaque)
{
    StatsView *v = opaque;
    struct signalfd_siginfo info;

    if (read(v->winch_fd, &info, sizeof(info)) == sizeof(info)) {
        show(v, false);
    }
}

static void view_key(void *opaque)
{
    StatsView *v = opaque;
    char keys[32];
    ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

    if (n > 0) {
        v->done = v->done || memchr(keys, 'q', n) || memchr(keys, 'Q', n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        v->done = true;             /* the terminal has gone */
    }
}

static const AioHandlerOps signal_ops = { .readable = view_signal };
static const AioHandlerOps winch_ops = { .readable = view_winch };
static const AioHandlerOps key_ops = { .readable = view_key };

static bool watch_signals(StatsView *v, GError **errp)
{
    v->signal_fd = process_signal_fd(errp);
    if (v->signal_fd < 0) {
        return false;
    }
    v->signals = aio_handler_new(v->ctx, v->signal_fd, AIO_READ, &signal_ops,
                                 v, errp);
    return v->signals;
}

static bool watch_terminal(StatsView *v, GError **errp)
{
    sigset_t set;

    if (!v->on_terminal) {
        return true;
    }
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_BLOCK, &set, NULL);
    v->winch_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (v->winch_fd < 0) {
        vnet_set_error(errp, "signalfd: %s", g_strerror(errno));
        return false;
    }
    v->winch = aio_handler_new(v->ctx, v->winch_fd, AIO_READ, &winch_ops, v,
                               errp);
    v->keys = aio_handler_new(v->ctx, STDIN_FILENO, AIO_READ, &key_ops, v,
                              errp);
    return v->winch && v->keys;
}

/* ---- life -------------------------------------------------------------- */

static bool view_open(StatsView *v, GError **errp)
{
    v->client = qmp_client_new(v->ctx, v->path, &client_ops, v, errp);
    if (!v->client) {
        g_prefix_error(errp, "--stats: ");
        return false;
    }
    return watch_signals(v, errp) && watch_terminal(v, errp);
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void view_close(StatsView *v)
{
    terminal_end();
    aio_timer_del(&v->timer);
    qmp_client_free(v->client);
    aio_handler_delete(v->keys);
    aio_handler_delete(v->winch);
    aio_handler_delete(v->signals);
    close_fd(v->winch_fd);
    close_fd(v->signal_fd);
    stats_sample_free(v->now);
    stats_sample_free(v->before);
}

bool stats_view_run(const char *path, int64_t interval_ns, GError **errp)
{
    StatsView v = { .path = path, .interval_ns = interval_ns,
                    .on_terminal = terminal_usable(), .signal_fd = -1,
                    .winch_fd = -1 };
    bool good;

    v.ctx = aio_context_new("stats", clock_monotonic(), errp);
    if (!v.ctx) {
        return false;
    }
    aio_context_bind(v.ctx);
    aio_timer_init(&v.timer, v.ctx, view_ask, &v);
    good = view_open(&v, errp);
    while (good && !v.done) {
        aio_poll(v.ctx, true);
    }
    view_close(&v);
    aio_context_unbind(v.ctx);
    aio_context_free(v.ctx);
    if (v.err) {
        g_propagate_error(errp, v.err);
    }
    return good && !v.err;
}
