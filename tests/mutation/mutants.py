# SPDX-License-Identifier: GPL-2.0-or-later
"""Seeded faults in the transmit policies and the notification engine.

Each is a mistake that somebody could make, and that a test has to notice.  A
row has the test programs that are tried first; see run-mutations.py.  The old
text has to be in its file exactly once: it is chosen to survive a change of
constants.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One fault: @old becomes @new in @file."""
    name: str
    file: str
    old: str
    new: str
    tests: tuple


def _of(file, *rows):
    return [Mutant(name, file, old, new, tuple(tests.split()))
            for name, tests, old, new in rows]


RING = _of(
    'hw/virtio/vring-split.c',
    ('arm without its barrier', 'vring-race virtio-net-lost-kick',
     'or its index is seen below. */\n    vring_full_barrier();',
     'or its index is seen below. */'),
    ('arm without its re-check', 'vring-notify',
     'return moved < window ? VQ_ARM_PARTIAL : VQ_ARM_CROSSED;',
     'return VQ_ARM_EMPTY;'),
    ('arm for one packet more', 'vring-notify',
     'r->scan + window - 1', 'r->scan + window'),
    ('arm counts from the driver\'s index', 'vring-notify',
     'set_avail_event(vq, r->scan + window - 1)',
     'set_avail_event(vq, load_avail_idx(r) + window - 1)'),
    ('arm counts from the last pop', 'vring-notify',
     'moved = r->avail_seen - r->scan;',
     'moved = r->avail_seen - r->last_avail;'),
    ('a full window is called part of one', 'vring-notify',
     'return moved < window ?', 'return moved <= window ?'),
    ('a window by flags asks for kicks', 'vring-notify',
     'window > 1 ? VRING_USED_F_NO_NOTIFY : 0', '0'),
    ('park at the driver\'s index', 'vring-notify',
     'set_avail_event(vq, idx - 1);', 'set_avail_event(vq, idx);'),
    ('park leaves an index that is ahead', 'vring-notify',
     'if (vring_crossed_event(r->avail_event, idx, 0x8000)) {',
     'if (true) {'),
    ('park without the flag', 'vring-notify',
     'set_used_flags(vq, VRING_USED_F_NO_NOTIFY);\n        return;',
     'return;'),
    ('disarm leaves the window', 'vring-notify',
     'set_avail_event(vq, r->last_avail);', ';'),
    ('disarm leaves the flag', 'vring-notify',
     'set_used_flags(vq, 0);', ''),
    ('disarm without its barrier', 'vring-race',
     "where the look is the next owner's. */\n    vring_full_barrier();",
     "where the look is the next owner's. */"),
    ('the call is judged without a barrier', 'vring-race',
     "other's store. */\n    vring_full_barrier();", "other's store. */"),
    ('a "no" does not settle', 'vring-notify',
     'vq->split.unsettled = 0;\n    return false;', 'return false;'),
    ('a call does not settle', 'vring-notify',
     'static void split_signalled(VirtQueue *vq)\n{\n'
     '    vq->split.unsettled = 0;',
     'static void split_signalled(VirtQueue *vq)\n{'),
    ('only the last entry may cross the call event', 'vring-notify',
     'r->used_idx,\n                                   r->unsettled',
     'r->used_idx,\n                                   1'),
    ('what an earlier owner published counts as called', 'vring-notify',
     'r->unsettled = VRING_UNSETTLED_MAX;', 'r->unsettled = 0;'),
    ('moved means not empty', 'vring-notify',
     '!= vq->split.scan;', '!= vq->split.last_avail;'),
)

