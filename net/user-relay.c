/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The socket has no name in the file system that could be left behind: it is
 * bound in a private directory, held by an O_PATH descriptor, and unlinked at
 * once; libslirp finds it as /proc/self/fd/N.
 *
 * A connection is two sides, each with a buffer of bytes read from it and not
 * yet written to the other.  A side is read while its buffer is empty and
 * written while the other's is not, so a slow side stops the other.  End of
 * file travels behind the last byte; any error ends both sides.
 */
#include "user-relay.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/report.h"

#define RELAY_BUF_BYTES     (64 * 1024)
#define RELAY_BACKLOG       64
/* How long not to accept when the process has no descriptor to spare. */
#define RELAY_RETRY_NS      (100 * NS_PER_MS)

typedef struct RelayConn RelayConn;

typedef struct RelaySide {
    RelayConn *conn;
    int fd;
    AioHandler *handler;
    bool eof;               /* nothing more will be read */
    bool shut;              /* and the other side was told */
    size_t start, end;      /* of the bytes in buf */
    uint8_t *buf;
} RelaySide;

struct RelayConn {
    UserRelay *relay;
    RelaySide side[2];
    LIST_ENTRY(RelayConn) link;
};

struct UserRelay {
    AioContext *ctx;
    int fd, path_fd;
    char path[32];
    AioHandler *handler;
    AioTimer retry;
    ReportLimit limit;
    struct sockaddr_storage to;
    socklen_t to_len;
    LIST_HEAD(, RelayConn) conns;
};

/* ---- connections ----------------------------------------------------- */

static void relay_conn_free(RelayConn *c)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(c->side); i++) {
        aio_handler_delete(c->side[i].handler);
        if (c->side[i].fd >= 0) {
            close(c->side[i].fd);
        }
        g_free(c->side[i].buf);
    }
    LIST_REMOVE(c, link);
    g_free(c);
}

static bool relay_again(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Move what can be moved from @from to @to; false on an error. */
static bool relay_pump(RelaySide *from, RelaySide *to)
{
    ssize_t n;

    if (from->start == from->end && !from->eof) {
        n = recv(from->fd, from->buf, RELAY_BUF_BYTES, 0);
        if (n < 0 && !relay_again(n)) {
            return false;
        }
        from->eof = n == 0;
        from->start = 0;
        from->end = MAX(n, 0);
    }
    if (from->start < from->end) {
        n = send(to->fd, from->buf + from->start, from->end - from->start,
                 MSG_NOSIGNAL);
        if (n < 0 && !relay_again(n)) {
            return false;
        }
        from->start += MAX(n, 0);
    }
    if (from->eof && from->start == from->end && !from->shut) {
        shutdown(to->fd, SHUT_WR);
        from->shut = true;
    }
    return true;
}

static void relay_side_want(RelaySide *s, const RelaySide *other)
{
    bool room = !s->eof && s->start == s->end;
    bool work = other->start < other->end;

    aio_handler_want(s->handler, (room ? AIO_READ : 0) |
                                 (work ? AIO_WRITE : 0));
}

static void relay_conn_run(void *opaque)
{
    RelaySide *s = opaque;
    RelayConn *c = s->conn;
    RelaySide *a = &c->side[0], *b = &c->side[1];

    if (!relay_pump(a, b) || !relay_pump(b, a) || (a->shut && b->shut)) {
        relay_conn_free(c);
        return;
    }
    relay_side_want(a, b);
    relay_side_want(b, a);
}

static const AioHandlerOps relay_side_ops = {
    .readable = relay_conn_run,
    .writable = relay_conn_run,
};

static void relay_conn_new(UserRelay *r, int guest_fd, int host_fd)
{
    RelayConn *c = g_new0(RelayConn, 1);
    int fds[] = { guest_fd, host_fd };
    bool ok = true;

    c->relay = r;
    LIST_INSERT_HEAD(&r->conns, c, link);
    for (unsigned i = 0; i < G_N_ELEMENTS(c->side); i++) {
        RelaySide *s = &c->side[i];

        s->conn = c;
        s->fd = fds[i];
        s->buf = g_malloc(RELAY_BUF_BYTES);
        s->handler = aio_handler_new(r->ctx, s->fd, AIO_READ, &relay_side_ops,
                                     s, NULL);
        ok &= s->handler != NULL;
    }
    if (!ok) {
        relay_conn_free(c);
    }
}

/* ---- the listener ---------------------------------------------------- */

static void relay_listen_again(void *opaque)
{
    UserRelay *r = opaque;

    aio_handler_want(r->handler, AIO_READ);
}

/* Who waits stays readable: to go on watching would be to spin. */
static void relay_accept_failed(UserRelay *r)
{
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) {
        return;
    }
    report_guest(&r->limit, "guestfwd: cannot accept: %s", g_strerror(errno));
    aio_handler_want(r->handler, 0);
    aio_timer_mod_ns(&r->retry, aio_now_ns(r->ctx) + RELAY_RETRY_NS);
}

