/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames, and what a peer makes of them: see the header.
 */
#include <string.h>

#include "vnet-bench-frame.h"

/* A receiver of TCP acknowledges every other full segment. */
#define DELAYED_ACK     (2 * 1448)

void bench_frame_init(BenchFrame *f, BenchKind kind, unsigned flow,
                      bool from_peer)
{
    *f = (BenchFrame) {
        .dst = { 2, 0, 0, 0, 0, from_peer ? 1 : 2 },
        .src = { 2, 0, 0, 0, 0, from_peer ? 2 : 1 },
        .type = { BENCH_ETHERTYPE >> 8, BENCH_ETHERTYPE & 0xff },
        .kind = kind,
        .flow = flow,
    };
}

bool bench_frame_is_ours(const BenchFrame *f, uint32_t bytes)
{
    return bytes >= sizeof(*f) && f->type[0] == BENCH_ETHERTYPE >> 8 &&
           f->type[1] == (BENCH_ETHERTYPE & 0xff) &&
           f->flow < BENCH_FLOWS_MAX;
}

static void take_note(BenchPeer *p, const BenchFrame *in, uint32_t bytes)
{
    p->frames++;
    p->bytes += bytes;
    p->disordered += in->seq != p->seq[in->flow];
    p->seq[in->flow] = in->seq + 1;
}

/* Cumulative: what got lost on the way is acknowledged with what came. */
static uint32_t acknowledge(BenchPeer *p, const BenchFrame *in,
                            BenchFrame *out)
{
    uint64_t *acked = &p->acked[in->flow];

    if (in->value - *acked < DELAYED_ACK) {
        return 0;
    }
    *acked = in->value;
    bench_frame_init(out, BENCH_ACK, in->flow, true);
    out->value = in->value;
    return BENCH_ACK_BYTES;
}

uint32_t bench_peer_receive(BenchPeer *p, const BenchFrame *in, uint32_t bytes,
                            BenchFrame *out)
{
    take_note(p, in, bytes);
    switch (in->kind) {
    case BENCH_ECHO:
        bench_frame_init(out, BENCH_ANSWER, in->flow, true);
        out->value = in->value;
        return in->answer_bytes;
    case BENCH_STREAM:
        return acknowledge(p, in, out);
    default:
        return 0;
    }
}
