/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Backends: the table of types, and what all types have in common.
 *
 * The packet path is a call through the type's table and nothing else; all
 * policy is in the backends.  Creation, claiming and help are main's.
 */
#include "net/net.h"

#include <assert.h>
#include <string.h>

#include "net-internal.h"
#include "util/report.h"

static const NetBackendType *const net_types[] = {
    &net_hubport_type,
    &net_tap_type,
    &net_user_type,
};

/* A vnet header is at most 20 bytes (virtio 1.3, 5.1.6: hash fields). */
#define NET_MAX_VNET_HDR    20

/* ---- creation -------------------------------------------------------- */

void net_set_error(GError **errp, const KeyVal *kv, const char *fmt, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    vnet_set_error(errp, "%s: %s", keyval_subject(kv), text);
}

void net_backend_init(NetBackend *nb, const NetBackendType *type,
                      const char *id, unsigned queues)
{
    nb->type = type;
    nb->id = g_strdup(id);
    nb->caps.queues = queues;
    nb->queues = g_new0(NetQueue *, queues);
}

void net_backend_fini(NetBackend *nb)
{
    g_free(nb->queues);
    g_free(nb->id);
}

void net_queue_init(NetQueue *nq, NetBackend *nb, unsigned index)
{
    nq->nb = nb;
    nq->index = index;
    nb->queues[index] = nq;
}

static const NetBackendType *net_find_type(const KeyVal *kv, const char *name,
                                           GError **errp)
{
    g_autoptr(GString) known = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(net_types); i++) {
        if (g_str_equal(net_types[i]->name, name)) {
            return net_types[i];
        }
        g_string_append_printf(known, "%s%s", i ? ", " : "",
                               net_types[i]->name);
    }
    vnet_set_error(errp, "%s: type '%s' is not known; known are %s",
                   keyval_subject(kv), name, known->str);
    return NULL;
}

/* As QEMU: a letter, then letters, digits, '-', '.' and '_'. */
static bool net_id_is_good(const char *id)
{
    if (!g_ascii_isalpha(*id)) {
        return false;
    }
    while (g_ascii_isalnum(*id) || (*id && strchr("-._", *id))) {
        id++;
    }
    return !*id;
}

static bool net_check_id(const KeyVal *kv, const char *id, GError **errp)
{
    if (!id) {
        net_set_error(errp, kv, "id= is missing; a -device finds its netdev "
                      "by it");
        return false;
    }
    if (!net_id_is_good(id)) {
        net_set_error(errp, kv, "id=%s is not an identifier: a letter, then "
                      "letters, digits, '-', '.', '_'", id);
        return false;
    }
    return true;
}

NetBackend *net_backend_new(KeyVal *kv, AioContext *ctx, GError **errp)
{
    const NetBackendType *type;
    const char *name, *id;

    name = keyval_take_required(kv, "type", errp);
    if (!name) {
        return NULL;
    }
    type = net_find_type(kv, name, errp);
    if (!type) {
        return NULL;
    }
    id = keyval_take(kv, "id");
    if (!net_check_id(kv, id, errp)) {
        return NULL;
    }
    return type->create(kv, id, ctx, errp);
}

void net_backend_free(NetBackend *nb)
{
    if (!nb) {
        return;
    }
    for (unsigned i = 0; i < nb->caps.queues; i++) {
        assert(!nb->queues[i]->nic);
    }
    nb->type->free(nb);
}

/* ---- what it is ------------------------------------------------------ */

char *net_backend_help(void)
{
    GString *text = g_string_new("Available netdev backend types:\n");

    for (size_t i = 0; i < G_N_ELEMENTS(net_types); i++) {
        g_string_append_printf(text, "%-8s %s\n", net_types[i]->name,
                               net_types[i]->help);
    }
    return g_string_free(text, FALSE);
}

const char *net_backend_id(const NetBackend *nb)
{
    return nb->id;
}

