/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Comparison of two rates: see the header.
 *
 * The test is the usual one for a mean, twice its standard error, with some
 * pairs of a scatter that is common for guests (8 % in windows of 10 ms) put in
 * beforehand: one pair alone says nothing about its own scatter, but one that
 * differs by a third says enough.
 */
#include "hw/net/virtio-net-tx-compare.h"

#include <glib.h>

#define SCATTER         80
#define SCATTER_PAIRS   2

/* What is worth a change, and what is none. */
#define BETTER          30
#define EQUAL           30

/* Undecided for so long is an answer; all pairs that near each other, too. */
#define PAIRS_MAX       8
#define NEAR            20
#define NEAR_PAIRS      3

int64_t tx_difference(uint64_t a, uint64_t b)
{
    int64_t mean = (int64_t)((a + b) / 2);

    return mean ? ((int64_t)b - (int64_t)a) * 1000 / mean : 0;
}

int64_t tx_comparison_mean(const TxComparison *c)
{
    return c->sum / (int64_t)c->pairs;
}

/* Is @excess, if above 0, clear of twice the error of the mean? */
static bool is_clear(const TxComparison *c, int64_t excess)
{
    int64_t n = c->pairs;
    int64_t mean = tx_comparison_mean(c);
    int64_t variance = (SCATTER_PAIRS * SCATTER * SCATTER + c->squares -
                        n * mean * mean) / (SCATTER_PAIRS + n - 1);

    return excess > 0 && excess * excess * n > 4 * variance;
}

static TxVerdict last_word(int64_t mean)
{
    return mean > EQUAL ? TX_VERDICT_BETTER
                        : mean < -EQUAL ? TX_VERDICT_WORSE : TX_VERDICT_EQUAL;
}

TxVerdict tx_comparison_add(TxComparison *c, int64_t d)
{
    int64_t mean;

    c->pairs++;
    c->near += ABS(d) <= NEAR;
    c->sum += d;
    c->squares += d * d;
    mean = tx_comparison_mean(c);
    if (is_clear(c, mean - BETTER)) {
        return TX_VERDICT_BETTER;
    }
    if (is_clear(c, -mean)) {
        return TX_VERDICT_WORSE;
    }
    if (c->near == c->pairs && c->pairs >= NEAR_PAIRS) {
        return TX_VERDICT_EQUAL;
    }
    return c->pairs < PAIRS_MAX ? TX_VERDICT_NONE : last_word(mean);
}
