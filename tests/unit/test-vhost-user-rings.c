/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user, the state of rings and memory: what starts and stops a ring,
 * what a change of memory does to it, and what survives what.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "vhost-user-rig.h"

/* The rig, with features and acknowledgements negotiated. */
static void rig_ready(VuRig *rig, unsigned pairs)
{
    vu_rig_init(rig, pairs);
    vu_rig_negotiate(rig, true);
}

static VuOutcome send_addr(VuRig *rig, const VuVringAddr *addr)
{
    return vu_client_send(&rig->cl, VU_SET_VRING_ADDR, addr, sizeof(*addr),
                          NULL, 0);
}

static VuOutcome add_reg(VuRig *rig, uint64_t offset, uint64_t size)
{
    VuRegion r = vu_rig_region(offset, size);

    return vu_client_mem_reg(&rig->cl, VU_ADD_MEM_REG, &r, rig->ram_fd);
}

static VuOutcome rem_reg(VuRig *rig, uint64_t offset, uint64_t size)
{
    VuRegion r = vu_rig_region(offset, size);

    return vu_client_mem_reg(&rig->cl, VU_REM_MEM_REG, &r, -1);
}

static void advance(VuRig *rig, int64_t ns)
{
    clock_virtual_advance(rig->clock, ns);
    vu_client_turn(&rig->cl);
}

/* ---- starting and stopping ---------------------------------------------- */

static void test_start_stop(void)
{
    FakeRing *r;
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    r = &rig.nic->rings[1];
    vu_rig_start_ring(&rig, 1, 256, 4242);
    g_assert_cmpint(r->setup.space, ==, GUEST_SPACE_USER);
    g_assert_cmphex(r->setup.desc, ==, vu_rig_addr(1).desc);
    g_assert_cmphex(r->setup.avail, ==, vu_rig_addr(1).avail);
    g_assert_cmphex(r->setup.used, ==, vu_rig_addr(1).used);
    g_assert_false(r->setup.log_used);

    r->position = 17;
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 1), ==, 17);
    g_assert_false(r->started);
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 1), ==, 17);
    vu_client_state(&rig.cl, VU_SET_VRING_ENABLE, 1, 1);
    g_assert_false(r->started);

    /* The state is kept: a kick is all it takes. */
    vu_rig_expect_ok(&rig, vu_client_eventfd(&rig.cl, VU_SET_VRING_KICK, 1));
    g_assert_true(r->started);
    g_assert_cmpuint(r->setup.last_avail, ==, 17);
    vu_rig_cleanup(&rig);
}

static void test_base_never_started(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_client_state(&rig.cl, VU_SET_VRING_BASE, 1, 65535);
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 1), ==, 65535);
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 0), ==, 0);
    vu_rig_cleanup(&rig);
}

/* The steps of a ring's setup, in each order. */
static void step(VuRig *rig, unsigned what)
{
    VuVringAddr addr = vu_rig_addr(0);

    switch (what) {
    case 0:
        vu_client_state(&rig->cl, VU_SET_VRING_NUM, 0, 64);
        break;
    case 1:
        send_addr(rig, &addr);
        break;
    case 2:
        vu_rig_memory(rig);
        break;
    case 3:
        vu_rig_expect_ok(rig, vu_client_eventfd(&rig->cl, VU_SET_VRING_KICK,
                                                0));
        break;
    }
}

static void check_order(const unsigned order[4])
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_client_state(&rig.cl, VU_SET_VRING_BASE, 0, 99);
    for (unsigned i = 0; i < 4; i++) {
        g_assert_false(rig.nic->rings[0].started);
        step(&rig, order[i]);
    }
    g_assert_true(rig.nic->rings[0].started);
    g_assert_cmpuint(rig.nic->rings[0].starts, ==, 1);
    g_assert_cmpuint(rig.nic->rings[0].setup.last_avail, ==, 99);
    vu_rig_cleanup(&rig);
}

static void test_any_order(void)
{
    for (unsigned n = 0; n < 256; n++) {
        unsigned order[4] = { n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6 };
        unsigned seen = 0;

        for (unsigned i = 0; i < 4; i++) {
            seen |= 1 << order[i];
        }
        if (seen == 15) {
            check_order(order);
        }
    }
}

