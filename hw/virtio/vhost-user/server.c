/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The export: a socket, and one connection at a time.
 *
 *   listening   lfd is watched, no connection
 *   serving     lfd is not watched: further front-ends wait in its queue
 *   over        a descriptor that came connected has no successor
 *
 * A lost connection leads from serving back to listening.  The NIC, its
 * backend and its counters stay; what the front-end had set up is gone.
 *
 * Limits: who connects is not asked who he is; the mode of the socket file
 * and its directory decide.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <glib-unix.h>

#include "hw/virtio/vhost-user.h"
#include "util/unix-socket.h"
#include "vhost-user-internal.h"

/* How long not to accept when the process has no descriptor to spare. */
#define VU_ACCEPT_RETRY_NS (100 * NS_PER_MS)

struct VhostUserExport {
    char *id;
    VirtIONet *nic;
    AioContext *ctx;
    ReportLimit limit;
    VuConn *conn;               /* NULL: listening, or over */

    int lfd;                    /* -1: came as a connected descriptor */
    AioHandler *listener;
    AioTimer retry_timer;

    UnixListener *socket;       /* NULL: lfd was given to us */
};

/* ---- connections -------------------------------------------------------- */

static void export_listen_again(void *opaque)
{
    VhostUserExport *exp = opaque;

    aio_handler_want(exp->listener, AIO_READ);
}

static void export_conn_gone(void *opaque)
{
    VhostUserExport *exp = opaque;

    vu_conn_free(exp->conn);
    exp->conn = NULL;
    if (exp->listener) {
        export_listen_again(exp);
    }
}

static bool export_serve(VhostUserExport *exp, int fd, GError **errp)
{
    VuConnOwner owner = {
        .id = exp->id,
        .nic = exp->nic,
        .ctx = exp->ctx,
        .limit = &exp->limit,
        .gone = export_conn_gone,
        .opaque = exp,
    };

    exp->conn = vu_conn_new(fd, &owner, errp);
    return exp->conn;
}

/* A front-end that was gone before its turn is no reason to say anything. */
static bool accept_can_wait(int err)
{
    return err == EAGAIN || err == EINTR || err == ECONNABORTED;
}

static void export_accept_failed(VhostUserExport *exp, const char *why)
{
    report_guest(&exp->limit, "vhost-user export '%s': cannot accept a "
                 "connection: %s", exp->id, why);
    aio_handler_want(exp->listener, 0);
    aio_timer_mod_ns(&exp->retry_timer,
                     aio_now_ns(exp->ctx) + VU_ACCEPT_RETRY_NS);
}

static void export_accept(void *opaque)
{
    VhostUserExport *exp = opaque;
    GError *err = NULL;
    int fd = accept4(exp->lfd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (!accept_can_wait(errno)) {
            export_accept_failed(exp, g_strerror(errno));
        }
        return;
    }
    if (!export_serve(exp, fd, &err)) {
        export_accept_failed(exp, err->message);
        g_error_free(err);
        return;
    }
    aio_handler_want(exp->listener, 0);
}

static const AioHandlerOps listener_ops = { .readable = export_accept };

/* ---- life --------------------------------------------------------------- */

static VhostUserExport *export_new(const char *id, VirtIONet *nic,
                                   AioContext *main_ctx)
{
    VhostUserExport *exp = g_new0(VhostUserExport, 1);

    exp->id = g_strdup(id);
    exp->nic = nic;
    exp->ctx = main_ctx;
    exp->lfd = -1;
    aio_timer_init(&exp->retry_timer, main_ctx, export_listen_again, exp);
    return exp;
}

void vhost_user_export_free(VhostUserExport *exp)
{
    if (!exp) {
        return;
    }
    if (exp->conn) {
        vu_conn_free(exp->conn);
    }
    aio_timer_del(&exp->retry_timer);
    aio_handler_delete(exp->listener);
    if (exp->socket) {
        unix_listener_free(exp->socket);
    } else if (exp->lfd >= 0) {
        close(exp->lfd);
    }
    g_free(exp->id);
    g_free(exp);
}

static bool export_watch(VhostUserExport *exp, GError **errp)
{
    exp->listener = aio_handler_new(exp->ctx, exp->lfd, AIO_READ,
                                    &listener_ops, exp, errp);
    return exp->listener;
}

VhostUserExport *vhost_user_export_new_path(const char *id, VirtIONet *nic,
                                            AioContext *main_ctx,
                                            const char *path, GError **errp)
{
    UnixListener *socket = unix_listener_new(path, errp);
    VhostUserExport *exp;

    if (!socket) {
        return NULL;
    }
    exp = export_new(id, nic, main_ctx);
    exp->socket = socket;
    exp->lfd = unix_listener_fd(socket);
    if (!export_watch(exp, errp)) {
        vhost_user_export_free(exp);
        return NULL;
    }
    return exp;
}

static int socket_option(int fd, int option)
{
    int value;
    socklen_t len = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -1 : value;
}

static bool is_listening(int fd)
{
    return socket_option(fd, SO_ACCEPTCONN) == 1;
}

static bool is_connected(int fd)
{
    struct sockaddr_un addr;
    socklen_t len = sizeof(addr);

    return getpeername(fd, (struct sockaddr *)&addr, &len) == 0;
}

static bool check_socket_fd(int fd, GError **errp)
{
    if (socket_option(fd, SO_DOMAIN) == AF_UNIX &&
        socket_option(fd, SO_TYPE) == SOCK_STREAM &&
        (is_listening(fd) || is_connected(fd)) &&
        g_unix_set_fd_nonblocking(fd, TRUE, NULL)) {
        return true;
    }
    vnet_set_error(errp, "descriptor %d is not a Unix stream socket; pass one "
                   "that listens or is connected", fd);
    return false;
}

VhostUserExport *vhost_user_export_new_fd(const char *id, VirtIONet *nic,
                                          AioContext *main_ctx, int fd,
                                          GError **errp)
{
    VhostUserExport *exp;
    bool ok;

    if (!check_socket_fd(fd, errp)) {
        close(fd);
        return NULL;
    }
    exp = export_new(id, nic, main_ctx);
    if (is_listening(fd)) {
        exp->lfd = fd;
        ok = export_watch(exp, errp);
    } else {
        ok = export_serve(exp, fd, errp);
    }
    if (!ok) {
        vhost_user_export_free(exp);
        return NULL;
    }
    return exp;
}

const char *vhost_user_export_id(const VhostUserExport *exp)
{
    return exp->id;
}

bool vhost_user_export_connected(const VhostUserExport *exp)
{
    return exp->conn;
}
