/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bottom halves: callbacks scheduled from any thread, run by the owner.
 *
 * A bottom half is one word of flags:
 *
 *   QUEUED     linked in one of the lists.  Whoever sets it links the
 *              bottom half; only the owner clears it, after unlinking.
 *   SCHEDULED  the callback shall run when its turn comes.  Cancelling clears
 *              it and leaves the bottom half linked.
 *   DELETED    to be freed when its turn comes, by the owner.
 *   ONESHOT    nobody holds a pointer: freed after its only run.
 *
 * The lists: local_bhs and behind_bhs belong to the owner, which links without
 * any atomic operation but the one on the flags, and needs no wake-up;
 * remote_bhs is a stack that others push to with compare-and-swap and the owner
 * takes whole (so there is no ABA problem), turning it round to first-come
 * order.
 *
 * Only the owner frees, so a callback never runs in freed memory; a thread
 * that schedules must only be sure that nobody has deleted the bottom half
 * before.
 *
 * Ordering: every change of the flags is an acquire-release read-modify-write,
 * so all of them on one bottom half are totally ordered and what a thread
 * wrote before it set SCHEDULED is visible to the run that clears it.
 */
#include "aio-internal.h"

#include <pthread.h>

enum {
    BH_QUEUED    = 1 << 0,
    BH_SCHEDULED = 1 << 1,
    BH_DELETED   = 1 << 2,
    BH_ONESHOT   = 1 << 3,
};

struct AioBH {
    AioContext *ctx;
    AioFunc *fn;
    void *opaque;
    AioBH *next;                /* of who set BH_QUEUED, then the owner */
    atomic_uint flags;
};

static unsigned bh_set(AioBH *bh, unsigned flags)
{
    return atomic_fetch_or_explicit(&bh->flags, flags, memory_order_acq_rel);
}

static unsigned bh_clear(AioBH *bh, unsigned flags)
{
    return atomic_fetch_and_explicit(&bh->flags, ~flags,
                                     memory_order_acq_rel);
}

static void bh_push(AioBHList *list, AioBH *bh)
{
    bh->next = NULL;
    *list->tail = bh;
    list->tail = &bh->next;
}

/* The release pairs with the acquire in bhs_take_remote(). */
static void bh_push_remote(AioContext *ctx, AioBH *bh)
{
    AioBH *head = atomic_load_explicit(&ctx->remote_bhs,
                                       memory_order_relaxed);

    do {
        bh->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&ctx->remote_bhs, &head,
                                                    bh, memory_order_release,
                                                    memory_order_relaxed));
}

static AioBH *bh_alloc(AioContext *ctx, AioFunc *fn, void *opaque,
                       unsigned flags)
{
    AioBH *bh = g_new0(AioBH, 1);

    bh->ctx = ctx;
    bh->fn = fn;
    bh->opaque = opaque;
    atomic_init(&bh->flags, flags);
    return bh;
}

AioBH *aio_bh_new(AioContext *ctx, AioFunc *fn, void *opaque)
{
    return bh_alloc(ctx, fn, opaque, 0);
}

static void bh_schedule_local(AioBHList *list, AioBH *bh)
{
    /*
     * A plain look suffices here: a run that would clear the flag is this
     * thread's own, so it comes later and sees all we wrote.
     */
    if (atomic_load_explicit(&bh->flags, memory_order_relaxed) &
        BH_SCHEDULED) {
        return;
    }
    if (!(bh_set(bh, BH_QUEUED | BH_SCHEDULED) & BH_QUEUED)) {
        bh_push(list, bh);
    }
}

static void bh_schedule_remote(AioContext *ctx, AioBH *bh)
{
    unsigned old = bh_set(bh, BH_QUEUED | BH_SCHEDULED);

    /* From here on a one-shot bottom half that was linked may be gone. */
    if (!(old & BH_QUEUED)) {
        bh_push_remote(ctx, bh);
    }
    if (!(old & BH_SCHEDULED)) {
        aio_notify(ctx);
    }
}

void aio_bh_schedule(AioBH *bh)
{
    AioContext *ctx = bh->ctx;

    if (aio_context_is_mine(ctx)) {
        bh_schedule_local(&ctx->local_bhs, bh);
    } else {
        bh_schedule_remote(ctx, bh);
    }
}