MACHINE = _of(
    'hw/net/virtio-net-tx.c',
    ('a pass does not park', 'virtio-net-tx virtio-net-tx-adaptive',
     'virtqueue_park(tx->q.vq);\n    pass = run_pass(tx);',
     'pass = run_pass(tx);'),
    ('a crossed arm sleeps', 'virtio-net-lost-kick',
     'if (outcome == VQ_ARM_CROSSED) {',
     'if (outcome == VQ_ARM_CROSSED && window > 1) {'),
    ('a window found full waits for its deadline', 'virtio-net-lost-kick',
     'if (outcome == VQ_ARM_CROSSED) {',
     'if (outcome == VQ_ARM_CROSSED && window == 1) {'),
    ('a spent budget waits for a kick', 'virtio-net-tx',
     'case TX_FLUSH:\n        schedule(tx);',
     'case TX_FLUSH:\n        arm(tx, 1, INT64_MAX);'),
    ('the next pass comes before the others', 'virtio-net-fair',
     'aio_bh_schedule_behind(tx->bh);', 'aio_bh_schedule(tx->bh);'),
    ('a pass takes any number of bytes', 'virtio-net-fair',
     'pass->bytes < VIRTIO_NET_PASS_BYTES', 'true'),
    ('the last batch goes over the budget', 'virtio-net-fair',
     'MIN(VIRTIO_NET_BATCH, tx->budget_pkts - pass->packets)',
     'MIN(VIRTIO_NET_BATCH, tx->budget_pkts)'),
    ('a window without a deadline', 'virtio-net-tx-adaptive',
     'aio_timer_mod_ns(&tx->deadline, deadline_ns);\n        tx_policy_armed',
     'tx_policy_armed'),
    ('a hold does not park', 'virtio-net-tx virtio-net-tx-adaptive',
     'virtqueue_park(tx->q.vq);\n    tx->state = TX_STATE_HOLDING;',
     'tx->state = TX_STATE_HOLDING;'),
    ('a hold starts no deadline', 'virtio-net-tx-adaptive',
     'tx->state = TX_STATE_HOLDING;\n'
     '    aio_timer_mod_ns(&tx->deadline, deadline_ns);',
     'tx->state = TX_STATE_HOLDING;'),
    ('the kick of a window is ignored', 'virtio-net-tx-adaptive',
     'tx->state == TX_STATE_IDLE || tx->state == TX_STATE_ARMED ||',
     'tx->state == TX_STATE_IDLE ||'),
    ('a kick cuts a hold short', 'virtio-net-tx virtio-net-tx-adaptive',
     'tx->state == TX_STATE_IDLE || tx->state == TX_STATE_ARMED ||',
     'tx->state == TX_STATE_IDLE || tx->state == TX_STATE_ARMED ||\n'
     '            tx->state == TX_STATE_HOLDING ||'),
    ('a kick leaves the deadline running', 'virtio-net-tx-adaptive',
     'aio_timer_del(&tx->deadline);\n    if (tx->state',
     'if (tx->state'),
    ('the backend resumes, the queue does not', 'virtio-net-tx',
     'if (tx->state == TX_STATE_BLOCKED) {', 'if (false) {'),
    ('a stop leaves the deadline running', 'virtio-net-tx-adaptive',
     'aio_timer_del(&tx->deadline);\n    net_cancel_tx', 'net_cancel_tx'),
    ('a stop leaves the bottom half scheduled', 'virtio-net-tx',
     'aio_bh_cancel(tx->bh);', ''),
    ('a stop does not cancel', 'virtio-net-tx',
     'net_cancel_tx(tx->q.nq);', ''),
    ('a stop keeps the call back', 'virtio-net-call',
     'virtio_net_coalesce_flush(&tx->q.coalesce);', ''),
    ('a stop does not disarm', 'virtio-net-lost-kick',
     'virtqueue_disarm(tx->q.vq);', ''),
    ('a start does not poll', 'virtio-net-tx',
     'tx->group);\n    }\n    schedule(tx);',
     'tx->group);\n    }\n    tx->state = TX_STATE_IDLE;'),
    ('a driver is taken for the one before', 'virtio-net-tx-adaptive',
     'tx_policy_start(&tx->policy, virtqueue_size(tx->q.vq), tx->group);',
     ';'),
    ('a deadline is not told to the policy', 'virtio-net-tx-adaptive',
     'tx_policy_fired(&tx->policy, late_ns, armed);', ''),
    ('polling ends without a re-check', 'virtio-net-tx',
     'arm(tx, 1, INT64_MAX);\n    return',
     'virtqueue_arm(tx->q.vq, 1);\n    tx->state = TX_STATE_IDLE;\n'
     '    return'),
    ('a full backend looks like an empty ring', 'virtio-net-tx',
     'return TX_STOP_BACKEND_FULL;\n    }\n    return',
     'return TX_STOP_RING_EMPTY;\n    }\n    return'),
)

RECEIVE = _of(
    'hw/net/virtio-net-rx.c',
    ('receive goes on before the others', 'virtio-net-fair',
     'if (!rx->yields) {', 'if (true) {'),
)

POLICY = _of(
    'hw/net/virtio-net-tx-policy.c',
    ('an idle queue holds', 'virtio-net-tx-hold virtio-net-tx-adaptive',
     'if (!pass->packets || p->kicks_only) {', 'if (p->kicks_only) {'),
    ('a context that polls holds', 'virtio-net-tx-adaptive',
     'if (!pass->packets || p->kicks_only) {', 'if (!pass->packets) {'),
    ('tx=timer looks at once', 'virtio-net-tx',
     'if (p->mode == VIRTIO_NET_TX_TIMER) {', 'if (false) {'),
    ('a delay is not begun', 'virtio-net-tx-adaptive',
     'tx_adaptive_kind(&p->adaptive) == TX_KIND_DELAY', 'false'),
    ('a window without an end', 'virtio-net-tx-adaptive',
     '(TxDecision) { TX_ARM, window, now_ns + ns };',
     '(TxDecision) { TX_ARM, window, INT64_MAX };'),
    ('a spent budget holds', 'virtio-net-tx-policy',
     'if (pass->reason == TX_STOP_BUDGET) {', 'if (false) {'),
    ('any trial is better', 'virtio-net-tx-policy',
     'return rate >= than + than / 8;', 'return true;'),
    ('a trial needs no check', 'virtio-net-tx-policy',
     'w->phase = TX_PHASE_CHECK;\n    } else {',
     'w->phase = TX_PHASE_HOLD;\n    } else {'),
    ('a trial in vain is repeated at once', 'virtio-net-tx-policy',
     'w->retry_ns = now_ns + w->backoff_ns;', 'w->retry_ns = now_ns;'),
    ('holds survive another load', 'virtio-net-tx-policy',
     'if (is_another_load(rate, w->hold_rate)) {', 'if (false) {'),
    ('holds are not checked again', 'virtio-net-tx-policy',
     '} else if (now_ns >= w->hold_end_ns) {', '} else if (false) {'),
)