static void test_null_ring_is_skipped(void)
{
    VuVringAddr addr = { .index = 0 };
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_client_state(&rig.cl, VU_SET_VRING_NUM, 0, 256);
    vu_rig_expect_ok(&rig, send_addr(&rig, &addr));
    vu_rig_expect_ok(&rig, vu_client_eventfd(&rig.cl, VU_SET_VRING_KICK, 0));
    g_assert_false(rig.nic->rings[0].started);
    vu_rig_cleanup(&rig);
}

/* ---- running rings are not changed -------------------------------------- */

static void test_running_is_fixed(void)
{
    VuVringAddr addr = vu_rig_addr(0);
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_start_ring(&rig, 0, 256, 5);
    vu_rig_expect_refused(&rig, vu_client_state(&rig.cl, VU_SET_VRING_NUM, 0,
                                                128), "ring 0 is running");
    vu_rig_expect_refused(&rig, vu_client_state(&rig.cl, VU_SET_VRING_BASE, 0,
                                                5), "ring 0 is running");
    addr.used += 0x1000;
    vu_rig_expect_refused(&rig, send_addr(&rig, &addr), "ring 0 is running");

    /* The same again is what switching a dirty log on looks like. */
    addr = vu_rig_addr(0);
    addr.flags = 1;
    vu_rig_expect_ok(&rig, send_addr(&rig, &addr));
    vu_rig_expect_ok(&rig, vu_client_state(&rig.cl, VU_SET_VRING_NUM, 0, 256));
    g_assert_cmpuint(rig.nic->rings[0].starts, ==, 1);
    g_assert_cmpuint(rig.nic->rings[0].stops, ==, 0);
    vu_rig_cleanup(&rig);
}

/* A refused size must not let an older, larger one write past the ring. */
static void test_bad_num_forgets(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_setup_ring(&rig, 0, 256, 0);
    vu_rig_expect_refused(&rig, vu_client_state(&rig.cl, VU_SET_VRING_NUM, 0,
                                                3), "ring size 3");
    vu_client_eventfd(&rig.cl, VU_SET_VRING_KICK, 0);
    g_assert_false(rig.nic->rings[0].started);
    vu_rig_cleanup(&rig);
}

static void test_new_kick(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_start_ring(&rig, 0, 256, 5);
    rig.nic->rings[0].position = 9;
    vu_rig_expect_ok(&rig, vu_client_eventfd(&rig.cl, VU_SET_VRING_KICK, 0));
    g_assert_true(rig.nic->rings[0].started);
    g_assert_cmpuint(rig.nic->rings[0].setup.last_avail, ==, 9);
    g_assert_cmpuint(rig.nic->rings[0].starts, ==, 2);
    vu_rig_cleanup(&rig);
}

/* ---- what cannot be served ---------------------------------------------- */

static void test_ring_not_in_memory(void)
{
    VuVringAddr addr = vu_rig_addr(1);
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_setup_ring(&rig, 1, 256, 0);
    /* The used ring needs 6 + 8 * 256 = 2054 bytes with EVENT_IDX. */
    addr.used = RIG_UADDR + RIG_RAM_BYTES - 2052;
    send_addr(&rig, &addr);
    vu_rig_expect_refused(&rig, vu_client_eventfd(&rig.cl, VU_SET_VRING_KICK,
                                                  1),
                          "SET_VRING_KICK: ring 1 is not in the guest's");
    addr.used -= 4;
    send_addr(&rig, &addr);
    vu_rig_expect_ok(&rig, vu_client_eventfd(&rig.cl, VU_SET_VRING_KICK, 1));
    g_assert_true(rig.nic->rings[1].started);
    vu_rig_cleanup(&rig);
}

static void test_device_refuses(void)
{
    VuVringAddr addr = vu_rig_addr(0);
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_setup_ring(&rig, 0, 256, 0);
    addr.desc += 8;
    send_addr(&rig, &addr);
    vu_rig_expect_refused(&rig, vu_client_eventfd(&rig.cl, VU_SET_VRING_KICK,
                                                  0),
                          "SET_VRING_KICK: ring 0: fake: bad ring");
    g_assert_false(rig.nic->rings[0].started);
    vu_rig_cleanup(&rig);
}

/* ---- enabling ----------------------------------------------------------- */

