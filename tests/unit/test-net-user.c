/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user: libslirp behind the backend interface, with a guest that speaks just
 * enough.  Addresses and answers are those that QEMU documents for -netdev
 * user; everything outside is on the loopback of the host.
 */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../net/user-relay.h"
#include "fake-guest.h"

#define HOST    IP4(10, 0, 2, 2)
#define DNS     IP4(10, 0, 2, 3)
#define GUEST   IP4(10, 0, 2, 15)

typedef struct User {
    AioContext *ctx;
    NetBackend *nb;
    Guest g;
} User;

static void user_open_clock(User *u, const char *options, Clock *clock)
{
    u->ctx = aio_context_new("t", clock, NULL);
    u->nb = test_netdev_ok(options, u->ctx);
    guest_init(&u->g, u->nb, u->ctx, GUEST);
}

static void user_open(User *u, const char *options)
{
    user_open_clock(u, options, clock_monotonic());
}

static void user_close(User *u)
{
    test_nic_detach(&u->g.nic);
    net_backend_free(u->nb);
    aio_context_free(u->ctx);
}

/* A loopback socket on a port that the kernel chooses. */
static int host_socket(int type, uint16_t *port)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t len = sizeof(sin);
    int s = socket(AF_INET, type | SOCK_NONBLOCK, 0);

    g_assert_cmpint(bind(s, (struct sockaddr *)&sin, sizeof(sin)), ==, 0);
    g_assert_cmpint(getsockname(s, (struct sockaddr *)&sin, &len), ==, 0);
    *port = ntohs(sin.sin_port);
    if (type == SOCK_STREAM) {
        g_assert_cmpint(listen(s, 5), ==, 0);
    }
    return s;
}

/* ---- what libslirp answers itself ------------------------------------ */

static void test_arp(void)
{
    static const uint8_t mac[] = { 0x52, 0x55, 10, 0, 2, 2 };
    User u;

    user_open(&u, "user,id=n");
    g_assert_false(net_backend_caps(u.nb)->vnet_hdr);
    g_assert_cmpuint(net_backend_caps(u.nb)->queues, ==, 1);
    g_assert_true(net_backend_set_vnet_hdr_len(u.nb, 0));
    guest_arp(&u.g, HOST);
    g_assert_cmpmem(u.g.gateway_mac, 6, mac, 6);
    user_close(&u);
}

/* The answer is queued, and announced from the loop. */
static void test_not_reentrant(void)
{
    User u;
    unsigned ready;

    user_open(&u, "user,id=n");
    guest_arp(&u.g, HOST);
    test_settle(u.ctx);
    ready = u.g.nic.rx_ready;
    guest_send_ping(&u.g, HOST, 1, 56);
    g_assert_cmpuint(u.g.nic.rx_ready, ==, ready);
    aio_poll(u.ctx, false);
    g_assert_cmpuint(u.g.nic.rx_ready, ==, ready + 1);
    guest_wait(&u.g, ETHERTYPE_IP, IPPROTO_ICMP);
    g_assert_cmpuint(guest_l4(&u.g)[0], ==, 0);
    g_assert_cmpuint(get16(guest_l4(&u.g) + 6), ==, 1);
    g_assert_cmpuint(guest_l4_bytes(&u.g), ==, 64);
    user_close(&u);
}

static void check_option(const Guest *g, uint8_t option, const void *want,
                         size_t bytes)
{
    uint8_t n = 0;
    const uint8_t *got = guest_dhcp_option(g, option, &n);

    g_assert_cmpmem(got, n, want, bytes);
}

