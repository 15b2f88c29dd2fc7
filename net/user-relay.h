/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * UserRelay: the far end of guestfwd=tcp:SERVER:PORT-tcp:HOST:PORT.
 *
 * libslirp connects to a Unix socket for each connection of the guest; the
 * relay accepts there, connects to the TCP address and copies both ways,
 * holding each side back when the other is slow.  Slirp context.
 */
#ifndef NET_USER_RELAY_H
#define NET_USER_RELAY_H

#include <sys/socket.h>

#include "util/aio.h"

typedef struct UserRelay UserRelay;

/*
 * user_relay_new: start to listen.
 * @to, @to_len: where connections go; copied
 * @path: out: what libslirp connects to; lives as long as the relay
 *
 * Returns NULL with @errp set if the socket cannot be had.
 */
UserRelay *user_relay_new(AioContext *ctx, const struct sockaddr *to,
                          socklen_t to_len, const char **path, GError **errp);

/* user_relay_free: ends its connections. */
void user_relay_free(UserRelay *r);

#endif /* NET_USER_RELAY_H */
