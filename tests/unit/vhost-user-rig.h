/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What most tests of the export start from: the recording device behind an
 * export on a socket path, a front-end connected to it, a virtual clock, and
 * one megabyte of guest memory.
 */
#ifndef TESTS_UNIT_VHOST_USER_RIG_H
#define TESTS_UNIT_VHOST_USER_RIG_H

#include "fake-virtio-net.h"
#include "vhost-user-client.h"

/* Guest memory: different addresses in the two spaces, on purpose. */
#define RIG_RAM_BYTES   0x100000
#define RIG_GPA         0x40000000ULL
#define RIG_UADDR       0x7f1234000000ULL

/* Bit numbers of features the rig's device offers. */
#define RIG_FEATURES    ((1ULL << 32) | (1ULL << 29) | (1ULL << 28) |        \
                         (1ULL << 22) | (1ULL << 15) | (1ULL << 40))

typedef struct VuRig {
    Clock *clock;
    AioContext *ctx;
    VirtIONet *nic;
    VhostUserExport *exp;
    VuClient cl;
    char *dir;
    char *path;
    int ram_fd;
    unsigned fds_before;
} VuRig;

/* vu_rig_init: all of it, connected, nothing said yet. */
void vu_rig_init(VuRig *rig, unsigned pairs);

/* vu_rig_cleanup: asserts that no descriptor, ring or line is left. */
void vu_rig_cleanup(VuRig *rig);

/* vu_rig_dial: connect one more front-end; the caller closes it. */
int vu_rig_dial(VuRig *rig);

/* vu_rig_reconnect: the front-end goes and comes back. */
void vu_rig_reconnect(VuRig *rig);

/* vu_rig_negotiate: bit 30, and REPLY_ACK with need_reply on all messages. */
void vu_rig_negotiate(VuRig *rig, bool ack);

/* vu_rig_region: @size bytes at @offset, at that distance in all spaces. */
VuRegion vu_rig_region(uint64_t offset, uint64_t size);

/* vu_rig_memory: all of it, with SET_MEM_TABLE. */
void vu_rig_memory(VuRig *rig);

/* vu_rig_addr: where the rig puts ring @idx: 64 KiB each. */
VuVringAddr vu_rig_addr(unsigned idx);

/* vu_rig_setup_ring: NUM, BASE and ADDR. */
void vu_rig_setup_ring(VuRig *rig, unsigned idx, unsigned num, unsigned base);

/* vu_rig_start_ring: the same and KICK; asserts that it runs. */
void vu_rig_start_ring(VuRig *rig, unsigned idx, unsigned num, unsigned base);

/* vu_rig_expect: success is what @out says, acknowledged or not. */
void vu_rig_expect_ok(const VuRig *rig, VuOutcome out);

/* vu_rig_expect_refused: failure, one line with @part, still connected. */
void vu_rig_expect_refused(VuRig *rig, VuOutcome out, const char *part);

/* vu_rig_expect_broken: failure, one line with @part, connection closed. */
void vu_rig_expect_broken(VuRig *rig, VuOutcome out, const char *part);

#endif /* TESTS_UNIT_VHOST_USER_RIG_H */
