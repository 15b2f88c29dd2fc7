/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -netdev: what is refused, and in which words; what is accepted.
 *
 * Each message is one line and names option, value and remedy.  No case
 * opens anything.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../net/user-internal.h"
#include "net-harness.h"

static const struct {
    const char *options;
    const char *message;        /* without the final part, if it ends in "*" */
} bad[] = {
    /* Any type. */
    { "", "-netdev: parameter 'type' is missing" },
    { "tapp,id=n", "-netdev tapp,id=n: type 'tapp' is not known; known are "
      "hubport, tap, user" },
    { "vde,id=n", "-netdev vde,id=n: type 'vde' is not known; *" },
    { "user", "-netdev user: id= is missing; *" },
    { "user,id=1st", "-netdev user,id=1st: id=1st is not an identifier: *" },
    { "user,id=a b", "-netdev user,id=a b: id=a b is not an identifier: *" },
    { "user,id=", "-netdev user,id=: id= is not an identifier: *" },
    { "user,id=n,color=red", "-netdev user,id=n: *color*" },
    { "tap,id=n,ifname=x,color=red", "-netdev tap,id=n: *color*" },
    { "hubport,id=n,hubid=0,color=red", "-netdev hubport,id=n: *color*" },

    /* hubport */
    { "hubport,id=n", "-netdev hubport,id=n: hubid= is missing; *" },
    { "hubport,id=n,hubid=x", "-netdev hubport,id=n: *hubid*x*" },
    { "hubport,id=n,hubid=0,netdev=m", "-netdev hubport,id=n: netdev=m: a hub "
      "port cannot be joined to another netdev; *" },

    /* tap */
    { "tap,id=n,vhost=on", "-netdev tap,id=n: vhost=on: vhost-net is not used "
      "here; leave it out, or leave the NIC to the stock QEMU (vhost=off)" },
    { "tap,id=n,vhost=maybe", "-netdev tap,id=n: *vhost*maybe*" },
    { "tap,id=n,vhostforce=on", "-netdev tap,id=n: vhostforce=on: *" },
    { "tap,id=n,vhostfd=7", "-netdev tap,id=n: vhostfd=7: *" },
    { "tap,id=n,vhostfds=7:8", "-netdev tap,id=n: vhostfds=7:8: *" },
    { "tap,id=n,helper=/bin/h", "-netdev tap,id=n: helper=/bin/h: *" },
    { "tap,id=n,br=br0", "-netdev tap,id=n: br=br0: *" },
    { "tap,id=n,ifname=0123456789abcdef", "-netdev tap,id=n: "
      "ifname=0123456789abcdef is longer than 15 characters" },
    { "tap,id=n,queues=0", "-netdev tap,id=n: *queues*0*" },
    { "tap,id=n,queues=257", "-netdev tap,id=n: *queues*257*" },
    { "tap,id=n,sndbuf=lots", "-netdev tap,id=n: *sndbuf*lots*" },
    { "tap,id=n,sndbuf=-1", "-netdev tap,id=n: *sndbuf*-1*" },
    { "tap,id=n,fd=3,ifname=tap0", "-netdev tap,id=n: ifname=tap0 has no "
      "meaning for a tap that is passed with fd= or fds=" },
    { "tap,id=n,fds=3:4,queues=2", "-netdev tap,id=n: queues=2 has no *" },
    { "tap,id=n,fd=3,script=no", "-netdev tap,id=n: script=no has no *" },
    { "tap,id=n,fd=3,vnet_hdr=on", "-netdev tap,id=n: vnet_hdr=on has no *" },
    { "tap,id=n,fd=3,fds=4", "-netdev tap,id=n: fd=3 and fds=4 exclude each "
      "other" },
    { "tap,id=n,fd=tapfd", "-netdev tap,id=n: fd=tapfd is not the number of "
      "an open file descriptor" },
    { "tap,id=n,fd=-1", "-netdev tap,id=n: fd=-1 is not the number *" },
    { "tap,id=n,fds=3:3", "-netdev tap,id=n: fds: 3 is there twice; *" },
    { "tap,id=n,fds=3:", "-netdev tap,id=n: fds= is not the number *" },
    { "tap,id=n,fd=999", "-netdev tap,id=n: fd=999: no such descriptor is "
      "open; the parent has to pass it on" },

    /* user */
    { "user,id=n,net=10.0.2", "-netdev user,id=n: net=10.0.2: expected "
      "ADDRESS[/MASK], *" },
    { "user,id=n,net=10.0.2.0/31", "-netdev user,id=n: net=10.0.2.0/31: *" },
    { "user,id=n,net=10.0.2.0/x", "-netdev user,id=n: net=10.0.2.0/x: *" },
    { "user,id=n,host=10.0.3.2", "-netdev user,id=n: host=10.0.3.2 lies "
      "outside of the guest's network; *" },
    { "user,id=n,host=me", "-netdev user,id=n: host=me is not an IPv4 "
      "address" },
    { "user,id=n,dns=8.8.8.8,restrict=on", "-netdev user,id=n: dns=8.8.8.8 "
      "lies outside of the guest's network; *" },
    { "user,id=n,dhcpstart=8.8.8.8", "-netdev user,id=n: dhcpstart=8.8.8.8 "
      "lies *" },
    { "user,id=n,dns=10.0.2.2", "-netdev user,id=n: host=, dns= and "
      "dhcpstart= must be three different addresses" },
    { "user,id=n,dhcpstart=10.0.2.3", "-netdev user,id=n: host=, dns= and *" },
    { "user,id=n,ipv6-prefix=fec0", "-netdev user,id=n: ipv6-prefix=fec0 is "
      "not an IPv6 prefix" },
    { "user,id=n,ipv6-prefixlen=127", "-netdev user,id=n: "
      "*ipv6-prefixlen*127*" },
    { "user,id=n,ipv6-net=fec0::/127", "-netdev user,id=n: "
      "ipv6-net=fec0::/127: *" },
    { "user,id=n,ipv6-host=fd00::2", "-netdev user,id=n: ipv6-host=fd00::2 is "
      "not an IPv6 address in the guest's network" },
    { "user,id=n,ipv6-dns=x", "-netdev user,id=n: ipv6-dns=x is not *" },
    { "user,id=n,ipv6-dns=2001:db8::1,restrict=on", "-netdev user,id=n: "
      "ipv6-dns=2001:db8::1 is not an IPv6 address in the guest's network" },
    { "user,id=n,ipv4=off,ipv6=off", "-netdev user,id=n: ipv4=off and "
      "ipv6=off leave no protocol" },
    { "user,id=n,ipv4=off,net=10.0.0.0/24", "-netdev user,id=n: "
      "net=10.0.0.0/24 needs ipv4=on" },
    { "user,id=n,ipv4=on,ipv6-dns=fec0::9", "-netdev user,id=n: "
      "ipv6-dns=fec0::9 needs ipv6=on" },
    { "user,id=n,ipv4=maybe", "-netdev user,id=n: *ipv4*maybe*" },
    { "user,id=n,restrict=1", "-netdev user,id=n: *restrict*1*" },
    { "user,id=n,smb=/srv", "-netdev user,id=n: smb= and smbserver= are not "
      "available; *" },
    { "user,id=n,hostfwd=tcp::22", "-netdev user,id=n: hostfwd=tcp::22: bad "
      "host port; expected [tcp|udp]:[hostaddr]:hostport-[guestaddr]:"
      "guestport" },
    { "user,id=n,hostfwd=", "-netdev user,id=n: hostfwd=: bad protocol; *" },
    { "user,id=n,hostfwd=icmp::1-:2", "*hostfwd=icmp::1-:2: bad protocol; *" },
    { "user,id=n,hostfwd=tcp:h:1-:2", "*: bad host address; *" },
    { "user,id=n,hostfwd=tcp::65536-:2", "*: bad host port; *" },
    { "user,id=n,hostfwd=tcp::-1-:2", "*: bad host port; *" },
    { "user,id=n,hostfwd=tcp::1-g:2", "*: bad guest address; *" },
    { "user,id=n,hostfwd=tcp::1-:", "*: bad guest port; *" },
    { "user,id=n,hostfwd=tcp::1-:0", "*: bad guest port; *" },
    { "user,id=n,hostfwd=tcp::1-:2x", "*: bad guest port; *" },
    { "user,id=n,hostfwd=tcp::5000-:1,hostfwd=junk", "*hostfwd=junk: *" },
    { "user,id=n,guestfwd=udp:10.0.2.9:1-cmd:x", "*: bad protocol; *" },
    { "user,id=n,guestfwd=tcp::1-cmd:x", "*: bad server address; *" },
    { "user,id=n,guestfwd=tcp:10.0.2.9:0-cmd:x", "*: bad port; *" },
    { "user,id=n,guestfwd=tcp:10.0.2.9:1-cmd:", "*: bad target (*" },
    { "user,id=n,guestfwd=tcp:10.0.2.9:1-stdio", "-netdev user,id=n: "
      "guestfwd=tcp:10.0.2.9:1-stdio: bad target (other character devices "
      "are not available); expected [tcp]:server:port-cmd:command or "
      "[tcp]:server:port-tcp:host:port" },
    { "user,id=n,guestfwd=tcp:10.0.2.9:1-tcp:1234", "*: bad target *" },
    { "user,id=n,guestfwd=tcp:10.0.2.2:1-cmd:x", "-netdev user,id=n: "
      "guestfwd=tcp:10.0.2.2:1-cmd:x: the server must be an unused address "
      "of the guest's network, neither host= nor dns=" },
    { "user,id=n,guestfwd=tcp:10.9.9.9:1-cmd:x", "*: the server must be *" },
};

