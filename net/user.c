/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -netdev user: a network in this process, by libslirp.
 *
 * Everything of libslirp happens in the slirp context, which is the context
 * of the NIC.  A tx half in another context reaches it through a pipe.
 *
 * What libslirp sends to the guest goes into a bounded pipe and is pulled
 * from there, so nothing is delivered from inside slirp_input().  When the
 * pipe is more than half full libslirp is held: its sockets are not read, and
 * hosts are slowed down by TCP.  The guest may go on sending, and the answers
 * fill the other half; what does not fit then is dropped and counted.  A
 * frame is far below half the pipe, so holding loses nothing by itself.
 *
 * Without a NIC the pipe has no reader and the frames go nowhere.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "frame-pipe.h"
#include "user-internal.h"
#include "user-relay.h"
#include "util/iov.h"
#include "util/report.h"

/*
 * Room for the 64 KiB windows of some ten TCP connections that all become
 * readable at once, beside the half that is the guest's.
 */
#define USER_PIPE_BYTES     (1024 * 1024)

/* Frames taken from a tx pipe before the loop gets its turn. */
#define USER_TX_BUDGET      256

typedef struct UserBackend {
    NetBackend nb;
    NetQueue nq;

    /* Main. */
    char *network;              /* for people */
    FramePipe *tx;              /* NULL: the tx half is in the slirp context */

    /* Slirp context. */
    Slirp *slirp;
    UserPoll poll;
    FramePipe *rx;              /* it is the producer */
    GSList *relays;             /* of UserRelay */
    _Atomic uint64_t rx_dropped_pkts;   /* the pipe was full */
    ReportLimit guest_errors;
    uint8_t frame[NET_MAX_FRAME_BYTES];
} UserBackend;

/* Main: the slirp context, and how many live there. */
static AioContext *user_home;
static unsigned user_count;

static UserBackend *user_from_nq(NetQueue *nq)
{
    return (UserBackend *)nq->nb;
}

/* ---- from libslirp to the guest -------------------------------------- */

static void user_resume(void *opaque)
{
    UserBackend *ub = opaque;

    user_poll_hold(&ub->poll, false);
}

static void user_hold(UserBackend *ub)
{
    if (frame_pipe_wait_room(ub->rx)) {
        user_poll_hold(&ub->poll, true);
    }
}

static ssize_t user_send_packet(const void *buf, size_t len, void *opaque)
{
    UserBackend *ub = opaque;
    struct iovec iov = { (void *)buf, len };

    if (!frame_pipe_is_open(ub->rx)) {
        return len;
    }
    if (len > NET_MAX_FRAME_BYTES || !frame_pipe_push(ub->rx, &iov, 1, len)) {
        atomic_fetch_add_explicit(&ub->rx_dropped_pkts, 1,
                                  memory_order_relaxed);
        return len;
    }
    frame_pipe_flush(ub->rx);
    if (!ub->poll.held && frame_pipe_half_full(ub->rx)) {
        user_hold(ub);
    }
    return len;
}

static void user_guest_error(const char *msg, void *opaque)
{
    UserBackend *ub = opaque;

    report_guest(&ub->guest_errors, "netdev %s: %s", ub->nb.id, msg);
}

static int64_t user_clock_get_ns(void *opaque)
{
    UserBackend *ub = opaque;

    return aio_now_ns(ub->poll.ctx);
}

static void *user_timer_new(SlirpTimerId id, void *cb_opaque, void *opaque)
{
    UserBackend *ub = opaque;

    return user_poll_timer_new(&ub->poll, id, cb_opaque);
}

static void user_timer_free(void *timer, void *opaque)
{
    user_poll_timer_free(timer);
}

static void user_timer_mod(void *timer, int64_t expire_ms, void *opaque)
{
    user_poll_timer_mod(timer, expire_ms);
}

static void user_fd_changed(int fd, void *opaque)
{
    UserBackend *ub = opaque;

    user_poll_fd_changed(&ub->poll, fd);
}

static void user_notify(void *opaque)
{
    UserBackend *ub = opaque;

    user_poll_settle(&ub->poll);
}

static const SlirpCb user_callbacks = {
    .send_packet = user_send_packet,
    .guest_error = user_guest_error,
    .clock_get_ns = user_clock_get_ns,
    .timer_new_opaque = user_timer_new,
    .timer_free = user_timer_free,
    .timer_mod = user_timer_mod,
    .register_poll_fd = user_fd_changed,
    .unregister_poll_fd = user_fd_changed,
    .notify = user_notify,
};

/* ---- from the guest to libslirp -------------------------------------- */

/* Copied first: the guest may change its buffers while libslirp reads. */
static NetTxAnswer user_input(UserBackend *ub, const NetPacket *pkt)
{
    if (pkt->bytes > sizeof(ub->frame)) {
        return NET_TX_DROPPED;
    }
    iov_to_buf(pkt->iov, pkt->iovcnt, 0, ub->frame, pkt->bytes);
    slirp_input(ub->slirp, ub->frame, pkt->bytes);
    return NET_TX_DONE;
}

