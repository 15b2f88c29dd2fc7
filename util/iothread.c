/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IOThread: one thread, one context, from start to join.
 *
 * iothread_start() returns only when the thread owns the context: from then
 * on a caller may rely on aio_context_in_owner() being false, and
 * aio_wait_bh_oneshot() goes to the thread.  The thread blocks all signals;
 * they are the main thread's business.
 */
#include "util/iothread.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include "util/report.h"

struct IOThread {
    char *id;
    AioContext *ctx;
    pthread_t thread;
    bool running;           /* main context */
    sem_t bound;            /* posted once the thread owns ctx */
    bool stop;              /* the thread */
};

static void iothread_stop_bh(void *opaque)
{
    IOThread *iot = opaque;

    iot->stop = true;
}

static void *iothread_run(void *opaque)
{
    IOThread *iot = opaque;

    aio_context_bind(iot->ctx);
    sem_post(&iot->bound);
    while (!iot->stop) {
        aio_poll(iot->ctx, true);
    }
    aio_context_unbind(iot->ctx);
    return NULL;
}

IOThread *iothread_new(const char *id, Clock *clock, GError **errp)
{
    AioContext *ctx = aio_context_new(id, clock, errp);
    IOThread *iot;

    if (!ctx) {
        return NULL;
    }
    iot = g_new0(IOThread, 1);
    iot->id = g_strdup(id);
    iot->ctx = ctx;
    sem_init(&iot->bound, 0, 0);
    return iot;
}

const char *iothread_id(const IOThread *iot)
{
    return iot->id;
}

AioContext *iothread_context(const IOThread *iot)
{
    return iot->ctx;
}

bool iothread_start(IOThread *iot, GError **errp)
{
    sigset_t all, old;
    char name[16];          /* the kernel's limit, with the terminator */
    int ret;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    ret = pthread_create(&iot->thread, NULL, iothread_run, iot);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret) {
        vnet_set_error(errp, "cannot create thread '%s': %s", iot->id,
                       g_strerror(ret));
        return false;
    }
    g_strlcpy(name, iot->id, sizeof(name));
    pthread_setname_np(iot->thread, name);
    while (sem_wait(&iot->bound) < 0) {
        /* interrupted by a signal */
    }
    iot->running = true;
    return true;
}

void iothread_free(IOThread *iot)
{
    if (!iot) {
        return;
    }
    if (iot->running) {
        aio_bh_schedule_oneshot(iot->ctx, iothread_stop_bh, iot);
        pthread_join(iot->thread, NULL);
    }
    aio_context_free(iot->ctx);
    sem_destroy(&iot->bound);
    g_free(iot->id);
    g_free(iot);
}