static void test_dhcp(void)
{
    User u;

    user_open(&u, "user,id=n");
    guest_dhcp(&u.g);
    g_assert_cmphex(get32(guest_l4(&u.g) + 8 + 16), ==, GUEST);
    check_option(&u.g, 53, "\2", 1);                    /* OFFER */
    check_option(&u.g, 1, "\xff\xff\xff\0", 4);
    check_option(&u.g, 3, "\12\0\2\2", 4);              /* router */
    check_option(&u.g, 6, "\12\0\2\3", 4);              /* name server */
    check_option(&u.g, 54, "\12\0\2\2", 4);
    user_close(&u);

    user_open(&u, "user,id=n,net=192.168.76.0/24,host=192.168.76.1,"
              "dns=192.168.76.7,dhcpstart=192.168.76.9,hostname=box,"
              "domainname=example.org,dnssearch=a.example,dnssearch=b.example,"
              "tftp-server-name=boot,bootfile=pxe.0");
    guest_dhcp(&u.g);
    g_assert_cmphex(get32(guest_l4(&u.g) + 8 + 16), ==, IP4(192, 168, 76, 9));
    check_option(&u.g, 3, "\xc0\xa8\x4c\1", 4);
    check_option(&u.g, 6, "\xc0\xa8\x4c\7", 4);
    check_option(&u.g, 12, "box", 3);
    check_option(&u.g, 15, "example.org", 11);
    check_option(&u.g, 66, "boot", 4);
    /* RFC 3397: the second name points to the end of the first. */
    check_option(&u.g, 119, "\1a\7example\0\1b\xc0\2", 15);
    g_assert_cmpstr((const char *)guest_l4(&u.g) + 8 + 108, ==, "pxe.0");
    user_close(&u);
}

/* The host, its default offset, in networks without a mask: by class. */
static void test_networks(void)
{
    static const struct {
        const char *net;
        uint32_t host;
    } cases[] = {
        { "10.9.8.0/24", IP4(10, 9, 8, 2) },
        { "10.9.8.0/255.255.255.0", IP4(10, 9, 8, 2) },
        { "10.1.2.3/8", IP4(10, 0, 2, 2) },
        { "10.1.2.3", IP4(10, 0, 2, 2) },
        { "172.20.0.0", IP4(172, 16, 2, 2) },
        { "130.5.0.0", IP4(130, 5, 2, 2) },
        { "192.168.0.0", IP4(192, 168, 2, 2) },
        { "192.0.2.0", IP4(192, 0, 2, 2) },
        { "192.0.2.128/25", IP4(192, 0, 2, 130) },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *options = g_strdup_printf("user,id=n,net=%s",
                                                   cases[i].net);
        User u;

        user_open(&u, options);
        u.g.ip = cases[i].host + 16;
        guest_arp(&u.g, cases[i].host);
        user_close(&u);
    }
}

/* Router advertisements come by a timer of libslirp, on our clock. */
static void test_timer(void)
{
    Clock *clock = clock_virtual_new(0);
    bool seen = false;
    User u;

    user_open_clock(&u, "user,id=n", clock);
    while (guest_poll(&u.g)) {
    }
    /* RFC 4861: at most 1800 seconds apart. */
    for (unsigned s = 0; s < 1800 && !seen; s++) {
        clock_virtual_advance(clock, NS_PER_SEC);
        test_turns(u.ctx, 4);
        while (guest_poll(&u.g)) {
            seen |= get16(u.g.frame + 12) == ETHERTYPE_IPV6 &&
                    guest_l3(&u.g)[40] == 134;
        }
    }
    g_assert_true(seen);
    user_close(&u);
    clock_free(clock);
}

/* With nothing connected a quiet loop has nothing to do. */
static void test_idle(void)
{
    Clock *clock = clock_virtual_new(0);
    User u;

    user_open_clock(&u, "user,id=n,ipv6=off", clock);
    guest_arp(&u.g, HOST);
    test_settle(u.ctx);
    g_assert_false(aio_poll(u.ctx, false));
    user_close(&u);
    clock_free(clock);
}

/* Frames that are no frames; the next good one is answered. */
static void test_garbage(void)
{
    g_autofree uint8_t *big = g_malloc0(NET_MAX_FRAME_BYTES + 1);
    NetTxAnswer answer;
    User u;

    user_open(&u, "user,id=n");
    guest_arp(&u.g, HOST);
    for (size_t n = 1; n < 64; n++) {
        uint8_t frame[64] = { 0 };

        memset(frame, 0x45, n);
        put16(frame + 12, n % 2 ? ETHERTYPE_IP : ETHERTYPE_IPV6);
        test_nic_send_ok(&u.g.nic, frame, n);
    }
    g_assert_true(test_nic_send(&u.g.nic, big, NET_MAX_FRAME_BYTES + 1,
                                &answer));
    g_assert_cmpint(answer, ==, NET_TX_DROPPED);
    guest_send_ping(&u.g, HOST, 7, 8);
    guest_wait(&u.g, ETHERTYPE_IP, IPPROTO_ICMP);
    g_assert_cmpuint(get16(guest_l4(&u.g) + 6), ==, 7);
    user_close(&u);
}

