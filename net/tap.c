/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -netdev tap: life of the netdev.
 *
 * The interface is opened (or its descriptors taken over), set up and, as in
 * QEMU, introduced to a script; after that no privilege is needed, except by
 * a downscript that wants to undo something.  All queues but the first start
 * detached, so that the kernel steers no flow to a queue nobody reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap-internal.h"
#include "util/report.h"

/* Header length that Linux starts with (struct virtio_net_hdr). */
#define TAP_DEFAULT_VNET_HDR    10

typedef struct TapBackend {
    NetBackend nb;
    char ifname[IFNAMSIZ];
    char *downscript;           /* NULL: none */
    TapQueue *queues;
} TapBackend;

static TapBackend *tap_from_nb(NetBackend *nb)
{
    return (TapBackend *)nb;
}

/* ---- scripts --------------------------------------------------------- */

/* Returns NULL, or what went wrong; caller frees. */
static char *tap_run_script(const char *script, const char *ifname)
{
    char *argv[] = { (char *)script, (char *)ifname, NULL };
    g_autoptr(GError) err = NULL;
    int status;

    if (!g_spawn_sync(NULL, argv, NULL, G_SPAWN_CHILD_INHERITS_STDIN, NULL,
                      NULL, NULL, NULL, &status, &err)) {
        return g_strdup(err->message);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return NULL;
    }
    if (WIFEXITED(status)) {
        return g_strdup_printf("exit status %d", WEXITSTATUS(status));
    }
    return g_strdup_printf("ended by signal %d", WTERMSIG(status));
}

static bool tap_run_upscript(const TapBackend *tb, const char *script,
                             const KeyVal *kv, GError **errp)
{
    g_autofree char *failure = tap_run_script(script, tb->ifname);

    if (failure) {
        net_set_error(errp, kv, "script=%s failed for %s: %s; "
                      "script=no runs none", script, tb->ifname, failure);
        return false;
    }
    return true;
}

static void tap_run_downscript(const TapBackend *tb)
{
    g_autofree char *failure = tap_run_script(tb->downscript, tb->ifname);

    if (failure) {
        report_warning("netdev %s: downscript=%s failed for %s: %s",
                       tb->nb.id, tb->downscript, tb->ifname, failure);
    }
}

/* ---- creation -------------------------------------------------------- */

/* The descriptor @fd of the caller becomes queue @q. */
static bool tap_adopt_fd(TapBackend *tb, TapQueue *q, int fd,
                         const KeyVal *kv, GError **errp)
{
    int flags = fcntl(fd, F_GETFL);
    TapFdInfo info;
    const char *wrong = NULL;

    if (flags < 0) {
        wrong = "no such descriptor is open; the parent has to pass it on";
    } else if (!tap_fd_identify(fd, &info) || !info.is_tap) {
        wrong = "it is not a tap";
    } else if (q->nq.index && strcmp(info.ifname, tb->ifname)) {
        wrong = "it is another interface than the first";
    } else if (q->nq.index && info.vnet_hdr != tb->nb.caps.vnet_hdr) {
        wrong = "it differs from the first in IFF_VNET_HDR";
    } else if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
               fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        wrong = g_strerror(errno);
    }
    if (wrong) {
        net_set_error(errp, kv, "fd=%d: %s", fd, wrong);
        return false;
    }
    g_strlcpy(tb->ifname, info.ifname, IFNAMSIZ);
    tb->nb.caps.vnet_hdr = info.vnet_hdr;
    q->fd = fd;
    return true;
}

static bool tap_open_fd(TapBackend *tb, TapQueue *q, const TapOptions *o,
                        const KeyVal *kv, GError **errp)
{
    g_autofree char *reason = NULL;
    bool vnet_hdr = o->vnet_hdr;

    q->fd = tap_fd_open(tb->ifname, o->queues, &vnet_hdr, &reason);
    if (q->fd < 0) {
        net_set_error(errp, kv, "%s", reason);
        return false;
    }
    if (o->vnet_hdr_required && !vnet_hdr) {
        net_set_error(errp, kv, "vnet_hdr=on: this kernel's taps "
                      "have no vnet header; leave it out");
        return false;
    }
    tb->nb.caps.vnet_hdr = vnet_hdr;
    return true;
}

