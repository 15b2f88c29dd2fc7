/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -netdev hubport: a hub of at most two ports.
 *
 * One port alone, or with a peer that no NIC is attached to, is a sink: it
 * takes every packet and receives nothing.  Two ports are a wire between two
 * NICs: a bounded pipe each way, so that the NICs may live in two contexts.
 * A pipe that is full holds its sender back; frames are never dropped for
 * lack of room.  A receiver gets what is sent from the time it is attached; of
 * what is sent in that very moment, some may get lost.
 *
 * QEMU's hub has any number of ports and can be joined to another netdev
 * with netdev=; both are refused here.
 */
#include "frame-pipe.h"
#include "net-internal.h"

#define HUB_PORTS           2
#define HUB_PIPE_BYTES      (512 * 1024)

typedef struct HubPort HubPort;

/* All of it main's. */
typedef struct Hub {
    uint32_t id;
    HubPort *ports[HUB_PORTS];
    FramePipe *pipes[HUB_PORTS];        /* [i]: from port i to the other */
} Hub;

struct HubPort {
    NetBackend nb;
    NetQueue nq;
    Hub *hub;
    FramePipe *tx, *rx;
    unsigned slot;
};

/* Main. */
static GSList *hubs;

static HubPort *hubport_from_nq(NetQueue *nq)
{
    return (HubPort *)nq->nb;
}

/* ---- hubs ------------------------------------------------------------ */

static Hub *hub_get(uint32_t id)
{
    Hub *hub;

    for (GSList *l = hubs; l; l = l->next) {
        hub = l->data;
        if (hub->id == id) {
            return hub;
        }
    }
    hub = g_new0(Hub, 1);
    hub->id = id;
    for (unsigned i = 0; i < HUB_PORTS; i++) {
        hub->pipes[i] = frame_pipe_new(HUB_PIPE_BYTES);
    }
    hubs = g_slist_prepend(hubs, hub);
    return hub;
}

static void hub_put(Hub *hub)
{
    if (hub->ports[0] || hub->ports[1]) {
        return;
    }
    hubs = g_slist_remove(hubs, hub);
    for (unsigned i = 0; i < HUB_PORTS; i++) {
        frame_pipe_free(hub->pipes[i]);
    }
    g_free(hub);
}

static int hub_free_slot(const Hub *hub)
{
    for (unsigned i = 0; i < HUB_PORTS; i++) {
        if (!hub->ports[i]) {
            return i;
        }
    }
    return -1;
}

/* ---- life ------------------------------------------------------------ */

static NetBackend *hubport_create(KeyVal *kv, const char *id, AioContext *ctx,
                                  GError **errp)
{
    uint64_t hubid = 0;
    HubPort *port;
    Hub *hub;
    int slot;

    if (!keyval_peek(kv, "hubid")) {
        net_set_error(errp, kv, "hubid= is missing; ports of the same "
                      "number are joined");
        return NULL;
    }
    if (keyval_peek(kv, "netdev")) {
        net_set_error(errp, kv, "netdev=%s: a hub port cannot be joined "
                      "to another netdev; give that netdev to the NIC itself",
                      keyval_peek(kv, "netdev"));
        return NULL;
    }
    if (!keyval_take_uint(kv, "hubid", 0, INT32_MAX, &hubid, errp) ||
        !keyval_check_empty(kv, errp)) {
        return NULL;
    }
    hub = hub_get(hubid);
    slot = hub_free_slot(hub);
    if (slot < 0) {
        net_set_error(errp, kv, "hubid=%u has two ports already, %s and "
                      "%s; a hub joins two NICs", hub->id,
                      hub->ports[0]->nb.id, hub->ports[1]->nb.id);
        return NULL;
    }
    port = g_new0(HubPort, 1);
    net_backend_init(&port->nb, &net_hubport_type, id, 1);
    net_queue_init(&port->nq, &port->nb, 0);
    port->hub = hub;
    port->slot = slot;
    port->tx = hub->pipes[slot];
    port->rx = hub->pipes[!slot];
    hub->ports[slot] = port;
    return &port->nb;
}

static void hubport_free(NetBackend *nb)
{
    HubPort *port = (HubPort *)nb;

    port->hub->ports[port->slot] = NULL;
    hub_put(port->hub);
    net_backend_fini(nb);
    g_free(port);
}

static char *hubport_info(const NetBackend *nb)
{
    const HubPort *port = (const HubPort *)nb;
    const HubPort *peer = port->hub->ports[!port->slot];

    return g_strdup_printf("hubport hubid=%u,peer=%s", port->hub->id,
                           peer ? peer->nb.id : "none");
}

/* ---- packets --------------------------------------------------------- */

static void hubport_on_data(void *opaque)
{
    NetQueue *nq = opaque;

    nq->nic->rx_ready(nq->nic_opaque);
}

static void hubport_on_room(void *opaque)
{
    NetQueue *nq = opaque;

    nq->nic->tx_ready(nq->nic_opaque);
}

static void hubport_attach(NetQueue *nq)
{
    HubPort *port = hubport_from_nq(nq);

    frame_pipe_open_consumer(port->rx, nq->rx_ctx, hubport_on_data, nq);
    frame_pipe_open_producer(port->tx, nq->tx_ctx, hubport_on_room, nq);
}

static void hubport_detach(NetQueue *nq)
{
    HubPort *port = hubport_from_nq(nq);

    frame_pipe_close_consumer(port->rx);
    frame_pipe_close_producer(port->tx);
}

static unsigned hubport_send_batch(NetQueue *nq, NetPacket *pkts, unsigned n)
{
    return frame_pipe_send_batch(hubport_from_nq(nq)->tx, pkts, n);
}

static void hubport_cancel_tx(NetQueue *nq)
{
    frame_pipe_cancel_wait(hubport_from_nq(nq)->tx);
}

static NetRecvStatus hubport_recv(NetQueue *nq, const struct iovec *iov,
                                  unsigned iovcnt, size_t *bytes)
{
    return frame_pipe_pop(hubport_from_nq(nq)->rx, iov, iovcnt, bytes);
}

static void hubport_rx_want(NetQueue *nq, bool want)
{
    frame_pipe_want(hubport_from_nq(nq)->rx, want);
}

const NetBackendType net_hubport_type = {
    .name = "hubport",
    .help = "a sink, or with two ports of one hubid a wire between two NICs",
    .create = hubport_create,
    .free = hubport_free,
    .info = hubport_info,
    .attach = hubport_attach,
    .detach = hubport_detach,
    .send_batch = hubport_send_batch,
    .cancel_tx = hubport_cancel_tx,
    .recv = hubport_recv,
    .rx_want = hubport_rx_want,
};