static void expect_enabled(VuRig *rig, bool first, bool second)
{
    g_assert_cmpint(rig->nic->rings[0].enabled, ==, first);
    g_assert_cmpint(rig->nic->rings[1].enabled, ==, second);
}

static void test_enable(void)
{
    uint64_t v1 = 1ULL << 32;
    VuRig rig;

    vu_rig_init(&rig, 1);
    /* Before anything else, as QEMU does. */
    vu_client_state(&rig.cl, VU_SET_VRING_ENABLE, 0, 1);
    expect_enabled(&rig, true, false);
    /* With bit 30 features change nothing, */
    vu_client_u64(&rig.cl, VU_SET_FEATURES, v1 | 1ULL << 30);
    expect_enabled(&rig, true, false);
    /* without it all rings are enabled, */
    vu_client_u64(&rig.cl, VU_SET_FEATURES, v1);
    expect_enabled(&rig, true, true);
    /* and nothing disables them but SET_VRING_ENABLE. */
    vu_client_u64(&rig.cl, VU_SET_FEATURES, v1 | 1ULL << 30);
    expect_enabled(&rig, true, true);
    vu_client_state(&rig.cl, VU_SET_VRING_ENABLE, 0, 0);
    expect_enabled(&rig, false, true);
    vu_rig_cleanup(&rig);
}

static void test_features_repeated(void)
{
    VuRig rig;

    rig_ready(&rig, 2);
    for (unsigned i = 0; i < 3; i++) {
        vu_rig_expect_ok(&rig, vu_client_u64(&rig.cl, VU_SET_FEATURES,
                                             1ULL << 32 | 1ULL << 30));
    }
    g_assert_cmpuint(rig.nic->feature_changes, ==, 2);
    vu_rig_cleanup(&rig);
}

/* ---- descriptors -------------------------------------------------------- */

static bool same_eventfd(int a, int b)
{
    uint64_t one = 1;

    g_assert_cmpint(write(a, &one, 8), ==, 8);
    return read(b, &one, 8) == 8;
}

static void test_call_and_err(void)
{
    int call = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int err = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    VuRig rig;

    rig_ready(&rig, 1);
    /* Placeholders before any setup. */
    vu_rig_expect_ok(&rig, vu_client_eventfd(&rig.cl, VU_SET_VRING_CALL, 0));
    vu_rig_expect_ok(&rig, vu_client_fd(&rig.cl, VU_SET_VRING_CALL, 0, call));
    vu_rig_expect_ok(&rig, vu_client_fd(&rig.cl, VU_SET_VRING_ERR, 1, err));
    g_assert_true(same_eventfd(rig.nic->rings[0].call_fd, call));
    g_assert_true(same_eventfd(rig.nic->rings[1].err_fd, err));

    /* They outlive a stop and a reset of the device, */
    vu_client_get_base(&rig.cl, 0);
    vu_rig_expect_ok(&rig, vu_client_send(&rig.cl, VU_RESET_DEVICE, NULL, 0,
                                          NULL, 0));
    g_assert_true(same_eventfd(rig.nic->rings[0].call_fd, call));
    /* not being taken away. */
    vu_rig_expect_ok(&rig, vu_client_fd(&rig.cl, VU_SET_VRING_CALL, 0, -1));
    g_assert_cmpint(rig.nic->rings[0].call_fd, ==, -1);
    vu_rig_cleanup(&rig);
    close(call);
    close(err);
}

/* Without a kick descriptor the export kicks by itself. */
static void test_polled_ring(void)
{
    uint64_t count;
    FakeRing *r;
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_setup_ring(&rig, 1, 256, 0);
    vu_rig_expect_ok(&rig, vu_client_fd(&rig.cl, VU_SET_VRING_KICK, 1, -1));
    r = &rig.nic->rings[1];
    g_assert_true(r->started);
    for (unsigned i = 0; i < 5; i++) {
        g_assert_cmpint(read(r->kick_fd, &count, 8), ==, -1);
        advance(&rig, 1 * NS_PER_MS);
        g_assert_cmpint(read(r->kick_fd, &count, 8), ==, 8);
    }
    vu_client_get_base(&rig.cl, 1);
    advance(&rig, 1 * NS_PER_MS);
    g_assert_cmpint(aio_next_deadline_ns(rig.ctx), ==, INT64_MAX);
    vu_rig_cleanup(&rig);
}