/* ---- sockets of the host --------------------------------------------- */

/* The host's answers, or floods: each datagram @times back. */
static void host_udp_echo(int s, unsigned times)
{
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    char buf[2048];
    ssize_t n;

    while ((n = recvfrom(s, buf, sizeof(buf), 0, (struct sockaddr *)&from,
                         &len)) >= 0) {
        for (unsigned i = 0; i < times; i++) {
            sendto(s, buf, n, 0, (struct sockaddr *)&from, len);
        }
    }
}

static void test_udp(void)
{
    uint16_t port;
    int s = host_socket(SOCK_DGRAM, &port);
    User u;

    user_open(&u, "user,id=n");
    guest_arp(&u.g, HOST);
    for (unsigned i = 0; i < 100; i++) {
        guest_send_udp(&u.g, 5000 + i, HOST, port, "question", 8);
        test_settle(u.ctx);
        host_udp_echo(s, 1);
        guest_wait(&u.g, ETHERTYPE_IP, IPPROTO_UDP);
        g_assert_cmpuint(get16(guest_l4(&u.g)), ==, port);
        g_assert_cmpuint(get16(guest_l4(&u.g) + 2), ==, 5000 + i);
        g_assert_cmpmem(guest_l4(&u.g) + 8, 8, "question", 8);
    }
    user_close(&u);
    close(s);
}

static void test_restrict(void)
{
    uint16_t port;
    int s = host_socket(SOCK_DGRAM, &port);
    char buf[16];
    User u;

    user_open(&u, "user,id=n,restrict=on");
    guest_arp(&u.g, HOST);
    guest_send_udp(&u.g, 5000, HOST, port, "question", 8);
    test_settle(u.ctx);
    g_assert_cmpint(recv(s, buf, sizeof(buf), 0), ==, -1);
    guest_dhcp(&u.g);
    user_close(&u);
    close(s);
}

/* Accept on @s and send back what comes, until @bytes have passed. */
typedef struct Echo {
    AioContext *ctx;
    int listener, fd;
    AioHandler *handler;
    size_t bytes;
} Echo;

static void echo_readable(void *opaque)
{
    Echo *e = opaque;
    char buf[4096];
    ssize_t n = recv(e->fd, buf, sizeof(buf), 0);

    if (n > 0) {
        g_assert_cmpint(send(e->fd, buf, n, 0), ==, n);
        e->bytes += n;
    } else if (n == 0) {
        aio_handler_delete(e->handler);
        e->handler = NULL;
        close(e->fd);
    }
}

static const AioHandlerOps echo_ops = { .readable = echo_readable };

static void echo_accept(void *opaque)
{
    Echo *e = opaque;

    e->fd = accept4(e->listener, NULL, NULL, SOCK_NONBLOCK);
    g_assert_cmpint(e->fd, >=, 0);
    aio_handler_delete(e->handler);
    e->handler = aio_handler_new(e->ctx, e->fd, AIO_READ, &echo_ops, e, NULL);
}

static const AioHandlerOps echo_listener_ops = { .readable = echo_accept };

static void echo_start(Echo *e, AioContext *ctx, uint16_t *port)
{
    *e = (Echo) { .ctx = ctx, .listener = host_socket(SOCK_STREAM, port) };
    e->handler = aio_handler_new(ctx, e->listener, AIO_READ,
                                 &echo_listener_ops, e, NULL);
}

/* @rounds x 1400 bytes there and back, then an orderly end. */
static void tcp_echo(Guest *g, uint32_t dst, uint16_t port, unsigned rounds)
{
    uint8_t out[1400], in[1400];
    GuestTcp t;

    guest_tcp_connect(&t, g, 40000, dst, port);
    for (unsigned i = 0; i < rounds; i++) {
        for (unsigned k = 0; k < sizeof(out); k++) {
            out[k] = i * 3 + k;
        }
        guest_tcp_send(&t, out, sizeof(out));
        guest_tcp_recv(&t, in, sizeof(in));
        g_assert_cmpmem(in, sizeof(in), out, sizeof(out));
    }
    guest_tcp_close(&t);
}

static void test_tcp(void)
{
    uint16_t port;
    Echo e;
    User u;

    user_open(&u, "user,id=n");
    guest_arp(&u.g, HOST);
    echo_start(&e, u.ctx, &port);
    tcp_echo(&u.g, HOST, port, 200);
    g_assert_cmpuint(e.bytes, ==, 200 * 1400);
    g_assert_null(e.handler);
    close(e.listener);
    user_close(&u);
}

