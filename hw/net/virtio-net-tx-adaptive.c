/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tx=adaptive.
 *
 * A driver is one half of a closed loop: how fast it sends depends on when
 * its packets are looked at, and how that is depends on the guest.  A stream
 * of datagrams gains by every kick it need not send; TCP gains by having its
 * packets grow while they wait, up to a point; a request that waits is only
 * late; a sender on a clock of its own does not care.  Counts of packets do
 * not tell these apart, rates do.
 *
 * So the setting in force is challenged by another one, from time to time.
 * Both get windows of measurement in turn, A B A B A, and each B is compared
 * with the mean of its neighbours, so that a load which grows by itself does
 * not count.  The comparison goes on until the mean difference is clear of
 * its own scatter, or until there are enough of them for once:
 *
 *   BETTER  the challenger is taken;
 *   WORSE   it is not;
 *   EQUAL   the load does not depend on it.  Of two holds the shorter is
 *           taken.  A hold as good as kicks means a sender that does not
 *           wait: it gets a WINDOW, with few kicks and few deadlines;
 *   UNKNOWN the setting stays, and next time the comparison goes on.
 *
 * What a comparison costs is paid from a credit, a share of the time that
 * passes, so that however the load behaves only that share is lost.  When all
 * candidates have been tried, the next round waits, longer each time.  A rate
 * unlike the one that the setting was chosen for ends that wait; a rate far
 * below it, or a silence, ends the setting: kicks are in force, as for any
 * queue of which nothing is known.
 *
 * Rate is bytes of both directions of the pair, and a constant per packet
 * sent, per second.
 */
#include "hw/net/virtio-net-tx-adaptive.h"

#include <string.h>

#include <glib.h>

#include "hw/net/virtio-net-tx-policy.h"
#include "util/clock.h"

/*
 * A window of measurement: this long and up to 3 ms more, and this many
 * packets or that long.  The length varies so that two queues of one thread,
 * which disturb each other, do not do so in step.
 */
#define WINDOW_NS       (7 * NS_PER_MS)
#define WINDOW_PACKETS  64
#define WINDOW_MAX_NS   (20 * NS_PER_MS)

/* After a switch, until closed loops have found their new pace. */
#define SETTLE_NS       (1 * NS_PER_MS)

/* A challenger that loses this clearly needs no full window. */
#define HOPELESS_NS     (3 * NS_PER_MS)

/* A silence this long is the end of a load. */
#define SILENCE_NS      (80 * NS_PER_MS)

/* What a packet's way costs, in bytes copied. */
#define PACKET_WORK     1000

/* Of two waits the shorter is taken for a loss of up to 1/1000 of this. */
#define STEP_EQUAL      5

#define BACKOFF_MIN_NS  (200 * NS_PER_MS)
#define BACKOFF_MAX_NS  (1600 * NS_PER_MS)

/* Comparisons may cost this share of the time, and saved up that much. */
#define CREDIT_SHARE    100
#define CREDIT_MAX_NS   (30 * NS_PER_MS)

/* A neighbour's rate moves that much by itself, in 1/1000. */
#define NEIGHBOUR_NOISE 100

/* Windows in a row that are unlike the known load; another load altogether. */
#define STRANGE         3
#define STRANGE_MIN     400     /* 3 : 2 */
#define STRANGE_MAX     950     /* a collapse is strange on any host */
#define COLLAPSE        3

/* The least that a stream's packets have on average. */
#define STREAM_BYTES    1024

/*
 * Others beside a stream: what a window with some counts, and the most that is
 * remembered, in windows without.  Beside them no wait is longer than this part
 * of what it would be.
 */
#define COMPANY_WINDOW  8
#define COMPANY_MAX     16
#define COMPANY_PART    4

/* What a first deadline may be late, for all that is known. */
#define LATE_FIRST_NS   (20 * NS_PER_US)

/* A wait shorter than this, or than a wake-up, is a kick by other means. */
#define WAIT_MIN_NS     (10 * NS_PER_US)

/* WINDOW: arms until it is judged, and the deadlines that may be among 64 of
 * them. */
#define WINDOW_ARMS     32
#define SPARE_FIRST     12
#define SPARE_MAX       24

/* ---- what a setting means -------------------------------------------- */

static const uint8_t step_16ths[TX_STEPS] = { 1, 2, 3, 4, 6, 8, 12, 16 };

