/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Comparison of two rates: see the header.
 *
 * The test is the usual one for a mean, twice its standard error.  It is made
 * after each pair, so chance gets several tries; that is the price of soon.
 */
#include "hw/net/virtio-net-tx-compare.h"

#include <glib.h>

/* The square of twice the error, and of once. */
#define CLEAR           4
#define SOME            1

/* As how many pairs what was known before counts. */
#define PRIOR_PAIRS     1

/* A pair that differs by more differs by that: the host may have stood. */
#define MOST            600

/* What is worth a change, and what is none. */
#define BETTER          30
#define EQUAL           30

/* Undecided for so long is an answer; all pairs that near each other, too. */
#define PAIRS_MAX       8
#define NEAR            20
#define NEAR_PAIRS      3

/* Of more than that, what is older counts half. */
#define PAIRS_OLD       32

/* The variance is a mean over some more pairs than that; 8 % at least. */
#define VARIANCE_PAIRS  8
#define VARIANCE_MIN    (80 * 80)

int64_t tx_difference(uint64_t a, uint64_t b)
{
    int64_t mean = (int64_t)((a + b) / 2);

    return mean ? ((int64_t)b - (int64_t)a) * 1000 / mean : 0;
}

int64_t tx_variance_add(int64_t variance, int64_t d)
{
    d = CLAMP(d, -MOST, MOST);
    variance += (d * d - variance) / VARIANCE_PAIRS;
    return MAX(variance, VARIANCE_MIN);
}

void tx_comparison_begin(TxComparison *c, int64_t variance)
{
    if (c->pairs > PAIRS_OLD) {
        c->pairs /= 2;
        c->sum /= 2;
        c->squares /= 2;
        c->drift /= 2;
    }
    c->near = 0;
    c->variance = variance;
    c->limit = c->pairs + PAIRS_MAX;
}

int64_t tx_comparison_mean(const TxComparison *c)
{
    return c->sum / (int64_t)c->pairs;
}

/* With what was known before, as of so many pairs. */
static int64_t variance_of(const TxComparison *c, int64_t prior_pairs)
{
    int64_t n = c->pairs;
    int64_t mean = tx_comparison_mean(c);

    return (prior_pairs * c->variance + c->squares - n * mean * mean +
            c->drift) / (prior_pairs + n - 1 + n);
}

int64_t tx_comparison_end(const TxComparison *c)
{
    return MAX(variance_of(c, VARIANCE_PAIRS), VARIANCE_MIN);
}

/* Is @excess above 0, and its square above @square that of the error? */
static bool is_clear(const TxComparison *c, int64_t excess, int64_t square)
{
    return excess > 0 && excess * excess * c->pairs >
           square * variance_of(c, PRIOR_PAIRS);
}

/* At the end, less will do. */
static TxVerdict last_word(const TxComparison *c)
{
    int64_t mean = tx_comparison_mean(c);

    if (ABS(mean) <= EQUAL) {
        return is_clear(c, 2 * EQUAL, SOME) ? TX_VERDICT_EQUAL
                                         : TX_VERDICT_UNKNOWN;
    }
    if (is_clear(c, ABS(mean), SOME)) {
        return mean > 0 ? TX_VERDICT_BETTER : TX_VERDICT_WORSE;
    }
    return TX_VERDICT_UNKNOWN;
}

/*
 * If three windows scatter alike, the variance of one against the mean of two
 * is 3/4 of that of one against another.
 */
TxVerdict tx_comparison_add(TxComparison *c, int64_t d, int64_t drift)
{
    int64_t mean;

    d = CLAMP(d, -MOST, MOST);
    drift = CLAMP(drift, -MOST, MOST);
    c->drift += drift * drift * 3 / 4;
    c->pairs++;
    c->near += ABS(d) <= NEAR;
    c->sum += d;
    c->squares += d * d;
    mean = tx_comparison_mean(c);
    if (is_clear(c, mean - BETTER, CLEAR)) {
        return TX_VERDICT_BETTER;
    }
    if (is_clear(c, -mean, CLEAR)) {
        return TX_VERDICT_WORSE;
    }
    if (c->near == c->pairs && c->pairs >= NEAR_PAIRS) {
        return TX_VERDICT_EQUAL;
    }
    return c->pairs < c->limit ? TX_VERDICT_NONE : last_word(c);
}
