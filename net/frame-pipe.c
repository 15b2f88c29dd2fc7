/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A frame in the ring is a 4-byte length and its bytes, padded to 8.  It never
 * wraps: one that does not fit before the end leaves a SKIP mark there and
 * starts at the front.  So the waste is below one frame, and a frame always
 * fits when half of the ring is free.  wait_room() waits until three quarters
 * are: a producer that stops at half or at the end then has a run before it
 * stops again.
 *
 * Two questions are asked across the two ends, and both have the shape "I
 * write mine, then read yours":
 *
 *   frame_pipe_flush()      writes head, reads want
 *   frame_pipe_want(true)   writes want, reads head
 *
 *   frame_pipe_wait_room()  writes need_room, reads tail
 *   frame_pipe_pop()        writes tail, reads need_room
 *
 * A full barrier between write and read on both sides makes it certain that
 * at least one of the two sees the other.
 *
 * An end's bottom half is scheduled by the other end, which may do so while
 * this one is being closed: a leaf lock covers the pointer and the scheduling,
 * never a callback.  It is taken only when the other end waits for the call.
 */
#include "frame-pipe.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "util/iov.h"

#define FRAME_ALIGN         8
#define FRAME_HEADER        sizeof(uint32_t)
#define FRAME_SKIP          UINT32_MAX
#define FRAME_CACHE_LINE    64

typedef struct FramePipeEnd {
    atomic_bool open;
    pthread_mutex_t lock;       /* may the other end schedule bh? */
    bool callable;              /* under lock */

    /* Written while this end is quiet. */
    FramePipe *pipe;
    AioContext *ctx;            /* NULL: closed */
    AioFunc *fn;
    void *opaque;
    AioBH *bh;
} FramePipeEnd;

struct FramePipe {
    uint8_t *data;
    size_t size;
    FramePipeEnd consumer, producer;

    /* Producer. */
    _Alignas(FRAME_CACHE_LINE)
    _Atomic size_t head;
    size_t tail_seen;           /* a tail that is, at worst, too old */

    /* Consumer. */
    _Alignas(FRAME_CACHE_LINE)
    _Atomic size_t tail;
    size_t head_seen;

    /* Set by one end, read or cleared by the other. */
    _Alignas(FRAME_CACHE_LINE)
    atomic_bool want;           /* consumer wants frames */
    atomic_bool need_room;      /* producer waits */
};

static size_t frame_footprint(size_t bytes)
{
    return (FRAME_HEADER + bytes + FRAME_ALIGN - 1) & ~(FRAME_ALIGN - 1UL);
}

FramePipe *frame_pipe_new(size_t bytes)
{
    FramePipe *p = aligned_alloc(FRAME_CACHE_LINE, sizeof(*p));

    assert(p && !(bytes & (bytes - 1)));
    memset(p, 0, sizeof(*p));
    p->size = bytes;
    p->data = g_malloc(bytes);
    p->consumer.pipe = p;
    p->producer.pipe = p;
    pthread_mutex_init(&p->consumer.lock, NULL);
    pthread_mutex_init(&p->producer.lock, NULL);
    return p;
}

void frame_pipe_free(FramePipe *p)
{
    if (!p) {
        return;
    }
    assert(!p->consumer.ctx && !p->producer.ctx);
    pthread_mutex_destroy(&p->consumer.lock);
    pthread_mutex_destroy(&p->producer.lock);
    g_free(p->data);
    free(p);
}