#define LONGEST (TX_STEPS - 1)
#define QUARTER 3
#define HALF    5

static TxSetting kick(void)
{
    return (TxSetting) { TX_KIND_KICK };
}

static TxSetting window(void)
{
    return (TxSetting) { TX_KIND_WINDOW };
}

static TxSetting delay(unsigned step)
{
    return (TxSetting) { TX_KIND_DELAY, step };
}

static TxSetting hold(unsigned step)
{
    return (TxSetting) { TX_KIND_HOLD, step };
}

static bool is_same(TxSetting a, TxSetting b)
{
    return a.kind == b.kind && a.step == b.step;
}

static unsigned index_of(TxSetting s)
{
    return TX_STEPS * s.kind + s.step;
}

static bool has_step(TxSetting s)
{
    return s.kind == TX_KIND_DELAY || s.kind == TX_KIND_HOLD;
}

/* A sender that waits for its packets would feel this one. */
static bool is_long(TxSetting s)
{
    return has_step(s) && s.step >= HALF;
}

/* The longest wait whose end, with the wake-up, is within tx-latency. */
static int64_t limit_ns(const TxAdaptive *a)
{
    return a->latency_ns - a->latency_ns / 16 - a->late_ns - a->late_ns / 4;
}

static int64_t wait_ns(const TxAdaptive *a, TxSetting s)
{
    int64_t part = a->has_company ? COMPANY_PART : 1;

    switch (s.kind) {
    case TX_KIND_DELAY:
        /* it begins with a kick, which is another wake-up */
        return (limit_ns(a) - a->late_ns) * step_16ths[s.step] / (16 * part);
    case TX_KIND_HOLD:
        return limit_ns(a) * step_16ths[s.step] / (16 * part);
    default:
        return limit_ns(a) / part;
    }
}

static bool is_possible(const TxAdaptive *a, TxSetting s)
{
    return s.kind == TX_KIND_KICK ||
           wait_ns(a, s) >= MAX(WAIT_MIN_NS, a->late_ns);
}

TxSetting tx_adaptive_in_force(const TxAdaptive *a)
{
    return a->turn == TX_TURN_CHALLENGER ? a->challenger : a->setting;
}

/*
 * In a random stream the time of the W-th packet scatters by the root of W.
 * How much room that needs is learned from the deadlines that came first.
 */
unsigned tx_adaptive_fit(const TxAdaptive *a)
{
    uint64_t fit = a->gap_ns ? wait_ns(a, window()) / a->gap_ns : 0;
    unsigned most = a->ring_size * 16 / (4 * MAX(a->descs_16, 16));
    uint64_t square = a->spare_4 * a->spare_4;
    unsigned w = 1;

    while (w < most && w + 1 < fit &&
           (fit - w - 1) * (fit - w - 1) * 16 >= square * (w + 1)) {
        w++;
    }
    return w;
}

TxKind tx_adaptive_kind(const TxAdaptive *a)
{
    TxSetting setting = tx_adaptive_in_force(a);

    return is_possible(a, setting) ? setting.kind : TX_KIND_KICK;
}

int64_t tx_adaptive_wait_ns(const TxAdaptive *a)
{
    return wait_ns(a, tx_adaptive_in_force(a));
}

unsigned tx_adaptive_window(const TxAdaptive *a)
{
    return tx_adaptive_kind(a) == TX_KIND_WINDOW ? a->window : 1;
}

void tx_adaptive_armed(TxAdaptive *a)
{
    a->arms++;
}

/*
 * A wake-up far later than the others says that the host had something else
 * to do, not how late the next one will be: it counts as twice what is known.
 */
void tx_adaptive_fired(TxAdaptive *a, int64_t late_ns, bool armed)
{
    int64_t most = 2 * a->late_ns + LATE_FIRST_NS;

    a->fires += armed;
    a->was_fired = true;
    if (late_ns > a->late_ns) {
        a->late_ns += (MIN(late_ns, most) - a->late_ns + 7) / 8;
    } else {
        a->late_ns -= (a->late_ns - late_ns) / 64;
    }
}

/* ---- candidates ------------------------------------------------------ */

typedef struct TxCandidates {
    TxSetting s[6];
    unsigned n;
} TxCandidates;

static void add(TxCandidates *c, TxSetting s)
{
    c->s[c->n++] = s;
}

/*
 * What a step may give way to: kicks, half of it, its neighbours, the other
 * kind; and from where TCP gains nothing to where it might.
 */