/* ---- memory ------------------------------------------------------------- */

/* Two halves that share one file, at distances of their own. */
static void test_table_while_running(void)
{
    VuRegion regions[2] = { vu_rig_region(0, RIG_RAM_BYTES / 2),
                            vu_rig_region(RIG_RAM_BYTES / 2,
                                          RIG_RAM_BYTES / 2) };
    int fds[2];
    FakeRing *r;
    GuestMap *map;
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_start_ring(&rig, 1, 256, 0);
    r = &rig.nic->rings[1];
    map = r->map;
    fds[0] = fds[1] = rig.ram_fd;
    vu_rig_expect_ok(&rig, vu_client_mem_table(&rig.cl, regions, fds, 2));
    g_assert_cmpuint(r->remaps, ==, 1);
    g_assert_cmpuint(r->stops, ==, 0);
    g_assert_true(r->map != map);
    g_assert_cmpuint(guest_map_region_count(r->map), ==, 2);
    vu_rig_cleanup(&rig);
}

static void test_table_without_ring(void)
{
    VuRegion half = vu_rig_region(RIG_RAM_BYTES / 2, RIG_RAM_BYTES / 2);
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_start_ring(&rig, 1, 256, 7);
    rig.nic->rings[1].position = 11;
    vu_rig_expect_ok(&rig, vu_client_mem_table(&rig.cl, &half, &rig.ram_fd,
                                               1));
    g_assert_false(rig.nic->rings[1].started);
    g_assert_false(rig.nic->rings[1].broken);
    vu_rig_memory(&rig);
    g_assert_true(rig.nic->rings[1].started);
    g_assert_cmpuint(rig.nic->rings[1].setup.last_avail, ==, 11);
    vu_rig_cleanup(&rig);
}

static void test_slots(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_rig_expect_ok(&rig, add_reg(&rig, 0x40000, 0x40000));
    /* Once per queue pair, from 7.2. */
    vu_rig_expect_ok(&rig, add_reg(&rig, 0x40000, 0x40000));
    vu_rig_start_ring(&rig, 0, 256, 0);
    g_assert_cmpuint(guest_map_region_count(rig.nic->rings[0].map), ==, 2);

    /* Survives the stop of all rings and a reset of the device. */
    vu_client_get_base(&rig.cl, 0);
    vu_client_send(&rig.cl, VU_RESET_DEVICE, NULL, 0, NULL, 0);
    vu_rig_start_ring(&rig, 0, 256, 0);
    g_assert_cmpuint(guest_map_region_count(rig.nic->rings[0].map), ==, 2);
    vu_rig_cleanup(&rig);
}

/* 7.2 with two pairs resizes a region: REM, ADD, REM, ADD. */
static void test_slots_resize(void)
{
    FakeRing *r;
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_rig_start_ring(&rig, 1, 256, 3);
    r = &rig.nic->rings[1];
    r->position = 8;

    vu_rig_expect_ok(&rig, rem_reg(&rig, 0, 0x40000));
    g_assert_false(r->started);
    advance(&rig, 199 * NS_PER_MS);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x80000));
    g_assert_true(r->started);
    vu_rig_expect_ok(&rig, rem_reg(&rig, 0, 0x40000));
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x80000));
    g_assert_true(r->started);
    g_assert_false(r->broken);
    g_assert_cmpuint(r->setup.last_avail, ==, 8);
    g_assert_cmpint(aio_next_deadline_ns(rig.ctx), ==, INT64_MAX);
    vu_rig_cleanup(&rig);
}

/* Memory that has nothing to do with the ring goes for good. */
static void test_slots_unplug(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_rig_expect_ok(&rig, add_reg(&rig, 0x40000, 0x40000));
    vu_rig_start_ring(&rig, 1, 256, 3);
    vu_rig_expect_ok(&rig, rem_reg(&rig, 0x40000, 0x40000));
    g_assert_false(rig.nic->rings[1].started);
    advance(&rig, 200 * NS_PER_MS);
    g_assert_true(rig.nic->rings[1].started);
    g_assert_cmpuint(guest_map_region_count(rig.nic->rings[1].map), ==, 1);
    vu_rig_cleanup(&rig);
}