/* Either end calls the other. */
static void frame_pipe_call(FramePipeEnd *e)
{
    pthread_mutex_lock(&e->lock);
    if (e->callable) {
        aio_bh_schedule(e->bh);
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- producer -------------------------------------------------------- */

bool frame_pipe_is_open(FramePipe *p)
{
    return atomic_load_explicit(&p->consumer.open, memory_order_relaxed);
}

static size_t frame_pipe_used(FramePipe *p)
{
    p->tail_seen = atomic_load_explicit(&p->tail, memory_order_acquire);
    return atomic_load_explicit(&p->head, memory_order_relaxed) - p->tail_seen;
}

bool frame_pipe_push(FramePipe *p, const struct iovec *iov, unsigned iovcnt,
                     size_t bytes)
{
    size_t head = atomic_load_explicit(&p->head, memory_order_relaxed);
    size_t need = frame_footprint(bytes);
    size_t to_end = p->size - (head & (p->size - 1));
    size_t skip = need > to_end ? to_end : 0;
    uint32_t mark = FRAME_SKIP, length = bytes;
    uint8_t *at;

    assert(2 * need <= p->size / 2);
    if (head - p->tail_seen + skip + need > p->size &&
        frame_pipe_used(p) + skip + need > p->size) {
        return false;
    }
    if (skip) {
        memcpy(p->data + (head & (p->size - 1)), &mark, sizeof(mark));
        head += skip;
    }
    at = p->data + (head & (p->size - 1));
    memcpy(at, &length, sizeof(length));
    iov_to_buf(iov, iovcnt, 0, at + FRAME_HEADER, bytes);
    /* Pairs with the acquire in frame_pipe_front(). */
    atomic_store_explicit(&p->head, head + need, memory_order_release);
    return true;
}

void frame_pipe_flush(FramePipe *p)
{
    /* Pairs with the barrier in frame_pipe_want(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&p->want, memory_order_relaxed)) {
        frame_pipe_call(&p->consumer);
    }
}

bool frame_pipe_half_full(FramePipe *p)
{
    return frame_pipe_used(p) > p->size / 2;
}

static bool frame_pipe_has_room(const FramePipe *p, size_t used)
{
    return used <= p->size / 4;
}

bool frame_pipe_wait_room(FramePipe *p)
{
    atomic_store_explicit(&p->need_room, true, memory_order_relaxed);
    /* Pairs with the barriers in frame_pipe_pop() and _close_consumer(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (!frame_pipe_is_open(p) ||
        frame_pipe_has_room(p, frame_pipe_used(p))) {
        /* Lost to the consumer: on_room is on its way, so wait for it. */
        return !atomic_exchange(&p->need_room, false);
    }
    return true;
}

void frame_pipe_cancel_wait(FramePipe *p)
{
    atomic_store_explicit(&p->need_room, false, memory_order_relaxed);
    aio_bh_cancel(p->producer.bh);
}

/* Returns false if there is no room for it. */
static bool frame_pipe_send(FramePipe *p, NetPacket *pkt)
{
    if (pkt->bytes > NET_MAX_FRAME_BYTES) {
        pkt->answer = NET_TX_DROPPED;
        return true;
    }
    /* The consumer may leave while this runs. */
    while (frame_pipe_is_open(p) &&
           !frame_pipe_push(p, pkt->iov, pkt->iovcnt, pkt->bytes)) {
        if (frame_pipe_wait_room(p)) {
            return false;
        }
    }
    pkt->answer = NET_TX_DONE;
    return true;
}

unsigned frame_pipe_send_batch(FramePipe *p, NetPacket *pkts, unsigned n)
{
    unsigned i;

    for (i = 0; i < n && frame_pipe_send(p, &pkts[i]); i++) {
    }
    frame_pipe_flush(p);
    return i;
}

/* ---- consumer -------------------------------------------------------- */

static bool frame_pipe_is_empty(FramePipe *p)
{
    size_t tail = atomic_load_explicit(&p->tail, memory_order_relaxed);

    if (p->head_seen == tail) {
        /* Pairs with the release in frame_pipe_push(). */
        p->head_seen = atomic_load_explicit(&p->head, memory_order_acquire);
    }
    return p->head_seen == tail;
}

/* The first frame; the pipe is not empty. */
static const uint8_t *frame_pipe_front(FramePipe *p, size_t *tail,
                                       uint32_t *length)
{
    const uint8_t *at = p->data + (*tail & (p->size - 1));

    memcpy(length, at, sizeof(*length));
    if (*length == FRAME_SKIP) {
        *tail += p->size - (*tail & (p->size - 1));
        at = p->data;
        memcpy(length, at, sizeof(*length));
    }
    return at + FRAME_HEADER;
}

static void frame_pipe_call_producer(FramePipe *p)
{
    if (atomic_exchange(&p->need_room, false)) {
        frame_pipe_call(&p->producer);
    }
}

NetRecvStatus frame_pipe_pop(FramePipe *p, const struct iovec *iov,
                             unsigned iovcnt, size_t *bytes)
{
    size_t tail = atomic_load_explicit(&p->tail, memory_order_relaxed);
    const uint8_t *frame;
    uint32_t length;
    bool fits;

    if (frame_pipe_is_empty(p)) {
        return NET_RECV_EMPTY;
    }
    frame = frame_pipe_front(p, &tail, &length);
    fits = iov_from_buf(iov, iovcnt, 0, frame, length) == length;
    tail += frame_footprint(length);
    /* Pairs with the acquire in frame_pipe_used(). */
    atomic_store_explicit(&p->tail, tail, memory_order_release);
    /* Pairs with the barrier in frame_pipe_wait_room(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&p->need_room, memory_order_relaxed) &&
        frame_pipe_has_room(p, atomic_load_explicit(&p->head,
                                                    memory_order_relaxed) -
                               tail)) {
        frame_pipe_call_producer(p);
    }
    *bytes = length;
    return fits ? NET_RECV_PACKET : NET_RECV_DROPPED;
}

void frame_pipe_want(FramePipe *p, bool want)
{
    atomic_store_explicit(&p->want, want, memory_order_relaxed);
    /* Pairs with the barrier in frame_pipe_flush(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (want && !frame_pipe_is_empty(p)) {
        aio_bh_schedule(p->consumer.bh);
    }
}

/* ---- ends ------------------------------------------------------------ */

static bool frame_pipe_has_work(FramePipe *p)
{
    return atomic_load_explicit(&p->want, memory_order_relaxed) &&
           !frame_pipe_is_empty(p);
}

static void frame_pipe_data_bh(void *opaque)
{
    FramePipe *p = opaque;

    if (frame_pipe_has_work(p)) {
        p->consumer.fn(p->consumer.opaque);
    }
    if (frame_pipe_has_work(p)) {
        aio_bh_schedule(p->consumer.bh);
    }
}

static void frame_pipe_room_bh(void *opaque)
{
    FramePipe *p = opaque;

    p->producer.fn(p->producer.opaque);
}

static void frame_pipe_open_end(FramePipeEnd *e, AioContext *ctx, AioFunc *bh,
                                AioFunc *fn, void *opaque)
{
    assert(!e->ctx);
    e->ctx = ctx;
    e->fn = fn;
    e->opaque = opaque;
    e->bh = aio_bh_new(ctx, bh, e->pipe);
    pthread_mutex_lock(&e->lock);
    e->callable = true;
    pthread_mutex_unlock(&e->lock);
    atomic_store_explicit(&e->open, true, memory_order_release);
}

/* The consumer's context, or while it is quiet. */
static void frame_pipe_discard(FramePipe *p)
{
    p->head_seen = atomic_load_explicit(&p->head, memory_order_acquire);
    atomic_store_explicit(&p->tail, p->head_seen, memory_order_release);
}

void frame_pipe_open_consumer(FramePipe *p, AioContext *ctx, AioFunc *on_data,
                              void *opaque)
{
    /* What a producer pushed while the last consumer closed. */
    frame_pipe_discard(p);
    frame_pipe_open_end(&p->consumer, ctx, frame_pipe_data_bh, on_data,
                        opaque);
}

void frame_pipe_open_producer(FramePipe *p, AioContext *ctx, AioFunc *on_room,
                              void *opaque)
{
    frame_pipe_open_end(&p->producer, ctx, frame_pipe_room_bh, on_room,
                        opaque);
}

/* The end's own context, so that its callback is not running. */
static void frame_pipe_delete_bh(void *opaque)
{
    FramePipeEnd *e = opaque;

    aio_bh_delete(e->bh);
    e->bh = NULL;
}

static void frame_pipe_close_end(FramePipeEnd *e)
{
    atomic_store_explicit(&e->open, false, memory_order_relaxed);
    pthread_mutex_lock(&e->lock);
    e->callable = false;
    pthread_mutex_unlock(&e->lock);
    aio_wait_bh_oneshot(e->ctx, frame_pipe_delete_bh, e);
    e->ctx = NULL;
}

void frame_pipe_close_consumer(FramePipe *p)
{
    atomic_store_explicit(&p->want, false, memory_order_relaxed);
    frame_pipe_close_end(&p->consumer);
    frame_pipe_discard(p);
    /* Pairs with the barrier in frame_pipe_wait_room(). */
    atomic_thread_fence(memory_order_seq_cst);
    frame_pipe_call_producer(p);
}

void frame_pipe_close_producer(FramePipe *p)
{
    frame_pipe_close_end(&p->producer);
    atomic_store_explicit(&p->need_room, false, memory_order_relaxed);
}