#define KICK_CANDIDATE 0

static void add_steps(TxCandidates *c, TxSetting s)
{
    TxKind other = s.kind == TX_KIND_HOLD ? TX_KIND_DELAY : TX_KIND_HOLD;

    add(c, kick());
    if (s.step >= 2) {
        add(c, (TxSetting) { s.kind, s.step - 2 });
    }
    if (s.step >= 1) {
        add(c, (TxSetting) { s.kind, s.step - 1 });
    }
    if (s.step < LONGEST) {
        add(c, (TxSetting) { s.kind, s.step + 1 });
    }
    add(c, (TxSetting) { other, s.step });
    if (s.kind == TX_KIND_HOLD && s.step < LONGEST) {
        add(c, delay(LONGEST));
    }
}

/*
 * Who may challenge @s, in turn.  From kicks the longest delay first: what a
 * stream of TCP gains shows there or nowhere, and a request loses most, so
 * that it is told soonest.
 */
static TxCandidates candidates(const TxAdaptive *a)
{
    TxSetting s = a->setting;
    TxCandidates c = { .n = 0 };

    switch (s.kind) {
    case TX_KIND_KICK:
        add(&c, delay(LONGEST));
        add(&c, delay(QUARTER));
        add(&c, hold(0));
        add(&c, delay(0));
        break;
    case TX_KIND_WINDOW:
        add(&c, delay(LONGEST));
        add(&c, hold(QUARTER));
        /* to know that a sender does not care, kicks are dear */
        if (a->backoff_ns >= BACKOFF_MAX_NS) {
            add(&c, kick());
        }
        break;
    default:
        add_steps(&c, s);
    }
    return c;
}

static uint64_t rate_of(uint64_t work, int64_t elapsed_ns)
{
    return work * 1000 / (uint64_t)(elapsed_ns / 1000);
}

/* ---- neighbours ------------------------------------------------------ */

static bool is_alone(const TxAdaptive *a)
{
    return a->group->first == a && !a->next;
}

static bool is_free(const TxGroup *g)
{
    return !g->comparing;
}

static void leave_comparison(TxAdaptive *a)
{
    a->turn = TX_TURN_NONE;
    if (a->group && a->group->comparing == a) {
        a->group->comparing = NULL;
    }
}

static void mark_neighbours(TxAdaptive *a)
{
    for (TxAdaptive *b = a->group->first; b; b = b->next) {
        b->mark = b->total;
    }
}

/* Their rates in the window that ends. */
static void note_neighbours(TxAdaptive *a, int64_t elapsed_ns)
{
    for (TxAdaptive *b = a->group->first; b; b = b->next) {
        uint64_t rate = rate_of(b->total - b->mark, elapsed_ns);

        if (a->turn == TX_TURN_CHALLENGER) {
            b->is_rate = rate;
        } else {
            b->was_rate = rate;
        }
    }
}

/*
 * What the challenger did to the others, each in parts of its own rate: a
 * queue may not win what another one loses.  Small differences are noise, of
 * which every neighbour adds some; one that was silent before, or was not
 * there, has begun by itself.
 */
static int64_t neighbours_difference(const TxAdaptive *a)
{
    int64_t sum = 0;

    for (TxAdaptive *b = a->group->first; b; b = b->next) {
        int64_t d = tx_difference(b->was_rate, b->is_rate);

        sum += b != a && b->was_rate && ABS(d) > NEIGHBOUR_NOISE ? d : 0;
    }
    return sum;
}

/* ---- windows --------------------------------------------------------- */

static void begin_window(TxAdaptive *a, int64_t now_ns, uint64_t peer_work)
{
    a->begin_ns = now_ns;
    a->dither = a->dither * 1664525 + 1013904223 + (uint32_t)a->work;
    a->packets = 0;
    a->descs = 0;
    a->lone = 0;
    a->work = 0;
    a->peer_work = peer_work;
    /* Without deadlines nothing is learned of them. */
    a->late_ns -= a->was_fired ? 0 : a->late_ns / 16;
    a->was_fired = false;
    if (a->turn != TX_TURN_NONE) {
        mark_neighbours(a);
    }
}

/* Another load, or another setting: what was compared says nothing now. */
static void forget_comparisons(TxAdaptive *a)
{
    memset(a->open, 0, sizeof(a->open));
}

