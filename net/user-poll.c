/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libslirp on an AioContext.
 *
 * libslirp expects poll(): before each sleep it names every descriptor it
 * cares for ("fill"), after it it is told what is ready ("poll").  Here its
 * descriptors sit in an epoll set of their own, which is one descriptor to the
 * loop.  A fill follows each visit to libslirp, not each turn of the loop, and
 * costs system calls only for what it wants anew: interest is not taken back
 * when it ends but when an event comes that nobody waits for, because TCP
 * sockets change their mind with every window of data.
 *
 * The index that a fill returns for a descriptor is its number.  A number is
 * forgotten when libslirp says it closes it, or has opened it.
 *
 * libslirp's timeouts have no deadline of their own: it says how long to sleep
 * at most, in each fill.  The sleep in progress is never prolonged, else
 * steady transmission, which fills often and polls never, would starve the
 * TCP timers.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "user-internal.h"
#include "util/report.h"

#define USER_POLL_EVENTS    64
#define USER_POLL_ALWAYS    (EPOLLERR | EPOLLHUP)

typedef struct UserTimer {
    AioTimer timer;
    UserPoll *poll;
    SlirpTimerId id;
    void *cb_opaque;
} UserTimer;

static const struct {
    int slirp;
    uint32_t epoll;
} user_poll_events[] = {
    { SLIRP_POLL_IN, EPOLLIN },
    { SLIRP_POLL_OUT, EPOLLOUT },
    { SLIRP_POLL_PRI, EPOLLPRI },
    { SLIRP_POLL_ERR, EPOLLERR },
    { SLIRP_POLL_HUP, EPOLLHUP },
};

static uint32_t user_events_to_epoll(int events)
{
    uint32_t out = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(user_poll_events); i++) {
        out |= events & user_poll_events[i].slirp ? user_poll_events[i].epoll
                                                  : 0;
    }
    return out;
}

static int user_events_to_slirp(uint32_t events)
{
    int out = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(user_poll_events); i++) {
        out |= events & user_poll_events[i].epoll ? user_poll_events[i].slirp
                                                  : 0;
    }
    return out;
}

/* ---- the set --------------------------------------------------------- */

static UserFd *user_poll_fd(UserPoll *p, int fd)
{
    if ((unsigned)fd >= p->nfds) {
        unsigned n = MAX(64, p->nfds);

        while (n <= (unsigned)fd) {
            n *= 2;
        }
        p->fds = g_renew(UserFd, p->fds, n);
        memset(p->fds + p->nfds, 0, (n - p->nfds) * sizeof(UserFd));
        p->nfds = n;
    }
    return &p->fds[fd];
}

/* Register for @events, 0 for none. */
static void user_poll_arm(UserPoll *p, int fd, uint32_t events)
{
    struct epoll_event ev = { .events = events, .data.fd = fd };
    UserFd *f = user_poll_fd(p, fd);
    int ret;

    if (!events) {
        ret = epoll_ctl(p->epfd, EPOLL_CTL_DEL, fd, NULL);
    } else if (f->armed) {
        ret = epoll_ctl(p->epfd, EPOLL_CTL_MOD, fd, &ev);
    } else {
        ret = epoll_ctl(p->epfd, EPOLL_CTL_ADD, fd, &ev);
    }
    if (ret < 0 && events) {
        report_error("user network: cannot watch descriptor %d: %s", fd,
                     g_strerror(errno));
    }
    f->armed = ret < 0 ? 0 : events;
}

void user_poll_fd_changed(UserPoll *p, int fd)
{
    UserFd *f;

    if (fd < 0) {
        return;
    }
    f = user_poll_fd(p, fd);
    if (f->armed) {
        user_poll_arm(p, fd, 0);
    }
    *f = (UserFd) { 0 };
}

/* ---- before a sleep -------------------------------------------------- */

static int user_poll_add(int fd, int events, void *opaque)
{
    UserPoll *p = opaque;
    UserFd *f = user_poll_fd(p, fd);

    if (f->round != p->round) {
        f->round = p->round;
        f->want = 0;
        g_array_append_val(p->wanted, fd);
    }
    f->want |= user_events_to_epoll(events) & ~USER_POLL_ALWAYS;
    return fd;
}

static void user_poll_set_timeout(UserPoll *p, uint32_t timeout_ms)
{
    int64_t deadline_ns;

    if (timeout_ms == UINT32_MAX) {
        aio_timer_del(&p->timer);
        return;
    }
    deadline_ns = aio_now_ns(p->ctx) + timeout_ms * NS_PER_MS;
    if (!aio_timer_armed(&p->timer) || deadline_ns < p->deadline_ns) {
        p->deadline_ns = deadline_ns;
        aio_timer_mod_ns(&p->timer, deadline_ns);
    }
}

