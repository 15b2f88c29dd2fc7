/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QMP server: sockets and sessions.
 *
 * A connection reads only while its replies find room: a client that sends
 * requests and never reads the answers stops being served at
 * QMP_MAX_OUTPUT_BYTES, and costs no more than that.
 *
 * States of a connection: reading (wants input; output empty or small),
 * held (output at its limit: wants output only), closing (what is queued is
 * still written, nothing is read).  It is freed when the peer leaves, on a
 * write error, or when closing has written everything.
 *
 * Limits: Unix sockets only; no events yet.
 */
#include "monitor/qmp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qmp-framing.h"
#include "util/report.h"
#include "util/unix-socket.h"

#define QMP_MAX_OUTPUT_BYTES    ((size_t)1 << 20)
#define QMP_READ_BYTES          4096
/* Pause after a connection that could not be accepted. */
#define QMP_ACCEPT_RETRY_NS     (100 * NS_PER_MS)

typedef struct QmpListener {
    QmpServer *server;
    UnixListener *socket;
    AioHandler *handler;
} QmpListener;

typedef struct QmpConn {
    QmpServer *server;
    int fd;
    AioHandler *handler;
    QmpFramer framer;
    QmpSession session;
    GString *out;
    bool closing;
} QmpConn;

struct QmpServer {
    AioContext *ctx;
    const QmpCommand *commands;
    void *opaque;
    GPtrArray *listeners;       /* of QmpListener */
    GPtrArray *conns;           /* of QmpConn */
    AioTimer retry_timer;       /* armed: nobody is accepted meanwhile */
    bool pausing;
    ReportLimit limit;
};

/* ---- listeners --------------------------------------------------------- */

/* With all seats taken nobody is accepted: they wait in the listen queue. */
static void qmp_server_update(QmpServer *s)
{
    unsigned want = s->conns->len < QMP_MAX_CONNECTIONS && !s->pausing
                    ? AIO_READ : 0;

    for (guint i = 0; i < s->listeners->len; i++) {
        QmpListener *l = s->listeners->pdata[i];

        aio_handler_want(l->handler, want);
    }
}

static void qmp_server_retry(void *opaque)
{
    QmpServer *s = opaque;

    s->pausing = false;
    qmp_server_update(s);
}

/* Without descriptors the client stays in the queue, and would wake us for
 * ever. */
static void qmp_server_pause(QmpServer *s, const char *why)
{
    report_guest(&s->limit, "monitor: cannot accept a connection: %s", why);
    s->pausing = true;
    qmp_server_update(s);
    aio_timer_mod_ns(&s->retry_timer, aio_now_ns(s->ctx) +
                     QMP_ACCEPT_RETRY_NS);
}

static void qmp_listener_readable(void *opaque)
{
    QmpListener *l = opaque;
    GError *err = NULL;
    int fd = accept4(unix_listener_fd(l->socket), NULL, NULL,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        /* One that has gone again is no reason to wait */
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            qmp_server_pause(l->server, g_strerror(errno));
        }
        return;
    }
    if (!qmp_server_attach(l->server, fd, &err)) {
        qmp_server_pause(l->server, err->message);
        g_error_free(err);
    }
}

static const AioHandlerOps qmp_listener_ops = {
    .readable = qmp_listener_readable,
};

static void qmp_listener_free(gpointer opaque)
{
    QmpListener *l = opaque;

    aio_handler_delete(l->handler);
    unix_listener_free(l->socket);
    g_free(l);
}

bool qmp_server_listen(QmpServer *s, const char *path, GError **errp)
{
    UnixListener *socket = unix_listener_new(path, errp);
    QmpListener *l;

    if (!socket) {
        return false;
    }
    l = g_new0(QmpListener, 1);
    l->server = s;
    l->socket = socket;
    l->handler = aio_handler_new(s->ctx, unix_listener_fd(socket), AIO_READ,
                                 &qmp_listener_ops, l, errp);
    if (!l->handler) {
        qmp_listener_free(l);
        return false;
    }
    g_ptr_array_add(s->listeners, l);
    return true;
}

/* ---- connections ------------------------------------------------------- */

static void qmp_conn_free(gpointer opaque)
{
    QmpConn *c = opaque;

    aio_handler_delete(c->handler);
    close(c->fd);
    qmp_framer_clear(&c->framer);
    g_string_free(c->out, TRUE);
    g_free(c);
}