ADAPTIVE = _of(
    'hw/net/virtio-net-tx-adaptive.c',
    ('late deadlines teach nothing', 'virtio-net-tx-adaptive',
     'if (late_ns > a->late_ns) {', 'if (false) {'),
    ('one late deadline teaches all', 'virtio-net-tx-adaptive',
     'MIN(late_ns, most)', 'late_ns'),
    ('a window has no limit', 'virtio-net-tx-adaptive',
     'while (w < most && w + 1 < fit', 'while (w + 1 < fit'),
    ('a window counts chains, not descriptors', 'virtio-net-tx-adaptive',
     'MAX(a->descs_16, 16)', '16'),
    ('a wait shorter than a wake-up', 'virtio-net-tx-adaptive',
     'return is_possible(a, setting) ? setting.kind : TX_KIND_KICK;',
     'return setting.kind;'),
    ('who stops goes on comparing', 'virtio-net-tx-adaptive',
     'leave_comparison(a);\n    while', 'while'),
    ('the worse one is taken', 'tx-sim',
     'if (v == TX_VERDICT_BETTER) {\n        setting',
     'if (v == TX_VERDICT_WORSE) {\n        setting'),
    ('the challenger is never in force', 'tx-sim',
     'return a->turn == TX_TURN_CHALLENGER ? a->challenger : a->setting;',
     'return a->setting;'),
)

COMPARE = _of(
    'hw/net/virtio-net-tx-compare.c',
    ('the difference has the wrong sign', 'virtio-net-tx-compare',
     '((int64_t)b - (int64_t)a)', '((int64_t)a - (int64_t)b)'),
    ('the scatter does not count', 'virtio-net-tx-compare',
     'excess > 0 && excess * excess * c->pairs >\n'
     '           square * variance_of(c, PRIOR_PAIRS)', 'excess > 0'),
    ('what was known of the scatter does not count', 'virtio-net-tx-compare',
     'prior_pairs * c->variance + c->squares', 'c->squares'),
    ('the drift does not count', 'virtio-net-tx-compare',
     'c->drift += drift * drift * 3 / 4;', ''),
    ('a host that stood decides', 'virtio-net-tx-compare',
     'd = CLAMP(d, -MOST, MOST);\n    drift', 'drift'),
    ('each time is another comparison', 'virtio-net-tx-compare',
     'if (c->pairs > PAIRS_OLD) {',
     '*c = (TxComparison) { 0 };\n    if (false) {'),
    ('near once is equal', 'virtio-net-tx-compare',
     'if (c->near == c->pairs && c->pairs >= NEAR_PAIRS) {',
     'if (c->near) {'),
    ('no last word', 'virtio-net-tx-compare',
     'return c->pairs < c->limit ? TX_VERDICT_NONE : last_word(c);',
     'return TX_VERDICT_NONE;'),
)

CALLS = _of(
    'hw/net/virtio-net-coalesce.c',
    ('a held call has no deadline', 'virtio-net-call',
     'aio_timer_mod_ns(&c->timer, c->unseen_ns + c->limit_ns + extra_ns(c));',
     ''),
    ('one frame too late', 'virtio-net-call',
     'c->frames >= c->limit_frames', 'c->frames > c->limit_frames'),
    ('bytes do not count', 'virtio-net-call',
     '(c->limit_bytes && c->bytes >= c->limit_bytes)', 'false'),
    ('no limit is no call', 'virtio-net-call',
     'return !c->limit_ns ||\n', 'return\n'),
    ('the deadline does not judge again', 'virtio-net-call',
     'if (!virtqueue_should_signal(c->vq)) {\n        note_in_vain(c);',
     'if (false) {\n        note_in_vain(c);'),
    ('a stop forgets the call', 'virtio-net-call',
     'if (aio_timer_armed(&c->timer)) {\n        call_if_wanted(c);',
     'if (aio_timer_armed(&c->timer)) {\n        settle(c);'),
    ('a call is not noted', 'virtio-net-call',
     'virtqueue_signalled(c->vq);\n    c->call', 'c->call'),
    ('everybody has patience', 'virtio-net-call',
     'c->may_be_patient && c->in_vain == PATIENT_HOLDS',
     'c->may_be_patient'),
    ('patience is not lost', 'virtio-net-call',
     'if (!c->answered) {\n        c->in_vain = 0;',
     'if (!c->answered) {'),
    ('a look of the guest does not count', 'virtio-net-call',
     'c->frames = 0;\n    c->bytes = 0;\n    if (c->held) {',
     'if (c->held) {'),
)

MUTANTS = [*RING, *MACHINE, *RECEIVE, *POLICY, *ADAPTIVE, *COMPARE, *CALLS]