static void user_poll_settle_bh(void *opaque)
{
    UserPoll *p = opaque;
    uint32_t timeout_ms = UINT32_MAX;

    if (p->held) {
        return;
    }
    p->round++;
    g_array_set_size(p->wanted, 0);
    slirp_pollfds_fill(p->slirp, &timeout_ms, user_poll_add, p);
    for (unsigned i = 0; i < p->wanted->len; i++) {
        int fd = g_array_index(p->wanted, int, i);
        UserFd *f = user_poll_fd(p, fd);

        if (f->want & ~f->armed) {
            user_poll_arm(p, fd, f->want);
        }
    }
    user_poll_set_timeout(p, timeout_ms);
}

void user_poll_settle(UserPoll *p)
{
    aio_bh_schedule(p->settle_bh);
}

/* ---- after it -------------------------------------------------------- */

static int user_poll_revents(int fd, void *opaque)
{
    UserPoll *p = opaque;

    return user_events_to_slirp(user_poll_fd(p, fd)->ready);
}

/* Sort out events that nobody waits for, and stop them. */
static void user_poll_note(UserPoll *p, int fd, uint32_t events)
{
    UserFd *f = user_poll_fd(p, fd);
    uint32_t want = f->round == p->round ? f->want : 0;

    if (want && (events & (want | USER_POLL_ALWAYS))) {
        f->ready = events & (want | USER_POLL_ALWAYS);
    } else {
        user_poll_arm(p, fd, want);
    }
}

static void user_poll_run(void *opaque)
{
    struct epoll_event events[USER_POLL_EVENTS];
    UserPoll *p = opaque;
    int n = epoll_wait(p->epfd, events, USER_POLL_EVENTS, 0);

    for (int i = 0; i < n; i++) {
        user_poll_note(p, events[i].data.fd, events[i].events);
    }
    slirp_pollfds_poll(p->slirp, 0, user_poll_revents, p);
    for (int i = 0; i < n; i++) {
        user_poll_fd(p, events[i].data.fd)->ready = 0;
    }
    aio_timer_del(&p->timer);
    user_poll_settle_bh(p);
}

static const AioHandlerOps user_poll_ops = {
    .readable = user_poll_run,
};

void user_poll_hold(UserPoll *p, bool held)
{
    p->held = held;
    aio_handler_want(p->handler, held ? 0 : AIO_READ);
    if (held) {
        aio_timer_del(&p->timer);
    } else {
        user_poll_settle(p);
    }
}

/* ---- timers of libslirp ---------------------------------------------- */

static void user_timer_fire(void *opaque)
{
    UserTimer *t = opaque;

    slirp_handle_timer(t->poll->slirp, t->id, t->cb_opaque);
    user_poll_settle(t->poll);
}

void *user_poll_timer_new(UserPoll *p, SlirpTimerId id, void *cb_opaque)
{
    UserTimer *t = g_new0(UserTimer, 1);

    aio_timer_init(&t->timer, p->ctx, user_timer_fire, t);
    t->poll = p;
    t->id = id;
    t->cb_opaque = cb_opaque;
    return t;
}

void user_poll_timer_free(void *timer)
{
    UserTimer *t = timer;

    aio_timer_del(&t->timer);
    g_free(t);
}

void user_poll_timer_mod(void *timer, int64_t expire_ms)
{
    UserTimer *t = timer;

    aio_timer_mod_ns(&t->timer, expire_ms * NS_PER_MS);
}

/* ---- life ------------------------------------------------------------ */

bool user_poll_init(UserPoll *p, AioContext *ctx, GError **errp)
{
    p->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (p->epfd < 0) {
        vnet_set_error(errp, "cannot create an epoll set: %s",
                       g_strerror(errno));
        return false;
    }
    p->handler = aio_handler_new(ctx, p->epfd, AIO_READ, &user_poll_ops, p,
                                 errp);
    if (!p->handler) {
        close(p->epfd);
        return false;
    }
    p->ctx = ctx;
    p->settle_bh = aio_bh_new(ctx, user_poll_settle_bh, p);
    aio_timer_init(&p->timer, ctx, user_poll_run, p);
    p->wanted = g_array_new(FALSE, FALSE, sizeof(int));
    return true;
}

void user_poll_start(UserPoll *p, Slirp *slirp)
{
    p->slirp = slirp;
    user_poll_settle_bh(p);
}

void user_poll_fini(UserPoll *p)
{
    aio_timer_del(&p->timer);
    aio_bh_delete(p->settle_bh);
    aio_handler_delete(p->handler);
    close(p->epfd);
    g_array_free(p->wanted, TRUE);
    g_free(p->fds);
}