static void begin_load(TxAdaptive *a)
{
    forget_comparisons(a);
    a->setting = kick();
    a->candidate = 0;
    leave_comparison(a);
    a->arms = 0;
    a->fires = 0;
    a->known_rate = 0;
    a->strange = 0;
    a->slow = 0;
    a->backoff_ns = 0;
    a->retry_ns = 0;
}

/* All candidates have had their turn: let it rest. */
static void rest(TxAdaptive *a, int64_t now_ns)
{
    a->candidate = 0;
    a->is_open_loop = false;
    a->backoff_ns = CLAMP(2 * a->backoff_ns, BACKOFF_MIN_NS, BACKOFF_MAX_NS);
    a->retry_ns = now_ns + a->backoff_ns;
}

static void become(TxAdaptive *a, TxSetting setting, int64_t now_ns)
{
    forget_comparisons(a);
    a->setting = setting;
    a->candidate = 0;
    a->strange = 0;
    a->known_rate = 0;
    a->backoff_ns = 0;
    a->retry_ns = now_ns;
    a->is_open_loop = false;
    if (has_step(setting)) {
        /* kicks have just lost, to this one or to one that lost to it */
        a->candidate = KICK_CANDIDATE + 1;
    } else if (setting.kind == TX_KIND_WINDOW) {
        a->spare_4 = SPARE_FIRST;
        rest(a, now_ns);
    }
}

static void next_candidate(TxAdaptive *a, int64_t now_ns)
{
    if (++a->candidate < candidates(a).n) {
        return;
    }
    if (a->setting.kind == TX_KIND_KICK && a->is_open_loop) {
        become(a, window(), now_ns);
    } else {
        rest(a, now_ns);
    }
}

/* ---- comparison ------------------------------------------------------ */

/* What to be after a comparison that told no difference. */
static TxSetting after_equal(const TxAdaptive *a)
{
    TxSetting cur = a->setting, other = a->challenger;

    if (!has_step(cur)) {
        return cur;
    }
    if (other.kind == TX_KIND_KICK) {
        return is_long(cur) ? window() : kick();
    }
    /* Not for a small loss, which would add up from step to step. */
    return wait_ns(a, other) < wait_ns(a, cur) &&
           tx_comparison_mean(&a->cmp) >= -STEP_EQUAL ? other : cur;
}

static void end_comparison(TxAdaptive *a, TxVerdict v, int64_t now_ns)
{
    TxSetting setting = a->setting;

    leave_comparison(a);
    a->variance = tx_comparison_end(&a->cmp);
    a->open[index_of(a->challenger)] = v == TX_VERDICT_UNKNOWN ?
        a->cmp : (TxComparison) { 0 };
    if (v == TX_VERDICT_BETTER) {
        setting = a->challenger;
    } else if (v == TX_VERDICT_EQUAL) {
        a->is_open_loop |= is_long(a->challenger);
        setting = after_equal(a);
    }
    if (!is_same(setting, a->setting)) {
        become(a, setting, now_ns);
    } else {
        next_candidate(a, now_ns);
    }
}

/* @rate will do for the first turn, if there is nobody else to measure. */
static void begin_comparison(TxAdaptive *a, TxSetting challenger,
                             uint64_t rate)
{
    a->group->comparing = a;
    a->challenger = challenger;
    a->cmp = a->open[index_of(challenger)];
    tx_comparison_begin(&a->cmp, a->variance);
    a->before_rate = rate;
    a->turn = is_alone(a) ? TX_TURN_CHALLENGER : TX_TURN_FIRST;
}

static void try_candidate(TxAdaptive *a, int64_t now_ns, uint64_t rate)
{
    TxSetting c = candidates(a).s[a->candidate];

    if (!is_possible(a, c)) {
        next_candidate(a, now_ns);
    } else if (is_free(a->group)) {
        begin_comparison(a, c, rate);
    }
}

/* Gains count, too: else noise alone would use the credit up. */
static void charge(TxAdaptive *a, uint64_t setting_rate)
{
    if (setting_rate) {
        double gain = (double)a->rate / (double)setting_rate - 1;

        a->credit_ns += (int64_t)((double)a->trial_ns * MIN(gain, 1));
        a->credit_ns = MIN(a->credit_ns, CREDIT_MAX_NS);
    }
}

