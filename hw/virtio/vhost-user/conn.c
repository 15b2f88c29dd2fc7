/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One connection: from bytes and descriptors to messages, and replies back.
 *
 * The reader asks the socket for what is missing of the header, then of the
 * payload, never for more, so descriptors cannot be credited to the wrong
 * message: they belong to the message whose first byte they came with.  It
 * keeps its place between calls and may be fed byte by byte.
 *
 *   got < 12            header; its checks run once it is complete
 *   got < 12 + size     payload
 *   then                dispatch, close what the handler did not keep, got = 0
 *
 * A reply is at most 20 bytes and the front-end waits for it, so it always
 * fits the socket buffer of a front-end that behaves.  One that does not fit
 * ends the connection: nothing here waits, and nothing is queued.
 *
 * Limits: a front-end that sends half a message and then nothing keeps the
 * connection; there is no time limit between messages either.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vhost-user-internal.h"

/*
 * Messages per turn of the event loop, so that a front-end that floods its
 * socket does not keep the monitor and other NICs from theirs.  A complete
 * start of a queue pair is about 20.
 */
#define VU_MSGS_PER_TURN 32

typedef enum VuRead {
    VU_READ_AGAIN,          /* nothing more for now */
    VU_READ_PART,           /* some bytes: go on */
    VU_READ_MESSAGE,        /* c->msg is complete */
    VU_READ_END,            /* the peer is gone, or has to go */
} VuRead;

/* ---- descriptors -------------------------------------------------------- */

int vu_msg_take_fd(VuMsg *m)
{
    for (unsigned i = 0; i < m->nfds; i++) {
        if (m->fds[i] >= 0) {
            int fd = m->fds[i];

            m->fds[i] = -1;
            return fd;
        }
    }
    return -1;
}

static void msg_close_fds(VuMsg *m)
{
    int fd;

    while ((fd = vu_msg_take_fd(m)) >= 0) {
        close(fd);
    }
    m->nfds = 0;
}

static void msg_take_cmsg(VuMsg *m, const struct cmsghdr *cmsg)
{
    size_t n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(int));
        if (m->nfds < VU_MAX_FDS) {
            m->fds[m->nfds++] = fd;
        } else {
            close(fd);
        }
    }
}

/*
 * msg_has_socket: no message needs one, and the front-end's own end of this
 * connection in our hands would keep us from seeing that it is gone.
 */
static bool msg_has_socket(const VuMsg *m)
{
    struct stat st;

    for (unsigned i = 0; i < m->nfds; i++) {
        if (fstat(m->fds[i], &st) == 0 && S_ISSOCK(st.st_mode)) {
            return true;
        }
    }
    return false;
}

/* ---- reading ------------------------------------------------------------ */

static void G_GNUC_PRINTF(2, 3) conn_complain(VuConn *c, const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    g_vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    report_guest(c->owner.limit, "vhost-user export '%s': %s; connection "
                 "closed", c->owner.id, text);
}

/*
 * conn_take_fds: collect the descriptors of one recvmsg().
 * Returns false if the peer sent what no message can have.
 */
static bool conn_take_fds(VuConn *c, struct msghdr *mh)
{
    bool first = c->got == 0;

    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(mh); cmsg;
         cmsg = CMSG_NXTHDR(mh, cmsg)) {
        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        msg_take_cmsg(&c->msg, cmsg);
        if (!first) {
            conn_complain(c, "descriptors in the middle of a message");
            return false;
        }
    }
    if (mh->msg_flags & MSG_CTRUNC) {
        conn_complain(c, "more than %d descriptors with a message",
                      VU_MAX_FDS);
        return false;
    }
    if (first && msg_has_socket(&c->msg)) {
        conn_complain(c, "a socket among the descriptors of a message");
        return false;
    }
    return true;
}

static VuRead conn_recv(VuConn *c, void *buf, size_t len)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * VU_MAX_FDS)];
    } control;
    struct iovec iov = { .iov_base = buf, .iov_len = len };
    struct msghdr mh = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t n = recvmsg(c->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? VU_READ_AGAIN
                                                 : VU_READ_END;
    }
    if (!conn_take_fds(c, &mh)) {
        return VU_READ_END;
    }
    if (n == 0) {
        if (c->got) {
            conn_complain(c, "the front-end went away inside a message");
        }
        return VU_READ_END;
    }
    c->got += n;
    return VU_READ_PART;
}