/* ---- forwards -------------------------------------------------------- */

static void test_hostfwd(void)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    g_autofree char *options = NULL;
    uint16_t port, udp_port;
    int s = host_socket(SOCK_STREAM, &port);
    int d = host_socket(SOCK_DGRAM, &udp_port);
    User u;

    /* Ports that were free a moment ago. */
    close(s);
    close(d);
    options = g_strdup_printf("user,id=n,hostfwd=tcp:127.0.0.1:%u-:22,"
                              "hostfwd=udp:127.0.0.1:%u-10.0.2.99:53", port,
                              udp_port);
    user_open(&u, options);
    guest_arp(&u.g, HOST);
    s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sin.sin_port = htons(port);
    connect(s, (struct sockaddr *)&sin, sizeof(sin));
    guest_wait(&u.g, ETHERTYPE_IP, IPPROTO_TCP);
    g_assert_cmphex(get32(guest_l3(&u.g) + 16), ==, GUEST);
    g_assert_cmpuint(get16(guest_l4(&u.g) + 2), ==, 22);
    g_assert_cmphex(guest_l4(&u.g)[13], ==, 0x02);      /* SYN */
    close(s);

    u.g.ip = IP4(10, 0, 2, 99);
    guest_arp(&u.g, HOST);
    s = socket(AF_INET, SOCK_DGRAM, 0);
    sin.sin_port = htons(udp_port);
    g_assert_cmpint(sendto(s, "query", 5, 0, (struct sockaddr *)&sin,
                           sizeof(sin)), ==, 5);
    guest_wait(&u.g, ETHERTYPE_IP, IPPROTO_UDP);
    g_assert_cmphex(get32(guest_l3(&u.g) + 16), ==, IP4(10, 0, 2, 99));
    g_assert_cmpuint(get16(guest_l4(&u.g) + 2), ==, 53);
    close(s);
    user_close(&u);
}

static void test_hostfwd_taken(void)
{
    g_autofree char *options = NULL, *message = NULL;
    g_autoptr(GError) err = NULL;
    AioContext *ctx = aio_context_new("t", clock_monotonic(), NULL);
    uint16_t port;
    int s = host_socket(SOCK_STREAM, &port);

    options = g_strdup_printf("user,id=n,hostfwd=tcp:127.0.0.1:%u-:22", port);
    message = g_strdup_printf("-netdev user,id=n: hostfwd=tcp:127.0.0.1:%u-:22"
                              ": cannot listen on the host port: Address "
                              "already in use", port);
    g_assert_null(test_netdev(options, ctx, &err));
    g_assert_cmpstr(err->message, ==, message);
    close(s);
    aio_context_free(ctx);
}

static void test_guestfwd_command(void)
{
    User u;

    user_open(&u, "user,id=n,guestfwd=tcp:10.0.2.100:77-cmd:cat");
    guest_arp(&u.g, HOST);
    tcp_echo(&u.g, IP4(10, 0, 2, 100), 77, 3);
    user_close(&u);
}

/* Also behind restrict=on: a forward is an exception to it. */
static void test_guestfwd_tcp(void)
{
    AioContext *ctx = aio_context_new("t", clock_monotonic(), NULL);
    g_autofree char *options = NULL;
    uint16_t port;
    Echo e;
    User u;

    echo_start(&e, ctx, &port);
    options = g_strdup_printf("user,id=n,restrict=on,guestfwd=tcp:10.0.2.100:"
                              "77-tcp:127.0.0.1:%u", port);
    u.ctx = ctx;
    u.nb = test_netdev_ok(options, ctx);
    guest_init(&u.g, u.nb, ctx, GUEST);
    guest_arp(&u.g, HOST);
    tcp_echo(&u.g, IP4(10, 0, 2, 100), 77, 200);
    g_assert_cmpuint(e.bytes, ==, 200 * 1400);
    close(e.listener);
    user_close(&u);
}

