/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QmpClient: a session with a QMP server at a Unix socket.
 *
 * Everything here is for the context that was given; nothing waits.  Limit:
 * an answer has at most 1 MiB, the counters of some 600 rings.
 */
#ifndef MONITOR_QMP_CLIENT_H
#define MONITOR_QMP_CLIENT_H

#include <glib.h>
#include <json-glib/json-glib.h>

#include "util/aio.h"

typedef struct QmpClient QmpClient;

/*
 * One of these is called when something has come.  None may free the client.
 */
typedef struct QmpClientOps {
    /* Capabilities are negotiated: commands may be sent. */
    void (*ready)(void *opaque);
    /* What the last command returned; valid during the call. */
    void (*reply)(void *opaque, JsonNode *value);
    /*
     * The session is of no use any more: no QMP server, a command refused, no
     * answer, the server gone.  @why: a few words.  Called once, last.
     */
    void (*failed)(void *opaque, const char *why);
} QmpClientOps;

/* How long a greeting or an answer may take. */
#define QMP_CLIENT_TIMEOUT_NS (5 * NS_PER_SEC)

/*
 * qmp_client_new: connect to the server at @path and begin to negotiate.
 *
 * Returns NULL with @errp set if nobody listens there.
 */
QmpClient *qmp_client_new(AioContext *ctx, const char *path,
                          const QmpClientOps *ops, void *opaque,
                          GError **errp);

/* qmp_client_attach: the same over a connected socket, which it takes over. */
QmpClient *qmp_client_attach(AioContext *ctx, int fd, const QmpClientOps *ops,
                             void *opaque, GError **errp);

/*
 * qmp_client_execute: send a command without arguments.  After .ready, and
 * after the .reply to the one before.
 */
void qmp_client_execute(QmpClient *c, const char *command);

/* qmp_client_free: NULL is allowed. */
void qmp_client_free(QmpClient *c);

#endif /* MONITOR_QMP_CLIENT_H */
