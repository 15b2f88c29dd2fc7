/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of -netdev user: user-options.c and user-forward.c (what was asked
 * for), user-poll.c (libslirp on an AioContext), user.c (the netdev).
 *
 * libslirp has global state, so all its instances live in one context, the
 * "slirp context".  What is not marked otherwise is that context's.
 */
#ifndef NET_USER_INTERNAL_H
#define NET_USER_INTERNAL_H

#include <netinet/in.h>
#include <slirp/libslirp.h>

#include "net-internal.h"

/* ---- options: main --------------------------------------------------- */

/* [tcp|udp]:[hostaddr]:hostport-[guestaddr]:guestport */
typedef struct UserHostFwd {
    const char *text;
    bool udp;
    struct in_addr host_addr, guest_addr;       /* 0.0.0.0: the default */
    uint16_t host_port, guest_port;
} UserHostFwd;

/* [tcp]:server:port-cmd:command or -tcp:host:port */
typedef struct UserGuestFwd {
    const char *text;
    struct in_addr server;
    uint16_t port;
    const char *command;        /* NULL: a TCP address */
    struct sockaddr_storage tcp;
    socklen_t tcp_len;
} UserGuestFwd;

/* Strings belong to the KeyVal it was parsed from. */
typedef struct UserOptions {
    SlirpConfig cfg;
    char *tftp_path;            /* cfg.tftp_path, to be freed; absolute */
    const char **dnssearch;     /* cfg.vdnssearch, to be freed */
    GArray *hostfwd;            /* of UserHostFwd */
    GArray *guestfwd;           /* of UserGuestFwd */
} UserOptions;

/*
 * user_options_parse: nothing is opened; leftover keys are refused.
 * user_options_clear() is due in either case.
 */
bool user_options_parse(UserOptions *o, KeyVal *kv, GError **errp);
void user_options_clear(UserOptions *o);

/* user_parse_forwards: the hostfwd= and guestfwd= part of it. */
bool user_parse_forwards(UserOptions *o, KeyVal *kv, GError **errp);

/* ---- libslirp on an AioContext --------------------------------------- */

/* One descriptor of libslirp; all zero: not known. */
typedef struct UserFd {
    unsigned round;     /* of the last fill that asked for it */
    uint32_t want;      /* epoll events asked for in that round */
    uint32_t armed;     /* events registered; 0: not in the set */
    uint32_t ready;     /* what the current call of slirp may see */
} UserFd;

typedef struct UserPoll {
    AioContext *ctx;
    Slirp *slirp;
    int epfd;           /* libslirp's descriptors, one set inside the loop's */
    AioHandler *handler;
    AioTimer timer;     /* libslirp's timeout */
    int64_t deadline_ns;        /* of the timer, if armed */
    AioBH *settle_bh;
    UserFd *fds;        /* by descriptor number */
    unsigned nfds;
    GArray *wanted;     /* of int: the descriptors of this round */
    unsigned round;
    bool held;
} UserPoll;

/*
 * user_poll_init: before slirp_new(), whose callbacks need it.
 * user_poll_start: after.
 * user_poll_fini: after slirp_cleanup().
 */
bool user_poll_init(UserPoll *p, AioContext *ctx, GError **errp);
void user_poll_start(UserPoll *p, Slirp *slirp);
void user_poll_fini(UserPoll *p);

/*
 * user_poll_settle: libslirp was called, so what it waits for may have
 * changed; look before the loop sleeps.
 */
void user_poll_settle(UserPoll *p);

/*
 * user_poll_hold: while held, no descriptor of libslirp is read or written
 * and its TCP timers stand still.
 */
void user_poll_hold(UserPoll *p, bool held);

/* For SlirpCb. */
void user_poll_fd_changed(UserPoll *p, int fd);
void *user_poll_timer_new(UserPoll *p, SlirpTimerId id, void *cb_opaque);
void user_poll_timer_free(void *timer);
void user_poll_timer_mod(void *timer, int64_t expire_ms);

#endif /* NET_USER_INTERNAL_H */
