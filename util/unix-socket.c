/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unix sockets: listening, and a connection to somebody who listens.
 *
 * A socket file outlives a process that was killed, so the file alone says
 * nothing: a connection attempt tells whether somebody listens.  The file's
 * device and inode are kept, so that the end of one process does not remove
 * the socket of the next one at the same path.
 *
 * Limit: two processes that find the same stale file at the same time may
 * both replace it; the later one has the path.
 */
#include "util/unix-socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/report.h"

#define UNIX_BACKLOG 16

struct UnixListener {
    int fd;
    char *path;
    dev_t dev;              /* of the socket file, 0 0: not created */
    ino_t ino;
};

static bool unix_address(struct sockaddr_un *addr, const char *path,
                         GError **errp)
{
    *addr = (struct sockaddr_un) { .sun_family = AF_UNIX };
    if (!*path || strlen(path) >= sizeof(addr->sun_path)) {
        vnet_set_error(errp, "socket path '%s' has %zu bytes, a Unix socket "
                       "takes 1 to %zu: choose another path", path,
                       strlen(path), sizeof(addr->sun_path) - 1);
        return false;
    }
    g_strlcpy(addr->sun_path, path, sizeof(addr->sun_path));
    return true;
}

/* Does anybody listen?  A full listen queue is somebody. */
static bool unix_is_live(const struct sockaddr_un *addr)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool live = fd < 0 ||
                !connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ||
                errno != ECONNREFUSED;

    if (fd >= 0) {
        close(fd);
    }
    return live;
}

/* Remove a socket file that nobody listens on. */
static bool unix_clear_path(const struct sockaddr_un *addr, GError **errp)
{
    const char *path = addr->sun_path;
    struct stat st;

    if (lstat(path, &st) < 0) {
        return true;        /* bind() will say what is wrong, if anything */
    }
    if (!S_ISSOCK(st.st_mode)) {
        vnet_set_error(errp, "'%s' exists and is not a socket: remove it or "
                       "choose another path", path);
        return false;
    }
    if (unix_is_live(addr)) {
        vnet_set_error(errp, "socket '%s' is in use by another process: end "
                       "that one or choose another path", path);
        return false;
    }
    if (unlink(path) < 0) {
        vnet_set_error(errp, "cannot remove the stale socket '%s': %s", path,
                       g_strerror(errno));
        return false;
    }
    return true;
}

static bool unix_bind(UnixListener *l, const struct sockaddr_un *addr,
                      GError **errp)
{
    struct stat st;

    /* bind() gives the file the mode that the socket has. */
    if (fchmod(l->fd, 0600) < 0 ||
        bind(l->fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ||
        lstat(l->path, &st) < 0) {
        vnet_set_error(errp, "cannot create the socket '%s': %s: check that "
                       "its directory exists and is writable", l->path,
                       g_strerror(errno));
        return false;
    }
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    if (listen(l->fd, UNIX_BACKLOG) < 0) {
        vnet_set_error(errp, "cannot listen on '%s': %s", l->path,
                       g_strerror(errno));
        return false;
    }
    return true;
}

UnixListener *unix_listener_new(const char *path, GError **errp)
{
    struct sockaddr_un addr;
    UnixListener *l;

    if (!unix_address(&addr, path, errp) || !unix_clear_path(&addr, errp)) {
        return NULL;
    }
    l = g_new0(UnixListener, 1);
    l->path = g_strdup(path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0) {
        vnet_set_error(errp, "cannot create a socket: %s", g_strerror(errno));
        unix_listener_free(l);
        return NULL;
    }
    if (!unix_bind(l, &addr, errp)) {
        unix_listener_free(l);
        return NULL;
    }
    return l;
}

int unix_socket_connect(const char *path, GError **errp)
{
    struct sockaddr_un addr;
    int fd;

    if (!unix_address(&addr, path, errp)) {
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        vnet_set_error(errp, "cannot create a socket: %s", g_strerror(errno));
        return -1;
    }
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        vnet_set_error(errp, "cannot connect to '%s': %s", path,
                       g_strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

int unix_listener_fd(const UnixListener *l)
{
    return l->fd;
}

const char *unix_listener_path(const UnixListener *l)
{
    return l->path;
}

void unix_listener_free(UnixListener *l)
{
    struct stat st;

    if (!l) {
        return;
    }
    /* While the socket is open its inode number cannot be used again. */
    if (l->ino && !lstat(l->path, &st) && st.st_dev == l->dev &&
        st.st_ino == l->ino) {
        unlink(l->path);
    }
    if (l->fd >= 0) {
        close(l->fd);
    }
    g_free(l->path);
    g_free(l);
}