static void test_bad(void)
{
    AioContext *ctx = aio_context_new("t", clock_monotonic(), NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_null(test_netdev(bad[i].options, ctx, &err));
        g_assert_nonnull(err);
        if (!g_pattern_match_simple(bad[i].message, err->message)) {
            g_error("\"%s\": expected \"%s\", got \"%s\"", bad[i].options,
                    bad[i].message, err->message);
        }
        g_assert_null(strchr(err->message, '\n'));
    }
    aio_context_free(ctx);
}

/* An fd that is open, and no tap. */
static void test_not_a_tap(void)
{
    AioContext *ctx = aio_context_new("t", clock_monotonic(), NULL);
    int fd = open("/dev/null", O_RDWR);
    g_autofree char *options = g_strdup_printf("tap,id=n,fd=%d", fd);
    g_autofree char *message = NULL;
    g_autoptr(GError) err = NULL;

    message = g_strdup_printf("-netdev tap,id=n: fd=%d: it is not a tap", fd);
    g_assert_null(test_netdev(options, ctx, &err));
    g_assert_cmpstr(err->message, ==, message);
    /* Still the caller's. */
    g_assert_cmpint(close(fd), ==, 0);
    aio_context_free(ctx);
}

static const struct {
    const char *options;
    const char *info;
} good[] = {
    { "user,id=n", "user net=10.0.2.0/24,ipv6-net=fec0::/64,dropped=0" },
    { "user,id=a-b_c.9", "user net=10.0.2.0/24,*" },
    { "user,id=n,ipv4=on", "user net=10.0.2.0/24,dropped=0" },
    { "user,id=n,ipv6=on", "user ipv6-net=fec0::/64,dropped=0" },
    { "user,id=n,ipv4=off", "user ipv6-net=fec0::/64,dropped=0" },
    { "user,id=n,ipv6=off", "user net=10.0.2.0/24,dropped=0" },
    { "user,id=n,ipv4=on,ipv6=on", "user net=10.0.2.0/24,ipv6-net=fec0::/64,"
      "dropped=0" },
    { "user,id=n,net=192.168.1.77/26,host=192.168.1.70", "user "
      "net=192.168.1.64/26,*" },
    { "user,id=n,ip=10.5.6.7", "user net=10.5.6.0/24,*" },
    { "user,id=n,ipv6-net=fd00:1::/48", "user *,ipv6-net=fd00:1::/48,*" },
    { "user,id=n,ipv6-prefix=fd00:2::,ipv6-prefixlen=56,"
      "ipv6-host=fd00:2::9,ipv6-dns=fd00:2:0:7::9",
      "user *,ipv6-net=fd00:2::/56,*" },
    { "user,id=n,restrict=y", "user *,restrict=on,*" },
    { "user,id=n,dns=8.8.8.8,ipv6-dns=2001:db8::1", "user *" },
    { "user,id=n,hostfwd=tcp:127.0.0.1:0-:22,hostfwd=udp:127.0.0.1:0-"
      "10.0.2.20:53,hostfwd=:127.0.0.1:0-:80", "user *" },
    { "user,id=n,guestfwd=:10.0.2.9:1-cmd:cat -u,,x,guestfwd=tcp:10.0.2.8:1-"
      "tcp:127.0.0.1:9,guestfwd=tcp:10.0.2.7:1-tcp:[::1]:9", "user *" },
    { "user,id=n,tftp=/srv/tftp,bootfile=a,tftp-server-name=b,hostname=h,"
      "domainname=d,dnssearch=x,dnssearch=y", "user *" },
    { "{\"type\": \"user\", \"id\": \"n\", \"restrict\": true, "
      "\"dnssearch\": [{\"str\": \"x\"}], "
      "\"hostfwd\": [{\"str\": \"tcp:127.0.0.1:0-:1\"}]}",
      "user *,restrict=on,*" },
    { "hubport,id=n,hubid=3", "hubport hubid=3,peer=none" },
    { "hubport,id=n,hubid=0x10", "hubport hubid=16,peer=none" },
};

