/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QMP client, against a server that says what the test wants: good ones
 * and all sorts of others.
 */
#include "monitor/qmp-client.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "monitor/qmp.h"
#include "util/clock.h"

#define GREETING "{\"QMP\":{\"version\":{},\"capabilities\":[]}}\r\n"

typedef struct Bench {
    Clock *clock;
    AioContext *ctx;
    QmpClient *client;
    int fd;                     /* the server's end; -1: closed */
    unsigned ready, replies, failures;
    char *value;                /* the last reply */
    char *why;
} Bench;

static void on_ready(void *opaque)
{
    ((Bench *)opaque)->ready++;
}

static void on_reply(void *opaque, JsonNode *value)
{
    Bench *b = opaque;

    b->replies++;
    g_free(b->value);
    b->value = json_to_string(value, FALSE);
}

static void on_failed(void *opaque, const char *why)
{
    Bench *b = opaque;

    b->failures++;
    b->why = g_strdup(why);
}

static const QmpClientOps ops = { on_ready, on_reply, on_failed };

static void bench_start(Bench *b)
{
    int fds[2];

    *b = (Bench) { .clock = clock_virtual_new(0) };
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds),
                    ==, 0);
    b->ctx = aio_context_new("qmp", b->clock, NULL);
    b->client = qmp_client_attach(b->ctx, fds[0], &ops, b, NULL);
    g_assert_nonnull(b->client);
    b->fd = fds[1];
}

static void bench_stop(Bench *b)
{
    qmp_client_free(b->client);
    aio_context_free(b->ctx);
    clock_free(b->clock);
    if (b->fd >= 0) {
        close(b->fd);
    }
    g_free(b->value);
    g_free(b->why);
}

static void bench_poll(Bench *b)
{
    while (aio_poll(b->ctx, false)) {
        /* until nothing happens */
    }
}

static void say(Bench *b, const char *text)
{
    g_assert_cmpint(write(b->fd, text, strlen(text)), ==, strlen(text));
    bench_poll(b);
}

static void expect_request(Bench *b, const char *command)
{
    g_autofree char *wanted = g_strdup_printf("{\"execute\":\"%s\"}\n",
                                              command);
    char text[128] = "";

    g_assert_cmpint(read(b->fd, text, sizeof(text) - 1), ==, strlen(wanted));
    g_assert_cmpstr(text, ==, wanted);
}

static void negotiate(Bench *b)
{
    say(b, GREETING);
    expect_request(b, "qmp_capabilities");
    say(b, "{\"return\":{}}\r\n");
    g_assert_cmpuint(b->ready, ==, 1);
}

static void test_session(void)
{
    Bench b;

    bench_start(&b);
    negotiate(&b);
    qmp_client_execute(b.client, "query-version");
    expect_request(&b, "query-version");
    say(&b, "{\"event\":\"X\",\"data\":{}}\r\n{\"return\":");
    g_assert_cmpuint(b.replies, ==, 0);
    say(&b, "[1,2]}\r\n");
    g_assert_cmpuint(b.replies, ==, 1);
    g_assert_cmpstr(b.value, ==, "[1,2]");
    /* idle for long: nothing is expected, nothing is missed */
    clock_virtual_advance(b.clock, 3600 * NS_PER_SEC);
    say(&b, "{\"event\":\"X\"}\r\n");
    g_assert_cmpuint(b.failures, ==, 0);
    bench_stop(&b);
}

static void test_not_qmp(void)
{
    static const char *const texts[] = {
        "SSH-2.0-OpenSSH\r\n", "{}\r\n", "[1]", "{\"return\":{}}\r\n",
        "{\"QMP\":}", "{\"a\":1,}", "\xff\xfe\n",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        Bench b;

        bench_start(&b);
        say(&b, texts[i]);
        g_assert_cmpuint(b.failures, ==, 1);
        g_assert_cmpstr(b.why, ==, "what it sends is not QMP");
        say(&b, GREETING);              /* too late */
        g_assert_cmpuint(b.ready, ==, 0);
        bench_stop(&b);
    }
}

static void test_silent(void)
{
    Bench b;

    bench_start(&b);
    clock_virtual_advance(b.clock, QMP_CLIENT_TIMEOUT_NS - 1);
    bench_poll(&b);
    g_assert_cmpuint(b.failures, ==, 0);
    clock_virtual_advance(b.clock, 1);
    bench_poll(&b);
    g_assert_cmpuint(b.failures, ==, 1);
    g_assert_cmpstr(b.why, ==, "no QMP greeting comes");
    bench_stop(&b);
}

static void test_no_answer(void)
{
    Bench b;

    bench_start(&b);
    negotiate(&b);
    qmp_client_execute(b.client, "x");
    clock_virtual_advance(b.clock, QMP_CLIENT_TIMEOUT_NS);
    bench_poll(&b);
    g_assert_cmpstr(b.why, ==, "no answer comes");
    bench_stop(&b);
}

static void test_refused(void)
{
    Bench b;

    bench_start(&b);
    negotiate(&b);
    qmp_client_execute(b.client, "x");
    say(&b, "{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"The command "
            "x has not been found\"}}\r\n");
    g_assert_cmpuint(b.replies, ==, 0);
    g_assert_cmpstr(b.why, ==, "The command x has not been found");
    bench_stop(&b);
}

/* Gone at any moment: said once; a command after that goes nowhere. */
static void test_gone(void)
{
    for (unsigned when = 0; when < 3; when++) {
        Bench b;

        bench_start(&b);
        if (when > 0) {
            negotiate(&b);
        }
        if (when > 1) {
            qmp_client_execute(b.client, "x");
        }
        close(b.fd);
        b.fd = -1;
        bench_poll(&b);
        g_assert_cmpuint(b.failures, ==, 1);
        g_assert_cmpstr(b.why, ==, when ? "the connection is closed"
                                        : "no QMP greeting comes");
        qmp_client_execute(b.client, "x");
        bench_poll(&b);
        g_assert_cmpuint(b.failures, ==, 1);
        bench_stop(&b);
    }
}

/* ---- with our own server ----------------------------------------------- */

static const QmpCommand no_commands[] = { { NULL } };

static void test_own_server(void)
{
    Bench b;
    QmpServer *server;
    int fd;

    bench_start(&b);
    server = qmp_server_new(b.ctx, no_commands, NULL);
    fd = b.fd;
    b.fd = -1;
    g_assert_true(qmp_server_attach(server, fd, NULL));
    bench_poll(&b);
    g_assert_cmpuint(b.ready, ==, 1);
    qmp_client_execute(b.client, "query-commands");
    bench_poll(&b);
    g_assert_cmpuint(b.replies, ==, 1);
    g_assert_nonnull(strstr(b.value, "qmp_capabilities"));
    qmp_server_free(server);
    bench_poll(&b);
    g_assert_cmpstr(b.why, ==, "the connection is closed");
    bench_stop(&b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qmp-client/session", test_session);
    g_test_add_func("/qmp-client/not-qmp", test_not_qmp);
    g_test_add_func("/qmp-client/silent", test_silent);
    g_test_add_func("/qmp-client/no-answer", test_no_answer);
    g_test_add_func("/qmp-client/refused", test_refused);
    g_test_add_func("/qmp-client/gone", test_gone);
    g_test_add_func("/qmp-client/own-server", test_own_server);
    return g_test_run();
}