/* A ring that cannot be served when its memory is back is said to be so. */
static void test_slots_resume_fails(void)
{
    VuVringAddr addr = vu_rig_addr(0);
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_rig_start_ring(&rig, 0, 256, 0);
    vu_rig_expect_ok(&rig, rem_reg(&rig, 0, 0x40000));
    addr.desc += 8;
    vu_rig_expect_ok(&rig, send_addr(&rig, &addr));
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_client_expect_line(&rig.cl, "ring 0: fake: bad ring");
    g_assert_false(rig.nic->rings[0].started);
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 0), ==, 0);
    vu_rig_cleanup(&rig);
}

/* Each region message of a change pushes the end further out. */
static void test_slots_settle(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_rig_expect_ok(&rig, add_reg(&rig, 0x40000, 0x40000));
    vu_rig_start_ring(&rig, 0, 256, 0);
    vu_rig_expect_ok(&rig, rem_reg(&rig, 0x40000, 0x40000));
    advance(&rig, 199 * NS_PER_MS);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0x40000, 0x20000));
    advance(&rig, 199 * NS_PER_MS);
    g_assert_false(rig.nic->rings[0].started);
    advance(&rig, 1 * NS_PER_MS);
    g_assert_true(rig.nic->rings[0].started);
    vu_rig_cleanup(&rig);
}

/* Two regions become two others; the rings resume with the last piece. */
static void test_slots_pieces(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_rig_expect_ok(&rig, add_reg(&rig, 0x40000, 0x40000));
    vu_rig_start_ring(&rig, 0, 256, 0);
    vu_rig_expect_ok(&rig, rem_reg(&rig, 0x40000, 0x40000));
    vu_rig_expect_ok(&rig, rem_reg(&rig, 0, 0x40000));
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x60000));
    g_assert_false(rig.nic->rings[0].started);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0x60000, 0x30000));
    g_assert_true(rig.nic->rings[0].started);
    g_assert_cmpint(aio_next_deadline_ns(rig.ctx), ==, INT64_MAX);
    vu_rig_cleanup(&rig);
}

/* A front-end that adds and removes for ever costs no more than the limit. */
static void test_slots_churn(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_rig_start_ring(&rig, 0, 256, 0);
    vu_rig_expect_ok(&rig, rem_reg(&rig, 0, 0x40000));
    for (unsigned i = 0; i < GUEST_MAP_MAX_REGIONS; i++) {
        vu_rig_expect_ok(&rig, add_reg(&rig, 0x40000, 0x1000));
        vu_rig_expect_ok(&rig, rem_reg(&rig, 0x40000, 0x1000));
    }
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x80000));
    g_assert_false(rig.nic->rings[0].started);
    advance(&rig, 200 * NS_PER_MS);
    g_assert_true(rig.nic->rings[0].started);
    vu_rig_cleanup(&rig);
}

/* A suspended ring answers GET_VRING_BASE and stays stopped. */
static void test_slots_stop_while_suspended(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_rig_start_ring(&rig, 0, 256, 0);
    rig.nic->rings[0].position = 21;
    vu_rig_expect_ok(&rig, rem_reg(&rig, 0, 0x40000));
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 0), ==, 21);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    advance(&rig, 200 * NS_PER_MS);
    g_assert_false(rig.nic->rings[0].started);
    vu_rig_cleanup(&rig);
}

/* The device waits for a reset: nothing here may hide that. */
static void test_broken_stays_broken(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    vu_rig_expect_ok(&rig, add_reg(&rig, 0x40000, 0x40000));
    vu_rig_start_ring(&rig, 0, 256, 0);
    rig.nic->rings[0].broken = true;
    vu_rig_expect_ok(&rig, rem_reg(&rig, 0x40000, 0x40000));
    advance(&rig, 200 * NS_PER_MS);
    g_assert_true(rig.nic->rings[0].broken);
    g_assert_cmpuint(rig.nic->rings[0].starts, ==, 1);
    vu_rig_cleanup(&rig);
}

static void test_rem_with_fd(void)
{
    VuRegion r = vu_rig_region(0, 0x40000);
    unsigned before;
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_expect_ok(&rig, add_reg(&rig, 0, 0x40000));
    before = vu_count_fds();
    vu_rig_expect_ok(&rig, vu_client_mem_reg(&rig.cl, VU_REM_MEM_REG, &r,
                                             rig.ram_fd));
    g_assert_cmpuint(vu_count_fds(), ==, before);
    vu_rig_cleanup(&rig);
}

