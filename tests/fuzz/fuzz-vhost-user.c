/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A front-end, its guest and a network that all do what the input says,
 * against the export, the real device and a hub port.
 *
 * The input is a list of steps; the low four bits of a step's first byte are
 * its kind (see steps[]), bit 7 asks for a turn of the event loop after it.
 * Free messages have any header, payload and descriptors; well-formed ones are
 * made of small numbers, so that rings come to life and the guest's writes to
 * its memory matter.
 *
 * After each input the process must have as many descriptors as before, and
 * the event loop must come to rest.
 */
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hw/virtio/vhost-user.h"
#include "vhost-user-proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define RAM_BYTES   0x10000u
#define RAM_GPA     0x100000u
#define RAM_UADDR   0x7f0000000000ull
#define RINGS       2
#define MAX_FDS     15
/* Far more iterations than 64 KiB of input can give work for. */
#define MAX_TURNS   100000

/* ---- what outlives an input --------------------------------------------- */

static Clock *fuzz_clock;
static AioContext *ctx;
static NetBackend *wire[2];     /* the NIC's end, and ours */
static VirtIONet *nic;
static int ram_fd;
static uint8_t *ram;
static int pipe_fd;

static NetBackend *new_port(const char *option)
{
    KeyVal *kv = keyval_parse("-netdev", option, "type", NULL);
    NetBackend *nb = net_backend_new(kv, ctx, NULL);

    keyval_free(kv);
    g_assert_nonnull(nb);
    return nb;
}

static void ignore(void *opaque)
{
}

static void no_complete(void *opaque, void *cookie, NetTxAnswer answer)
{
}

static void no_link(void *opaque, bool up)
{
}

static const NetNicOps peer_ops = {
    .rx_ready = ignore,
    .tx_ready = ignore,
    .tx_complete = no_complete,
    .link_changed = no_link,
};

/*
 * hush: what the export says on stderr is not tested here, and would be
 * thousands of lines a second.  The fuzzer and the sanitizers keep theirs.
 */
static void hush(int *argc, char ***argv)
{
    static char option[] = "-close_fd_mask=2";
    char **args = g_new0(char *, *argc + 2);

    memcpy(args, *argv, *argc * sizeof(*args));
    args[(*argc)++] = option;
    *argv = args;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    VirtIONetConf conf;
    int pipes[2];

    fuzz_clock = clock_virtual_new(0);
    ctx = aio_context_new("main", fuzz_clock, NULL);
    wire[0] = new_port("hubport,id=n0,hubid=0");
    wire[1] = new_port("hubport,id=n1,hubid=0");
    virtio_net_conf_init(&conf);
    nic = virtio_net_new(&conf, wire[0], ctx, NULL);
    g_assert_nonnull(nic);
    net_queue_attach(net_backend_queue(wire[1], 0), ctx, ctx, &peer_ops,
                     NULL);
    ram_fd = memfd_create("ram", MFD_CLOEXEC);
    g_assert_cmpint(ftruncate(ram_fd, RAM_BYTES), ==, 0);
    ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ram_fd, 0);
    g_assert(ram != MAP_FAILED);
    g_assert_cmpint(pipe2(pipes, O_CLOEXEC), ==, 0);
    pipe_fd = pipes[1];
    hush(argc, argv);
    return 0;
}

/* ---- an input ----------------------------------------------------------- */

typedef struct Run {
    const uint8_t *p, *end;
    struct sockaddr_un addr;
    socklen_t addr_len;
    VhostUserExport *exp;
    int sock;                   /* -1: not connected */
    int kick[RINGS];            /* the guest's, -1: none yet */
} Run;

static unsigned take(Run *run)
{
    return run->p < run->end ? *run->p++ : 0;
}

static const uint8_t *take_bytes(Run *run, size_t *len)
{
    const uint8_t *bytes = run->p;

    *len = MIN(*len, (size_t)(run->end - run->p));
    run->p += *len;
    return bytes;
}

