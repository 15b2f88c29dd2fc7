/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of --stats: fixed readings, and the text that follows from them
 * by arithmetic.
 */
#include <math.h>
#include <string.h>

#include "../../daemon/stats-table.h"

#define TX(nic_, packets, bytes, kicks, flushes, calls, fires, drops, bins)  \
    "{\"id\":\"" nic_ "\",\"netdev\":\"n0\",\"link\":true,\"queues\":["      \
    "{\"index\":1,\"direction\":\"tx\",\"packets\":" #packets                \
    ",\"bytes\":" #bytes ",\"kicks\":" #kicks ",\"flushes\":" #flushes       \
    ",\"calls\":" #calls ",\"fires\":" #fires                                \
    ",\"dropped-host\":" #drops ",\"dropped-down\":0,\"residence-us\":"      \
    "{\"boundaries\":[1,2,4],\"bins\":" bins "}}]}"

#define BEFORE TX("nic0", 0, 0, 0, 0, 0, 0, 0, "[0,0,0,0]")
#define NOW    TX("nic0", 1000, 2500000, 100, 250, 10, 3, 1, "[0,0,10,0]")

static StatsSample *sample(const char *nics)
{
    g_autofree char *text = g_strdup_printf("[%s]", nics);
    g_autoptr(JsonNode) node = json_from_string(text, NULL);
    GError *err = NULL;
    StatsSample *s;

    g_assert_nonnull(node);
    s = stats_sample_new(node, &err);
    g_assert_no_error(err);
    return s;
}

static void expect_lines(const char *now, const char *before, double seconds,
                         const char *wanted)
{
    g_autoptr(StatsSample) later = sample(now);
    g_autoptr(StatsSample) sooner = before ? sample(before) : NULL;
    g_autofree char *got = stats_table_lines(later, sooner, seconds, 2, false);

    g_assert_cmpstr(got, ==, wanted);
}

#define HEADS "NIC  RING     PKT/S   MBIT/S  KICK/S PKT/FL  CALL/S WAIT/US" \
              " P99/US FIRE/S DROP/S"
#define ROW   "nic0 tx0        500     10.0      50    4.0       5     3.0" \
              "      4      2     <1"

/* ---- histograms -------------------------------------------------------- */

static const uint64_t boundaries[] = { 1, 2, 4 };