static unsigned user_send_batch(NetQueue *nq, NetPacket *pkts, unsigned n)
{
    UserBackend *ub = user_from_nq(nq);

    if (ub->tx) {
        return frame_pipe_send_batch(ub->tx, pkts, n);
    }
    for (unsigned i = 0; i < n; i++) {
        pkts[i].answer = user_input(ub, &pkts[i]);
    }
    user_poll_settle(&ub->poll);
    return n;
}

static void user_cancel_tx(NetQueue *nq)
{
    UserBackend *ub = user_from_nq(nq);

    if (ub->tx) {
        frame_pipe_cancel_wait(ub->tx);
    }
}

/* Slirp context, with a tx pipe. */
static void user_drain_tx(void *opaque)
{
    UserBackend *ub = opaque;
    struct iovec iov = { ub->frame, sizeof(ub->frame) };
    size_t bytes;

    for (unsigned i = 0; i < USER_TX_BUDGET; i++) {
        if (frame_pipe_pop(ub->tx, &iov, 1, &bytes) != NET_RECV_PACKET) {
            break;
        }
        slirp_input(ub->slirp, ub->frame, bytes);
    }
    user_poll_settle(&ub->poll);
}

/* ---- the NIC's side -------------------------------------------------- */

static void user_on_data(void *opaque)
{
    NetQueue *nq = opaque;

    nq->nic->rx_ready(nq->nic_opaque);
}

static void user_on_room(void *opaque)
{
    NetQueue *nq = opaque;

    nq->nic->tx_ready(nq->nic_opaque);
}

static void user_attach(NetQueue *nq)
{
    UserBackend *ub = user_from_nq(nq);

    frame_pipe_open_consumer(ub->rx, nq->rx_ctx, user_on_data, nq);
    if (nq->tx_ctx != ub->poll.ctx) {
        ub->tx = frame_pipe_new(USER_PIPE_BYTES);
        frame_pipe_open_producer(ub->tx, nq->tx_ctx, user_on_room, nq);
        frame_pipe_open_consumer(ub->tx, ub->poll.ctx, user_drain_tx, ub);
        frame_pipe_want(ub->tx, true);
    }
}

static void user_detach(NetQueue *nq)
{
    UserBackend *ub = user_from_nq(nq);

    if (ub->tx) {
        frame_pipe_close_consumer(ub->tx);
        frame_pipe_close_producer(ub->tx);
        frame_pipe_free(ub->tx);
        ub->tx = NULL;
    }
    frame_pipe_close_consumer(ub->rx);
}

static NetRecvStatus user_recv(NetQueue *nq, const struct iovec *iov,
                               unsigned iovcnt, size_t *bytes)
{
    return frame_pipe_pop(user_from_nq(nq)->rx, iov, iovcnt, bytes);
}

static void user_rx_want(NetQueue *nq, bool want)
{
    frame_pipe_want(user_from_nq(nq)->rx, want);
}

/* ---- life ------------------------------------------------------------ */

typedef struct UserStart {
    UserBackend *ub;
    AioContext *ctx;
    const KeyVal *kv;
    UserOptions *options;
    GError **errp;
    bool ok;
} UserStart;

static bool user_add_hostfwds(UserStart *s)
{
    GArray *rules = s->options->hostfwd;

    for (unsigned i = 0; i < rules->len; i++) {
        const UserHostFwd *f = &g_array_index(rules, UserHostFwd, i);

        if (slirp_add_hostfwd(s->ub->slirp, f->udp, f->host_addr, f->host_port,
                              f->guest_addr, f->guest_port) < 0) {
            net_set_error(s->errp, s->kv, "hostfwd=%s: cannot "
                          "listen on the host port: %s", f->text,
                          g_strerror(errno));
            return false;
        }
    }
    return true;
}

static bool user_add_guestfwd(UserStart *s, const UserGuestFwd *f)
{
    UserBackend *ub = s->ub;
    struct in_addr server = f->server;
    const char *path;
    UserRelay *relay;
    int ret;

    if (f->command) {
        ret = slirp_add_exec(ub->slirp, f->command, &server, f->port);
    } else {
        relay = user_relay_new(s->ctx, (const struct sockaddr *)&f->tcp,
                               f->tcp_len, &path, s->errp);
        if (!relay) {
            g_prefix_error(s->errp, "%s: guestfwd=%s: ",
                           keyval_subject(s->kv), f->text);
            return false;
        }
        ub->relays = g_slist_prepend(ub->relays, relay);
        ret = slirp_add_unix(ub->slirp, path, &server, f->port);
    }
    if (ret < 0) {
        net_set_error(s->errp, s->kv, "guestfwd=%s: the server must "
                      "be an unused address of the guest's network, neither "
                      "host= nor dns=", f->text);
        return false;
    }
    return true;
}