/* Out of descriptors: the relay rests, and takes who waits when it has some. */
static void test_guestfwd_no_fds(void)
{
    const struct sockaddr_in to = { .sin_family = AF_INET };
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    Clock *clock = clock_virtual_new(NS_PER_SEC);
    AioContext *ctx = aio_context_new("t", clock, NULL);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct rlimit before, none;
    const char *path;
    UserRelay *r;
    char byte;

    r = user_relay_new(ctx, (const struct sockaddr *)&to, sizeof(to), &path,
                       NULL);
    g_assert_nonnull(r);
    g_strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
    g_assert_no_errno(connect(s, (struct sockaddr *)&sun, sizeof(sun)));

    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = dup(s);
    close(none.rlim_cur);
    setrlimit(RLIMIT_NOFILE, &none);
    g_assert_true(aio_poll(ctx, false));
    g_assert_false(aio_poll(ctx, false));
    setrlimit(RLIMIT_NOFILE, &before);

    g_assert_cmpint(recv(s, &byte, 1, 0), <, 0);
    clock_virtual_advance(clock, 100 * NS_PER_MS);
    test_settle(ctx);
    /* Nobody is at port 0: accepted, and closed. */
    g_assert_cmpint(recv(s, &byte, 1, 0), ==, 0);
    user_relay_free(r);
    aio_context_free(ctx);
    clock_free(clock);
    close(s);
}

/* ---- bounds ---------------------------------------------------------- */

static unsigned dropped(const User *u)
{
    g_autofree char *info = net_backend_info(u->nb);

    return atoi(strstr(info, "dropped=") + strlen("dropped="));
}

/*
 * A host that floods a guest that does not read: libslirp is held at half of
 * the queue, and the rest waits in the host's socket.
 */
static void test_held(void)
{
    uint16_t port;
    int s = host_socket(SOCK_DGRAM, &port);
    size_t queued = 0;
    unsigned got = 0;
    char data[1400];
    User u;

    user_open(&u, "user,id=n");
    guest_arp(&u.g, HOST);
    net_rx_want(u.g.nic.nq, false);
    memset(data, 'x', sizeof(data));
    for (unsigned i = 0; i < 20; i++) {
        guest_send_udp(&u.g, 5000, HOST, port, data, sizeof(data));
        test_settle(u.ctx);
        host_udp_echo(s, 100);
        test_settle(u.ctx);
    }
    g_assert_false(aio_poll(u.ctx, false));
    g_assert_cmpuint(dropped(&u), ==, 0);
    /* Transmit goes on, and so do its answers. */
    guest_send_ping(&u.g, HOST, 99, 8);
    g_assert_cmpuint(dropped(&u), ==, 0);
    while (guest_poll(&u.g)) {
        queued += u.g.bytes;
        got++;
    }
    g_assert_cmpuint(queued + got * 8, >=, 512 * 1024);
    g_assert_cmpuint(queued, <=, 600 * 1024);
    g_assert_cmpuint(guest_l3(&u.g)[9], ==, IPPROTO_ICMP);
    /* Read again, and what waited comes. */
    net_rx_want(u.g.nic.nq, true);
    guest_wait(&u.g, ETHERTYPE_IP, IPPROTO_UDP);
    user_close(&u);
    close(s);
}

/* A guest that pings and does not read: bounded, dropped, counted. */
static void test_overflow(void)
{
    unsigned got = 0;
    User u;

    user_open(&u, "user,id=n");
    guest_arp(&u.g, HOST);
    net_rx_want(u.g.nic.nq, false);
    for (unsigned i = 0; i < 2000; i++) {
        guest_send_ping(&u.g, HOST, i, 1400);
        if (i % 64 == 0) {
            test_settle(u.ctx);
        }
    }
    g_assert_cmpuint(dropped(&u), >, 1000);
    while (guest_poll(&u.g)) {
        if (get16(u.g.frame + 12) == ETHERTYPE_IP &&
            guest_l3(&u.g)[9] == IPPROTO_ICMP) {
            g_assert_cmpuint(get16(guest_l4(&u.g) + 6), ==, got++);
        }
    }
    g_assert_cmpuint(got + dropped(&u), >=, 2000);
    g_assert_cmpuint(got, >, 700);
    /* And it is not held for ever. */
    test_settle(u.ctx);
    guest_send_ping(&u.g, HOST, 0x7777, 8);
    guest_wait(&u.g, ETHERTYPE_IP, IPPROTO_ICMP);
    g_assert_cmpuint(get16(guest_l4(&u.g) + 6), ==, 0x7777);
    user_close(&u);
}