static void turn(Run *run)
{
    unsigned i = 0;

    while (aio_poll(ctx, false)) {
        if (i++ == MAX_TURNS) {
            abort();
        }
    }
}

static void disconnect(Run *run)
{
    if (run->sock >= 0) {
        close(run->sock);
        run->sock = -1;
        turn(run);
    }
}

static void dial(Run *run)
{
    run->sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                       0);
    g_assert_cmpint(connect(run->sock, (struct sockaddr *)&run->addr,
                            run->addr_len), ==, 0);
    turn(run);
}

static void send_bytes(Run *run, const void *bytes, size_t len,
                       const int *fds, unsigned nfds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * MAX_FDS)];
    } control = { { 0 } };
    struct iovec iov = { (void *)bytes, len };
    struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (run->sock < 0) {
        dial(run);
    }
    if (nfds) {
        mh.msg_control = control.bytes;
        mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        control.align.cmsg_level = SOL_SOCKET;
        control.align.cmsg_type = SCM_RIGHTS;
        control.align.cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * nfds);
    }
    if (sendmsg(run->sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        disconnect(run);
    }
}

/* @spec: bits 0-1 kind, bits 2-5 how many of it. */
static void send_with(Run *run, const void *bytes, size_t len, unsigned spec)
{
    int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int kinds[] = { event, ram_fd, pipe_fd, run->sock };
    int fds[MAX_FDS];
    unsigned n = spec >> 2 & 15;
    int fd = kinds[spec & 3] < 0 ? event : kinds[spec & 3];

    for (unsigned i = 0; i < n; i++) {
        fds[i] = fd;
    }
    send_bytes(run, bytes, len, fds, n);
    close(event);
}

/* ---- steps: free -------------------------------------------------------- */

static void step_message(Run *run)
{
    struct {
        VuHeader hdr;
        uint8_t payload[255];
    } m;
    unsigned spec;
    size_t len;
    const uint8_t *bytes;

    m.hdr.request = take(run) % 48;
    m.hdr.flags = take(run) ^ VU_FLAG_VERSION;
    spec = take(run);
    m.hdr.size = len = take(run);
    bytes = take_bytes(run, &len);
    memset(m.payload, 0, sizeof(m.payload));
    memcpy(m.payload, bytes, len);
    send_with(run, &m, sizeof(m.hdr) + m.hdr.size, spec);
}

static void step_bytes(Run *run)
{
    unsigned spec = take(run);
    size_t len = take(run);
    const uint8_t *bytes = take_bytes(run, &len);

    if (len) {
        send_with(run, bytes, len, spec);
    }
}

static void step_disconnect(Run *run)
{
    disconnect(run);
}

static void step_turn(Run *run)
{
    char replies[1024];

    turn(run);
    while (run->sock >= 0 && recv(run->sock, replies, sizeof(replies), 0) > 0) {
        continue;
    }
}

static void step_time(Run *run)
{
    clock_virtual_advance(fuzz_clock, take(run) * NS_PER_MS / 4);
}

/* ---- steps: the guest and the network ----------------------------------- */

static void step_guest_write(Run *run)
{
    unsigned at = take(run) << 8 | take(run);
    size_t len = take(run);
    const uint8_t *bytes = take_bytes(run, &len);

    memcpy(ram + at, bytes, MIN(len, RAM_BYTES - at));
}

/* Ring @idx is at 0x8000 * idx: descriptors, 0x2000 available, 0x4000 used. */
static void step_guest_publish(Run *run)
{
    unsigned idx = take(run) % RINGS;
    unsigned n = take(run);
    uint16_t *avail = (uint16_t *)(ram + 0x8000 * idx + 0x2000);

    avail[1] += n;
    if (run->kick[idx] >= 0) {
        eventfd_write(run->kick[idx], 1);
    }
}

