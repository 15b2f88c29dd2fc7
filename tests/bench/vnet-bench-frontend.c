/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A vhost-user front-end that waits for each answer: see the header.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "util/report.h"
#include "vhost-user-proto.h"
#include "vnet-bench-frontend.h"

/* ---- messages -------------------------------------------------------- */

typedef struct Reply {
    VuHeader hdr;
    uint64_t value;
} __attribute__((packed)) Reply;

static void attach_fd(struct msghdr *mh, char *control, int fd)
{
    struct cmsghdr *cmsg;

    mh->msg_control = control;
    mh->msg_controllen = CMSG_SPACE(sizeof(fd));
    cmsg = CMSG_FIRSTHDR(mh);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
}

/* @fd: to be sent with it, or -1 */
static bool put(int sock, uint32_t flags, uint32_t request,
                const void *payload, uint32_t size, int fd, GError **errp)
{
    VuHeader hdr = { request, VU_FLAG_VERSION | flags, size };
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = { 0 };
    struct iovec iov[2] = {
        { &hdr, sizeof(hdr) }, { (void *)payload, size },
    };
    struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };
    ssize_t n;

    if (fd >= 0) {
        attach_fd(&mh, control, fd);
    }
    n = sendmsg(sock, &mh, MSG_NOSIGNAL);
    if (n != (ssize_t)(sizeof(hdr) + size)) {
        vnet_set_error(errp, "vhost-user: cannot send request %u: %s", request,
                       n < 0 ? g_strerror(errno) : "short write");
        return false;
    }
    return true;
}

static bool get(int sock, uint32_t request, uint64_t *value, GError **errp)
{
    Reply r;
    ssize_t n = recv(sock, &r, sizeof(r), MSG_WAITALL);

    if (n != sizeof(r)) {
        vnet_set_error(errp, "vhost-user: no answer to request %u: %s",
                       request, n < 0 ? g_strerror(errno) : "disconnected");
        return false;
    }
    if (r.hdr.request != request ||
        r.hdr.flags != (VU_FLAG_VERSION | VU_FLAG_REPLY) ||
        r.hdr.size != sizeof(r.value)) {
        vnet_set_error(errp, "vhost-user: bad answer to request %u", request);
        return false;
    }
    *value = r.value;
    return true;
}

static bool ask(int sock, uint32_t request, uint64_t *value, GError **errp)
{
    return put(sock, 0, request, NULL, 0, -1, errp) &&
           get(sock, request, value, errp);
}

static bool command(int sock, uint32_t request, const void *payload,
                    uint32_t size, int fd, GError **errp)
{
    uint64_t status;

    if (!put(sock, VU_FLAG_NEED_REPLY, request, payload, size, fd, errp) ||
        !get(sock, request, &status, errp)) {
        return false;
    }
    if (status) {
        vnet_set_error(errp, "vhost-user: request %u refused", request);
        return false;
    }
    return true;
}

static bool command_u64(int sock, uint32_t request, uint64_t value,
                        GError **errp)
{
    return command(sock, request, &value, sizeof(value), -1, errp);
}

static bool command_state(int sock, uint32_t request, uint32_t index,
                          uint32_t num, GError **errp)
{
    VuVringState state = { index, num };

    return command(sock, request, &state, sizeof(state), -1, errp);
}

static bool command_fd(int sock, uint32_t request, uint64_t index, int fd,
                       GError **errp)
{
    return command(sock, request, &index, sizeof(index), fd, errp);
}

/* ---- start and stop -------------------------------------------------- */

static bool has_all(uint64_t offered, uint64_t wanted, const char *what,
                    GError **errp)
{
    if ((offered & wanted) == wanted) {
        return true;
    }
    vnet_set_error(errp, "vhost-user: the back-end lacks %s features 0x%"
                   G_GINT64_MODIFIER "x", what, wanted & ~offered);
    return false;
}

bool bench_frontend_negotiate(int sock, uint64_t features, GError **errp)
{
    struct timeval limit = { .tv_sec = BENCH_FRONTEND_TIMEOUT_S };
    uint64_t protocol = 1ULL << VU_PROTOCOL_F_REPLY_ACK;
    uint64_t offered;

    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    features |= 1ULL << VU_F_PROTOCOL_FEATURES;
    return ask(sock, VU_GET_FEATURES, &offered, errp) &&
           has_all(offered, features, "device", errp) &&
           ask(sock, VU_GET_PROTOCOL_FEATURES, &offered, errp) &&
           has_all(offered, protocol, "protocol", errp) &&
           put(sock, 0, VU_SET_PROTOCOL_FEATURES, &protocol, sizeof(protocol),
               -1, errp) &&
           put(sock, 0, VU_SET_OWNER, NULL, 0, -1, errp) &&
           command_u64(sock, VU_SET_FEATURES, features, errp);
}

bool bench_frontend_memory(int sock, int fd, const void *ram, uint64_t bytes,
                           uint64_t gpa, GError **errp)
{
    VuMemTable t = {
        .count = 1,
        .regions[0] = { gpa, bytes, (uintptr_t)ram, 0 },
    };

    return command(sock, VU_SET_MEM_TABLE, &t, offsetof(VuMemTable, regions) +
                   sizeof(VuRegion), fd, errp);
}

bool bench_frontend_start(int sock, const BenchRing *ring, GError **errp)
{
    VuVringAddr addr = {
        .index = ring->index,
        .desc = (uintptr_t)ring->desc,
        .used = (uintptr_t)ring->used,
        .avail = (uintptr_t)ring->avail,
    };

    return command_state(sock, VU_SET_VRING_NUM, ring->index, ring->size,
                         errp) &&
           command_state(sock, VU_SET_VRING_BASE, ring->index, 0, errp) &&
           command(sock, VU_SET_VRING_ADDR, &addr, sizeof(addr), -1, errp) &&
           command_fd(sock, VU_SET_VRING_CALL, ring->index, ring->call,
                      errp) &&
           command_fd(sock, VU_SET_VRING_KICK, ring->index, ring->kick,
                      errp) &&
           command_state(sock, VU_SET_VRING_ENABLE, ring->index, 1, errp);
}

bool bench_frontend_stop(int sock, uint32_t index, GError **errp)
{
    VuVringState state = { .index = index };
    uint64_t base;

    return put(sock, 0, VU_GET_VRING_BASE, &state, sizeof(state), -1, errp) &&
           get(sock, VU_GET_VRING_BASE, &base, errp);
}