/* ---- memory that makes no sense ----------------------------------------- */

typedef struct BadRegion {
    const char *name;
    VuRegion region;
    const char *part;
    bool refused;               /* else broken */
} BadRegion;

static const BadRegion bad_regions[] = {
    { "size-0", { 0, 0, 0, 0 }, "of 0x0 bytes" },
    { "gpa-wraps", { UINT64_MAX - 0xfff, 0x2000, 0, 0 }, "region at 0xf" },
    { "user-wraps", { 0, 0x2000, UINT64_MAX - 0xfff, 0 }, "user address 0xf" },
    { "offset-wraps", { 0, 0x1000, 0, UINT64_MAX - 0xfff }, "offset 0xf" },
    { "file-short", { 0, 0x1000, 0, RIG_RAM_BYTES }, "ends at", true },
    { "overlap-gpa", { RIG_GPA + 0x1000, 0x1000, 0, 0 }, "overlaps", true },
    { "overlap-user", { 0, 0x1000, RIG_UADDR, 0 }, "overlaps", true },
};

static void expect_bad_region(VuRig *rig, const BadRegion *t, VuOutcome out)
{
    if (t->refused) {
        vu_rig_expect_refused(rig, out, t->part);
    } else {
        vu_rig_expect_broken(rig, out, t->part);
    }
}

static void check_bad_add(const BadRegion *t, bool ack)
{
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_rig_negotiate(&rig, ack);
    vu_rig_memory(&rig);
    vu_rig_start_ring(&rig, 0, 256, 0);
    expect_bad_region(&rig, t, vu_client_mem_reg(&rig.cl, VU_ADD_MEM_REG,
                                                 &t->region, rig.ram_fd));
    /* Refused means: nothing happened. */
    g_assert_cmpint(rig.nic->rings[0].started, ==, t->refused);
    g_assert_cmpuint(rig.nic->rings[0].remaps, ==, 0);
    vu_rig_cleanup(&rig);
}

static void check_bad_table(const BadRegion *t, bool ack)
{
    VuRegion regions[2] = { vu_rig_region(0, RIG_RAM_BYTES), t->region };
    int fds[2];
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_rig_negotiate(&rig, ack);
    fds[0] = fds[1] = rig.ram_fd;
    expect_bad_region(&rig, t, vu_client_mem_table(&rig.cl, regions, fds, 2));
    vu_rig_cleanup(&rig);
}

static void test_bad_region(const void *opaque)
{
    for (int ack = 0; ack < 2; ack++) {
        check_bad_add(opaque, ack);
        check_bad_table(opaque, ack);
    }
}

/* Nine regions need nine descriptors, which is one too many, or lie. */
static void check_nine(uint32_t size, unsigned nfds, const char *part)
{
    VuMemTable t = { .count = 9 };
    int fds[9];
    VuRig rig;

    vu_rig_init(&rig, 1);
    for (unsigned i = 0; i < nfds; i++) {
        fds[i] = rig.ram_fd;
    }
    vu_rig_expect_broken(&rig, vu_client_send(&rig.cl, VU_SET_MEM_TABLE, &t,
                                              size, fds, nfds), part);
    vu_rig_cleanup(&rig);
}

static void test_ninth_region(void)
{
    check_nine(sizeof(VuMemTable), 8, "8 descriptors instead of 9");
    check_nine(sizeof(VuMemTable), 9, "more than 8 descriptors");
    check_nine(8, 0, "0 descriptors instead of 9");
}

static void test_not_memory(void)
{
    VuRegion r = vu_rig_region(0, 0x1000);
    VuRig rig;
    int fd = eventfd(0, EFD_CLOEXEC);

    rig_ready(&rig, 1);
    vu_rig_expect_refused(&rig, vu_client_mem_reg(&rig.cl, VU_ADD_MEM_REG, &r,
                                                  fd), "cannot map");
    vu_rig_cleanup(&rig);
    close(fd);
}