static void relay_accept(void *opaque)
{
    UserRelay *r = opaque;
    int guest_fd, host_fd;

    guest_fd = accept4(r->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (guest_fd < 0) {
        relay_accept_failed(r);
        return;
    }
    host_fd = socket(r->to.ss_family,
                     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (host_fd < 0 ||
        (connect(host_fd, (struct sockaddr *)&r->to, r->to_len) < 0 &&
         errno != EINPROGRESS)) {
        report_guest(&r->limit, "guestfwd: cannot connect: %s",
                     g_strerror(errno));
        close(guest_fd);
        if (host_fd >= 0) {
            close(host_fd);
        }
        return;
    }
    relay_conn_new(r, guest_fd, host_fd);
}

static const AioHandlerOps relay_listener_ops = {
    .readable = relay_accept,
};

/* Binds r->fd and sets r->path_fd and r->path.  Returns 0 or an errno. */
static int relay_bind(UserRelay *r)
{
    g_autofree char *dir = g_dir_make_tmp("user-net-XXXXXX", NULL);
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int err = 0;

    if (!dir ||
        g_snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/relay", dir) >=
        (int)sizeof(sun.sun_path)) {
        return dir ? ENAMETOOLONG : EACCES;
    }
    if (bind(r->fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
        err = errno;
    } else {
        r->path_fd = open(sun.sun_path, O_PATH | O_CLOEXEC);
        err = r->path_fd < 0 ? errno : 0;
        unlink(sun.sun_path);
    }
    g_rmdir(dir);
    g_snprintf(r->path, sizeof(r->path), "/proc/self/fd/%d", r->path_fd);
    return err;
}

UserRelay *user_relay_new(AioContext *ctx, const struct sockaddr *to,
                          socklen_t to_len, const char **path, GError **errp)
{
    UserRelay *r = g_new0(UserRelay, 1);
    int err = 0;

    r->ctx = ctx;
    r->path_fd = -1;
    memcpy(&r->to, to, to_len);
    r->to_len = to_len;
    LIST_INIT(&r->conns);
    aio_timer_init(&r->retry, ctx, relay_listen_again, r);
    r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    err = r->fd < 0 ? errno : relay_bind(r);
    if (!err && listen(r->fd, RELAY_BACKLOG) < 0) {
        err = errno;
    }
    if (!err) {
        r->handler = aio_handler_new(ctx, r->fd, AIO_READ,
                                     &relay_listener_ops, r, errp);
    } else {
        vnet_set_error(errp, "cannot make a relay socket: %s",
                       g_strerror(err));
    }
    if (!r->handler) {
        user_relay_free(r);
        return NULL;
    }
    *path = r->path;
    return r;
}

void user_relay_free(UserRelay *r)
{
    while (!LIST_EMPTY(&r->conns)) {
        relay_conn_free(LIST_FIRST(&r->conns));
    }
    aio_timer_del(&r->retry);
    aio_handler_delete(r->handler);
    if (r->fd >= 0) {
        close(r->fd);
    }
    if (r->path_fd >= 0) {
        close(r->path_fd);
    }
    g_free(r);
}
