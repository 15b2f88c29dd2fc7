/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tap: how an interface is opened, taken over, set up and let go.
 */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap-harness.h"

static void check_refused(const char *options, const char *message)
{
    AioContext *ctx = aio_context_new("t", clock_monotonic(), NULL);
    g_autoptr(GError) err = NULL;

    g_assert_null(test_netdev(options, ctx, &err));
    g_assert_cmpstr(err->message, ==, message);
    aio_context_free(ctx);
}

/* ---- opening --------------------------------------------------------- */

static void test_busy(void)
{
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    check_refused("tap,id=m,ifname=tap0,script=no,downscript=no",
                  "-netdev tap,id=m: ifname=tap0 is already in use; end the "
                  "process that has it, or choose another");
    tap_close(&t);
    check_refused("tap,id=m,ifname=lo,script=no,downscript=no",
                  "-netdev tap,id=m: ifname=lo cannot be opened as a tap with "
                  "queues=1: it is something else, or was made with "
                  "multi_queue");
}

/* The kernel numbers a name with %d. */
static void test_names(void)
{
    AioContext *ctx;
    NetBackend *nb[3];
    char *info;

    if (skipped()) {
        return;
    }
    ctx = aio_context_new("t", clock_monotonic(), NULL);
    nb[0] = test_netdev_ok("tap,id=a,ifname=vm%d,script=no,downscript=no",
                           ctx);
    nb[1] = test_netdev_ok("tap,id=b,ifname=vm%d,script=no,downscript=no",
                           ctx);
    nb[2] = test_netdev_ok("tap,id=c,script=no,downscript=no", ctx);
    info = net_backend_info(nb[1]);
    g_assert_cmpstr(info, ==, "tap ifname=vm1,vnet_hdr=on,queues=1");
    g_free(info);
    info = net_backend_info(nb[2]);
    g_assert_cmpstr(info, ==, "tap ifname=tap0,vnet_hdr=on,queues=1");
    g_free(info);
    for (unsigned i = 0; i < 3; i++) {
        net_backend_free(nb[i]);
    }
    aio_context_free(ctx);
}

static int raw_tap(const char *ifname, short flags)
{
    struct ifreq ifr = { .ifr_flags = flags };
    int fd = open("/dev/net/tun", O_RDWR);

    g_assert_cmpint(fd, >=, 0);
    g_strlcpy(ifr.ifr_name, ifname, IFNAMSIZ);
    g_assert_cmpint(ioctl(fd, TUNSETIFF, &ifr), ==, 0);
    return fd;
}

static void test_passed_fd(void)
{
    const short tap = IFF_TAP | IFF_NO_PI;
    int fd = -1, fd2;
    char *text, *message;
    Tap t;

    if (skipped()) {
        return;
    }
    /* With the header that its opener chose, blocking as it came. */
    fd = raw_tap("tap0", tap | IFF_VNET_HDR);
    text = g_strdup_printf("tap,id=n,fd=%d", fd);
    tap_open(&t, text);
    g_assert_true(net_backend_caps(t.nb)->vnet_hdr);
    net_backend_set_vnet_hdr_len(t.nb, TEST_HDR);
    check_tx(&t, TEST_HDR, 60);
    drain(&t.nic);
    check_rx(&t, TEST_HDR, 60);
    tap_close(&t);
    g_free(text);
    /* It was taken over: it is closed now. */
    g_assert_cmpint(fcntl(fd, F_GETFD), ==, -1);

    fd = raw_tap("tap0", tap);
    text = g_strdup_printf("tap,id=n,fd=%d", fd);
    tap_open(&t, text);
    g_assert_false(net_backend_caps(t.nb)->vnet_hdr);
    check_tx(&t, 0, 60);
    tap_close(&t);
    g_free(text);

    /* Two queues of one interface; and two interfaces. */
    fd = raw_tap("tap0", tap | IFF_VNET_HDR | IFF_MULTI_QUEUE);
    fd2 = raw_tap("tap0", tap | IFF_VNET_HDR | IFF_MULTI_QUEUE);
    text = g_strdup_printf("tap,id=n,fds=%d:%d", fd, fd2);
    tap_open(&t, text);
    g_assert_cmpuint(net_backend_caps(t.nb)->queues, ==, 2);
    tap_close(&t);
    g_free(text);

    fd = raw_tap("tap0", tap | IFF_VNET_HDR);
    fd2 = raw_tap("tap1", tap | IFF_VNET_HDR);
    text = g_strdup_printf("tap,id=n,fds=%d:%d", fd, fd2);
    message = g_strdup_printf("-netdev tap,id=n: fd=%d: it is another "
                              "interface than the first", fd2);
    check_refused(text, message);
    /* A failure leaves them to the caller. */
    g_assert_cmpint(close(fd), ==, 0);
    g_assert_cmpint(close(fd2), ==, 0);
    g_free(text);
    g_free(message);
}

