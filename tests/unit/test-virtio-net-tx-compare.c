/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Comparison of two rates: what is said after how many pairs.  The scatter is
 * that of a generator written here, so what is right is known.
 */
#include <glib.h>

#include "hw/net/virtio-net-tx-compare.h"

static void test_difference(void)
{
    g_assert_cmpint(tx_difference(1000, 1000), ==, 0);
    g_assert_cmpint(tx_difference(900, 1100), ==, 200);
    g_assert_cmpint(tx_difference(1100, 900), ==, -200);
    g_assert_cmpint(tx_difference(0, 1000), ==, 2000);
    g_assert_cmpint(tx_difference(1000, 0), ==, -2000);
    g_assert_cmpint(tx_difference(0, 0), ==, 0);
    g_assert_cmpint(tx_difference(1, 0), ==, 0);
    /* a year of 100 Gb/s is no overflow */
    g_assert_cmpint(tx_difference(UINT64_C(1) << 50, UINT64_C(3) << 50), ==,
                    1000);
}

static TxComparison begin(int64_t variance)
{
    TxComparison c = { 0 };

    tx_comparison_begin(&c, variance);
    return c;
}

/* Two thirds of the rate: one pair is enough, either way. */
static void test_large(void)
{
    TxComparison c = begin(TX_VARIANCE_FIRST);

    g_assert_cmpint(tx_comparison_add(&c, -400, 0), ==, TX_VERDICT_WORSE);
    c = begin(TX_VARIANCE_FIRST);
    g_assert_cmpint(tx_comparison_add(&c, 400, 0), ==, TX_VERDICT_BETTER);
}

/* ... but not on a host that does such things by itself. */
static void test_large_noise(void)
{
    TxComparison c = begin(300 * 300);

    g_assert_cmpint(tx_comparison_add(&c, -400, 0), ==, TX_VERDICT_NONE);
    c = begin(TX_VARIANCE_FIRST);
    g_assert_cmpint(tx_comparison_add(&c, -400, 600), ==, TX_VERDICT_NONE);
}

/* A window in which the host stood counts as a large one, not as the only. */
static void test_outlier(void)
{
    TxComparison c = begin(100 * 100);

    tx_comparison_add(&c, 40, 10);
    tx_comparison_add(&c, -2000, 10);
    g_assert_cmpint(tx_comparison_mean(&c), ==, -280);
}

/* One pair of the usual scatter says nothing. */
static void test_one_pair(void)
{
    for (int d = -150; d <= 150; d += 10) {
        TxComparison c = begin(TX_VARIANCE_FIRST);

        g_assert_cmpint(tx_comparison_add(&c, d, 0), ==, TX_VERDICT_NONE);
        g_assert_cmpint(tx_comparison_mean(&c), ==, d);
    }
}

/* ---- many ------------------------------------------------------------ */

/* A rate, in 1/1000, of which single windows are off by up to @scatter. */
static uint64_t window(GRand *rand, int mean, int scatter)
{
    return (uint64_t)(1000 + mean +
                      (scatter ? g_rand_int_range(rand, -scatter,
                                                  scatter + 1) : 0));
}

/* As a queue does it: A B A B A. */
static TxVerdict compare_once(GRand *rand, TxComparison *c, int mean,
                              int scatter)
{
    uint64_t before = window(rand, 0, scatter), after, b;
    TxVerdict v;

    do {
        b = window(rand, mean, scatter);
        after = window(rand, 0, scatter);
        v = tx_comparison_add(c, tx_difference((before + after) / 2, b),
                              tx_difference(before, after));
        before = after;
    } while (v == TX_VERDICT_NONE);
    return v;
}

typedef struct Tally {
    unsigned verdicts[TX_VERDICT_UNKNOWN + 1];
    unsigned most_pairs;
} Tally;

static Tally tally(int mean, int scatter)
{
    GRand *rand = g_rand_new_with_seed(7);
    int64_t variance = TX_VARIANCE_FIRST;
    Tally t = { 0 };

    for (unsigned i = 0; i < 1000; i++) {
        TxComparison c = begin(variance);

        t.verdicts[compare_once(rand, &c, mean, scatter)]++;
        t.most_pairs = MAX(t.most_pairs, c.pairs);
        variance = tx_comparison_end(&c);
    }
    g_rand_free(rand);
    return t;
}

/* No difference and no scatter: equal, and soon. */
static void test_same(void)
{
    Tally t = tally(0, 5);

    g_assert_cmpuint(t.verdicts[TX_VERDICT_EQUAL], ==, 1000);
    g_assert_cmpuint(t.most_pairs, ==, 3);
}