static bool user_add_guestfwds(UserStart *s)
{
    GArray *rules = s->options->guestfwd;

    for (unsigned i = 0; i < rules->len; i++) {
        if (!user_add_guestfwd(s, &g_array_index(rules, UserGuestFwd, i))) {
            return false;
        }
    }
    return true;
}

/* Slirp context: undoes user_start_bh(), as far as it came. */
static void user_stop_bh(void *opaque)
{
    UserBackend *ub = opaque;

    slirp_cleanup(ub->slirp);
    g_slist_free_full(ub->relays, (GDestroyNotify)user_relay_free);
    user_poll_fini(&ub->poll);
}

static void user_start_bh(void *opaque)
{
    UserStart *s = opaque;
    UserBackend *ub = s->ub;

    if (!user_poll_init(&ub->poll, s->ctx, s->errp)) {
        return;
    }
    ub->slirp = slirp_new(&s->options->cfg, &user_callbacks, ub);
    if (!ub->slirp) {
        net_set_error(s->errp, s->kv, "libslirp %s refuses to "
                      "start", slirp_version_string());
        user_poll_fini(&ub->poll);
        return;
    }
    s->ok = user_add_hostfwds(s) && user_add_guestfwds(s);
    if (s->ok) {
        user_poll_start(&ub->poll, ub->slirp);
    } else {
        user_stop_bh(ub);
    }
}

static char *user_describe(const SlirpConfig *cfg)
{
    char addr[INET6_ADDRSTRLEN];
    GString *text = g_string_new(NULL);

    if (cfg->in_enabled) {
        inet_ntop(AF_INET, &cfg->vnetwork, addr, sizeof(addr));
        g_string_append_printf(text, ",net=%s/%d", addr,
                               __builtin_popcount(cfg->vnetmask.s_addr));
    }
    if (cfg->in6_enabled) {
        inet_ntop(AF_INET6, &cfg->vprefix_addr6, addr, sizeof(addr));
        g_string_append_printf(text, ",ipv6-net=%s/%d", addr,
                               cfg->vprefix_len);
    }
    g_string_append(text, cfg->restricted ? ",restrict=on" : "");
    return g_string_free(text, FALSE);
}

static void user_destroy(UserBackend *ub)
{
    frame_pipe_free(ub->rx);
    g_free(ub->network);
    net_backend_fini(&ub->nb);
    g_free(ub);
}

static UserBackend *user_start(UserOptions *o, const KeyVal *kv,
                               const char *id, AioContext *ctx, GError **errp)
{
    UserBackend *ub = g_new0(UserBackend, 1);
    UserStart start = { ub, ctx, kv, o, errp };

    net_backend_init(&ub->nb, &net_user_type, id, 1);
    net_queue_init(&ub->nq, &ub->nb, 0);
    ub->network = user_describe(&o->cfg);
    ub->rx = frame_pipe_new(USER_PIPE_BYTES);
    aio_wait_bh_oneshot(ctx, user_start_bh, &start);
    if (!start.ok) {
        user_destroy(ub);
        return NULL;
    }
    frame_pipe_open_producer(ub->rx, ctx, user_resume, ub);
    return ub;
}

static NetBackend *user_create(KeyVal *kv, const char *id, AioContext *ctx,
                               GError **errp)
{
    UserBackend *ub = NULL;
    UserOptions o;

    if (user_count && user_home != ctx) {
        net_set_error(errp, kv, "type=user: all netdevs of this type must "
                      "be used from one thread; give their NICs the same "
                      "iothread= (now %s and %s)",
                      aio_context_name(user_home), aio_context_name(ctx));
        return NULL;
    }
    if (user_options_parse(&o, kv, errp)) {
        ub = user_start(&o, kv, id, ctx, errp);
    }
    user_options_clear(&o);
    if (!ub) {
        return NULL;
    }
    user_home = ctx;
    user_count++;
    return &ub->nb;
}

static void user_free(NetBackend *nb)
{
    UserBackend *ub = (UserBackend *)nb;

    frame_pipe_close_producer(ub->rx);
    aio_wait_bh_oneshot(ub->poll.ctx, user_stop_bh, ub);
    user_destroy(ub);
    user_count--;
}

static char *user_info(const NetBackend *nb)
{
    const UserBackend *ub = (const UserBackend *)nb;

    return g_strdup_printf("user %s,dropped=%" G_GUINT64_FORMAT,
                           ub->network + 1,
                           atomic_load_explicit(&ub->rx_dropped_pkts,
                                                memory_order_relaxed));
}

const NetBackendType net_user_type = {
    .name = "user",
    .help = "a network inside this process, without privileges (libslirp)",
    .create = user_create,
    .free = user_free,
    .info = user_info,
    .attach = user_attach,
    .detach = user_detach,
    .send_batch = user_send_batch,
    .cancel_tx = user_cancel_tx,
    .recv = user_recv,
    .rx_want = user_rx_want,
};
