/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FramePipe: a bounded queue of frames from one context to another.
 *
 * One producer, one consumer, no lock: the ring is preallocated, each end
 * owns its index, and each end wakes the other by a bottom half.  The two ends
 * may live in the same context.  Neither callback is ever run from inside a
 * call of the other end.
 *
 * Ends are opened and closed while their own context does not use the pipe, by
 * main or in that context; the other end may be busy all the while, and is not
 * waited for.
 */
#ifndef NET_FRAME_PIPE_H
#define NET_FRAME_PIPE_H

#include "net/net.h"

typedef struct FramePipe FramePipe;

/*
 * frame_pipe_new: create a pipe without ends.
 * @bytes: capacity, a power of two and at least four of the largest frame
 */
FramePipe *frame_pipe_new(size_t bytes);

/* frame_pipe_free: both ends must be closed. */
void frame_pipe_free(FramePipe *p);

/* ---- ends ------------------------------------------------------------ */

/*
 * frame_pipe_open_consumer: @on_data is called in @ctx while the consumer
 * wants frames and there are some (level semantics).
 *
 * frame_pipe_open_producer: @on_room is called in @ctx once for each
 * frame_pipe_wait_room() that returned true.
 */
void frame_pipe_open_consumer(FramePipe *p, AioContext *ctx, AioFunc *on_data,
                              void *opaque);
void frame_pipe_open_producer(FramePipe *p, AioContext *ctx, AioFunc *on_room,
                              void *opaque);

/*
 * frame_pipe_close_consumer: frames in the pipe are discarded, and a producer
 * that waits for room is called.
 */
void frame_pipe_close_consumer(FramePipe *p);
void frame_pipe_close_producer(FramePipe *p);

/* ---- producer -------------------------------------------------------- */

/* frame_pipe_is_open: there is a consumer. */
bool frame_pipe_is_open(FramePipe *p);

/* frame_pipe_push: append one frame of @bytes; false if it does not fit. */
bool frame_pipe_push(FramePipe *p, const struct iovec *iov, unsigned iovcnt,
                     size_t bytes);

/* frame_pipe_flush: after a number of pushes, tell the consumer. */
void frame_pipe_flush(FramePipe *p);

/*
 * frame_pipe_send_batch: push, flush, and wait for room if it did not take
 * all: net_send_batch().  Without a consumer everything is taken and thrown
 * away.
 */
unsigned frame_pipe_send_batch(FramePipe *p, NetPacket *pkts, unsigned n);

/* frame_pipe_half_full: more than half of the capacity is in use. */
bool frame_pipe_half_full(FramePipe *p);

/*
 * frame_pipe_wait_room: have on_room called when three quarters are free.
 *
 * Returns false if that is so already: push again, nothing will be called.
 */
bool frame_pipe_wait_room(FramePipe *p);

/* frame_pipe_cancel_wait: on_room will not be called. */
void frame_pipe_cancel_wait(FramePipe *p);

/* ---- consumer -------------------------------------------------------- */

/*
 * frame_pipe_pop: take one frame.  Outcomes as net_recv(), never DEAD.
 */
NetRecvStatus frame_pipe_pop(FramePipe *p, const struct iovec *iov,
                             unsigned iovcnt, size_t *bytes);

/* frame_pipe_want: as net_rx_want().  A new consumer wants nothing. */
void frame_pipe_want(FramePipe *p, bool want);

#endif /* NET_FRAME_PIPE_H */