static void step_frame(Run *run)
{
    static uint8_t frame[2048];
    unsigned n = take(run) % 32 + 1;
    struct iovec iov = { frame, take(run) * 8 };
    NetPacket pkt = { .iov = &iov, .iovcnt = 1, .bytes = iov.iov_len };

    for (unsigned i = 0; i < n; i++) {
        net_send_batch(net_backend_queue(wire[1], 0), &pkt, 1);
    }
}

/* ---- steps: well-formed messages ---------------------------------------- */

static VuRegion small_region(unsigned n)
{
    static const VuRegion regions[4] = {
        { RAM_GPA, RAM_BYTES, RAM_UADDR, 0 },
        { RAM_GPA, RAM_BYTES / 2, RAM_UADDR, 0 },
        { RAM_GPA + RAM_BYTES / 2, RAM_BYTES / 2, RAM_UADDR + RAM_BYTES / 2,
          RAM_BYTES / 2 },
        { RAM_GPA + RAM_BYTES, RAM_BYTES / 2, RAM_UADDR + RAM_BYTES, 0x800 },
    };

    return regions[n % 4];
}

typedef struct Small {
    VuHeader hdr;
    union {
        uint64_t u64;
        VuVringState state;
        VuVringAddr addr;
        VuMemTable table;
        VuMemReg reg;
    } payload;
} __attribute__((packed)) Small;

static void send_small(Run *run, Small *m, size_t size, const int *fds,
                       unsigned nfds)
{
    m->hdr.size = size;
    send_bytes(run, m, sizeof(m->hdr) + size, fds, nfds);
}

static void send_state(Run *run, Small *m, unsigned a, unsigned b)
{
    m->payload.state.index = a & 3;
    m->payload.state.num = m->hdr.request == VU_SET_VRING_NUM ? 1u << b % 11
                                                              : b;
    send_small(run, m, sizeof(m->payload.state), NULL, 0);
}

static void send_addr(Run *run, Small *m, unsigned a, unsigned b)
{
    uint64_t at = RAM_UADDR + 0x8000 * (a & 3);

    m->payload.addr = (VuVringAddr) {
        .index = a & 3,
        .flags = b & 1,
        .desc = at + (b >> 1),
        .avail = at + 0x2000,
        .used = at + 0x4000,
    };
    send_small(run, m, sizeof(m->payload.addr), NULL, 0);
}