static void test_good(void)
{
    AioContext *ctx = aio_context_new("t", clock_monotonic(), NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(good); i++) {
        NetBackend *nb = test_netdev_ok(good[i].options, ctx);
        g_autofree char *info = net_backend_info(nb);

        if (!g_pattern_match_simple(good[i].info, info)) {
            g_error("\"%s\": expected \"%s\", got \"%s\"", good[i].options,
                    good[i].info, info);
        }
        net_backend_free(nb);
    }
    aio_context_free(ctx);
}

/* It is used later, from wherever the process is then. */
static void test_tftp_is_absolute(void)
{
    static const char *const dirs[][2] = {
        { ".", "" }, { "a/../b", "/b" },
    };
    g_autofree char *here = g_get_current_dir();

    for (unsigned i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autofree char *text = g_strconcat("tftp=", dirs[i][0], NULL);
        g_autofree char *want = g_strconcat(here, dirs[i][1], NULL);
        KeyVal *kv = keyval_parse("-netdev", text, NULL, NULL);
        GError *err = NULL;
        UserOptions o;

        g_assert_true(user_options_parse(&o, kv, &err));
        g_assert_cmpstr(o.cfg.tftp_path, ==, want);
        user_options_clear(&o);
        keyval_free(kv);
    }
}

static void test_help(void)
{
    g_autofree char *help = net_backend_help();

    g_assert_true(g_str_has_prefix(help, "Available netdev backend types:\n"));
    g_assert_nonnull(strstr(help, "\nhubport "));
    g_assert_nonnull(strstr(help, "\ntap "));
    g_assert_nonnull(strstr(help, "\nuser "));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/options/bad", test_bad);
    g_test_add_func("/net/options/not-a-tap", test_not_a_tap);
    g_test_add_func("/net/options/good", test_good);
    g_test_add_func("/net/options/tftp-is-absolute", test_tftp_is_absolute);
    g_test_add_func("/net/options/help", test_help);
    return g_test_run();
}