static void test_mean(void)
{
    static const struct { uint64_t bins[4]; double mean; } cases[] = {
        { { 0, 0, 0, 0 }, NAN },
        { { 4, 0, 0, 0 }, 0.5 },
        { { 0, 4, 0, 0 }, 1.5 },
        { { 0, 0, 0, 4 }, 4 },
        { { 1, 1, 1, 1 }, (0.5 + 1.5 + 3 + 4) / 4 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        double mean = stats_hist_mean(cases[i].bins, boundaries, 3);

        g_assert_true(isnan(cases[i].mean) ? isnan(mean)
                                           : mean == cases[i].mean);
    }
}

static void test_quantile(void)
{
    static const struct {
        uint64_t bins[4];
        double share, value;
    } cases[] = {
        { { 0, 0, 0, 0 }, 0.5, NAN },
        { { 0, 0, 4, 0 }, 0, 2 },
        { { 0, 0, 4, 0 }, 0.5, 3 },         /* the middle of 2 to 4 */
        { { 0, 0, 4, 0 }, 1, 4 },
        { { 2, 2, 0, 0 }, 0.5, 1 },
        { { 2, 2, 0, 0 }, 0.75, 1.5 },
        { { 2, 0, 0, 2 }, 0.75, 4 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        double value = stats_hist_quantile(cases[i].bins, boundaries, 3,
                                           cases[i].share);

        g_assert_true(isnan(cases[i].value) ? isnan(value)
                                            : value == cases[i].value);
    }
}

/* ---- lines ------------------------------------------------------------- */

static void test_lines(void)
{
    g_autoptr(StatsSample) now = sample(NOW);
    g_autoptr(StatsSample) before = sample(BEFORE);
    g_autofree char *text = stats_table_lines(now, before, 2, 2, true);

    g_assert_cmpstr(text, ==, " SECONDS " HEADS "\n     2.0 " ROW "\n");
}

/* Nothing is known of a ring that was not there. */
static void test_first(void)
{
    static const char unknown[] =
        "     2.0 nic0 tx0          -        -       -      -       -       -"
        "      -      -      -\n";

    expect_lines(NOW, NULL, 2, unknown);
    expect_lines(NOW, TX("other", 1, 1, 1, 1, 1, 1, 1, "[0,0,0,1]"), 2,
                 unknown);
}

static void test_idle(void)
{
    expect_lines(NOW, NOW, 1,
        "     2.0 nic0 tx0          0      0.0       0      -       0       -"
        "      -      0      0\n");
}

/* Reset in between: what it has come to since then. */
static void test_reset(void)
{
    expect_lines(NOW, TX("nic0", 5000, 9000000, 800, 900, 70, 60, 50,
                         "[0,0,99,0]"), 2, "     2.0 " ROW "\n");
}

/* Too much for a column: it keeps its width. */
static void test_wide(void)
{
    expect_lines(TX("nic0", 900000000000000, 0, 123456789012, 1, 0, 0, 0,
                    "[0,0,0,0]"), BEFORE, 1,
        "     2.0 nic0 tx0      9e+14      0.0   1e+11  9e+14       0       -"
        "      -      0      0\n");
}

static void test_receive(void)
{
    static const char rx[] =
        "{\"id\":\"nic0\",\"link\":false,\"queues\":[{\"index\":2,"
        "\"packets\":%u,\"bytes\":%u,\"flushes\":%u}]}";
    g_autofree char *before = g_strdup_printf(rx, 0, 0, 0);
    g_autofree char *now = g_strdup_printf(rx, 25, 12500000, 1);

    expect_lines(now, before, 2,
        "     2.0 nic0 (down) rx1         12     50.0       0   25.0       0"
        "       -      -      -      0\n");
}

/* Readings of whoever answers: nothing but text comes out. */
static void test_strange(void)
{
    static const char *const refused[] = {
        "{}", "1", "[1]", "[{}]", "[{\"queues\":1}]", "[{\"queues\":[1]}]",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(JsonNode) node = json_from_string(refused[i], NULL);
        g_autoptr(GError) err = NULL;

        g_assert_null(stats_sample_new(node, &err));
        g_assert_nonnull(err);
    }
    expect_lines("{\"id\":\"a\\u001b[2J\",\"queues\":[{\"index\":\"x\","
                 "\"packets\":[],\"residence-us\":{\"bins\":[1],"
                 "\"boundaries\":[1,{}]}}]}", NULL, 1,
        "     2.0 a?[2J rx0          -        -       -      -       -"
        "       -      -      -      -\n");
}

/* ---- the screen -------------------------------------------------------- */

static void expect_screen(const char *now, unsigned columns, unsigned rows,
                          const char *wanted)
{
    g_autoptr(StatsSample) later = sample(now);
    g_autoptr(StatsSample) before = sample(BEFORE);
    g_autofree char *got = stats_table_screen(later, before, 2, "title",
                                              columns, rows);

    g_assert_cmpstr(got, ==, wanted);
}

#define TITLE "\033[K\033[1mtitle: 1 NIC, 1 ring (q: quit)\033[0m\r\n" \
              "\033[K\r\n"

/* Drops make a row stand out. */
static void test_screen(void)
{
    expect_screen(NOW, 100, 24,
                  TITLE "\033[K\033[7m" HEADS "\033[0m\r\n"
                  "\033[K\033[1m" ROW "\033[0m\r\n\033[J");
}

static void test_screen_narrow(void)
{
    expect_screen(NOW, 9, 24,
                  "\033[K\033[1mtitle: 1 \033[0m\r\n\033[K\r\n"
                  "\033[K\033[7mNIC  RING\033[0m\r\n"
                  "\033[K\033[1mnic0 tx0 \033[0m\r\n\033[J");
}

/* As many lines as the screen has: the last one does not scroll it. */
static void test_screen_low(void)
{
    static const char two[] = NOW "," TX("nic1", 0, 0, 0, 0, 0, 0, 0,
                                         "[0,0,0,0]");

    expect_screen(NOW, 9, 4,
                  "\033[K\033[1mtitle: 1 \033[0m\r\n\033[K\r\n"
                  "\033[K\033[7mNIC  RING\033[0m\r\n"
                  "\033[K\033[1mnic0 tx0 \033[0m");
    expect_screen(two, 10, 4,
                  "\033[K\033[1mtitle: 2 N\033[0m\r\n\033[K\r\n"
                  "\033[K\033[7mNIC  RING \033[0m\r\n"
                  "\033[K... and 2 ");
    expect_screen(two, 10, 1, "\033[K\033[1mtitle: 2 N\033[0m");
}

/* A usual terminal shows all columns. */
static void test_screen_fits(void)
{
    g_assert_cmpuint(strlen(ROW), <=, 80);
    g_assert_cmpuint(strlen(HEADS), ==, strlen(ROW));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stats-table/histogram/mean", test_mean);
    g_test_add_func("/stats-table/histogram/quantile", test_quantile);
    g_test_add_func("/stats-table/lines/all", test_lines);
    g_test_add_func("/stats-table/lines/first", test_first);
    g_test_add_func("/stats-table/lines/idle", test_idle);
    g_test_add_func("/stats-table/lines/reset", test_reset);
    g_test_add_func("/stats-table/lines/wide", test_wide);
    g_test_add_func("/stats-table/lines/receive", test_receive);
    g_test_add_func("/stats-table/lines/strange", test_strange);
    g_test_add_func("/stats-table/screen/all", test_screen);
    g_test_add_func("/stats-table/screen/narrow", test_screen_narrow);
    g_test_add_func("/stats-table/screen/low", test_screen_low);
    g_test_add_func("/stats-table/screen/fits", test_screen_fits);
    return g_test_run();
}
