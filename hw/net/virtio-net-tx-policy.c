/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tx=bh and tx=timer; what tx=adaptive knows (virtio-net-tx-adaptive.c) put
 * into decisions.
 *
 * bh: look as soon as anything is there, ask for a kick at the next packet
 * when nothing is; unless it holds, see below.
 *
 * timer: after the first packet wait one timer period with kicks off, so
 * that one pass finds many.  A pass that empties the ring goes back to
 * waiting for a kick: an idle queue has no timer.
 *
 * Either way a pass that ran into its budget is continued at once: the guest
 * owes no kick for what it has already published.
 *
 * Holds, tx=bh.  To a guest that streams small packets a kick every few of
 * them costs more than the packets' way through the ring: an exit, a system
 * call, and the wake-up of a halted CPU.  Packets that come closer than one
 * hold, some tens of microseconds, need no kick to be found at its end.
 * Whether that pays is measured, not guessed.  After a window with kicks that
 * looks like a stream (three packets in two passes, one at least per hold)
 * comes a trial window with holds, then again one with kicks: only if the
 * trial carried clearly more than either of its neighbours do holds stay on,
 * so that a load which grows by itself does not count.  They end when the load
 * changes, more or less, and kicks are checked again at regular times.  After
 * a trial in vain there is none for a time that doubles.  So a guest that waits
 * for answers, which a hold only slows down, has its kicks but for a trial now
 * and then; and a pass that finds nothing always asks for one.
 *
 * "More" is bytes and a constant per packet: a stream may gain by more packets
 * or by larger ones.  A window ends with a pass, so one with a long silence in
 * it shows a low rate.  On a clock that stands no window ends.
 */
#include "hw/net/virtio-net-tx-policy.h"

#include <glib.h>

#include "util/clock.h"

#define WINDOW_NS       (10 * NS_PER_MS)
#define HOLD_WINDOWS_NS (100 * NS_PER_MS)
#define BACKOFF_MIN_NS  (20 * NS_PER_MS)
#define BACKOFF_MAX_NS  (1280 * NS_PER_MS)

/* What a packet's way costs, in bytes copied. */
#define PACKET_WORK     1000

static bool is_better(uint64_t rate, uint64_t than)
{
    return rate >= than + than / 8;
}

static bool is_another_load(uint64_t rate, uint64_t before)
{
    return rate > before + before / 4 || rate < before - before / 4;
}

static bool is_stream(const TxPolicy *p, uint64_t elapsed_ns)
{
    const TxPace *w = &p->pace;

    return 2 * w->packets >= 3 * w->passes &&
           w->packets * p->hold_ns >= elapsed_ns;
}

static void give_up(TxPace *w, int64_t now_ns)
{
    w->phase = TX_PHASE_KICK;
    w->backoff_ns = CLAMP(2 * w->backoff_ns, BACKOFF_MIN_NS, BACKOFF_MAX_NS);
    w->retry_ns = now_ns + w->backoff_ns;
}

static void end_trial(TxPace *w, int64_t now_ns)
{
    if (is_better(w->hold_rate, w->kick_rate)) {
        w->phase = TX_PHASE_CHECK;
    } else {
        give_up(w, now_ns);
    }
}

static void end_check(TxPace *w, int64_t now_ns)
{
    if (is_better(w->hold_rate, w->kick_rate)) {
        w->phase = TX_PHASE_HOLD;
        w->hold_end_ns = now_ns + HOLD_WINDOWS_NS;
        w->backoff_ns = 0;
    } else {
        give_up(w, now_ns);
    }
}

static void end_hold_window(TxPace *w, int64_t now_ns, uint64_t rate)
{
    if (is_another_load(rate, w->hold_rate)) {
        w->phase = TX_PHASE_KICK;
    } else if (now_ns >= w->hold_end_ns) {
        w->hold_rate = rate;
        w->phase = TX_PHASE_CHECK;
    }
}

static void judge_stream(TxPace *w, int64_t now_ns, uint64_t rate)
{
    switch (w->phase) {
    case TX_PHASE_KICK:
        w->kick_rate = rate;
        if (now_ns >= w->retry_ns) {
            w->phase = TX_PHASE_TRIAL;
        }
        return;
    case TX_PHASE_TRIAL:
        w->hold_rate = rate;
        end_trial(w, now_ns);
        return;
    case TX_PHASE_CHECK:
        w->kick_rate = rate;
        end_check(w, now_ns);
        return;
    case TX_PHASE_HOLD:
        end_hold_window(w, now_ns, rate);
    }
}

static void end_window(TxPolicy *p, int64_t now_ns, uint64_t elapsed_ns)
{
    TxPace *w = &p->pace;

    if (is_stream(p, elapsed_ns)) {
        judge_stream(w, now_ns, w->work * NS_PER_SEC / elapsed_ns);
    } else {
        w->phase = TX_PHASE_KICK;
    }
    w->packets = 0;
    w->passes = 0;
    w->work = 0;
    w->window_ns = now_ns;
}

