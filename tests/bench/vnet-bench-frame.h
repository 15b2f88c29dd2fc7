/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What travels between vnet-bench's guests and their peers: Ethernet frames
 * of an experimental type, which no kernel answers, and what a peer makes of
 * one.
 */
#ifndef TESTS_BENCH_VNET_BENCH_FRAME_H
#define TESTS_BENCH_VNET_BENCH_FRAME_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define BENCH_ETHERTYPE     0x88b5      /* IEEE 802: local experiments */
#define BENCH_FRAME_MAX     65160       /* 45 segments of TCP, 1448 each */
#define BENCH_FLOWS_MAX     32          /* of one guest */
#define BENCH_ACK_BYTES     66

typedef enum BenchKind {
    BENCH_SINK,                 /* nobody wants it: the host drops it early */
    BENCH_ECHO,                 /* to be answered, with answer_bytes */
    BENCH_STREAM,               /* part of a stream, to be acknowledged */
    BENCH_ANSWER,               /* to an echo: its stamp_ns */
    BENCH_ACK,                  /* of a stream: offset */
    BENCH_TICK,                 /* from the peer, unasked: stamp_ns */
} BenchKind;

/* The start of each frame; what follows it means nothing. */
typedef struct BenchFrame {
    uint8_t dst[6];
    uint8_t src[6];
    uint8_t type[2];
    uint8_t kind;               /* byte 14: filters look at it */
    uint8_t flow;
    uint32_t answer_bytes;
    uint32_t seq;               /* counts the frames of a flow, from 0 */
    uint64_t value;             /* stamp_ns, or the stream's offset after it */
} __attribute__((packed)) BenchFrame;
G_STATIC_ASSERT(sizeof(BenchFrame) == 32);

/* What a peer remembers of one guest.  Zero-initialised. */
typedef struct BenchPeer {
    uint64_t acked[BENCH_FLOWS_MAX];
    uint32_t seq[BENCH_FLOWS_MAX];      /* next one expected */
    uint64_t frames, bytes;
    uint64_t disordered;                /* not the next one of its flow */
} BenchPeer;

/* bench_frame_init: from a guest to its peer, or the other way. */
void bench_frame_init(BenchFrame *f, BenchKind kind, unsigned flow,
                      bool from_peer);

/* bench_frame_is_ours: @bytes of it are there. */
bool bench_frame_is_ours(const BenchFrame *f, uint32_t bytes);

/*
 * bench_peer_receive: take note of @in, @bytes long, and answer.  Returns the
 * length of the answer that starts with @out, or 0 for none.
 */
uint32_t bench_peer_receive(BenchPeer *p, const BenchFrame *in, uint32_t bytes,
                            BenchFrame *out);

#endif /* TESTS_BENCH_VNET_BENCH_FRAME_H */