void aio_bh_schedule_behind(AioBH *bh)
{
    assert(aio_context_is_mine(bh->ctx));
    bh_schedule_local(&bh->ctx->behind_bhs, bh);
}

void aio_bh_schedule_oneshot(AioContext *ctx, AioFunc *fn, void *opaque)
{
    aio_bh_schedule(bh_alloc(ctx, fn, opaque, BH_ONESHOT));
}

void aio_bh_cancel(AioBH *bh)
{
    bh_clear(bh, BH_SCHEDULED);
}

void aio_bh_delete(AioBH *bh)
{
    AioContext *ctx;

    if (!bh) {
        return;
    }
    ctx = bh->ctx;
    bh_clear(bh, BH_SCHEDULED);
    if (aio_context_is_mine(ctx)) {
        if (!(bh_set(bh, BH_DELETED) & BH_QUEUED)) {
            g_free(bh);
        }
    } else if (!(bh_set(bh, BH_QUEUED | BH_DELETED) & BH_QUEUED)) {
        /* Nobody waits for the memory: the next iteration frees it. */
        bh_push_remote(ctx, bh);
    }
}

/* The acquire pairs with the release in bh_push_remote(). */
static AioBH *bhs_take_remote(AioContext *ctx)
{
    AioBH *bh, *next, *list = NULL;

    if (!atomic_load_explicit(&ctx->remote_bhs, memory_order_relaxed)) {
        return NULL;
    }
    bh = atomic_exchange_explicit(&ctx->remote_bhs, NULL,
                                  memory_order_acquire);
    for (; bh; bh = next) {
        next = bh->next;
        bh->next = list;
        list = bh;
    }
    return list;
}

static void bh_list_init(AioBHList *list)
{
    list->first = NULL;
    list->tail = &list->first;
}

void aio_bhs_init(AioContext *ctx)
{
    bh_list_init(&ctx->local_bhs);
    bh_list_init(&ctx->behind_bhs);
}

static AioBH *bhs_take(AioBHList *list)
{
    AioBH *first = list->first;

    bh_list_init(list);
    return first;
}

static bool bhs_run_list(AioBH *list)
{
    bool progress = false;
    AioBH *bh;

    while ((bh = list)) {
        unsigned flags;

        /* Once QUEUED is clear, another thread may link bh elsewhere. */
        list = bh->next;
        flags = bh_clear(bh, BH_QUEUED | BH_SCHEDULED);
        if (flags & BH_DELETED) {
            g_free(bh);
            continue;
        }
        if (!(flags & BH_SCHEDULED)) {
            continue;
        }
        bh->fn(bh->opaque);     /* may delete bh unless it is one-shot */
        progress = true;
        if (flags & BH_ONESHOT) {
            g_free(bh);
        }
    }
    return progress;
}

AioBH *aio_bhs_take_behind(AioContext *ctx)
{
    return bhs_take(&ctx->behind_bhs);
}

bool aio_bhs_run(AioContext *ctx, AioBH *behind)
{
    /* Both first: what the callbacks schedule waits for the next round. */
    AioBH *remote = bhs_take_remote(ctx);
    AioBH *local = bhs_take(&ctx->local_bhs);
    bool progress = bhs_run_list(remote);

    progress |= bhs_run_list(local);
    progress |= bhs_run_list(behind);
    return progress;
}

/* ---- waiting for another context ------------------------------------- */

typedef struct WaitBH {
    AioFunc *fn;
    void *opaque;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;                  /* under the lock */
} WaitBH;

static void wait_bh(void *opaque)
{
    WaitBH *w = opaque;

    w->fn(w->opaque);
    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);     /* w may be gone after this */
}

void aio_wait_bh_oneshot(AioContext *ctx, AioFunc *fn, void *opaque)
{
    WaitBH w = {
        .fn = fn,
        .opaque = opaque,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .cond = PTHREAD_COND_INITIALIZER,
    };

    if (aio_context_in_owner(ctx)) {
        fn(opaque);
        return;
    }
    aio_bh_schedule_oneshot(ctx, wait_bh, &w);
    pthread_mutex_lock(&w.lock);
    while (!w.done) {
        pthread_cond_wait(&w.cond, &w.lock);
    }
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.cond);
    pthread_mutex_destroy(&w.lock);
}
