/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which transmit queues share a context: one TxGroup for each AioContext.
 *
 * The list is main's; what is in a group belongs to its context.
 */
#include "hw/net/virtio-net-internal.h"

typedef struct ContextGroup {
    TxGroup group;              /* first: what users see */
    AioContext *ctx;
    unsigned refs;
} ContextGroup;

static GSList *groups;

TxGroup *tx_group_get(AioContext *ctx)
{
    ContextGroup *g;

    for (GSList *l = groups; l; l = l->next) {
        g = l->data;
        if (g->ctx == ctx) {
            g->refs++;
            return &g->group;
        }
    }
    g = g_new0(ContextGroup, 1);
    g->ctx = ctx;
    g->refs = 1;
    groups = g_slist_prepend(groups, g);
    return &g->group;
}

void tx_group_put(TxGroup *group)
{
    ContextGroup *g = (ContextGroup *)group;

    if (--g->refs) {
        return;
    }
    groups = g_slist_remove(groups, g);
    g_free(g);
}
