/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of the ring's verbs, apart from everything around them.
 *
 *   bench-vring SHAPE BATCH PACKETS [all]
 *
 * A ring of 256, full of 64-byte packets (with their header 76 bytes) in the
 * chosen shape:
 *
 *   one        one descriptor
 *   two        header and data in two descriptors
 *   indirect   the same two in an indirect table
 *   receive    one writable descriptor of 1536 bytes
 *
 * The driver's part is one store a batch: its descriptors and available
 * entries stay as they are, since they are used in order, and it moves its
 * index.  Each batch is one pop_batch, a fill each, one publish; with "all"
 * also park, should_signal and arm, as a flush has them.
 *
 * Counting instructions: ring-instructions.sh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vring-harness.h"

#define SIZE 256
#define TABLES (VH_BUFFERS + 0x40000)
#define HEADER 12
#define DATA 64
#define RECEIVE 1536

static uint64_t buffer(unsigned i)
{
    return VH_BUFFERS + 0x200 * (i % 512);
}

static void shape_one(VringHarness *h, unsigned i)
{
    vring_driver_desc(&h->drv, i, buffer(i), HEADER + DATA, 0, 0);
    vring_driver_offer(&h->drv, i);
}

/* Half as many chains as entries: the ring is walked twice. */
static void shape_two(VringHarness *h, unsigned i)
{
    unsigned head = 2 * i % SIZE;

    vring_driver_desc(&h->drv, head, buffer(i), HEADER, VRING_DESC_F_NEXT,
                      head + 1);
    vring_driver_desc(&h->drv, head + 1, buffer(i) + 0x100, DATA, 0, 0);
    vring_driver_offer(&h->drv, head);
}

static void shape_indirect(VringHarness *h, unsigned i)
{
    uint64_t table = TABLES + 32 * i;

    vring_harness_table(h, table, 0, buffer(i), HEADER, VRING_DESC_F_NEXT, 1);
    vring_harness_table(h, table, 1, buffer(i) + 0x100, DATA, 0, 0);
    vring_driver_desc(&h->drv, i, table, 32, VRING_DESC_F_INDIRECT, 0);
    vring_driver_offer(&h->drv, i);
}

static void shape_receive(VringHarness *h, unsigned i)
{
    vring_driver_desc(&h->drv, i, VH_SPLIT + 0x800 * i, RECEIVE,
                      VRING_DESC_F_WRITE, 0);
    vring_driver_offer(&h->drv, i);
}

static const struct {
    const char *name;
    void (*make)(VringHarness *h, unsigned i);
    uint32_t used_len;
} shapes[] = {
    { "one", shape_one, 0 },
    { "two", shape_two, 0 },
    { "indirect", shape_indirect, 0 },
    { "receive", shape_receive, HEADER + DATA },
};

static unsigned flush(VirtQueue *vq, unsigned batch, uint32_t used_len)
{
    VirtQueueElem *elems[SIZE];
    unsigned n = virtqueue_pop_batch(vq, elems, batch, SIZE_MAX);

    for (unsigned i = 0; i < n; i++) {
        virtqueue_fill(vq, elems[i], used_len);
    }
    return virtqueue_publish(vq);
}

static unsigned flush_all(VirtQueue *vq, unsigned batch, uint32_t used_len)
{
    unsigned n;

    virtqueue_park(vq);
    n = flush(vq, batch, used_len);
    if (virtqueue_should_signal(vq)) {
        virtqueue_signalled(vq);
    }
    virtqueue_arm(vq, 1);
    return n;
}

/* Returns nanoseconds. */
static int64_t run(VringHarness *h, unsigned batch, uint64_t packets,
                   uint32_t used_len,
                   unsigned (*one)(VirtQueue *, unsigned, uint32_t))
{
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (uint64_t done = 0; done < packets; done += batch) {
        vring_driver_set_avail_idx(&h->drv, h->drv.avail_idx + batch);
        if (one(h->vq, batch, used_len) != batch) {
            fprintf(stderr, "bench-vring: the ring stopped: %s\n",
                    h->why ? h->why : "short");
            exit(1);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (to.tv_sec - from.tv_sec) * INT64_C(1000000000) + to.tv_nsec -
           from.tv_nsec;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench-vring one|two|indirect|receive BATCH "
                    "PACKETS [all]\n");
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t features = VH_INDIRECT | VH_EVENT_IDX;
    unsigned shape = 0;
    VringHarness *h;
    uint64_t packets;
    unsigned batch;
    bool all = argc == 5 && !strcmp(argv[4], "all");
    int64_t ns;

    if (argc != 4 && !all) {
        return usage();
    }
    while (shape < G_N_ELEMENTS(shapes) &&
           strcmp(argv[1], shapes[shape].name)) {
        shape++;
    }
    batch = strtoul(argv[2], NULL, 10);
    packets = strtoull(argv[3], NULL, 10);
    if (shape == G_N_ELEMENTS(shapes) || batch < 1 || batch > SIZE ||
        packets < batch) {
        return usage();
    }
    h = vring_harness_new(SIZE, features);
    for (unsigned i = 0; i < SIZE; i++) {
        shapes[shape].make(h, i);
    }
    vring_driver_set_avail_idx(&h->drv, 0);
    packets -= packets % batch;
    ns = run(h, batch, packets, shapes[shape].used_len,
             all ? flush_all : flush);
    printf("%" G_GUINT64_FORMAT " packets, %.1f ns each\n", packets,
           (double)ns / packets);
    vring_harness_free(h);
    return 0;
}
