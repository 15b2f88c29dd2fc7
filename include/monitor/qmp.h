/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QMP: a JSON command server on Unix sockets, with QEMU's protocol.
 *
 * A QmpServer has a table of commands and any number of sockets it listens
 * on; each accepted connection is a session of its own that must negotiate
 * (qmp_capabilities) before it may do anything else.  One request, one reply,
 * in order; each reply is one line ended by "\r\n".
 *
 * Three layers, lowest first, each usable alone:
 *   framing   bytes to complete JSON texts (monitor/qmp-framing.h);
 *   dispatch  one JSON text to one reply (this header: qmp_dispatch());
 *   server    sockets and sessions.
 *
 * Everything here is for the main context.
 */
#ifndef MONITOR_QMP_H
#define MONITOR_QMP_H

#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdbool.h>

#include "util/aio.h"

/* ---- commands ---------------------------------------------------------- */

/*
 * The error class of a reply.  A GError of another domain than QMP_ERROR is
 * sent as GenericError.
 */
typedef enum QmpErrorClass {
    QMP_ERROR_GENERIC,
    QMP_ERROR_COMMAND_NOT_FOUND,
    QMP_ERROR_DEVICE_NOT_FOUND,
} QmpErrorClass;

#define QMP_ERROR (qmp_error_quark())
GQuark qmp_error_quark(void);

typedef enum QmpType {
    QMP_STRING,
    QMP_BOOL,
    QMP_INT,
    QMP_ARRAY,
    QMP_OBJECT,
} QmpType;

typedef struct QmpArg {
    const char *name;           /* NULL ends a table */
    QmpType type;
    bool optional;
} QmpArg;

typedef struct QmpCommand {
    const char *name;           /* NULL ends a table */
    const QmpArg *args;         /* NULL: takes none */
    /*
     * Run the command.  @args has been checked against the table: nothing
     * unknown, nothing mandatory missing, types right.  Returns the value of
     * "return" (qmp_empty() if there is none to give), or NULL with @errp
     * set.
     */
    JsonNode *(*run)(void *opaque, JsonObject *args, GError **errp);
} QmpCommand;

/* qmp_empty: an empty object, the answer of a command that only acts. */
JsonNode *qmp_empty(void);

/* ---- dispatch -------------------------------------------------------- */

typedef struct QmpSession {
    const QmpCommand *commands;
    void *opaque;               /* handed to the commands */
    bool negotiated;
} QmpSession;

/* qmp_greeting: the line a server sends first, without its end. */
char *qmp_greeting(void);

/*
 * qmp_dispatch: answer one request.
 * @text: one JSON text as it came from the wire, NUL-terminated
 *
 * Never fails: what is wrong with @text is said in the reply.  Returns one
 * JSON object without a line end.  Caller frees.
 */
char *qmp_dispatch(QmpSession *session, const char *text);

/* qmp_error_reply: the reply for what never became a request. */
char *qmp_error_reply(const char *desc);

/* ---- server --------------------------------------------------------------*/

typedef struct QmpServer QmpServer;

/* A further connection waits in the listen queue until one of these ends. */
#define QMP_MAX_CONNECTIONS 16

/*
 * qmp_server_new: a server without sockets.
 * @commands: table ended by a NULL name, must outlive the server
 */
QmpServer *qmp_server_new(AioContext *ctx, const QmpCommand *commands,
                          void *opaque);

/*
 * qmp_server_listen: create a socket at @path and accept connections.
 *
 * A stale socket file (nobody listens) is replaced; a live one, or a file of
 * another kind, stays and is an error.  Returns false with @errp set: one
 * line naming path and remedy.
 */
bool qmp_server_listen(QmpServer *s, const char *path, GError **errp);

/* qmp_server_attach: serve a connected stream socket, which is taken over. */
bool qmp_server_attach(QmpServer *s, int fd, GError **errp);

/* qmp_server_free: end all sessions, unlink the sockets (NULL allowed). */
void qmp_server_free(QmpServer *s);

#endif /* MONITOR_QMP_H */