/* Scatter alone is rarely taken for a difference, and always ends. */
static void test_scatter(void)
{
    for (int scatter = 70; scatter <= 500; scatter += 43) {
        Tally t = tally(0, scatter);

        g_assert_cmpuint(t.verdicts[TX_VERDICT_BETTER], <, 250);
        g_assert_cmpuint(t.verdicts[TX_VERDICT_WORSE], <, 350);
        g_assert_cmpuint(t.most_pairs, <=, 8);
    }
}

/* Little scatter and no difference: that can be said.  Much: it cannot. */
static void test_equal(void)
{
    g_assert_cmpuint(tally(0, 70).verdicts[TX_VERDICT_EQUAL], >, 500);
    g_assert_cmpuint(tally(0, 500).verdicts[TX_VERDICT_EQUAL], ==, 0);
}

/* A fifth more, under the same scatter, is found, and hardly ever the
 * opposite. */
static void test_found(void)
{
    Tally t = tally(200, 70);

    g_assert_cmpuint(t.verdicts[TX_VERDICT_BETTER], >, 950);
    g_assert_cmpuint(t.verdicts[TX_VERDICT_WORSE], <, 5);
    t = tally(-200, 70);
    g_assert_cmpuint(t.verdicts[TX_VERDICT_WORSE], >, 950);
    g_assert_cmpuint(t.verdicts[TX_VERDICT_BETTER], <, 5);
}

/* A small loss, told clearly, is a loss. */
static void test_small_loss(void)
{
    Tally t = tally(-60, 10);

    g_assert_cmpuint(t.verdicts[TX_VERDICT_WORSE], ==, 1000);
}

/* What one time could not tell, some times can: they are one comparison. */
static void test_goes_on(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    unsigned better = 0, unknown = 0;

    for (unsigned i = 0; i < 300; i++) {
        TxComparison c = { 0 };
        TxVerdict v = TX_VERDICT_UNKNOWN;

        for (unsigned n = 0; n < 20 && v == TX_VERDICT_UNKNOWN; n++) {
            tx_comparison_begin(&c, 200 * 200);
            v = compare_once(rand, &c, 120, 300);
            unknown += v == TX_VERDICT_UNKNOWN;
            g_assert_cmpuint(c.pairs, <=, 32 + 8);
        }
        better += v == TX_VERDICT_BETTER;
    }
    g_assert_cmpuint(unknown, >, 50);
    g_assert_cmpuint(better, >, 250);
    g_rand_free(rand);
}

/* ... and what is old fades. */
static void test_old_pairs(void)
{
    TxComparison c = begin(400 * 400);

    for (unsigned i = 0; i < 8; i++) {
        tx_comparison_add(&c, i % 2 ? 550 : -500, 0);
    }
    tx_comparison_begin(&c, 400 * 400);
    g_assert_cmpuint(c.pairs, ==, 8);
    g_assert_cmpuint(c.limit, ==, 16);
    g_assert_cmpint(tx_comparison_mean(&c), ==, 25);
    for (unsigned i = 0; i < 32; i++) {
        tx_comparison_add(&c, i % 2 ? 550 : -500, 0);
    }
    tx_comparison_begin(&c, 400 * 400);
    g_assert_cmpuint(c.pairs, ==, 20);
    g_assert_cmpint(tx_comparison_mean(&c), ==, 25);
}

/* What is known of the scatter follows what is seen of it, to a minimum. */
static void test_variance(void)
{
    int64_t variance = TX_VARIANCE_FIRST;

    for (unsigned i = 0; i < 50; i++) {
        variance = tx_variance_add(variance, i % 2 ? 300 : -300);
    }
    g_assert_cmpint(variance, >, 290 * 290);
    g_assert_cmpint(variance, <=, 300 * 300);
    /* once is not for ever */
    g_assert_cmpint(tx_variance_add(variance, 2000), <, 360 * 360);
    for (unsigned i = 0; i < 50; i++) {
        variance = tx_variance_add(variance, 0);
    }
    g_assert_cmpint(variance, ==, 80 * 80);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tx-compare/difference", test_difference);
    g_test_add_func("/tx-compare/large", test_large);
    g_test_add_func("/tx-compare/large-noise", test_large_noise);
    g_test_add_func("/tx-compare/outlier", test_outlier);
    g_test_add_func("/tx-compare/one-pair", test_one_pair);
    g_test_add_func("/tx-compare/same", test_same);
    g_test_add_func("/tx-compare/scatter", test_scatter);
    g_test_add_func("/tx-compare/equal", test_equal);
    g_test_add_func("/tx-compare/found", test_found);
    g_test_add_func("/tx-compare/small-loss", test_small_loss);
    g_test_add_func("/tx-compare/goes-on", test_goes_on);
    g_test_add_func("/tx-compare/old-pairs", test_old_pairs);
    g_test_add_func("/tx-compare/variance", test_variance);
    return g_test_run();
}
