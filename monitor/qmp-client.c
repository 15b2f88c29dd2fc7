/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The other side of QMP: one command at a time.
 *
 * States, and what is expected of the server:
 *
 *   GREETING     {"QMP": ...}, to which qmp_capabilities is the answer
 *   NEGOTIATING  its reply
 *   IDLE         nothing; events may come, and are ignored
 *   WAITING      the reply to a command
 *   FAILED       nothing is read any more
 *
 * While something is expected, a timer runs.  The server is not trusted: what
 * it sends is framed and checked as a server does it with its clients.
 */
#include "monitor/qmp-client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qmp-framing.h"
#include "util/clock.h"
#include "util/json-text.h"
#include "util/report.h"
#include "util/unix-socket.h"

typedef enum QmpClientState {
    CLIENT_GREETING,
    CLIENT_NEGOTIATING,
    CLIENT_IDLE,
    CLIENT_WAITING,
    CLIENT_FAILED,
} QmpClientState;

struct QmpClient {
    AioContext *ctx;
    const QmpClientOps *ops;
    void *opaque;
    int fd;
    AioHandler *handler;
    AioTimer timer;
    QmpFramer framer;
    QmpClientState state;
};

static void client_fail(QmpClient *c, const char *why)
{
    if (c->state == CLIENT_FAILED) {
        return;
    }
    c->state = CLIENT_FAILED;
    aio_timer_del(&c->timer);
    aio_handler_want(c->handler, 0);
    c->ops->failed(c->opaque, why);
}

static void client_expect(QmpClient *c, QmpClientState state)
{
    c->state = state;
    aio_timer_mod_ns(&c->timer, aio_now_ns(c->ctx) + QMP_CLIENT_TIMEOUT_NS);
}

static void client_timeout(void *opaque)
{
    QmpClient *c = opaque;

    client_fail(c, c->state == CLIENT_GREETING ? "no QMP greeting comes"
                                               : "no answer comes");
}

/* A request is short, and the only one: it fits into any socket buffer. */
static void client_send(QmpClient *c, const char *command,
                        QmpClientState state)
{
    g_autofree char *line = g_strdup_printf("{\"execute\":\"%s\"}\n",
                                            command);
    ssize_t n = send(c->fd, line, strlen(line), MSG_NOSIGNAL);

    if (n != (ssize_t)strlen(line)) {
        client_fail(c, "the connection is closed");
        return;
    }
    client_expect(c, state);
}

void qmp_client_execute(QmpClient *c, const char *command)
{
    g_assert(c->state == CLIENT_IDLE || c->state == CLIENT_FAILED);
    if (c->state == CLIENT_IDLE) {
        client_send(c, command, CLIENT_WAITING);
    }
}

/* ---- what the server sends --------------------------------------------- */

static void client_refused(QmpClient *c, JsonNode *error)
{
    const char *desc = NULL;

    if (JSON_NODE_HOLDS_OBJECT(error)) {
        desc = json_object_get_string_member_with_default(
            json_node_get_object(error), "desc", NULL);
    }
    client_fail(c, desc ? desc : "an error without a description");
}

static void client_answered(QmpClient *c, JsonNode *value)
{
    QmpClientState state = c->state;

    aio_timer_del(&c->timer);
    c->state = CLIENT_IDLE;
    if (state == CLIENT_NEGOTIATING) {
        c->ops->ready(c->opaque);
    } else {
        c->ops->reply(c->opaque, value);
    }
}

static void client_object(QmpClient *c, JsonObject *obj)
{
    bool expects_reply = c->state == CLIENT_NEGOTIATING ||
                         c->state == CLIENT_WAITING;

    if (c->state == CLIENT_GREETING && json_object_has_member(obj, "QMP")) {
        client_send(c, "qmp_capabilities", CLIENT_NEGOTIATING);
    } else if (expects_reply && json_object_has_member(obj, "return")) {
        client_answered(c, json_object_get_member(obj, "return"));
    } else if (expects_reply && json_object_has_member(obj, "error")) {
        client_refused(c, json_object_get_member(obj, "error"));
    } else if (!json_object_has_member(obj, "event")) {
        client_fail(c, "what it sends is not QMP");
    }
}

static void client_text(QmpClient *c, const char *text)
{
    g_autoptr(JsonParser) parser = json_parser_new_immutable();
    JsonNode *root = NULL;

    if (*text == '{' && g_utf8_validate(text, -1, NULL) &&
        !json_text_check(text, QMP_MAX_NESTING) &&
        json_parser_load_from_data(parser, text, -1, NULL)) {
        root = json_parser_get_root(parser);
    }
    if (root && JSON_NODE_HOLDS_OBJECT(root)) {
        client_object(c, json_node_get_object(root));
    } else {
        client_fail(c, "what it sends is not QMP");
    }
}

static void client_frames(QmpClient *c)
{
    while (c->state != CLIENT_FAILED) {
        g_autofree char *text = NULL;

        switch (qmp_framer_next(&c->framer, &text)) {
        case QMP_FRAME_NONE:
            return;
        case QMP_FRAME_TEXT:
            client_text(c, text);
            break;
        case QMP_FRAME_TOO_DEEP:
        case QMP_FRAME_TOO_LONG:
            client_fail(c, "what it sends is too long");
            break;
        }
    }
}

static void client_readable(void *opaque)
{
    QmpClient *c = opaque;
    char bytes[16384];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        client_fail(c, c->state == CLIENT_GREETING
                       ? "no QMP greeting comes" : "the connection is closed");
        return;
    }
    qmp_framer_feed(&c->framer, bytes, n);
    client_frames(c);
}

static const AioHandlerOps client_ops = {
    .readable = client_readable,
    /* No .hangup: what came before the hang-up is still to be read. */
};

/* ---- life -------------------------------------------------------------- */

QmpClient *qmp_client_attach(AioContext *ctx, int fd, const QmpClientOps *ops,
                             void *opaque, GError **errp)
{
    QmpClient *c = g_new0(QmpClient, 1);

    c->ctx = ctx;
    c->ops = ops;
    c->opaque = opaque;
    c->fd = fd;
    qmp_framer_init(&c->framer);
    aio_timer_init(&c->timer, ctx, client_timeout, c);
    c->handler = aio_handler_new(ctx, fd, AIO_READ, &client_ops, c, errp);
    if (!c->handler) {
        qmp_client_free(c);
        return NULL;
    }
    client_expect(c, CLIENT_GREETING);
    return c;
}

QmpClient *qmp_client_new(AioContext *ctx, const char *path,
                          const QmpClientOps *ops, void *opaque,
                          GError **errp)
{
    int fd = unix_socket_connect(path, errp);

    return fd < 0 ? NULL : qmp_client_attach(ctx, fd, ops, opaque, errp);
}

void qmp_client_free(QmpClient *c)
{
    if (!c) {
        return;
    }
    aio_timer_del(&c->timer);
    aio_handler_delete(c->handler);
    close(c->fd);
    qmp_framer_clear(&c->framer);
    g_free(c);
}