/* ---- contexts -------------------------------------------------------- */

static void test_one_home(void)
{
    AioContext *a = aio_context_new("here", clock_monotonic(), NULL);
    AioContext *b = aio_context_new("there", clock_monotonic(), NULL);
    g_autoptr(GError) err = NULL;
    NetBackend *nb = test_netdev_ok("user,id=n", a);
    NetBackend *same = test_netdev_ok("user,id=o", a);

    g_assert_null(test_netdev("user,id=p", b, &err));
    g_assert_cmpstr(err->message, ==, "-netdev user,id=p: type=user: all "
                    "netdevs of this type must be used from one thread; give "
                    "their NICs the same iothread= (now here and there)");
    net_backend_free(nb);
    net_backend_free(same);
    /* With the last one gone another home will do. */
    nb = test_netdev_ok("user,id=p", b);
    net_backend_free(nb);
    aio_context_free(a);
    aio_context_free(b);
}

/* A NIC elsewhere: through pipes in both directions. */
static void test_two_contexts(void)
{
    AioContext *home = aio_context_new("home", clock_monotonic(), NULL);
    AioContext *away = aio_context_new("away", clock_monotonic(), NULL);
    NetBackend *nb = test_netdev_ok("user,id=n", home);
    Guest g;

    guest_init(&g, nb, away, GUEST);
    for (unsigned i = 0; i < 3000; i++) {
        uint8_t arp[42] = { 255, 255, 255, 255, 255, 255,
                            0x52, 0x54, 0, 0x12, 0x34, 0x56, 8, 6,
                            0, 1, 8, 0, 6, 4, 0, 1 };

        put32(arp + 28, GUEST);
        put32(arp + 38, i % 2 ? HOST : DNS);
        test_nic_send_ok(&g.nic, arp, sizeof(arp));
        test_settle(home);
        test_turns(away, 4);
        do {
            g_assert_true(guest_poll(&g));
        } while (get16(g.frame + 12) != ETHERTYPE_ARP);
        g_assert_cmphex(get32(guest_l3(&g) + 14), ==, i % 2 ? HOST : DNS);
    }
    test_nic_detach(&g.nic);
    net_backend_free(nb);
    aio_context_free(home);
    aio_context_free(away);
}

/* Without a NIC the world goes on, and the next one starts afresh. */
static void test_detach(void)
{
    uint16_t port;
    int s = host_socket(SOCK_DGRAM, &port);
    User u;

    user_open(&u, "user,id=n");
    guest_arp(&u.g, HOST);
    for (unsigned i = 0; i < 50; i++) {
        guest_send_udp(&u.g, 5000, HOST, port, "question", 8);
        test_settle(u.ctx);
        test_nic_detach(&u.g.nic);
        host_udp_echo(s, 20);
        test_settle(u.ctx);
        guest_init(&u.g, u.nb, u.ctx, GUEST);
        g_assert_false(guest_poll(&u.g));
        guest_arp(&u.g, HOST);
    }
    user_close(&u);
    close(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/user/arp", test_arp);
    g_test_add_func("/net/user/not-reentrant", test_not_reentrant);
    g_test_add_func("/net/user/dhcp", test_dhcp);
    g_test_add_func("/net/user/networks", test_networks);
    g_test_add_func("/net/user/timer", test_timer);
    g_test_add_func("/net/user/idle", test_idle);
    g_test_add_func("/net/user/garbage", test_garbage);
    g_test_add_func("/net/user/udp", test_udp);
    g_test_add_func("/net/user/restrict", test_restrict);
    g_test_add_func("/net/user/tcp", test_tcp);
    g_test_add_func("/net/user/hostfwd", test_hostfwd);
    g_test_add_func("/net/user/hostfwd-taken", test_hostfwd_taken);
    g_test_add_func("/net/user/guestfwd-command", test_guestfwd_command);
    g_test_add_func("/net/user/guestfwd-tcp", test_guestfwd_tcp);
    g_test_add_func("/net/user/guestfwd-no-fds", test_guestfwd_no_fds);
    g_test_add_func("/net/user/held", test_held);
    g_test_add_func("/net/user/overflow", test_overflow);
    g_test_add_func("/net/user/one-home", test_one_home);
    g_test_add_func("/net/user/two-contexts", test_two_contexts);
    g_test_add_func("/net/user/detach", test_detach);
    return g_test_run();
}