static void note_pace(TxPolicy *p, int64_t now_ns, const TxPass *pass)
{
    TxPace *w = &p->pace;

    w->packets += pass->packets;
    w->passes += pass->reason == TX_STOP_RING_EMPTY;
    w->work += pass->bytes + (uint64_t)pass->packets * PACKET_WORK;
    if (now_ns - w->window_ns >= WINDOW_NS) {
        end_window(p, now_ns, now_ns - w->window_ns);
    }
}

/* ---- the policy ------------------------------------------------------- */

void tx_policy_init(TxPolicy *p, const VirtIONetConf *conf, bool polls)
{
    *p = (TxPolicy) {
        .mode = conf->tx,
        .timer_ns = conf->tx_timer_ns,
        .hold_ns = polls ? 0 : conf->tx_hold_ns,
        .kicks_only = polls,
    };
    tx_adaptive_init(&p->adaptive, conf->tx_latency_us * NS_PER_US);
}

void tx_policy_start(TxPolicy *p, unsigned ring_size, TxGroup *group)
{
    p->pace = (TxPace) { .phase = TX_PHASE_KICK };
    if (p->mode == VIRTIO_NET_TX_ADAPTIVE) {
        tx_adaptive_start(&p->adaptive, ring_size, group);
    }
}

void tx_policy_stop(TxPolicy *p)
{
    tx_adaptive_stop(&p->adaptive);
}

bool tx_policy_note(TxPolicy *p, int64_t now_ns, const TxPass *pass)
{
    if (p->mode == VIRTIO_NET_TX_BH && p->hold_ns) {
        note_pace(p, now_ns, pass);
    }
    if (p->mode != VIRTIO_NET_TX_ADAPTIVE || p->kicks_only) {
        return false;
    }
    tx_adaptive_note(&p->adaptive, pass);
    return tx_adaptive_is_due(&p->adaptive, now_ns);
}

void tx_policy_judge(TxPolicy *p, int64_t now_ns, uint64_t received_bytes)
{
    tx_adaptive_judge(&p->adaptive, now_ns, received_bytes);
}

unsigned tx_policy_phase(const TxPolicy *p)
{
    TxSetting s;

    if (p->mode != VIRTIO_NET_TX_ADAPTIVE) {
        return p->pace.phase;
    }
    s = tx_adaptive_in_force(&p->adaptive);
    return TX_STEPS * s.kind + s.step;
}

void tx_policy_armed(TxPolicy *p)
{
    tx_adaptive_armed(&p->adaptive);
}

void tx_policy_fired(TxPolicy *p, int64_t late_ns, bool armed)
{
    tx_adaptive_fired(&p->adaptive, late_ns, armed);
}

static TxDecision next_packet(void)
{
    return (TxDecision) { TX_ARM, .window = 1, .deadline_ns = INT64_MAX };
}

static TxDecision hold_for(int64_t now_ns, int64_t ns)
{
    return (TxDecision) { TX_HOLD, .deadline_ns = now_ns + ns };
}

TxDecision tx_policy_work(const TxPolicy *p, int64_t now_ns)
{
    if (p->mode == VIRTIO_NET_TX_TIMER) {
        return (TxDecision) { TX_HOLD, .deadline_ns = now_ns + p->timer_ns };
    }
    if (p->mode == VIRTIO_NET_TX_ADAPTIVE && !p->kicks_only &&
        tx_adaptive_kind(&p->adaptive) == TX_KIND_DELAY) {
        return hold_for(now_ns, tx_adaptive_wait_ns(&p->adaptive));
    }
    return (TxDecision) { TX_FLUSH };
}

static TxDecision adaptive_flushed(const TxAdaptive *a, int64_t now_ns)
{
    int64_t ns = tx_adaptive_wait_ns(a);
    unsigned window = tx_adaptive_window(a);

    if (tx_adaptive_kind(a) == TX_KIND_HOLD) {
        return hold_for(now_ns, ns);
    }
    return window == 1 ? next_packet() :
        (TxDecision) { TX_ARM, window, now_ns + ns };
}

static bool bh_holds(const TxPolicy *p)
{
    return p->pace.phase == TX_PHASE_TRIAL || p->pace.phase == TX_PHASE_HOLD;
}

TxDecision tx_policy_flushed(const TxPolicy *p, int64_t now_ns,
                             const TxPass *pass)
{
    if (pass->reason == TX_STOP_BUDGET) {
        return (TxDecision) { TX_FLUSH };
    }
    if (!pass->packets || p->kicks_only) {
        return next_packet();
    }
    if (p->mode == VIRTIO_NET_TX_ADAPTIVE) {
        return adaptive_flushed(&p->adaptive, now_ns);
    }
    return bh_holds(p) ? hold_for(now_ns, p->hold_ns) : next_packet();
}
