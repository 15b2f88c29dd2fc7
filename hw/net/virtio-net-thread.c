/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit threads: tx-thread= and tx-cpus= of a NIC.
 *
 * The contexts exist from the NIC's creation, since queues are bound to theirs
 * for life; the threads come later (virtio_net_start()), and end when the NIC
 * has taken its queues out of the contexts.
 */
#include <string.h>

#include "hw/net/virtio-net-internal.h"
#include "util/cpu-affinity.h"

/* What the kernel shows of a thread's name. */
#define THREAD_NAME_CHARS 15

static unsigned thread_count(const VirtIONet *n)
{
    switch (n->conf.tx_thread) {
    case VIRTIO_NET_TX_THREAD_ON:
        return 1;
    case VIRTIO_NET_TX_THREAD_PER_QUEUE:
        return n->max_pairs;
    case VIRTIO_NET_TX_THREAD_OFF:
    default:
        return 0;
    }
}

/* "tx:ID" or "tx3:ID".  Of a long id the end, where ids differ. */
static char *thread_name(const VirtIONet *n, unsigned i)
{
    const char *id = n->conf.id;
    char prefix[THREAD_NAME_CHARS];
    size_t len = strlen(id), room;

    if (n->conf.tx_thread == VIRTIO_NET_TX_THREAD_ON) {
        g_strlcpy(prefix, "tx:", sizeof(prefix));
    } else {
        g_snprintf(prefix, sizeof(prefix), "tx%u:", i);
    }
    room = THREAD_NAME_CHARS - strlen(prefix);
    return g_strconcat(prefix, len > room ? id + len - room : id, NULL);
}

bool virtio_net_threads_new(VirtIONet *n, GError **errp)
{
    unsigned count = thread_count(n);

    n->threads = g_new0(IOThread *, count);
    for (; n->nthreads < count; n->nthreads++) {
        g_autofree char *name = thread_name(n, n->nthreads);

        n->threads[n->nthreads] = iothread_new(name,
                                               aio_context_clock(n->ctx),
                                               errp);
        if (!n->threads[n->nthreads]) {
            virtio_net_threads_free(n);
            return false;
        }
    }
    return true;
}

void virtio_net_threads_free(VirtIONet *n)
{
    for (unsigned i = 0; i < n->nthreads; i++) {
        iothread_free(n->threads[i]);
    }
    g_free(n->threads);
}

AioContext *virtio_net_tx_context(const VirtIONet *n, unsigned pair)
{
    return n->nthreads ? iothread_context(n->threads[pair % n->nthreads])
                       : n->ctx;
}

bool virtio_net_start(VirtIONet *n, GError **errp)
{
    for (unsigned i = 0; i < n->nthreads; i++) {
        if (!iothread_start(n->threads[i], errp) ||
            !cpu_affinity_apply(iothread_context(n->threads[i]), "tx-cpus",
                                &n->conf.tx_cpus, errp)) {
            return false;
        }
    }
    return true;
}