static void test_wrong_fd(void)
{
    g_autofree char *text = NULL, *message = NULL;
    int fd;

    if (skipped()) {
        return;
    }
    fd = raw_tap("tun0", IFF_TUN | IFF_NO_PI);
    text = g_strdup_printf("tap,id=n,fd=%d", fd);
    message = g_strdup_printf("-netdev tap,id=n: fd=%d: it is not a tap", fd);
    check_refused(text, message);
    close(fd);
}

/* A persistent multi-queue tap serves a netdev of one queue, too. */
static void test_persistent(void)
{
    GError *err = NULL;
    AioContext *ctx;
    Tap t;

    if (skipped()) {
        return;
    }
    run("ip tuntap add dev tap0 mode tap multi_queue");
    tap_open(&t, TEST_OPTIONS);
    net_backend_set_vnet_hdr_len(t.nb, TEST_HDR);
    check_tx(&t, TEST_HDR, 60);
    tap_close(&t);
    run("ip link del tap0");

    run("ip tuntap add dev tap0 mode tap");
    ctx = aio_context_new("t", clock_monotonic(), NULL);
    g_assert_null(test_netdev("tap,id=n,ifname=tap0,script=no,downscript=no,"
                              "queues=2", ctx, &err));
    g_assert_cmpstr(err->message, ==, "-netdev tap,id=n: ifname=tap0 cannot "
                    "be opened as a tap with queues=2: it is something else, "
                    "or was made without multi_queue");
    g_clear_error(&err);
    aio_context_free(ctx);
    run("ip link del tap0");
}

/* ---- offloads -------------------------------------------------------- */

/* The features of the interface, as `ethtool -k` shows them. */
static bool feature_is_on(const char *name)
{
    g_autofree char *out = NULL, *line = g_strdup_printf("%s: on", name);

    g_spawn_command_line_sync("ethtool -k tap0", &out, NULL, NULL, NULL);
    return out && strstr(out, line);
}

static bool have_ethtool(void)
{
    g_autofree char *path = g_find_program_in_path("ethtool");

    return path;
}

