/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scripted front-end: see vhost-user-client.h.
 */
#include "vhost-user-client.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* More than a message may bring, so that a test can send too many. */
#define CLIENT_MAX_FDS 253

void vu_client_init(VuClient *cl, AioContext *ctx, int fd)
{
    *cl = (VuClient) { .ctx = ctx, .fd = fd };
    cl->log_fd = memfd_create("stderr", MFD_CLOEXEC);
    g_assert_cmpint(cl->log_fd, >=, 0);
}

void vu_client_close(VuClient *cl)
{
    if (cl->fd >= 0) {
        close(cl->fd);
        cl->fd = -1;
        vu_client_turn(cl);
    }
}

void vu_client_cleanup(VuClient *cl)
{
    g_autofree char *lines = NULL;

    vu_client_close(cl);
    lines = vu_client_take_lines(cl);
    g_assert_cmpstr(lines, ==, "");
    close(cl->log_fd);
}

void vu_client_turn(VuClient *cl)
{
    int saved = dup(STDERR_FILENO);

    g_assert_cmpint(saved, >=, 0);
    dup2(cl->log_fd, STDERR_FILENO);
    while (cl->ctx && aio_poll(cl->ctx, false)) {
    }
    dup2(saved, STDERR_FILENO);
    close(saved);
}

char *vu_client_take_lines(VuClient *cl)
{
    off_t len = lseek(cl->log_fd, 0, SEEK_END);
    char *text = g_malloc0(len + 1);

    g_assert_cmpint(pread(cl->log_fd, text, len, 0), ==, len);
    g_assert_cmpint(ftruncate(cl->log_fd, 0), ==, 0);
    lseek(cl->log_fd, 0, SEEK_SET);
    return text;
}

void vu_client_expect_line(VuClient *cl, const char *part)
{
    g_autofree char *lines = vu_client_take_lines(cl);
    const char *newline = strchr(lines, '\n');

    g_assert_nonnull(newline);
    g_assert_cmpstr(newline, ==, "\n");
    if (!strstr(lines, part)) {
        g_error("'%s' does not say '%s'", lines, part);
    }
}

void vu_client_write(VuClient *cl, const void *bytes, size_t len,
                     const int *fds, unsigned nfds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * CLIENT_MAX_FDS)];
    } control;
    struct iovec iov = { .iov_base = (void *)bytes, .iov_len = len };
    struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

    g_assert_cmpuint(nfds, <=, CLIENT_MAX_FDS);
    if (nfds) {
        struct cmsghdr *cmsg;

        memset(&control, 0, sizeof(control));
        mh.msg_control = control.bytes;
        mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        cmsg = CMSG_FIRSTHDR(&mh);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * nfds);
    }
    g_assert_cmpint(sendmsg(cl->fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT), ==,
                    len);
}

void vu_client_put(VuClient *cl, uint32_t request, const void *payload,
                   uint32_t size, const int *fds, unsigned nfds)
{
    VuHeader hdr = {
        .request = request,
        .flags = VU_FLAG_VERSION | cl->flags,
        .size = size,
    };
    g_autofree char *bytes = g_malloc(sizeof(hdr) + size);

    memcpy(bytes, &hdr, sizeof(hdr));
    if (size) {
        memcpy(bytes + sizeof(hdr), payload, size);
    }
    vu_client_write(cl, bytes, sizeof(hdr) + size, fds, nfds);
}

/* Bytes that are there; 0 if none, -1 if the connection is gone. */
static ssize_t client_read(VuClient *cl, void *buf, size_t len)
{
    ssize_t n = recv(cl->fd, buf, len, MSG_DONTWAIT);

    if (n > 0) {
        return n;
    }
    return n < 0 && errno == EAGAIN ? 0 : -1;
}

typedef struct VuReply {
    VuHeader hdr;
    uint64_t value;
} __attribute__((packed)) VuReply;

