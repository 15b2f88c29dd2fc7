/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptor handlers: what is watched, and who is called.
 *
 * A handler is freed only when no list of events and no walk over handlers
 * can still point to it: a deletion during a walk sets a flag and waits in
 * ctx->deleted.  An event that was fetched for a deleted handler is dropped,
 * even if its descriptor number has been re-used: events carry the handler's
 * address, never the number.
 *
 * Error and hang-up cannot be masked in epoll.  A descriptor that nobody
 * wants anything from is therefore taken out of the set unless its handler
 * has a hangup callback, and it is taken out before that callback runs.
 * Neither spins.
 *
 * epoll knows a descriptor once per set.  When two handlers of one context
 * share one (the two halves of a backend), the second watches a duplicate.
 */
#include "aio-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "util/report.h"

#define EPOLL_HANGUP    (EPOLLERR | EPOLLHUP)

static int handler_epoll_ctl(AioHandler *h, int op)
{
    struct epoll_event ev = {
        .events = (h->want & AIO_READ ? EPOLLIN : 0) |
                  (h->want & AIO_WRITE ? EPOLLOUT : 0) |
                  (h->want & AIO_EDGE ? EPOLLET : 0),
        .data.ptr = h,
    };

    return epoll_ctl(h->ctx->epfd, op, h->fd, &ev);
}

static void handler_unwatch(AioHandler *h)
{
    if (h->watched) {
        handler_epoll_ctl(h, EPOLL_CTL_DEL);
        h->watched = false;
    }
}

static bool handler_needs_watch(const AioHandler *h)
{
    return (h->want & (AIO_READ | AIO_WRITE)) || h->ops->hangup;
}

/* EPOLL_CTL_ADD, on a duplicate if another handler watches the same fd. */
static bool handler_watch(AioHandler *h)
{
    int fd;

    if (handler_epoll_ctl(h, EPOLL_CTL_ADD) < 0) {
        if (errno != EEXIST || h->fd_is_dup) {
            return false;
        }
        fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            return false;
        }
        h->fd = fd;
        h->fd_is_dup = true;
        if (handler_epoll_ctl(h, EPOLL_CTL_ADD) < 0) {
            return false;
        }
    }
    h->watched = true;
    return true;
}

static void handler_free(AioHandler *h)
{
    LIST_REMOVE(h, link);
    if (h->ops->poll) {
        LIST_REMOVE(h, poll_link);
    }
    g_free(h);
}

AioHandler *aio_handler_new(AioContext *ctx, int fd, unsigned want,
                            const AioHandlerOps *ops, void *opaque,
                            GError **errp)
{
    AioHandler *h = g_new0(AioHandler, 1);

    assert(aio_context_in_owner(ctx));
    assert(!ops->poll == !ops->poll_begin && !ops->poll == !ops->poll_end);
    h->ctx = ctx;
    h->ops = ops;
    h->opaque = opaque;
    h->fd = fd;
    h->want = want;
    LIST_INSERT_HEAD(&ctx->handlers, h, link);
    if (ops->poll) {
        LIST_INSERT_HEAD(&ctx->pollers, h, poll_link);
    }
    /* Tried even if nothing is wanted yet, so that errors show up here. */
    if (!handler_watch(h)) {
        vnet_set_error(errp, "cannot watch file descriptor %d: %s", fd,
                       g_strerror(errno));
        aio_handler_delete(h);
        return NULL;
    }
    if (!handler_needs_watch(h)) {
        handler_unwatch(h);
    }
    return h;
}

void aio_handler_want(AioHandler *h, unsigned want)
{
    want = (want & (AIO_READ | AIO_WRITE)) | (h->want & AIO_EDGE);
    assert(!h->deleted && aio_context_in_owner(h->ctx));
    if (want == h->want && h->watched == handler_needs_watch(h)) {
        return;
    }
    h->want = want;
    if (!handler_needs_watch(h)) {
        handler_unwatch(h);
    } else if (h->watched ? handler_epoll_ctl(h, EPOLL_CTL_MOD) < 0
                          : !handler_watch(h)) {
        report_error("%s: cannot watch file descriptor %d: %s",
                     h->ctx->name, h->fd, g_strerror(errno));
    }
}

void aio_handler_delete(AioHandler *h)
{
    if (!h) {
        return;
    }
    assert(!h->deleted && aio_context_in_owner(h->ctx));
    handler_unwatch(h);
    if (h->fd_is_dup) {
        close(h->fd);
    }
    h->deleted = true;
    if (h->ctx->walking) {
        SLIST_INSERT_HEAD(&h->ctx->deleted, h, deleted_link);
    } else {
        handler_free(h);
    }
}

void aio_handlers_walk_begin(AioContext *ctx)
{
    assert(!ctx->walking);
    ctx->walking = true;
}

void aio_handlers_walk_end(AioContext *ctx)
{
    AioHandler *h;

    ctx->walking = false;
    while ((h = SLIST_FIRST(&ctx->deleted))) {
        SLIST_REMOVE_HEAD(&ctx->deleted, deleted_link);
        handler_free(h);
    }
}

/* What has been sent before the hang-up is offered first, once. */
static bool handler_hangup(AioHandler *h, uint32_t events)
{
    handler_unwatch(h);
    if ((events & EPOLLIN) && (h->want & AIO_READ)) {
        h->ops->readable(h->opaque);
    }
    if (!h->deleted) {
        h->ops->hangup(h->opaque);
    }
    return true;
}

/* Each callback may delete the handler or change what it wants. */
static bool handler_dispatch(AioHandler *h, uint32_t events)
{
    bool called = false;

    if (h->deleted) {
        return false;
    }
    if ((events & EPOLL_HANGUP) && h->ops->hangup) {
        return handler_hangup(h, events);
    }
    if ((events & (EPOLLIN | EPOLL_HANGUP)) && (h->want & AIO_READ)) {
        h->ops->readable(h->opaque);
        called = true;
    }
    if (!h->deleted && (events & (EPOLLOUT | EPOLL_HANGUP)) &&
        (h->want & AIO_WRITE)) {
        h->ops->writable(h->opaque);
        called = true;
    }
    return called;
}

bool aio_handlers_dispatch(AioContext *ctx, int n)
{
    bool progress = false;

    if (n <= 0) {
        return false;
    }
    aio_handlers_walk_begin(ctx);
    for (int i = 0; i < n; i++) {
        AioHandler *h = ctx->events[i].data.ptr;

        if (h) {        /* NULL: the context's notifier or timerfd */
            progress |= handler_dispatch(h, ctx->events[i].events);
        }
    }
    aio_handlers_walk_end(ctx);
    return progress;
}
