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
 * The socket file: a file that refuses connections is left over from a
 * process that died, and is replaced.  Any other file stays, and so does ours
 * if somebody has put another in its place by the time we go.
 *
 * Limits: two processes that replace one stale file at the same moment may
 * both believe they own it; the loser's socket is unreachable.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <glib-unix.h>

#include "hw/virtio/vhost-user.h"
#include "vhost-user-internal.h"

/* Front-ends that may wait for their turn. */
#define VU_BACKLOG 8

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

    char *path;                 /* NULL: not ours to unlink */
    dev_t dev;                  /* the file we created */
    ino_t ino;
};

/* ---- connections ----------------------------------------------------------- */

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

/* ---- the socket file ------------------------------------------------------- */

static bool path_to_addr(const char *path, struct sockaddr_un *addr,
                         GError **errp)
{
    size_t len = strlen(path);

    memset(addr, 0, sizeof(*addr));
    addr->sun_family = AF_UNIX;
    if (len == 0 || len >= sizeof(addr->sun_path)) {
        vnet_set_error(errp, "socket path '%s' has %zu bytes; use 1 to %zu",
                       path, len, sizeof(addr->sun_path) - 1);
        return false;
    }
    memcpy(addr->sun_path, path, len);
    return true;
}

/* is_stale: nobody listens.  Asking does not wait, even for a full queue. */
static bool is_stale(const struct sockaddr_un *addr)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool stale;

    if (fd < 0) {
        return false;
    }
    stale = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 &&
            errno == ECONNREFUSED;
    close(fd);
    return stale;
}

/* path_make_free: remove a stale socket; anything else is an error. */
static bool path_make_free(const char *path, const struct sockaddr_un *addr,
                           GError **errp)
{
    struct stat st;

    if (lstat(path, &st) < 0) {
        return true;            /* bind() knows what is wrong, if anything */
    }
    if (!S_ISSOCK(st.st_mode)) {
        vnet_set_error(errp, "cannot listen on '%s': it exists and is not a "
                       "socket; remove it or choose another path", path);
        return false;
    }
    if (!is_stale(addr)) {
        vnet_set_error(errp, "cannot listen on '%s': another process uses "
                       "this socket; stop it or choose another path", path);
        return false;
    }
    if (unlink(path) < 0 && errno != ENOENT) {
        vnet_set_error(errp, "cannot replace the unused socket '%s': %s; "
                       "remove it or choose another path", path,
                       g_strerror(errno));
        return false;
    }
    return true;
}

/*
 * export_bind: create the file.  The mode is set on the socket before it is
 * bound, so there is no moment in which others could connect.
 */
static bool export_bind(VhostUserExport *exp, const char *path,
                        const struct sockaddr_un *addr, GError **errp)
{
    struct stat st;

    fchmod(exp->lfd, 0600);
    if (bind(exp->lfd, (const struct sockaddr *)addr, sizeof(*addr)) < 0) {
        vnet_set_error(errp, "cannot create socket '%s': %s; choose a path "
                       "in an existing directory you may write to", path,
                       g_strerror(errno));
        return false;
    }
    if (lstat(path, &st) == 0) {
        exp->path = g_strdup(path);
        exp->dev = st.st_dev;
        exp->ino = st.st_ino;
    }
    return true;
}

static void export_unlink(VhostUserExport *exp)
{
    struct stat st;

    if (exp->path && lstat(exp->path, &st) == 0 && st.st_dev == exp->dev &&
        st.st_ino == exp->ino) {
        unlink(exp->path);
    }
    g_free(exp->path);
}

/* ---- life ------------------------------------------------------------------ */

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
    export_unlink(exp);
    if (exp->lfd >= 0) {
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

static bool export_listen(VhostUserExport *exp, const char *path,
                          GError **errp)
{
    struct sockaddr_un addr;

    if (!path_to_addr(path, &addr, errp) ||
        !path_make_free(path, &addr, errp)) {
        return false;
    }
    exp->lfd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (exp->lfd < 0) {
        vnet_set_error(errp, "cannot create a socket for '%s': %s", path,
                       g_strerror(errno));
        return false;
    }
    if (!export_bind(exp, path, &addr, errp)) {
        return false;
    }
    if (listen(exp->lfd, VU_BACKLOG) < 0) {
        vnet_set_error(errp, "cannot listen on '%s': %s", path,
                       g_strerror(errno));
        return false;
    }
    return export_watch(exp, errp);
}

VhostUserExport *vhost_user_export_new_path(const char *id, VirtIONet *nic,
                                            AioContext *main_ctx,
                                            const char *path, GError **errp)
{
    VhostUserExport *exp = export_new(id, nic, main_ctx);

    if (!export_listen(exp, path, errp)) {
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