static void end_pair(TxAdaptive *a, int64_t now_ns, uint64_t after_rate)
{
    uint64_t setting_rate = (a->before_rate + after_rate) / 2;
    int64_t d = tx_difference(setting_rate, a->rate) +
                neighbours_difference(a);
    TxVerdict v = tx_comparison_add(&a->cmp, d, tx_difference(a->before_rate,
                                                              after_rate));

    charge(a, setting_rate);
    a->before_rate = after_rate;
    if (v != TX_VERDICT_NONE) {
        end_comparison(a, v, now_ns);
    } else {
        a->turn = TX_TURN_CHALLENGER;
    }
}

static void judge_comparison(TxAdaptive *a, int64_t now_ns, uint64_t rate)
{
    int64_t elapsed_ns = now_ns - a->begin_ns;

    switch (a->turn) {
    case TX_TURN_NONE:
        return;
    case TX_TURN_FIRST:
        note_neighbours(a, elapsed_ns);
        a->before_rate = rate;
        a->turn = TX_TURN_CHALLENGER;
        return;
    case TX_TURN_CHALLENGER:
        note_neighbours(a, elapsed_ns);
        a->rate = rate;
        a->trial_ns = elapsed_ns + SETTLE_NS;
        a->turn = TX_TURN_SETTING;
        return;
    case TX_TURN_SETTING:
        end_pair(a, now_ns, rate);
        note_neighbours(a, elapsed_ns);
    }
}

/* ---- a load ---------------------------------------------------------- */

static void judge_spare(TxAdaptive *a)
{
    if (a->arms < WINDOW_ARMS) {
        return;
    }
    if (a->fires > a->arms / 128) {
        a->spare_4 = MIN(a->spare_4 + 4, SPARE_MAX);
    } else if (!a->fires && a->spare_4 > 1) {
        a->spare_4--;
    }
    a->arms = 0;
    a->fires = 0;
}

/* Fast enough for a hold to gather anything. */
static bool is_load(const TxAdaptive *a, int64_t elapsed_ns)
{
    return (int64_t)a->packets * 2 * limit_ns(a) >= elapsed_ns;
}

/* By half, or by more if the rate does such things by itself. */
static bool is_strange(const TxAdaptive *a, uint64_t rate)
{
    int64_t d = tx_difference(a->known_rate, rate);

    return a->known_rate && d * d > CLAMP(9 * a->variance,
                                          STRANGE_MIN * STRANGE_MIN,
                                          STRANGE_MAX * STRANGE_MAX);
}

/*
 * A wait is ended at once only by a rate that no noise explains, as when a
 * stream makes way for requests; else kicks are the next to challenge it.
 */
static void be_surprised(TxAdaptive *a, int64_t now_ns, uint64_t rate)
{
    if (++a->strange < STRANGE) {
        return;
    }
    if (rate < a->known_rate / COLLAPSE && a->setting.kind != TX_KIND_KICK) {
        begin_load(a);
        return;
    }
    forget_comparisons(a);
    a->strange = 0;
    a->known_rate = 0;
    a->candidate = has_step(a->setting) ? KICK_CANDIDATE : 0;
    a->backoff_ns = 0;
    a->retry_ns = now_ns;
}

/* Three windows in a row: what a comparison of a setting with itself gives. */
static void note_noise(TxAdaptive *a, uint64_t rate)
{
    uint64_t *last = a->last_rate;

    if (last[0] && last[1]) {
        a->variance = tx_variance_add(a->variance, tx_difference(
            (last[0] + rate) / 2, last[1]));
    }
    last[0] = last[1];
    last[1] = rate;
}

static void judge_steady(TxAdaptive *a, int64_t now_ns, uint64_t rate)
{
    if (is_strange(a, rate)) {
        be_surprised(a, now_ns, rate);
        return;
    }
    note_noise(a, rate);
    a->strange = 0;
    a->known_rate = a->known_rate ? (3 * a->known_rate + rate) / 4 : rate;
    if (now_ns >= a->retry_ns && a->credit_ns > 0) {
        try_candidate(a, now_ns, rate);
    }
}

/*
 * A small packet beside a stream: its sender may have nothing else to send, and
 * a wait is a loss to him that no rate shows.  Two windows with such packets
 * within a tenth of a second or so are the begin of it, and so many without any
 * the end.  Either is another load.
 */