/* Frees @c. */
static void qmp_conn_end(QmpConn *c)
{
    QmpServer *s = c->server;

    g_ptr_array_remove(s->conns, c);
    qmp_server_update(s);
}

/* Returns false if the connection is of no use any more. */
static bool qmp_conn_write(QmpConn *c)
{
    while (c->out->len > 0) {
        ssize_t n = send(c->fd, c->out->str, c->out->len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN;
        }
        g_string_erase(c->out, 0, n);
    }
    return !c->closing;
}

static void qmp_conn_update(QmpConn *c)
{
    bool held = c->closing || c->out->len >= QMP_MAX_OUTPUT_BYTES;

    aio_handler_want(c->handler, (held ? 0 : AIO_READ) |
                                 (c->out->len ? AIO_WRITE : 0));
}

/* Takes @line. */
static void qmp_conn_queue(QmpConn *c, char *line)
{
    g_string_append(c->out, line);
    g_string_append(c->out, "\r\n");
    g_free(line);
}

/* Answer what is complete, as long as there is room for the answers. */
static void qmp_conn_serve(QmpConn *c)
{
    while (!c->closing && c->out->len < QMP_MAX_OUTPUT_BYTES) {
        g_autofree char *text = NULL;

        switch (qmp_framer_next(&c->framer, &text)) {
        case QMP_FRAME_NONE:
            return;
        case QMP_FRAME_TEXT:
            qmp_conn_queue(c, qmp_dispatch(&c->session, text));
            break;
        case QMP_FRAME_TOO_DEEP:
            qmp_conn_queue(c, qmp_error_reply("JSON parse error, maximum "
                                              "nesting depth exceeded"));
            break;
        case QMP_FRAME_TOO_LONG:
            qmp_conn_queue(c, qmp_error_reply("JSON parse error, request is "
                                              "longer than 1 MiB"));
            c->closing = true;
            break;
        }
    }
}

static void qmp_conn_advance(QmpConn *c)
{
    size_t before;

    /* Writing makes room, which requests that wait in the framer can use. */
    do {
        before = c->out->len;
        qmp_conn_serve(c);
        if (!qmp_conn_write(c)) {
            qmp_conn_end(c);
            return;
        }
    } while (before >= QMP_MAX_OUTPUT_BYTES && c->out->len < before);
    qmp_conn_update(c);
}

static void qmp_conn_readable(void *opaque)
{
    QmpConn *c = opaque;
    char bytes[QMP_READ_BYTES];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        qmp_conn_end(c);
        return;
    }
    qmp_framer_feed(&c->framer, bytes, n);
    qmp_conn_advance(c);
}

static void qmp_conn_writable(void *opaque)
{
    qmp_conn_advance(opaque);
}

static const AioHandlerOps qmp_conn_ops = {
    .readable = qmp_conn_readable,
    .writable = qmp_conn_writable,
    /* No .hangup: what came before the hang-up is still to be read. */
};

bool qmp_server_attach(QmpServer *s, int fd, GError **errp)
{
    QmpConn *c = g_new0(QmpConn, 1);

    c->server = s;
    c->fd = fd;
    c->session = (QmpSession) { s->commands, s->opaque, false };
    c->out = g_string_new(NULL);
    qmp_framer_init(&c->framer);
    c->handler = aio_handler_new(s->ctx, fd, AIO_READ, &qmp_conn_ops, c,
                                 errp);
    if (!c->handler) {
        qmp_conn_free(c);
        return false;
    }
    g_ptr_array_add(s->conns, c);
    qmp_server_update(s);
    qmp_conn_queue(c, qmp_greeting());
    qmp_conn_advance(c);
    return true;
}

/* ---- server ------------------------------------------------------------ */

QmpServer *qmp_server_new(AioContext *ctx, const QmpCommand *commands,
                          void *opaque)
{
    QmpServer *s = g_new0(QmpServer, 1);

    s->ctx = ctx;
    s->commands = commands;
    s->opaque = opaque;
    s->listeners = g_ptr_array_new_with_free_func(qmp_listener_free);
    s->conns = g_ptr_array_new_with_free_func(qmp_conn_free);
    aio_timer_init(&s->retry_timer, ctx, qmp_server_retry, s);
    return s;
}

void qmp_server_free(QmpServer *s)
{
    if (!s) {
        return;
    }
    aio_timer_del(&s->retry_timer);
    g_ptr_array_free(s->conns, TRUE);
    g_ptr_array_free(s->listeners, TRUE);
    g_free(s);
}
