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
 */
#include "hw/net/virtio-net-tx-policy.h"

TxDecision tx_policy_work(const TxPolicy *p, int64_t now_ns)
{
    if (p->mode == VIRTIO_NET_TX_TIMER) {
        return (TxDecision) { TX_HOLD, .deadline_ns = now_ns + p->timer_ns };
    }
    return (TxDecision) { TX_FLUSH };
}

TxDecision tx_policy_flushed(const TxPolicy *p, int64_t now_ns,
                             unsigned packets, TxStop reason)
{
    if (reason == TX_STOP_BUDGET) {
        return (TxDecision) { TX_FLUSH };
    }
    return (TxDecision) { TX_ARM };
}
