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

/* Two thirds of the rate: one pair is enough, either way. */
static void test_large(void)
{
    TxComparison c = { 0 };

    g_assert_cmpint(tx_comparison_add(&c, -400), ==, TX_VERDICT_WORSE);
    c = (TxComparison) { 0 };
    g_assert_cmpint(tx_comparison_add(&c, 400), ==, TX_VERDICT_BETTER);
}

/* One pair of the usual scatter says nothing. */
static void test_one_pair(void)
{
    for (int d = -150; d <= 150; d += 10) {
        TxComparison c = { 0 };

        g_assert_cmpint(tx_comparison_add(&c, d), ==, TX_VERDICT_NONE);
        g_assert_cmpint(tx_comparison_mean(&c), ==, d);
    }
}

static TxVerdict compare(GRand *rand, int mean, int scatter, unsigned *pairs)
{
    TxComparison c = { 0 };
    TxVerdict v;

    do {
        int noise = g_rand_int_range(rand, -scatter, scatter + 1) +
                    g_rand_int_range(rand, -scatter, scatter + 1);

        v = tx_comparison_add(&c, mean + noise);
    } while (v == TX_VERDICT_NONE);
    *pairs = c.pairs;
    return v;
}

typedef struct Tally {
    unsigned verdicts[TX_VERDICT_WORSE + 1];
    unsigned most_pairs;
} Tally;

static Tally tally(int mean, int scatter)
{
    GRand *rand = g_rand_new_with_seed(7);
    Tally t = { 0 };

    for (unsigned i = 0; i < 1000; i++) {
        unsigned pairs;

        t.verdicts[compare(rand, mean, scatter, &pairs)]++;
        t.most_pairs = MAX(t.most_pairs, pairs);
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
    Tally t = tally(0, 70);

    g_assert_cmpuint(t.verdicts[TX_VERDICT_BETTER], <, 200);
    g_assert_cmpuint(t.most_pairs, <=, 8);
    g_assert_cmpuint(t.verdicts[TX_VERDICT_EQUAL], >, 500);
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tx-compare/difference", test_difference);
    g_test_add_func("/tx-compare/large", test_large);
    g_test_add_func("/tx-compare/one-pair", test_one_pair);
    g_test_add_func("/tx-compare/same", test_same);
    g_test_add_func("/tx-compare/scatter", test_scatter);
    g_test_add_func("/tx-compare/found", test_found);
    g_test_add_func("/tx-compare/small-loss", test_small_loss);
    return g_test_run();
}