static void test_all_slots(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    for (uint64_t i = 0; i < 512; i++) {
        VuRegion r = { i * 0x2000, 0x1000, i * 0x2000, 0 };

        vu_rig_expect_ok(&rig, vu_client_mem_reg(&rig.cl, VU_ADD_MEM_REG, &r,
                                                 rig.ram_fd));
    }
    vu_rig_expect_refused(&rig, add_reg(&rig, 0, 0x1000), "more than 512");
    vu_rig_cleanup(&rig);
}

/* ---- resets ------------------------------------------------------------- */

static void test_reset_device(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_start_ring(&rig, 0, 256, 9);
    vu_client_state(&rig.cl, VU_SET_VRING_ENABLE, 0, 1);
    vu_rig_expect_ok(&rig, vu_client_send(&rig.cl, VU_RESET_DEVICE, NULL, 0,
                                          NULL, 0));
    g_assert_false(rig.nic->rings[0].started);
    expect_enabled(&rig, false, false);
    g_assert_cmphex(rig.nic->features, ==, 0);
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 0), ==, 0);

    /* Ring state is forgotten, memory and protocol features are not. */
    vu_rig_expect_ok(&rig, vu_client_eventfd(&rig.cl, VU_SET_VRING_KICK, 0));
    g_assert_false(rig.nic->rings[0].started);
    vu_rig_start_ring(&rig, 0, 256, 0);
    vu_rig_cleanup(&rig);
}

static void test_reset_owner_is_ignored(void)
{
    VuRig rig;

    rig_ready(&rig, 1);
    vu_rig_memory(&rig);
    vu_rig_start_ring(&rig, 0, 256, 9);
    vu_rig_expect_ok(&rig, vu_client_send(&rig.cl, VU_RESET_OWNER, NULL, 0,
                                          NULL, 0));
    g_assert_true(rig.nic->rings[0].started);
    vu_rig_cleanup(&rig);
}

static void add_bad_regions(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_regions); i++) {
        g_autofree char *path = g_strdup_printf("/vhost-user/bad-region/%s",
                                                bad_regions[i].name);

        g_test_add_data_func(path, &bad_regions[i], test_bad_region);
    }
}

static const struct {
    const char *path;
    GTestFunc fn;
} tests[] = {
    { "/vhost-user/ring/start-stop", test_start_stop },
    { "/vhost-user/ring/base-never-started", test_base_never_started },
    { "/vhost-user/ring/any-order", test_any_order },
    { "/vhost-user/ring/null", test_null_ring_is_skipped },
    { "/vhost-user/ring/running-is-fixed", test_running_is_fixed },
    { "/vhost-user/ring/bad-num-forgets", test_bad_num_forgets },
    { "/vhost-user/ring/new-kick", test_new_kick },
    { "/vhost-user/ring/not-in-memory", test_ring_not_in_memory },
    { "/vhost-user/ring/device-refuses", test_device_refuses },
    { "/vhost-user/ring/enable", test_enable },
    { "/vhost-user/ring/features-repeated", test_features_repeated },
    { "/vhost-user/ring/call-and-err", test_call_and_err },
    { "/vhost-user/ring/polled", test_polled_ring },
    { "/vhost-user/memory/table-while-running", test_table_while_running },
    { "/vhost-user/memory/table-without-ring", test_table_without_ring },
    { "/vhost-user/memory/slots", test_slots },
    { "/vhost-user/memory/resize", test_slots_resize },
    { "/vhost-user/memory/unplug", test_slots_unplug },
    { "/vhost-user/memory/settle", test_slots_settle },
    { "/vhost-user/memory/pieces", test_slots_pieces },
    { "/vhost-user/memory/churn", test_slots_churn },
    { "/vhost-user/memory/resume-fails", test_slots_resume_fails },
    { "/vhost-user/memory/stop-while-suspended",
      test_slots_stop_while_suspended },
    { "/vhost-user/memory/broken-stays-broken", test_broken_stays_broken },
    { "/vhost-user/memory/rem-with-fd", test_rem_with_fd },
    { "/vhost-user/memory/ninth-region", test_ninth_region },
    { "/vhost-user/memory/not-memory", test_not_memory },
    { "/vhost-user/memory/all-slots", test_all_slots },
    { "/vhost-user/reset/device", test_reset_device },
    { "/vhost-user/reset/owner", test_reset_owner_is_ignored },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_test_add_func(tests[i].path, tests[i].fn);
    }
    add_bad_regions();
    return g_test_run();
}
