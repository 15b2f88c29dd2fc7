/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QMP commands about NICs, each through the dispatcher as a monitor does it.
 */
#include "monitor/qmp-cmds-net.h"

#include "nic-harness.h"

typedef struct Bench {
    NicHarness *h;
    QmpNetTarget target;
    QmpSession one, two;            /* two monitors */
    unsigned quits;
} Bench;

static void count_quit(void *opaque)
{
    Bench *b = opaque;

    b->quits++;
}

static void bench_start(Bench *b)
{
    *b = (Bench) { .h = nic_harness_new(&(NicOptions) { .props = "id=v0" }) };
    b->target = (QmpNetTarget) { g_ptr_array_new(), count_quit, b };
    g_ptr_array_add(b->target.nics, b->h->nic);
    b->one = (QmpSession) { qmp_net_commands, &b->target, true };
    b->two = b->one;
    virtio_net_reset_stats(b->h->nic);
}

static void bench_stop(Bench *b)
{
    g_ptr_array_free(b->target.nics, TRUE);
    nic_harness_free(b->h);
}

/* The whole reply; the caller unrefs it. */
static JsonNode *ask(QmpSession *s, const char *command, const char *args)
{
    g_autofree char *request = g_strdup_printf(
        "{\"execute\":\"%s\",\"arguments\":%s}", command, args);
    g_autofree char *reply = qmp_dispatch(s, request);
    JsonNode *node = json_from_string(reply, NULL);

    g_assert_nonnull(node);
    return node;
}

static void expect_empty(QmpSession *s, const char *command, const char *args)
{
    g_autoptr(JsonNode) reply = ask(s, command, args);
    g_autofree char *text = json_to_string(reply, FALSE);

    g_assert_cmpstr(text, ==, "{\"return\":{}}");
}

static void expect_error(QmpSession *s, const char *command, const char *args,
                         const char *class, const char *desc)
{
    g_autoptr(JsonNode) reply = ask(s, command, args);
    JsonObject *error = json_object_get_object_member(
        json_node_get_object(reply), "error");

    g_assert_nonnull(error);
    g_assert_cmpstr(json_object_get_string_member(error, "class"), ==, class);
    g_assert_cmpstr(json_object_get_string_member(error, "desc"), ==, desc);
}

static JsonObject *nic_of(JsonNode *reply)
{
    JsonArray *nics = json_object_get_array_member(
        json_node_get_object(reply), "return");

    g_assert_cmpuint(json_array_get_length(nics), ==, 1);
    return json_array_get_object_element(nics, 0);
}

static JsonObject *queue_of(JsonNode *reply, unsigned idx)
{
    return json_array_get_object_element(
        json_object_get_array_member(nic_of(reply), "queues"), idx);
}

static int64_t tx_counter(QmpSession *s, const char *name)
{
    g_autoptr(JsonNode) reply = ask(s, "query-virtio-net-stats", "{}");
    JsonObject *tx = queue_of(reply, 1);

    g_assert_true(json_object_has_member(tx, name));
    return json_object_get_int_member(tx, name);
}

/* ---- query ----------------------------------------------------------- */

static void test_query(void)
{
    g_autoptr(JsonNode) reply = NULL;
    JsonObject *tx;
    Bench b;

    bench_start(&b);
    nic_harness_transmit(b.h, 10, 60);
    reply = ask(&b.one, "query-virtio-net-stats", "{}");
    g_assert_cmpstr(json_object_get_string_member(nic_of(reply), "id"), ==,
                    "v0");
    g_assert_cmpstr(json_object_get_string_member(nic_of(reply), "netdev"),
                    ==, "n0");
    g_assert_true(json_object_get_boolean_member(nic_of(reply), "link"));
    tx = queue_of(reply, 1);
    g_assert_cmpstr(json_object_get_string_member(tx, "direction"), ==, "tx");
    g_assert_cmpint(json_object_get_int_member(tx, "index"), ==, 1);
    g_assert_cmpint(json_object_get_int_member(tx, "packets"), ==, 10);
    g_assert_cmpint(json_object_get_int_member(tx, "calls-held"), ==, 1);
    g_assert_cmpint(json_object_get_int_member(queue_of(reply, 0),
                                               "packets"), ==, 0);
    bench_stop(&b);
}

/* 13 bins, 12 boundaries; 10 packets are between 8 and 16. */
static void test_histogram(void)
{
    g_autoptr(JsonNode) reply = NULL;
    JsonObject *hist;
    JsonArray *bins, *boundaries;
    Bench b;

    bench_start(&b);
    nic_harness_transmit(b.h, 10, 60);
    reply = ask(&b.one, "query-virtio-net-stats", "{}");
    hist = json_object_get_object_member(queue_of(reply, 1), "batch-size");
    bins = json_object_get_array_member(hist, "bins");
    boundaries = json_object_get_array_member(hist, "boundaries");
    g_assert_cmpuint(json_array_get_length(bins), ==, 13);
    g_assert_cmpuint(json_array_get_length(boundaries), ==, 12);
    for (unsigned i = 0; i < 12; i++) {
        g_assert_cmpint(json_array_get_int_element(boundaries, i), ==,
                        1 << i);
    }
    for (unsigned i = 0; i < 13; i++) {
        g_assert_cmpint(json_array_get_int_element(bins, i), ==, i == 4);
    }
    bench_stop(&b);
}