const char *net_backend_type(const NetBackend *nb)
{
    return nb->type->name;
}

const NetCaps *net_backend_caps(const NetBackend *nb)
{
    return &nb->caps;
}

char *net_backend_info(const NetBackend *nb)
{
    return nb->type->info(nb);
}

bool net_backend_claim(NetBackend *nb)
{
    if (nb->claimed) {
        return false;
    }
    nb->claimed = true;
    return true;
}

/* ---- how its frames look --------------------------------------------- */

bool net_backend_set_vnet_hdr_len(NetBackend *nb, unsigned len)
{
    if (!nb->caps.vnet_hdr) {
        return len == 0;
    }
    if (len != 10 && len != 12 && len != NET_MAX_VNET_HDR) {
        return false;
    }
    if (len != nb->vnet_hdr_len && !nb->type->set_vnet_hdr_len(nb, len)) {
        return false;
    }
    nb->vnet_hdr_len = len;
    return true;
}

void net_backend_set_offload(NetBackend *nb, unsigned offload)
{
    assert(!offload || nb->caps.vnet_hdr);
    assert(!(offload & NET_OFFLOAD_UFO) || nb->caps.ufo);
    assert(!(offload & (NET_OFFLOAD_USO4 | NET_OFFLOAD_USO6)) || nb->caps.uso);
    if (nb->type->set_offload) {
        nb->type->set_offload(nb, offload);
    }
}

/* ---- queues ---------------------------------------------------------- */

NetQueue *net_backend_queue(NetBackend *nb, unsigned i)
{
    assert(i < nb->caps.queues);
    return nb->queues[i];
}

void net_queue_attach(NetQueue *nq, AioContext *tx_ctx, AioContext *rx_ctx,
                      const NetNicOps *ops, void *opaque)
{
    assert(!nq->nic);
    nq->tx_ctx = tx_ctx;
    nq->rx_ctx = rx_ctx;
    nq->nic_opaque = opaque;
    nq->nic = ops;
    nq->nb->type->attach(nq);
}

void net_queue_detach(NetQueue *nq)
{
    assert(nq->nic);
    nq->nb->type->detach(nq);
    nq->nic = NULL;
    nq->nic_opaque = NULL;
    nq->tx_ctx = NULL;
    nq->rx_ctx = NULL;
}

void net_queue_set_enabled(NetQueue *nq, bool enabled)
{
    if (nq->nb->type->set_enabled) {
        nq->nb->type->set_enabled(nq, enabled);
    }
}

unsigned net_send_batch(NetQueue *nq, NetPacket *pkts, unsigned n)
{
    return nq->nb->type->send_batch(nq, pkts, n);
}

void net_cancel_tx(NetQueue *nq)
{
    nq->nb->type->cancel_tx(nq);
}

NetRecvStatus net_recv(NetQueue *nq, const struct iovec *iov, unsigned iovcnt,
                       size_t *bytes)
{
    return nq->nb->type->recv(nq, iov, MIN(iovcnt, NET_MAX_RECV_IOV), bytes);
}

void net_rx_want(NetQueue *nq, bool want)
{
    nq->nb->type->rx_want(nq, want);
}

void net_inject(NetQueue *nq, const void *frame, size_t bytes)
{
    static const uint8_t no_offload[NET_MAX_VNET_HDR];
    unsigned hdr_len = nq->nb->vnet_hdr_len;
    struct iovec iov[] = {
        { (void *)no_offload, hdr_len },
        { (void *)frame, bytes },
    };
    NetPacket pkt = {
        .iov = hdr_len ? iov : iov + 1,
        .iovcnt = hdr_len ? 2 : 1,
        .bytes = hdr_len + bytes,
    };

    /* A full backend loses it: announcements are repeated. */
    if (net_send_batch(nq, &pkt, 1)) {
        assert(pkt.answer != NET_TX_PENDING);
    }
}