static bool client_reply(VuClient *cl, uint32_t request, uint64_t *value,
                         bool *closed)
{
    VuReply r;
    ssize_t n = client_read(cl, &r, sizeof(r));

    *closed = n < 0;
    if (n <= 0) {
        return false;
    }
    g_assert_cmpint(n, ==, sizeof(r));
    g_assert_cmpuint(r.hdr.request, ==, request);
    g_assert_cmphex(r.hdr.flags, ==, VU_FLAG_VERSION | VU_FLAG_REPLY);
    g_assert_cmpuint(r.hdr.size, ==, sizeof(r.value));
    *value = r.value;
    return true;
}

VuOutcome vu_client_outcome(VuClient *cl, uint32_t request)
{
    uint64_t value;
    bool closed;
    char byte;

    vu_client_turn(cl);
    if (!client_reply(cl, request, &value, &closed)) {
        return closed ? VU_OUT_CLOSED : VU_OUT_SILENT;
    }
    if (client_read(cl, &byte, 1) < 0) {
        g_assert_cmpuint(value, !=, 0);
        return VU_OUT_NACK_CLOSED;
    }
    return value ? VU_OUT_NACK : VU_OUT_ACK;
}

VuOutcome vu_client_send(VuClient *cl, uint32_t request, const void *payload,
                         uint32_t size, const int *fds, unsigned nfds)
{
    vu_client_put(cl, request, payload, size, fds, nfds);
    return vu_client_outcome(cl, request);
}

static uint64_t client_get(VuClient *cl, uint32_t request,
                           const void *payload, uint32_t size)
{
    uint64_t value = 0;
    bool closed;

    vu_client_put(cl, request, payload, size, NULL, 0);
    vu_client_turn(cl);
    g_assert_true(client_reply(cl, request, &value, &closed));
    /* One reply, also if an acknowledgement was asked for. */
    g_assert_false(client_reply(cl, request, &value, &closed));
    g_assert_false(closed);
    return value;
}

uint64_t vu_client_get(VuClient *cl, uint32_t request)
{
    return client_get(cl, request, NULL, 0);
}

uint32_t vu_client_get_base(VuClient *cl, uint32_t index)
{
    /* The second number is what DPDK has there. */
    VuVringState state = { index, 0x8000 };
    uint64_t value = client_get(cl, VU_GET_VRING_BASE, &state, sizeof(state));

    memcpy(&state, &value, sizeof(state));
    g_assert_cmpuint(state.index, ==, index);
    return state.num;
}

VuOutcome vu_client_u64(VuClient *cl, uint32_t request, uint64_t value)
{
    return vu_client_send(cl, request, &value, sizeof(value), NULL, 0);
}

VuOutcome vu_client_state(VuClient *cl, uint32_t request, uint32_t index,
                          uint32_t num)
{
    VuVringState state = { index, num };

    return vu_client_send(cl, request, &state, sizeof(state), NULL, 0);
}

VuOutcome vu_client_fd(VuClient *cl, uint32_t request, uint32_t index, int fd)
{
    uint64_t value = index | (fd < 0 ? VU_VRING_NO_FD : 0);

    return vu_client_send(cl, request, &value, sizeof(value), &fd, fd >= 0);
}

VuOutcome vu_client_eventfd(VuClient *cl, uint32_t request, uint32_t index)
{
    int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    VuOutcome out = vu_client_fd(cl, request, index, fd);

    close(fd);
    return out;
}

VuOutcome vu_client_mem_table(VuClient *cl, const VuRegion *regions,
                              const int *fds, unsigned n)
{
    VuMemTable t = { .count = n };

    memcpy(t.regions, regions, n * sizeof(*regions));
    return vu_client_send(cl, VU_SET_MEM_TABLE, &t,
                          offsetof(VuMemTable, regions) +
                          n * sizeof(*regions), fds, n);
}

VuOutcome vu_client_mem_reg(VuClient *cl, uint32_t request,
                            const VuRegion *region, int fd)
{
    VuMemReg reg = { .region = *region };

    return vu_client_send(cl, request, &reg, sizeof(reg), &fd, fd >= 0);
}

unsigned vu_count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    g_assert_nonnull(dir);
    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

int vu_memfd(size_t bytes)
{
    int fd = memfd_create("ram", MFD_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, bytes), ==, 0);
    return fd;
}