/* A ring shows what its direction has, and nothing else. */
static void test_ways(void)
{
    static const struct { const char *name; bool rx, tx; } cases[] = {
        { "packets", true, true }, { "flush-full", true, true },
        { "residence-us", false, true }, { "fires-late", false, true },
        { "dropped-buffers", true, false }, { "dropped-down", false, true },
    };
    g_autoptr(JsonNode) reply = NULL;
    Bench b;

    bench_start(&b);
    reply = ask(&b.one, "query-virtio-net-stats", "{}");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpint(json_object_has_member(queue_of(reply, 0),
                                               cases[i].name),
                        ==, cases[i].rx);
        g_assert_cmpint(json_object_has_member(queue_of(reply, 1),
                                               cases[i].name),
                        ==, cases[i].tx);
    }
    bench_stop(&b);
}

/* By the NIC's name or its netdev's, as in set_link. */
static void test_select(void)
{
    static const char *const args[] = { "{}", "{\"id\":\"v0\"}",
                                        "{\"id\":\"n0\"}" };
    Bench b;

    bench_start(&b);
    for (size_t i = 0; i < G_N_ELEMENTS(args); i++) {
        g_autoptr(JsonNode) reply = ask(&b.one, "query-virtio-net-stats",
                                        args[i]);

        g_assert_cmpstr(json_object_get_string_member(nic_of(reply), "id"),
                        ==, "v0");
    }
    bench_stop(&b);
}

static void test_errors(void)
{
    static const char *const commands[] = {
        "query-virtio-net-stats", "virtio-net-stats-reset",
    };
    static const struct { const char *args, *class, *desc; } cases[] = {
        { "{\"id\":\"x\"}", "DeviceNotFound", "Device 'x' not found" },
        { "{\"id\":\"\"}", "DeviceNotFound", "Device '' not found" },
        { "{\"id\":1}", "GenericError",
          "Invalid parameter type for 'id', expected: string" },
        { "{\"id\":null}", "GenericError",
          "Invalid parameter type for 'id', expected: string" },
        { "{\"name\":\"v0\"}", "GenericError",
          "Parameter 'name' is unexpected" },
    };
    Bench b;

    bench_start(&b);
    nic_harness_transmit(b.h, 10, 60);
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        for (size_t k = 0; k < G_N_ELEMENTS(cases); k++) {
            expect_error(&b.one, commands[i], cases[k].args, cases[k].class,
                         cases[k].desc);
        }
    }
    g_assert_cmpint(tx_counter(&b.one, "packets"), ==, 10);
    bench_stop(&b);
}

/* ---- reset ----------------------------------------------------------- */

static void test_reset(void)
{
    Bench b;

    bench_start(&b);
    nic_harness_transmit(b.h, 10, 60);
    g_assert_cmpint(tx_counter(&b.two, "packets"), ==, 10);
    expect_empty(&b.one, "virtio-net-stats-reset", "{}");
    g_assert_cmpint(tx_counter(&b.two, "packets"), ==, 0);
    nic_harness_transmit(b.h, 3, 60);
    g_assert_cmpint(tx_counter(&b.one, "packets"), ==, 3);
    g_assert_cmpint(tx_counter(&b.two, "packets"), ==, 3);
    expect_empty(&b.two, "virtio-net-stats-reset", "{\"id\":\"v0\"}");
    g_assert_cmpint(tx_counter(&b.one, "packets"), ==, 0);
    bench_stop(&b);
}

/* A stop and a start of the ring reset nothing. */
static void test_survives_stop(void)
{
    Bench b;

    bench_start(&b);
    nic_harness_transmit(b.h, 10, 60);
    virtio_net_reset(b.h->nic);
    g_assert_cmpint(tx_counter(&b.one, "packets"), ==, 10);
    bench_stop(&b);
}

/* ---- the other commands ---------------------------------------------- */

static void test_set_link(void)
{
    Bench b;

    bench_start(&b);
    expect_empty(&b.one, "set_link", "{\"name\":\"n0\",\"up\":false}");
    g_assert_false(virtio_net_link_up(b.h->nic));
    expect_empty(&b.one, "set_link", "{\"name\":\"v0\",\"up\":true}");
    g_assert_true(virtio_net_link_up(b.h->nic));
    expect_error(&b.one, "set_link", "{\"name\":\"x\",\"up\":true}",
                 "DeviceNotFound", "Device 'x' not found");
    bench_stop(&b);
}

static void test_quit(void)
{
    Bench b;

    bench_start(&b);
    expect_empty(&b.one, "quit", "{}");
    g_assert_cmpuint(b.quits, ==, 1);
    bench_stop(&b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qmp/net/query", test_query);
    g_test_add_func("/qmp/net/histogram", test_histogram);
    g_test_add_func("/qmp/net/ways", test_ways);
    g_test_add_func("/qmp/net/select", test_select);
    g_test_add_func("/qmp/net/errors", test_errors);
    g_test_add_func("/qmp/net/reset", test_reset);
    g_test_add_func("/qmp/net/survives-stop", test_survives_stop);
    g_test_add_func("/qmp/net/set-link", test_set_link);
    g_test_add_func("/qmp/net/quit", test_quit);
    return g_test_run();
}