static bool tap_set_up_fd(TapBackend *tb, TapQueue *q, const TapOptions *o,
                          const KeyVal *kv, GError **errp)
{
    NetBackend *nb = &tb->nb;
    TapOffloads offloads;

    if (!tap_fd_set_sndbuf(q->fd, o->sndbuf_bytes) && o->sndbuf_required) {
        net_set_error(errp, kv, "sndbuf=%d: %s", o->sndbuf_bytes,
                      g_strerror(errno));
        return false;
    }
    if (nb->caps.vnet_hdr) {
        if (!tap_fd_set_vnet_hdr_len(q->fd, TAP_DEFAULT_VNET_HDR)) {
            net_set_error(errp, kv, "%s: cannot set the length of its "
                          "vnet header: %s", tb->ifname, g_strerror(errno));
            return false;
        }
        nb->vnet_hdr_len = TAP_DEFAULT_VNET_HDR;
        tap_fd_probe_offloads(q->fd, &offloads);
        nb->caps.ufo = offloads.ufo;
        nb->caps.uso = offloads.uso;
    }
    q->enabled = q->nq.index == 0;
    if (!q->enabled && !tap_fd_set_queue(q->fd, false)) {
        net_set_error(errp, kv, "queues=%u: %s is not a multi-queue "
                      "interface: %s", nb->caps.queues, tb->ifname,
                      g_strerror(errno));
        return false;
    }
    return true;
}

static bool tap_open(TapBackend *tb, const TapOptions *o, const KeyVal *kv,
                     GError **errp)
{
    for (unsigned i = 0; i < o->queues; i++) {
        TapQueue *q = &tb->queues[i];
        bool ok = o->have_fds ? tap_adopt_fd(tb, q, o->fds[i], kv, errp)
                              : tap_open_fd(tb, q, o, kv, errp);

        if (!ok || !tap_set_up_fd(tb, q, o, kv, errp)) {
            return false;
        }
    }
    return !o->script || tap_run_upscript(tb, o->script, kv, errp);
}

static void tap_destroy(TapBackend *tb, bool close_fds)
{
    for (unsigned i = 0; i < tb->nb.caps.queues; i++) {
        if (close_fds && tb->queues[i].fd >= 0) {
            close(tb->queues[i].fd);
        }
    }
    g_free(tb->queues);
    g_free(tb->downscript);
    net_backend_fini(&tb->nb);
    g_free(tb);
}

static NetBackend *tap_create(KeyVal *kv, const char *id, AioContext *ctx,
                              GError **errp)
{
    TapBackend *tb;
    TapOptions o;

    if (!tap_options_parse(&o, kv, errp)) {
        return NULL;
    }
    tb = g_new0(TapBackend, 1);
    net_backend_init(&tb->nb, &net_tap_type, id, o.queues);
    g_strlcpy(tb->ifname, o.ifname, IFNAMSIZ);
    tb->queues = g_new0(TapQueue, o.queues);
    for (unsigned i = 0; i < o.queues; i++) {
        net_queue_init(&tb->queues[i].nq, &tb->nb, i);
        tb->queues[i].fd = -1;
    }
    if (!tap_open(tb, &o, kv, errp)) {
        tap_destroy(tb, !o.have_fds);
        return NULL;
    }
    /* Run at the end, when this may not be our directory any more */
    tb->downscript = o.downscript
                     ? g_canonicalize_filename(o.downscript, NULL) : NULL;
    return &tb->nb;
}

static void tap_free(NetBackend *nb)
{
    TapBackend *tb = tap_from_nb(nb);

    if (tb->downscript) {
        tap_run_downscript(tb);
    }
    tap_destroy(tb, true);
}

static char *tap_info(const NetBackend *nb)
{
    const TapBackend *tb = (const TapBackend *)nb;

    return g_strdup_printf("tap ifname=%s,vnet_hdr=%s,queues=%u", tb->ifname,
                           nb->caps.vnet_hdr ? "on" : "off",
                           nb->caps.queues);
}

/* ---- settings -------------------------------------------------------- */

static bool tap_set_vnet_hdr_len(NetBackend *nb, unsigned len)
{
    TapBackend *tb = tap_from_nb(nb);
    bool ok = true;

    for (unsigned i = 0; i < nb->caps.queues; i++) {
        ok &= tap_fd_set_vnet_hdr_len(tb->queues[i].fd, len);
    }
    return ok;
}

static void tap_set_offload(NetBackend *nb, unsigned offload)
{
    TapBackend *tb = tap_from_nb(nb);

    for (unsigned i = 0; nb->caps.vnet_hdr && i < nb->caps.queues; i++) {
        if (!tap_fd_set_offload(tb->queues[i].fd, offload) &&
            errno != EBADFD) {
            report_warning("netdev %s: offloads 0x%x refused by %s: %s",
                           nb->id, offload, tb->ifname, g_strerror(errno));
        }
    }
}

const NetBackendType net_tap_type = {
    .name = "tap",
    .help = "a host TAP interface, made or passed as a file descriptor",
    .create = tap_create,
    .free = tap_free,
    .info = tap_info,
    .set_vnet_hdr_len = tap_set_vnet_hdr_len,
    .set_offload = tap_set_offload,
    .attach = tap_queue_attach,
    .detach = tap_queue_detach,
    .set_enabled = tap_queue_set_enabled,
    .send_batch = tap_queue_send_batch,
    .cancel_tx = tap_queue_cancel_tx,
    .recv = tap_queue_recv,
    .rx_want = tap_queue_rx_want,
};