static void test_offloads(void)
{
    Tap t;

    if (skipped()) {
        return;
    }
    if (!have_ethtool()) {
        g_test_skip("no ethtool");
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    g_assert_false(feature_is_on("tx-checksum-ip-generic"));
    net_backend_set_offload(t.nb, NET_OFFLOAD_CSUM | NET_OFFLOAD_TSO4);
    g_assert_true(feature_is_on("tx-checksum-ip-generic"));
    g_assert_true(feature_is_on("tx-tcp-segmentation"));
    g_assert_false(feature_is_on("tx-tcp6-segmentation"));
    if (net_backend_caps(t.nb)->uso) {
        /* The kernel has them together, so one alone means neither. */
        net_backend_set_offload(t.nb, NET_OFFLOAD_CSUM | NET_OFFLOAD_USO4);
        g_assert_false(feature_is_on("tx-udp-segmentation"));
        net_backend_set_offload(t.nb, NET_OFFLOAD_CSUM | NET_OFFLOAD_USO4 |
                                      NET_OFFLOAD_USO6);
        g_assert_true(feature_is_on("tx-udp-segmentation"));
    }
    net_backend_set_offload(t.nb, 0);
    g_assert_false(feature_is_on("tx-checksum-ip-generic"));
    tap_close(&t);
}

/* Offloads that an earlier user left on are off for the next. */
static void test_offloads_left_on(void)
{
    NetBackend *nb;
    AioContext *ctx;
    Tap t;

    if (skipped()) {
        return;
    }
    if (!have_ethtool()) {
        g_test_skip("no ethtool");
        return;
    }
    run("ip tuntap add dev tap0 mode tap");
    tap_open(&t, TEST_OPTIONS);
    net_backend_set_offload(t.nb, NET_OFFLOAD_CSUM | NET_OFFLOAD_TSO4);
    g_assert_true(feature_is_on("tx-tcp-segmentation"));
    tap_close(&t);
    ctx = aio_context_new("t", clock_monotonic(), NULL);
    nb = test_netdev_ok(TEST_OPTIONS, ctx);
    g_assert_false(feature_is_on("tx-tcp-segmentation"));
    net_backend_free(nb);
    aio_context_free(ctx);
    run("ip link del tap0");
}

/* ---- scripts --------------------------------------------------------- */

static void test_scripts(void)
{
    g_autofree char *dir = g_dir_make_tmp("test-net-tap-XXXXXX", NULL);
    g_autofree char *up = g_build_filename(dir, "up", NULL);
    g_autofree char *down = g_build_filename(dir, "down", NULL);
    g_autofree char *log = g_build_filename(dir, "log", NULL);
    g_autofree char *text = NULL, *seen = NULL, *message = NULL;
    AioContext *ctx;
    NetBackend *nb;

    if (skipped()) {
        return;
    }
    text = g_strdup_printf("#!/bin/sh\necho up $1 >> %s\nexit $(test $1 = "
                           "tap0; echo $?)\n", log);
    g_assert_true(g_file_set_contents(up, text, -1, NULL));
    g_free(text);
    text = g_strdup_printf("#!/bin/sh\necho down $1 >> %s\n", log);
    g_assert_true(g_file_set_contents(down, text, -1, NULL));
    g_free(text);
    g_assert_cmpint(chmod(up, 0755), ==, 0);
    g_assert_cmpint(chmod(down, 0755), ==, 0);

    ctx = aio_context_new("t", clock_monotonic(), NULL);
    text = g_strdup_printf("tap,id=n,ifname=tap0,script=%s,downscript=%s", up,
                           down);
    nb = test_netdev_ok(text, ctx);
    net_backend_free(nb);
    g_free(text);
    g_assert_true(g_file_get_contents(log, &seen, NULL, NULL));
    g_assert_cmpstr(seen, ==, "up tap0\ndown tap0\n");

    text = g_strdup_printf("tap,id=n,ifname=tap7,script=%s,downscript=no", up);
    message = g_strdup_printf("-netdev tap,id=n: script=%s failed for tap7: "
                              "exit status 1; script=no runs none", up);
    check_refused(text, message);
    aio_context_free(ctx);
    unlink(up);
    unlink(down);
    unlink(log);
    rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    tap_harness_init();
    g_test_add_func("/net/tap/offloads", test_offloads);
    g_test_add_func("/net/tap/offloads-left-on", test_offloads_left_on);
    g_test_add_func("/net/tap/persistent", test_persistent);
    g_test_add_func("/net/tap/busy", test_busy);
    g_test_add_func("/net/tap/names", test_names);
    g_test_add_func("/net/tap/passed-fd", test_passed_fd);
    g_test_add_func("/net/tap/wrong-fd", test_wrong_fd);
    g_test_add_func("/net/tap/scripts", test_scripts);
    return g_test_run();
}
