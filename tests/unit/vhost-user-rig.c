/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rig: see vhost-user-rig.h.
 */
#include "vhost-user-rig.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void vu_rig_init(VuRig *rig, unsigned pairs)
{
    GError *err = NULL;

    *rig = (VuRig) { .fds_before = vu_count_fds() };
    rig->clock = clock_virtual_new(0);
    rig->ctx = aio_context_new("main", rig->clock, &err);
    g_assert_no_error(err);
    rig->dir = g_dir_make_tmp("vhost-user-XXXXXX", &err);
    g_assert_no_error(err);
    rig->path = g_build_filename(rig->dir, "sock", NULL);
    rig->nic = fake_net_new(pairs, RIG_FEATURES);
    rig->exp = vhost_user_export_new_path("exp0", rig->nic, rig->ctx,
                                          rig->path, &err);
    g_assert_no_error(err);
    rig->ram_fd = vu_memfd(RIG_RAM_BYTES);
    vu_client_init(&rig->cl, rig->ctx, vu_rig_dial(rig));
    vu_client_turn(&rig->cl);
    g_assert_true(vhost_user_export_connected(rig->exp));
}

void vu_rig_cleanup(VuRig *rig)
{
    vu_client_cleanup(&rig->cl);
    vhost_user_export_free(rig->exp);
    fake_net_free(rig->nic);
    aio_context_free(rig->ctx);
    clock_free(rig->clock);
    close(rig->ram_fd);
    g_assert_cmpint(access(rig->path, F_OK), ==, -1);
    g_assert_cmpint(rmdir(rig->dir), ==, 0);
    g_free(rig->path);
    g_free(rig->dir);
    g_assert_cmpuint(vu_count_fds(), ==, rig->fds_before);
}

int vu_rig_dial(VuRig *rig)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(addr.sun_path, rig->path, sizeof(addr.sun_path));
    g_assert_cmpint(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), ==,
                    0);
    return fd;
}

void vu_rig_reconnect(VuRig *rig)
{
    vu_client_close(&rig->cl);
    g_assert_false(vhost_user_export_connected(rig->exp));
    rig->cl.flags = 0;
    rig->cl.fd = vu_rig_dial(rig);
    vu_client_turn(&rig->cl);
    g_assert_true(vhost_user_export_connected(rig->exp));
}

void vu_rig_negotiate(VuRig *rig, bool ack)
{
    uint64_t features = vu_client_get(&rig->cl, VU_GET_FEATURES);
    uint64_t protocol = vu_client_get(&rig->cl, VU_GET_PROTOCOL_FEATURES);

    g_assert_cmphex(features, ==, (RIG_FEATURES & ~(1ULL << 40)) |
                    (1ULL << 30));
    g_assert_cmphex(protocol, ==, 0xa01d);
    if (!ack) {
        protocol &= ~(1ULL << VU_PROTOCOL_F_REPLY_ACK);
    }
    g_assert_cmpint(vu_client_u64(&rig->cl, VU_SET_PROTOCOL_FEATURES,
                                  protocol), ==, VU_OUT_SILENT);
    rig->cl.flags = ack ? VU_FLAG_NEED_REPLY : 0;
    vu_rig_expect_ok(rig, vu_client_u64(&rig->cl, VU_SET_FEATURES, features));
}

VuRegion vu_rig_region(uint64_t offset, uint64_t size)
{
    return (VuRegion) {
        .gpa = RIG_GPA + offset,
        .size = size,
        .uaddr = RIG_UADDR + offset,
        .mmap_offset = offset,
    };
}

void vu_rig_memory(VuRig *rig)
{
    VuRegion r = vu_rig_region(0, RIG_RAM_BYTES);

    vu_rig_expect_ok(rig, vu_client_mem_table(&rig->cl, &r, &rig->ram_fd, 1));
}

VuVringAddr vu_rig_addr(unsigned idx)
{
    uint64_t at = RIG_UADDR + 0x10000ULL * idx;

    return (VuVringAddr) {
        .index = idx,
        .desc = at,
        .avail = at + 0x4000,
        .used = at + 0x8000,
        .log = at + 0x8000 - RIG_UADDR + RIG_GPA,
    };
}

void vu_rig_setup_ring(VuRig *rig, unsigned idx, unsigned num, unsigned base)
{
    VuVringAddr addr = vu_rig_addr(idx);
    VuClient *cl = &rig->cl;

    vu_rig_expect_ok(rig, vu_client_state(cl, VU_SET_VRING_NUM, idx, num));
    vu_rig_expect_ok(rig, vu_client_state(cl, VU_SET_VRING_BASE, idx, base));
    vu_rig_expect_ok(rig, vu_client_send(cl, VU_SET_VRING_ADDR, &addr,
                                         sizeof(addr), NULL, 0));
}

void vu_rig_start_ring(VuRig *rig, unsigned idx, unsigned num, unsigned base)
{
    vu_rig_setup_ring(rig, idx, num, base);
    vu_rig_expect_ok(rig, vu_client_eventfd(&rig->cl, VU_SET_VRING_KICK,
                                            idx));
    g_assert_true(rig->nic->rings[idx].started);
    g_assert_cmpuint(rig->nic->rings[idx].setup.size, ==, num);
    g_assert_cmpuint(rig->nic->rings[idx].setup.last_avail, ==, base);
}

static bool acks(const VuRig *rig)
{
    return rig->cl.flags & VU_FLAG_NEED_REPLY;
}

void vu_rig_expect_ok(const VuRig *rig, VuOutcome out)
{
    g_assert_cmpint(out, ==, acks(rig) ? VU_OUT_ACK : VU_OUT_SILENT);
}

void vu_rig_expect_refused(VuRig *rig, VuOutcome out, const char *part)
{
    g_assert_cmpint(out, ==, acks(rig) ? VU_OUT_NACK : VU_OUT_SILENT);
    vu_client_expect_line(&rig->cl, part);
    g_assert_true(vhost_user_export_connected(rig->exp));
}

void vu_rig_expect_broken(VuRig *rig, VuOutcome out, const char *part)
{
    g_assert_cmpint(out, ==, acks(rig) ? VU_OUT_NACK_CLOSED : VU_OUT_CLOSED);
    vu_client_expect_line(&rig->cl, part);
    g_assert_false(vhost_user_export_connected(rig->exp));
}
