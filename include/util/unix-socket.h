/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * UnixListener: a listening Unix stream socket with a path, and the file
 * that goes with it.  unix_socket_connect(): the other side.
 */
#ifndef UTIL_UNIX_SOCKET_H
#define UTIL_UNIX_SOCKET_H

#include <glib.h>

typedef struct UnixListener UnixListener;

/*
 * unix_listener_new: create the socket file and listen.
 *
 * The file has mode 0600 from the start, less what the umask takes away; the
 * descriptor is non-blocking and close-on-exec.  A stale socket file (nobody
 * listens) is replaced; a live one, or a file of another kind, stays.
 *
 * Any thread.  Returns NULL with @errp set: one line naming @path and the
 * remedy.
 */
UnixListener *unix_listener_new(const char *path, GError **errp);

int unix_listener_fd(const UnixListener *l);
const char *unix_listener_path(const UnixListener *l);

/*
 * unix_listener_free: close, and unlink the file if it is still the one that
 * was created (NULL is allowed).
 */
void unix_listener_free(UnixListener *l);

/*
 * unix_socket_connect: connect to whoever listens at @path.
 *
 * Any thread; does not wait: a full listen queue is an error.  Returns a
 * descriptor, non-blocking and close-on-exec, which the caller closes; or -1
 * with @errp set: one line naming @path.
 */
int unix_socket_connect(const char *path, GError **errp);

#endif /* UTIL_UNIX_SOCKET_H */