static void send_fd(Run *run, Small *m, unsigned a, unsigned b)
{
    int fd = -1;

    m->payload.u64 = a & 3;
    if (b & 1) {
        m->payload.u64 |= VU_VRING_NO_FD;
    } else {
        fd = eventfd(b >> 1 & 1, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    send_small(run, m, sizeof(m->payload.u64), &fd, fd >= 0);
    if (fd >= 0 && m->hdr.request == VU_SET_VRING_KICK && (a & 3) < RINGS) {
        int *kick = &run->kick[a & 3];

        if (*kick >= 0) {
            close(*kick);
        }
        *kick = fd;
    } else if (fd >= 0) {
        close(fd);
    }
}

static void send_memory(Run *run, Small *m, unsigned a, unsigned b)
{
    int fds[2] = { ram_fd, ram_fd };

    if (m->hdr.request == VU_SET_MEM_TABLE) {
        unsigned n = a & 3 ? a & 3 : 1;

        n = MIN(n, 2);
        m->payload.table = (VuMemTable) { .count = n };
        for (unsigned i = 0; i < n; i++) {
            m->payload.table.regions[i] = small_region(b + i);
        }
        send_small(run, m, offsetof(VuMemTable, regions) +
                   n * sizeof(VuRegion), fds, n);
        return;
    }
    m->payload.reg = (VuMemReg) { .region = small_region(b) };
    send_small(run, m, sizeof(m->payload.reg), fds,
               m->hdr.request == VU_ADD_MEM_REG);
}

static void send_features(Run *run, Small *m, unsigned a, unsigned b)
{
    uint64_t features = virtio_net_offered_features(nic) &
                        ~(1ull << 40) & ~(uint64_t)(b << 5);

    m->payload.u64 = m->hdr.request == VU_SET_FEATURES
                         ? features | (uint64_t)(a & 1) << 30
                         : 0xa01d & ~(a & 1u) << 3;
    send_small(run, m, sizeof(m->payload.u64), NULL, 0);
}

static void send_u64(Run *run, Small *m, unsigned a, unsigned b)
{
    m->payload.u64 = b << 4;
    send_small(run, m, sizeof(m->payload.u64), NULL, 0);
}

static void send_empty(Run *run, Small *m, unsigned a, unsigned b)
{
    send_small(run, m, 0, NULL, 0);
}

static const struct {
    uint32_t request;
    void (*send)(Run *run, Small *m, unsigned a, unsigned b);
} small_messages[] = {
    { VU_SET_VRING_NUM, send_state },
    { VU_SET_VRING_BASE, send_state },
    { VU_GET_VRING_BASE, send_state },
    { VU_SET_VRING_ENABLE, send_state },
    { VU_SET_VRING_ADDR, send_addr },
    { VU_SET_VRING_KICK, send_fd },
    { VU_SET_VRING_CALL, send_fd },
    { VU_SET_VRING_ERR, send_fd },
    { VU_SET_MEM_TABLE, send_memory },
    { VU_ADD_MEM_REG, send_memory },
    { VU_REM_MEM_REG, send_memory },
    { VU_SET_FEATURES, send_features },
    { VU_SET_PROTOCOL_FEATURES, send_features },
    { VU_NET_SET_MTU, send_u64 },
    { VU_SEND_RARP, send_u64 },
    { VU_RESET_DEVICE, send_empty },
};

static void step_small(Run *run)
{
    unsigned which = take(run) % G_N_ELEMENTS(small_messages);
    unsigned a = take(run);
    unsigned b = take(run);
    Small m = { .hdr.request = small_messages[which].request };

    m.hdr.flags = VU_FLAG_VERSION | (a & 0x80 ? VU_FLAG_NEED_REPLY : 0);
    small_messages[which].send(run, &m, a, b);
}

/* ---- all ---------------------------------------------------------------- */

static void (*const steps[16])(Run *run) = {
    step_message, step_bytes, step_small, step_small,
    step_small, step_small, step_guest_write, step_guest_publish,
    step_guest_publish, step_time, step_frame, step_disconnect,
    step_turn, step_turn, step_turn, step_message,
};

static void listen_somewhere(Run *run)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    run->addr.sun_family = AF_UNIX;
    bind(fd, (struct sockaddr *)&run->addr, sizeof(sa_family_t));
    run->addr_len = sizeof(run->addr);
    getsockname(fd, (struct sockaddr *)&run->addr, &run->addr_len);
    listen(fd, 2);
    run->exp = vhost_user_export_new_fd("fuzz", nic, ctx, fd, NULL);
    g_assert_nonnull(run->exp);
}

/* Descriptors are given lowest first: a leak shows in the next one's number. */
static int lowest_free_fd(void)
{
    int fd = dup(ram_fd);

    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Run run = { .p = data, .end = data + size, .sock = -1,
                .kick = { -1, -1 } };
    int free_fd = lowest_free_fd();

    memset(ram, 0, RAM_BYTES);
    listen_somewhere(&run);
    while (run.p < run.end) {
        unsigned op = take(&run);

        steps[op & 15](&run);
        if (op & 0x80) {
            step_turn(&run);
        }
    }
    turn(&run);
    disconnect(&run);
    g_assert_false(vhost_user_export_connected(run.exp));
    vhost_user_export_free(run.exp);
    for (unsigned i = 0; i < RINGS; i++) {
        if (run.kick[i] >= 0) {
            close(run.kick[i]);
        }
    }
    turn(&run);
    g_assert_cmpint(lowest_free_fd(), ==, free_fd);
    return 0;
}