/* conn_check_header: may the payload be read? */
static bool conn_check_header(VuConn *c)
{
    const VuHeader *h = &c->msg.hdr;

    if ((h->flags & VU_FLAG_VERSION_MASK) != VU_FLAG_VERSION) {
        conn_complain(c, "message %u has protocol version %u, not 1",
                      h->request, h->flags & VU_FLAG_VERSION_MASK);
        return false;
    }
    if (h->flags & VU_FLAG_REPLY) {
        conn_complain(c, "message %u is a reply to nothing", h->request);
        return false;
    }
    if (h->size > VU_MAX_PAYLOAD) {
        conn_complain(c, "message %u has a payload of %u bytes, more than %d",
                      h->request, h->size, VU_MAX_PAYLOAD);
        return false;
    }
    return true;
}

static VuRead conn_read(VuConn *c)
{
    VuMsg *m = &c->msg;
    size_t header = sizeof(m->hdr);
    VuRead r;

    if (c->got < header) {
        r = conn_recv(c, (uint8_t *)&m->hdr + c->got, header - c->got);
        if (r != VU_READ_PART || c->got < header) {
            return r;
        }
        if (!conn_check_header(c)) {
            return VU_READ_END;
        }
    } else {
        size_t at = c->got - header;

        r = conn_recv(c, m->payload.bytes + at, m->hdr.size - at);
        if (r != VU_READ_PART) {
            return r;
        }
    }
    return c->got == header + m->hdr.size ? VU_READ_MESSAGE : VU_READ_PART;
}

/* conn_step: false when this turn is over; *@end when the connection is. */
static bool conn_step(VuConn *c, unsigned *messages, bool *end)
{
    switch (conn_read(c)) {
    case VU_READ_AGAIN:
        return false;
    case VU_READ_PART:
        return true;
    case VU_READ_MESSAGE:
        *end = !vu_dispatch(c);
        msg_close_fds(&c->msg);
        c->got = 0;
        return !*end && ++*messages < VU_MSGS_PER_TURN;
    case VU_READ_END:
        *end = true;
        return false;
    }
    g_assert_not_reached();
}

static void conn_readable(void *opaque)
{
    VuConn *c = opaque;
    unsigned messages = 0;
    bool end = false;

    while (conn_step(c, &messages, &end)) {
    }
    if (end) {
        c->owner.gone(c->owner.opaque);
    }
}

/* ---- writing ------------------------------------------------------------ */

bool vu_conn_reply(VuConn *c, const VuMsg *m)
{
    VuHeader hdr = {
        .request = m->hdr.request,
        .flags = VU_FLAG_VERSION | VU_FLAG_REPLY,
        .size = VU_REPLY_BYTES,
    };
    struct iovec iov[2] = {
        { .iov_base = &hdr, .iov_len = sizeof(hdr) },
        { .iov_base = (void *)&m->reply, .iov_len = VU_REPLY_BYTES },
    };
    struct msghdr mh = { .msg_iov = iov, .msg_iovlen = G_N_ELEMENTS(iov) };
    ssize_t n = sendmsg(c->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n == sizeof(hdr) + VU_REPLY_BYTES) {
        return true;
    }
    if (n >= 0 || errno == EAGAIN) {
        conn_complain(c, "the front-end does not take its replies");
    }
    return false;
}

/* ---- life --------------------------------------------------------------- */

static const AioHandlerOps conn_ops = { .readable = conn_readable };

VuConn *vu_conn_new(int fd, const VuConnOwner *owner, GError **errp)
{
    VuConn *c = g_new0(VuConn, 1);

    c->owner = *owner;
    c->fd = fd;
    c->handler = aio_handler_new(owner->ctx, fd, AIO_READ, &conn_ops, c,
                                 errp);
    if (!c->handler) {
        close(fd);
        g_free(c);
        return NULL;
    }
    vu_memory_init(c);
    vu_rings_init(c);
    return c;
}

void vu_conn_free(VuConn *c)
{
    aio_handler_delete(c->handler);
    vu_rings_cleanup(c);
    virtio_net_reset(c->owner.nic);
    vu_memory_cleanup(c);
    msg_close_fds(&c->msg);
    close(c->fd);
    g_free(c);
}
