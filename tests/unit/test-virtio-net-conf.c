/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The property table: defaults as QEMU documents them, one line for each bad
 * value.
 */
#include <linux/virtio_net.h>
#include <string.h>

#include "hw/net/virtio-net-conf.h"
#include "hw/net/virtio-net-features.h"
#include "hw/net/virtio-net-internal.h"

static bool parse(VirtIONetConf *conf, const char *text, GError **errp)
{
    KeyVal *kv = keyval_parse("-device virtio-net-pci", text, NULL, errp);
    bool ok;

    virtio_net_conf_init(conf);
    ok = kv && virtio_net_conf_parse(conf, kv, errp) &&
         keyval_check_empty(kv, errp);
    keyval_free(kv);
    return ok;
}

static void test_defaults(void)
{
    VirtIONetConf conf;
    GError *err = NULL;

    g_assert_true(parse(&conf, "netdev=n0", &err));
    g_assert_cmpstr(conf.netdev, ==, "n0");
    g_assert_cmpint(conf.tx, ==, VIRTIO_NET_TX_BH);
    g_assert_cmpuint(conf.tx_timer_ns, ==, 150000);
    g_assert_cmpuint(conf.tx_hold_ns, ==, 50000);
    g_assert_cmpuint(conf.tx_burst_pkts, ==, 0);
    g_assert_cmpuint(conf.rx_queue_size, ==, 256);
    g_assert_cmpuint(conf.tx_queue_size, ==, 256);
    g_assert_cmpint(conf.tx_thread, ==, VIRTIO_NET_TX_THREAD_OFF);
    g_assert_cmpint(CPU_COUNT(&conf.tx_cpus), ==, 0);
    g_assert_cmpuint(conf.tx_coal_frames, ==, 64);
    g_assert_cmpuint(conf.tx_coal_usecs, ==, 150);
    g_assert_cmpuint(conf.tx_coal_bytes, ==, 262144);
    g_assert_cmpuint(conf.rx_coal_frames, ==, 0);
    g_assert_cmpuint(conf.rx_coal_usecs, ==, 0);
    g_assert_cmphex(conf.features_off, ==, 0);
    g_assert_false(conf.mac_set);
}

static void test_values(void)
{
    static const uint8_t mac[6] = { 0x52, 0x54, 0, 0x12, 0x34, 0x56 };
    VirtIONetConf conf;
    GError *err = NULL;

    g_assert_true(parse(&conf, "id=a,netdev=n0,mac=52:54:00:12:34:56,"
                        "tx=timer,x-txtimer=1000,x-txburst=7,mq=on,"
                        "x-txhold=0,"
                        "rx_queue_size=1024,tx_queue_size=512,host_mtu=1400,"
                        "csum=off,host_tso4=off,host_tso6=on", &err));
    g_assert_cmpmem(conf.mac, 6, mac, 6);
    g_assert_cmpint(conf.tx, ==, VIRTIO_NET_TX_TIMER);
    g_assert_cmpuint(conf.tx_timer_ns, ==, 1000);
    g_assert_cmpuint(conf.tx_hold_ns, ==, 0);
    g_assert_cmpuint(conf.tx_burst_pkts, ==, 7);
    g_assert_true(conf.mq);
    g_assert_cmpuint(conf.rx_queue_size, ==, 1024);
    g_assert_cmpuint(conf.tx_queue_size, ==, 512);
    g_assert_cmpuint(conf.host_mtu, ==, 1400);
    g_assert_cmphex(conf.features_off, ==,
                    1ULL << VIRTIO_NET_F_CSUM |
                    1ULL << VIRTIO_NET_F_HOST_TSO4);
}