static bool is_company_new(TxAdaptive *a)
{
    bool had = a->has_company;
    uint64_t bytes = a->work - a->packets * PACKET_WORK;

    if (a->lone && bytes >= a->packets * STREAM_BYTES) {
        a->company = MIN(a->company + COMPANY_WINDOW, COMPANY_MAX);
    } else if (a->company) {
        a->company--;
    }
    a->has_company = a->company > (had ? 0 : COMPANY_WINDOW);
    return a->has_company != had;
}

/* What the pair received is not in it, so this may be wrong, and only ends a
 * window early. */
static bool is_hopeless(const TxAdaptive *a, int64_t elapsed_ns)
{
    return a->turn == TX_TURN_CHALLENGER && elapsed_ns >= HOPELESS_NS &&
           a->work * 2000 < a->before_rate * (uint64_t)(elapsed_ns / 1000);
}

bool tx_adaptive_is_due(const TxAdaptive *a, int64_t now_ns)
{
    int64_t elapsed_ns = now_ns - a->begin_ns;

    if (a->is_settling) {
        return elapsed_ns >= SETTLE_NS;
    }
    if (is_hopeless(a, elapsed_ns)) {
        return true;
    }
    if (elapsed_ns >= WINDOW_NS + (a->dither >> 30) * NS_PER_MS) {
        return a->packets >= WINDOW_PACKETS || elapsed_ns >= WINDOW_MAX_NS;
    }
    return false;
}

static void judge_window(TxAdaptive *a, int64_t now_ns, uint64_t work)
{
    int64_t elapsed_ns = now_ns - a->begin_ns;
    uint64_t rate = rate_of(work, elapsed_ns);

    a->gap_ns = elapsed_ns / (int64_t)MAX(a->packets, 1);
    a->descs_16 = a->packets ? a->descs * 16 / a->packets : 16;
    judge_spare(a);
    if (is_company_new(a)) {
        begin_load(a);
    } else if (a->turn != TX_TURN_NONE) {
        judge_comparison(a, now_ns, rate);
    } else if (is_load(a, elapsed_ns)) {
        a->slow = 0;
        judge_steady(a, now_ns, rate);
    } else if (a->setting.kind != TX_KIND_KICK && ++a->slow >= STRANGE) {
        begin_load(a);
    }
    a->window = tx_adaptive_fit(a);
}

void tx_adaptive_judge(TxAdaptive *a, int64_t now_ns, uint64_t peer_work)
{
    TxSetting before = tx_adaptive_in_force(a);
    int64_t elapsed_ns = now_ns - a->begin_ns;

    if (a->is_settling) {
        a->is_settling = false;
        begin_window(a, now_ns, peer_work);
        return;
    }
    a->credit_ns = MIN(a->credit_ns + elapsed_ns / CREDIT_SHARE,
                       CREDIT_MAX_NS);
    if (elapsed_ns >= SILENCE_NS) {
        begin_load(a);
    } else {
        judge_window(a, now_ns, a->work + (peer_work - a->peer_work));
    }
    if (!is_same(tx_adaptive_in_force(a), before)) {
        a->is_settling = true;
        a->last_rate[0] = a->last_rate[1] = 0;
    }
    begin_window(a, now_ns, peer_work);
}

/* ---- life ------------------------------------------------------------ */

void tx_adaptive_note(TxAdaptive *a, const TxPass *pass)
{
    uint64_t work = pass->bytes + (uint64_t)pass->packets * PACKET_WORK;

    a->packets += pass->packets;
    a->descs += pass->descs;
    a->lone += pass->lone;
    a->work += work;
    a->total += work;
}

void tx_adaptive_init(TxAdaptive *a, int64_t latency_ns)
{
    *a = (TxAdaptive) { .latency_ns = latency_ns };
}

void tx_adaptive_start(TxAdaptive *a, unsigned ring_size, TxGroup *group)
{
    tx_adaptive_init(a, a->latency_ns);
    a->ring_size = ring_size;
    a->group = group;
    a->next = group->first;
    group->first = a;
    a->is_settling = true;
    a->descs_16 = 16;
    a->window = 1;
    a->variance = TX_VARIANCE_FIRST;
    a->credit_ns = CREDIT_MAX_NS;
    begin_load(a);
}

void tx_adaptive_stop(TxAdaptive *a)
{
    TxAdaptive **at = a->group ? &a->group->first : NULL;

    if (!at) {
        return;
    }
    leave_comparison(a);
    while (*at != a) {
        at = &(*at)->next;
    }
    *at = a->next;
    a->group = NULL;
}
