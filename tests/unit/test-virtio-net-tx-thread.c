/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit threads: what they are called, and that a send which does not end
 * holds up nobody but its own ring: not reception, not the rest of the NIC,
 * not another NIC.
 *
 * The send ends when the test says so.
 */
#include <semaphore.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "nic-harness.h"

#define FRAMES 200

static sem_t in_send, go_on;
static bool stall;

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) < 0) {
        /* interrupted */
    }
}

/* Transmit thread. */
static void stay_in_send(unsigned i)
{
    if (stall && i == 0) {
        stall = false;
        sem_post(&in_send);
        wait_for(&go_on);
    }
}

static void nothing(void *opaque)
{
}

static void wait_used(NicHarness *h, unsigned n)
{
    for (unsigned used = 0; used < n; used += nic_harness_tx_used(h)) {
        nic_harness_in_tx(h, nothing, NULL);
    }
    nic_harness_in_tx(h, nothing, NULL);
}

/* The transmit thread of the NIC returned is in a send. */
static NicHarness *new_stalled(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .props = "id=a,tx-thread=on" });

    nic_harness_in_tx(h, nothing, NULL);        /* its first pass is over */
    stall = true;
    h->net->on_packet = stay_in_send;
    nic_harness_send(h, 0, 60);
    nic_harness_send(h, 1, 60);
    eventfd_write(h->kick[1], 1);
    wait_for(&in_send);
    return h;
}

static void end_stalled(NicHarness *h)
{
    sem_post(&go_on);
    wait_used(h, 2);
    g_assert_cmpuint(h->net->frames->len, ==, 2);
    nic_harness_free(h);
}

static void receive(NicHarness *h, unsigned n)
{
    uint64_t before = nic_harness_stat(h, 0, "packets");
    uint32_t id, len;

    for (unsigned i = 0; i < n; i++) {
        nic_harness_post(h, 2048);
        nic_harness_kick(h, 0);
        nic_harness_run(h);
        fake_net_deliver(h->net, NULL, "0123456789abcdef", 16);
        nic_harness_run(h);
        g_assert_true(vring_driver_get_used(&h->rx, &id, &len));
        g_assert_cmpuint(len, ==, NH_HDR + 16);
    }
    g_assert_cmpuint(nic_harness_stat(h, 0, "packets"), ==, before + n);
}

static void test_reception(void)
{
    NicHarness *h = new_stalled();

    receive(h, FRAMES);
    end_stalled(h);
}

/* What concerns the receive ring, and looking at counters. */
static void test_control(void)
{
    NicHarness *h = new_stalled();
    uint16_t base;

    receive(h, 3);
    virtio_net_queue_set_call(h->nic, 0, dup(h->call[0]));
    base = virtio_net_queue_stop(h->nic, 0);
    g_assert_cmpuint(base, ==, 3);
    g_assert_cmpuint(nic_harness_stat(h, 1, "packets"), ==, 0);
    g_assert_true(virtio_net_link_up(h->nic));
    close(h->kick[0]);
    close(h->call[0]);
    nic_harness_start(h, 0, base);
    receive(h, FRAMES);
    end_stalled(h);
}

/* One in the same context, and one with a transmit thread too. */
static void test_other_nics(void)
{
    NicHarness *h = new_stalled();
    NicHarness *plain = nic_harness_new(&(NicOptions) { .beside = h });
    NicHarness *threaded = nic_harness_new(&(NicOptions) {
        .beside = h, .props = "id=b,tx-thread=on" });

    nic_harness_transmit(plain, FRAMES, 60);
    g_assert_cmpuint(nic_harness_tx_used(plain), ==, FRAMES);
    receive(plain, FRAMES);
    nic_harness_in_tx(threaded, nothing, NULL);
    for (unsigned i = 0; i < FRAMES; i++) {
        nic_harness_send(threaded, i, 60);
    }
    eventfd_write(threaded->kick[1], 1);
    wait_used(threaded, FRAMES);
    virtio_net_set_link(plain->nic, false);
    virtio_net_reset(threaded->nic);
    nic_harness_free(threaded);
    nic_harness_free(plain);
    end_stalled(h);
}

/* ---- names ------------------------------------------------------------- */

static bool has_thread(const char *name)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/task", 0, NULL);
    g_autofree char *line = g_strdup_printf("%s\n", name);
    const char *tid;
    bool found = false;

    while ((tid = g_dir_read_name(dir))) {
        g_autofree char *path = g_strdup_printf("/proc/self/task/%s/comm",
                                                tid);
        g_autofree char *comm = NULL;

        found |= g_file_get_contents(path, &comm, NULL, NULL) &&
                 !strcmp(comm, line);
    }
    return found;
}

/* The kernel shows 15 characters; ids of one kind differ at their end. */
static void test_names(void)
{
    static const struct {
        const char *props, *name;
    } cases[] = {
        { "id=net0,tx-thread=on", "tx:net0" },
        { "id=net0,tx-thread=per-queue", "tx0:net0" },
        { "id=virtio-net-for-guest-12,tx-thread=on", "tx:for-guest-12" },
        { "id=virtio-net-for-guest-12,tx-thread=per-queue",
          "tx0:or-guest-12" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        NicHarness *h = nic_harness_new(&(NicOptions) {
            .props = cases[i].props });

        g_assert_true(has_thread(cases[i].name));
        nic_harness_free(h);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    sem_init(&in_send, 0, 0);
    sem_init(&go_on, 0, 0);
    g_test_add_func("/net/tx/thread/stalled/reception", test_reception);
    g_test_add_func("/net/tx/thread/stalled/control", test_control);
    g_test_add_func("/net/tx/thread/stalled/other-nics", test_other_nics);
    g_test_add_func("/net/tx/thread/names", test_names);
    return g_test_run();
}
