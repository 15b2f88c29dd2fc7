/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tx=bh and tx=timer.
 *
 * bh: look as soon as anything is there, ask for a kick at the next packet
 * when nothing is.
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
 * Whether that pays is measured, not guessed: after a window with kicks that
 * looks like a stream (several packets a pass, one at least per hold) comes a
 * trial window with holds.  If clearly more packets came, holds stay on for a
 * while, after which kicks are tried again, since the load may have changed.
 * If not, there is no trial for a time that doubles.  So a guest that waits
 * for answers, which a hold only slows down, keeps its kicks; and a pass that
 * finds nothing always asks for one.
 *
 * Windows are long enough for their rates to be told apart, and end with a
 * pass: a window with a silence in it shows a low rate, and is no stream.
 */
#include "hw/net/virtio-net-tx-policy.h"

#include <glib.h>

#include "util/clock.h"

#define WINDOW_NS       (10 * NS_PER_MS)
#define HOLD_WINDOWS_NS (200 * NS_PER_MS)
#define BACKOFF_MIN_NS  (20 * NS_PER_MS)
#define BACKOFF_MAX_NS  (1280 * NS_PER_MS)

/* Rates are told apart from here on, in parts of the rate with kicks. */
#define BETTER(rate)    ((rate) + (rate) / 16)
#define WORSE(rate)     ((rate) - (rate) / 8)

static bool is_stream(const TxPolicy *p, uint64_t elapsed_ns)
{
    const TxPace *w = &p->pace;

    return 2 * w->packets >= 3 * w->passes &&
           w->packets * p->hold_ns >= elapsed_ns;
}

static void begin_trial(TxPace *w, int64_t now_ns)
{
    if (now_ns >= w->retry_ns) {
        w->phase = TX_PHASE_TRIAL;
    }
}

static void end_trial(TxPace *w, int64_t now_ns, bool better)
{
    if (better) {
        w->phase = TX_PHASE_HOLD;
        w->hold_end_ns = now_ns + HOLD_WINDOWS_NS;
        w->backoff_ns = 0;
        return;
    }
    w->phase = TX_PHASE_KICK;
    w->backoff_ns = CLAMP(2 * w->backoff_ns, BACKOFF_MIN_NS, BACKOFF_MAX_NS);
    w->retry_ns = now_ns + w->backoff_ns;
}

static void end_window(TxPolicy *p, int64_t now_ns, uint64_t elapsed_ns)
{
    TxPace *w = &p->pace;
    uint64_t rate = w->packets * NS_PER_SEC / elapsed_ns;
    bool stream = is_stream(p, elapsed_ns);

    switch (w->phase) {
    case TX_PHASE_KICK:
        w->kick_rate = rate;
        if (stream) {
            begin_trial(w, now_ns);
        }
        break;
    case TX_PHASE_TRIAL:
        end_trial(w, now_ns, stream && rate >= BETTER(w->kick_rate));
        break;
    case TX_PHASE_HOLD:
        if (!stream || rate < WORSE(w->kick_rate) ||
            now_ns >= w->hold_end_ns) {
            w->phase = TX_PHASE_KICK;
        }
    }
    w->packets = 0;
    w->passes = 0;
    w->window_ns = now_ns;
}

static bool holds_pay(TxPolicy *p, int64_t now_ns, unsigned packets)
{
    TxPace *w = &p->pace;
    int64_t elapsed_ns = now_ns - w->window_ns;

    w->packets += packets;
    w->passes++;
    if (elapsed_ns >= WINDOW_NS) {
        end_window(p, now_ns, elapsed_ns);
    }
    return w->phase != TX_PHASE_KICK;
}

TxDecision tx_policy_work(const TxPolicy *p, int64_t now_ns)
{
    if (p->mode == VIRTIO_NET_TX_TIMER) {
        return (TxDecision) { TX_HOLD, .deadline_ns = now_ns + p->timer_ns };
    }
    return (TxDecision) { TX_FLUSH };
}

TxDecision tx_policy_flushed(TxPolicy *p, int64_t now_ns, unsigned packets,
                             TxStop reason)
{
    bool hold = p->mode == VIRTIO_NET_TX_BH && p->hold_ns &&
                holds_pay(p, now_ns, packets) && packets;

    if (reason == TX_STOP_BUDGET) {
        return (TxDecision) { TX_FLUSH };
    }
    if (hold) {
        return (TxDecision) { TX_HOLD, .deadline_ns = now_ns + p->hold_ns };
    }
    return (TxDecision) { TX_ARM };
}