/* All spellings, and CPUs as for an iothread. */
static void test_tx_thread(void)
{
    static const struct {
        const char *text;
        VirtIONetTxThread value;
        int cpus;
    } good[] = {
        { "tx-thread=off", VIRTIO_NET_TX_THREAD_OFF, 0 },
        { "tx-thread=on", VIRTIO_NET_TX_THREAD_ON, 0 },
        { "tx-thread", VIRTIO_NET_TX_THREAD_ON, 0 },
        { "{\"tx-thread\": true}", VIRTIO_NET_TX_THREAD_ON, 0 },
        { "tx-thread=per-queue", VIRTIO_NET_TX_THREAD_PER_QUEUE, 0 },
        { "tx-thread=on,tx-cpus=0-1,tx-cpus=3", VIRTIO_NET_TX_THREAD_ON, 3 },
        { "tx-cpus=7,tx-thread=per-queue", VIRTIO_NET_TX_THREAD_PER_QUEUE,
          1 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(good); i++) {
        VirtIONetConf conf;
        GError *err = NULL;

        g_assert_true(parse(&conf, good[i].text, &err));
        g_assert_no_error(err);
        g_assert_cmpint(conf.tx_thread, ==, good[i].value);
        g_assert_cmpint(CPU_COUNT(&conf.tx_cpus), ==, good[i].cpus);
    }
}

/* Each message names the parameter and what would be accepted. */
static const struct {
    const char *text, *key, *accepted;
} bad[] = {
    { "tx=fast", "'tx'", "'bh', 'timer' or 'adaptive'" },
    { "tx=", "'tx'", "'bh', 'timer' or 'adaptive'" },
    { "mac=52:54:00:12:34", "'mac'", "52:54:00:12:34:56" },
    { "mac=52:54:00:12:34:5g", "'mac'", "unicast" },
    { "mac=52:54:00:12:34:56:78", "'mac'", "unicast" },
    { "mac=01:00:5e:00:00:01", "'mac'", "unicast" },
    { "rx_queue_size=255", "'rx_queue_size'", "256" },
    { "rx_queue_size=300", "'rx_queue_size'", "256, 512 or 1024" },
    { "tx_queue_size=2048", "'tx_queue_size'", "1024" },
    { "host_mtu=67", "'host_mtu'", "68 to 65535" },
    { "host_mtu=65536", "'host_mtu'", "65535" },
    { "x-txtimer=0", "'x-txtimer'", "1" },
    { "x-txhold=1000001", "'x-txhold'", "1000000" },
    { "csum=maybe", "'csum'", "on" },
    { "tx-coal-usecs=1000001", "'tx-coal-usecs'", "1000000" },
    { "tx-thread=yes", "'tx-thread'", "'off', 'on' or 'per-queue'" },
    { "tx-thread=on,tx-cpus=", "'tx-cpus'", "FIRST-LAST" },
    { "tx-thread=on,tx-cpus=0,tx-cpus=2-1", "'tx-cpus'", "not '2-1'" },
    { "tx-cpus=0-1", "'tx-cpus' (value '0-1')", "tx-thread=per-queue" },
    { "no-such=1", "no-such", "" },
};

static void test_bad(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        VirtIONetConf conf;
        GError *err = NULL;

        g_assert_false(parse(&conf, bad[i].text, &err));
        g_assert_nonnull(err);
        g_assert_nonnull(strstr(err->message, bad[i].key));
        g_assert_nonnull(strstr(err->message, bad[i].accepted));
        g_assert_null(strchr(err->message, '\n'));
        g_error_free(err);
    }
}

static void test_owner(void)
{
    g_assert_cmpint(virtio_net_prop_owner("tx"), ==, VIRTIO_NET_PROP_DEVICE);
    g_assert_cmpint(virtio_net_prop_owner("tx-coal-bytes"), ==,
                    VIRTIO_NET_PROP_DEVICE);
    g_assert_cmpint(virtio_net_prop_owner("mac"), ==, VIRTIO_NET_PROP_SHARED);
    g_assert_cmpint(virtio_net_prop_owner("vectors"), ==,
                    VIRTIO_NET_PROP_UNKNOWN);
}

/* mq= and the backend's queues decide together. */
static void test_multiqueue(void)
{
    const NetCaps caps = { .queues = 2 };
    const uint64_t mq = 1ULL << VIRTIO_NET_F_MQ;
    VirtIONetConf conf;

    virtio_net_conf_init(&conf);
    g_assert_false(virtio_net_compute_features(&conf, &caps, 2) & mq);
    conf.mq = true;
    g_assert_true(virtio_net_compute_features(&conf, &caps, 2) & mq);
    g_assert_false(virtio_net_compute_features(&conf, &caps, 1) & mq);
}

static void test_help(void)
{
    g_autofree char *all = virtio_net_props_help(false);
    g_autofree char *ours = virtio_net_props_help(true);

    g_assert_nonnull(strstr(all, "  mac=<str>"));
    g_assert_nonnull(strstr(all, "  tx=<bh|timer|adaptive>"));
    g_assert_null(strstr(ours, "  mac=<str>"));
    g_assert_nonnull(strstr(ours, "(default: 150000)\n"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/conf/defaults", test_defaults);
    g_test_add_func("/net/conf/values", test_values);
    g_test_add_func("/net/conf/tx-thread", test_tx_thread);
    g_test_add_func("/net/conf/bad", test_bad);
    g_test_add_func("/net/conf/owner", test_owner);
    g_test_add_func("/net/conf/multiqueue", test_multiqueue);
    g_test_add_func("/net/conf/help", test_help);
    return g_test_run();
}
