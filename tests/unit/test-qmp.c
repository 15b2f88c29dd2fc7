/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QMP: wording and classes as recorded from a stock QEMU (7.2), framing, and
 * what a server does to clients that misbehave.
 */
#include "monitor/qmp.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/json-text.h"
#include "util/clock.h"
#include "../../monitor/qmp-framing.h"

/* ---- a command table of the test --------------------------------------- */

static unsigned runs;

static JsonNode *cmd_act(void *opaque, JsonObject *args, GError **errp)
{
    g_assert_true(opaque == &runs);
    runs++;
    return qmp_empty();
}

static JsonNode *cmd_fail(void *opaque, JsonObject *args, GError **errp)
{
    g_set_error(errp, g_quark_from_static_string("other"), 7, "no luck");
    return NULL;
}

static JsonNode *cmd_find(void *opaque, JsonObject *args, GError **errp)
{
    g_set_error(errp, QMP_ERROR, QMP_ERROR_DEVICE_NOT_FOUND,
                "Device '%s' not found",
                json_object_get_string_member(args, "name"));
    return NULL;
}

static const QmpArg find_args[] = {
    { "name", QMP_STRING },
    { "up", QMP_BOOL, .optional = true },
    { "count", QMP_INT, .optional = true },
    { NULL }
};

static const QmpCommand commands[] = {
    { "act", NULL, cmd_act },
    { "fail", NULL, cmd_fail },
    { "find", find_args, cmd_find },
    { NULL }
};

/* ---- dispatch ---------------------------------------------------------- */

static const struct {
    const char *request, *class, *desc;
} errors[] = {
    { "{\"execute\":\"nosuch\"}", "CommandNotFound",
      "The command nosuch has not been found" },
    { "{\"execute\":\"qmp_capabilities\"}", "CommandNotFound",
      "Capabilities negotiation is already complete, command ignored" },
    { "{\"execute\":\"find\"}", "GenericError",
      "Parameter 'name' is missing" },
    { "{\"execute\":\"find\",\"arguments\":{\"name\":\"zz\"}}",
      "DeviceNotFound", "Device 'zz' not found" },
    { "{\"execute\":\"find\",\"arguments\":{\"name\":1}}", "GenericError",
      "Invalid parameter type for 'name', expected: string" },
    { "{\"execute\":\"find\",\"arguments\":{\"name\":\"zz\",\"up\":\"on\"}}",
      "GenericError", "Invalid parameter type for 'up', expected: boolean" },
    { "{\"execute\":\"find\",\"arguments\":{\"name\":\"zz\",\"count\":1.5}}",
      "GenericError",
      "Invalid parameter type for 'count', expected: integer" },
    { "{\"execute\":\"find\",\"arguments\":{\"name\":\"zz\",\"foo\":1}}",
      "GenericError", "Parameter 'foo' is unexpected" },
    { "{\"execute\":\"query-version\",\"arguments\":{\"foo\":1}}",
      "GenericError", "Parameter 'foo' is unexpected" },
    { "{\"execute\":\"act\",\"arguments\":1}", "GenericError",
      "QMP input member 'arguments' must be an object" },
    { "{\"execute\":1}", "GenericError",
      "QMP input member 'execute' must be a string" },
    { "{\"arguments\":{}}", "GenericError",
      "QMP input lacks member 'execute'" },
    { "{\"execute\":\"act\",\"foo\":1}", "GenericError",
      "QMP input member 'foo' is unexpected" },
    { "{\"exec-oob\":\"act\"}", "GenericError",
      "QMP input member 'exec-oob' is unexpected" },
    { "{\"execute\":\"\\ud83d\"}", "GenericError",
      "JSON parse error, unknown escape in a string" },
    { "{\"execute\":\"a\\u0000b\"}", "GenericError",
      "JSON parse error, NUL character in a string" },
    { "{\"execute\":\"act\",\"id\":12345678901234567890}", "GenericError",
      "JSON parse error, number out of range" },
    { "{\"execute\":\"act\",\"id\":1e999}", "GenericError",
      "JSON parse error, number out of range" },
    { "{\"execute\":\"act\"/**/}", "GenericError",
      "JSON parse error, comment" },
    { "[1]", "GenericError", "QMP input must be a JSON object" },
    { "12", "GenericError", "QMP input must be a JSON object" },
    { "{\"execute\":\"fail\"}", "GenericError", "no luck" },
};

static JsonObject *parse(const char *text)
{
    g_autoptr(JsonNode) node = json_from_string(text, NULL);

    g_assert_nonnull(node);
    g_assert_true(JSON_NODE_HOLDS_OBJECT(node));
    return json_object_ref(json_node_get_object(node));
}

static QmpSession new_session(bool negotiated)
{
    return (QmpSession) { commands, &runs, negotiated };
}

static void assert_error(const char *reply, const char *class,
                         const char *desc)
{
    g_autoptr(JsonObject) obj = parse(reply);
    JsonObject *err = json_object_get_object_member(obj, "error");

    g_assert_nonnull(err);
    g_assert_false(json_object_has_member(obj, "return"));
    g_assert_cmpuint(json_object_get_size(err), ==, 2);
    g_assert_cmpstr(json_object_get_string_member(err, "class"), ==, class);
    if (desc) {
        g_assert_cmpstr(json_object_get_string_member(err, "desc"), ==, desc);
    }
}

static void test_errors(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
        QmpSession s = new_session(true);
        g_autofree char *reply = qmp_dispatch(&s, errors[i].request);

        assert_error(reply, errors[i].class, errors[i].desc);
    }
    g_assert_cmpuint(runs, ==, 0);
}

static void test_not_json(void)
{
    static const char *const texts[] = {
        "{\"execute\": nope}", "{\"execute\" \"act\"}", "{]", "[",
        "{\"execute\":\"act\"", "{\"execute\":\"a\xff\"}", "{\x01}", "foo",
        "{\"execute\":\"act\",}}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        QmpSession s = new_session(true);
        g_autofree char *reply = qmp_dispatch(&s, texts[i]);

        assert_error(reply, "GenericError", NULL);
    }
    g_assert_cmpuint(runs, ==, 0);
}

/*
 * The library's message quotes the request, up to some byte or other: cut
 * anywhere, the reply is UTF-8.
 */
static void test_message_cut(void)
{
    for (int n = 0; n < 300; n++) {
        QmpSession s = new_session(true);
        g_autofree char *request = g_strdup_printf(
            "{\"execute\":\"%0*d\U0001f600\U0001f600\" i}", n, 0);
        g_autofree char *reply = qmp_dispatch(&s, request);

        g_assert_true(g_utf8_validate(reply, -1, NULL));
        assert_error(reply, "GenericError", NULL);
    }
    g_assert_cmpuint(runs, ==, 0);
}

/* Names, values and members of no encoding at all. */
static void test_print_any_bytes(void)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *obj = json_object_new();
    g_autofree char *text = NULL;

    json_object_set_string_member(obj, "a\xf0\x9f", "\xc3(\xff");
    json_node_take_object(node, obj);
    text = json_text_format(node);
    g_assert_cmpstr(text, ==,
                    "{\"a\uFFFD\uFFFD\":\"\uFFFD(\uFFFD\"}");
}

/* Recorded from 7.2, but for the name of the parameter, which it calls
 * 'null'. */
static void test_capabilities(void)
{
    static const struct {
        const char *enable, *desc;
    } cases[] = {
        { "[\"oob\"]", "Parameter 'enable' does not accept value 'oob'" },
        { "[1,\"oob\"]",
          "Invalid parameter type for 'enable[0]', expected: string" },
        { "1", "Invalid parameter type for 'enable', expected: array" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        QmpSession s = new_session(false);
        g_autofree char *request = g_strdup_printf(
            "{\"execute\":\"qmp_capabilities\",\"arguments\":"
            "{\"enable\":%s}}", cases[i].enable);
        g_autofree char *reply = qmp_dispatch(&s, request);

        assert_error(reply, "GenericError", cases[i].desc);
        g_assert_false(s.negotiated);
    }
}

static void test_negotiation(void)
{
    QmpSession s = new_session(false);
    g_autofree char *early = qmp_dispatch(&s, "{\"execute\":\"act\"}");
    g_autofree char *good = qmp_dispatch(&s,
        "{\"execute\":\"qmp_capabilities\",\"arguments\":{\"enable\":[]}}");
    g_autofree char *act = qmp_dispatch(&s, "{\"execute\":\"act\"}");

    assert_error(early, "CommandNotFound", "Expecting capabilities "
                 "negotiation with 'qmp_capabilities'");
    g_assert_cmpstr(good, ==, "{\"return\":{}}");
    g_assert_cmpstr(act, ==, "{\"return\":{}}");
    g_assert_cmpuint(runs, ==, 1);
    runs = 0;
}

static void test_ids(void)
{
    QmpSession s = new_session(true);
    g_autofree char *list = qmp_dispatch(&s,
        "{\"execute\":\"act\",\"id\":[1,\"a\",{\"b\":null}]}");
    g_autofree char *null = qmp_dispatch(&s,
        "{\"execute\":\"act\",\"id\":null}");
    g_autofree char *error = qmp_dispatch(&s, "{\"id\":7}");
    g_autofree char *numbers = qmp_dispatch(&s,
        "{\"execute\":\"act\",\"id\":[1e30,-0.5,2.0,\"\\ud83d\\ude00\"]}");

    g_assert_cmpstr(list, ==,
                    "{\"return\":{},\"id\":[1,\"a\",{\"b\":null}]}");
    g_assert_cmpstr(null, ==, "{\"return\":{},\"id\":null}");
    g_assert_nonnull(strstr(error, "\"id\":7"));
    g_assert_cmpstr(numbers, ==,
                    "{\"return\":{},\"id\":[1e+30,-0.5,2.0,\"\U0001f600\"]}");
    runs = 0;
}

static void test_version(void)
{
    QmpSession s = new_session(true);
    g_autofree char *greeting = qmp_greeting();
    g_autofree char *reply = qmp_dispatch(&s,
                                          "{\"execute\":\"query-version\"}");
    g_autoptr(JsonObject) obj = parse(greeting);
    g_autoptr(JsonObject) ret = parse(reply);
    JsonObject *qmp = json_object_get_object_member(obj, "QMP");
    JsonObject *version = json_object_get_object_member(qmp, "version");
    JsonObject *qemu = json_object_get_object_member(version, "qemu");

    g_assert_cmpuint(json_object_get_size(qmp), ==, 2);
    g_assert_nonnull(json_object_get_array_member(qmp, "capabilities"));
    g_assert_cmpuint(json_object_get_size(version), ==, 2);
    g_assert_cmpuint(json_object_get_size(qemu), ==, 3);
    g_assert_true(json_object_equal(
        version, json_object_get_object_member(ret, "return")));
}

static void test_query_commands(void)
{
    QmpSession s = new_session(true);
    g_autofree char *reply = qmp_dispatch(&s,
                                          "{\"execute\":\"query-commands\"}");

    g_assert_cmpstr(reply, ==, "{\"return\":[{\"name\":\"qmp_capabilities\"},"
                    "{\"name\":\"query-version\"},"
                    "{\"name\":\"query-commands\"},{\"name\":\"act\"},"
                    "{\"name\":\"fail\"},{\"name\":\"find\"}]}");
}

/* ---- framing ----------------------------------------------------------- */

/* What the framer makes of @bytes, fed @step at a time, joined by '|'. */
static char *frames(const char *bytes, size_t n, size_t step)
{
    GString *out = g_string_new(NULL);
    QmpFramer f;

    qmp_framer_init(&f);
    for (size_t at = 0; at < n; at += step) {
        QmpFrame frame;
        char *text;

        qmp_framer_feed(&f, bytes + at, MIN(step, n - at));
        while ((frame = qmp_framer_next(&f, &text)) != QMP_FRAME_NONE) {
            g_string_append_printf(out, "%s|",
                                   frame == QMP_FRAME_TEXT ? text
                                   : frame == QMP_FRAME_TOO_DEEP ? "DEEP"
                                   : "LONG");
            g_free(text);
            if (frame == QMP_FRAME_TOO_LONG) {
                qmp_framer_clear(&f);
                return g_string_free(out, FALSE);
            }
        }
    }
    qmp_framer_clear(&f);
    return g_string_free(out, FALSE);
}

static void test_framing(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "{}\n", "{}|" },
        { " \r\n\t{\"a\":[1,{}]}{}[]", "{\"a\":[1,{}]}|{}|[]|" },
        { "{\"a\":\n1}", "{\"a\":\n1}|" },
        { "{\"}\\\"}\":1}", "{\"}\\\"}\":1}|" },
        { "foo\n{}", "foo\n|{}|" },
        { "12 {}\n{}", "12 {}\n|{}|" },
        { "}\n{}", "}\n|{}|" },
        { "{\"a\n{}", "{\"a\n|{}|" },
        { "{\"a\\\n{}", "{\"a\\\n|{}|" },
        { "{", "" },
        { "", "" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (size_t step = 1; step < 8; step++) {
            g_autofree char *got = frames(cases[i].in, strlen(cases[i].in),
                                          step);

            g_assert_cmpstr(got, ==, cases[i].out);
        }
    }
}

static void test_framing_limits(void)
{
    g_autoptr(GString) in = g_string_new(NULL);
    g_autofree char *nul = frames("{\"\0\"}", 5, 5);
    g_autofree char *deep = NULL, *fits = NULL, *exact = NULL, *longer = NULL;

    g_assert_cmpstr(nul, ==, "{\"\x01\"}|");

    for (int i = 0; i < QMP_MAX_NESTING; i++) {
        g_string_append_c(in, '[');
        g_string_append_c(in, ']');
    }
    for (int i = 0; i < QMP_MAX_NESTING; i++) {
        in->str[i] = '[';
        in->str[QMP_MAX_NESTING + i] = ']';
    }
    fits = frames(in->str, in->len, 100);
    g_assert_cmpuint(strlen(fits), ==, in->len + 1);
    g_string_prepend_c(in, '[');
    g_string_append(in, "]{}");
    deep = frames(in->str, in->len, 100);
    g_assert_cmpstr(deep, ==, "DEEP|{}|");

    g_string_truncate(in, 0);
    g_string_append(in, "{\"");
    while (in->len < QMP_MAX_REQUEST_BYTES - 2) {
        g_string_append_c(in, 'x');
    }
    g_string_append(in, "\"}");
    exact = frames(in->str, in->len, 65536);
    g_assert_cmpuint(strlen(exact), ==, QMP_MAX_REQUEST_BYTES + 1);
    g_string_insert_c(in, 2, 'x');
    longer = frames(in->str, in->len, 65536);
    g_assert_cmpstr(longer, ==, "LONG|");
}

/* ---- server ------------------------------------------------------------ */

typedef struct Bench {
    AioContext *ctx;
    QmpServer *server;
    int fd;                     /* the client's end */
} Bench;

static void bench_start(Bench *b)
{
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds),
                    ==, 0);
    b->ctx = aio_context_new("qmp", clock_monotonic(), NULL);
    g_assert_nonnull(b->ctx);
    b->server = qmp_server_new(b->ctx, commands, &runs);
    g_assert_true(qmp_server_attach(b->server, fds[0], NULL));
    b->fd = fds[1];
}

static void bench_stop(Bench *b)
{
    close(b->fd);
    qmp_server_free(b->server);
    aio_context_free(b->ctx);
    runs = 0;
}

static void bench_poll(Bench *b)
{
    while (aio_poll(b->ctx, false)) {
        /* until nothing happens */
    }
}

static void bench_send(Bench *b, const char *text)
{
    g_assert_cmpint(write(b->fd, text, strlen(text)), ==, strlen(text));
    bench_poll(b);
}

/* All there is to read. */
static char *bench_recv(Bench *b)
{
    GString *out = g_string_new(NULL);
    char bytes[4096];
    ssize_t n;

    while ((n = read(b->fd, bytes, sizeof(bytes))) > 0) {
        g_string_append_len(out, bytes, n);
        bench_poll(b);
    }
    if (n == 0) {
        g_string_append(out, "<EOF>");
    }
    return g_string_free(out, FALSE);
}

static void test_server(void)
{
    Bench b;
    g_autofree char *greeting = NULL, *replies = NULL, *end = NULL;

    bench_start(&b);
    greeting = bench_recv(&b);
    g_assert_true(g_str_has_prefix(greeting, "{\"QMP\":"));
    g_assert_true(g_str_has_suffix(greeting, "}\r\n"));

    bench_send(&b, "{\"execute\":\"qmp_capabilities\"}{\"execute\":");
    bench_send(&b, "\"act\",\"id\":1}\n");
    replies = bench_recv(&b);
    g_assert_cmpstr(replies, ==,
                    "{\"return\":{}}\r\n{\"return\":{},\"id\":1}\r\n");

    /* What was sent before the hang-up is still done. */
    g_assert_cmpint(write(b.fd, "{\"execute\":\"act\"}", 17), ==, 17);
    shutdown(b.fd, SHUT_RDWR);
    bench_poll(&b);
    g_assert_cmpuint(runs, ==, 2);
    end = bench_recv(&b);
    g_assert_true(g_str_has_suffix(end, "<EOF>"));
    bench_stop(&b);
}

static void test_server_too_long(void)
{
    Bench b;
    g_autofree char *reply = NULL;
    g_autofree char *filler = g_strnfill(65536, 'x');

    bench_start(&b);
    bench_send(&b, "{\"");
    for (int i = 0; i < (int)(QMP_MAX_REQUEST_BYTES / 65536); i++) {
        bench_send(&b, filler);
    }
    reply = bench_recv(&b);
    g_assert_nonnull(strstr(reply, "longer than 1 MiB"));
    g_assert_true(g_str_has_suffix(reply, "\r\n<EOF>"));
    bench_stop(&b);
}

/* A client that does not read is not served, and then is, in order. */
static void test_server_held(void)
{
    Bench b;
    g_autofree char *replies = NULL;
    const char *at;
    unsigned sent = 0, got = 0;

    bench_start(&b);
    bench_send(&b, "{\"execute\":\"qmp_capabilities\"}");
    for (;;) {
        g_autofree char *req = g_strdup_printf(
            "{\"execute\":\"act\",\"id\":%u}\n", sent);

        if (write(b.fd, req, strlen(req)) != (ssize_t)strlen(req)) {
            break;
        }
        sent++;
        bench_poll(&b);
    }
    g_assert_cmpint(errno, ==, EAGAIN);
    g_assert_cmpuint(runs, <, sent);

    replies = bench_recv(&b);
    g_assert_cmpuint(runs, ==, sent);
    for (at = replies; (at = strstr(at, "\"id\":")); at++) {
        g_assert_cmpuint(g_ascii_strtoull(at + 5, NULL, 10), ==, got);
        got++;
    }
    g_assert_cmpuint(got, ==, sent);
    bench_stop(&b);
}

/* Set the limit of descriptors; returns what it was. */
static rlim_t limit_fds(rlim_t wanted)
{
    struct rlimit limit;
    rlim_t old;

    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    old = limit.rlim_cur;
    limit.rlim_cur = wanted;
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    return old;
}

/* Without a descriptor a client waits, and so does the server. */
static void test_server_no_descriptor(void)
{
    g_autofree char *dir = g_dir_make_tmp("qmp-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "sock", NULL);
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    Clock *clock = clock_virtual_new(0);
    Bench b = { .ctx = aio_context_new("qmp", clock, NULL) };
    g_autofree char *greeting = NULL;
    int lowest_free;
    rlim_t old;

    b.server = qmp_server_new(b.ctx, commands, &runs);
    g_assert_true(qmp_server_listen(b.server, path, NULL));
    b.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    g_assert_cmpint(connect(b.fd, (struct sockaddr *)&addr, sizeof(addr)),
                    ==, 0);
    lowest_free = dup(b.fd);
    close(lowest_free);
    old = limit_fds(lowest_free);
    for (unsigned i = 0; aio_poll(b.ctx, false); i++) {
        g_assert_cmpuint(i, <, 10);
    }
    limit_fds(old);
    bench_poll(&b);
    g_assert_cmpint(read(b.fd, &lowest_free, 1), ==, -1);

    clock_virtual_advance(clock, 100 * NS_PER_MS);
    bench_poll(&b);
    greeting = bench_recv(&b);
    g_assert_true(g_str_has_prefix(greeting, "{\"QMP\":"));
    bench_stop(&b);
    clock_free(clock);
    g_assert_cmpint(rmdir(dir), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qmp/dispatch/errors", test_errors);
    g_test_add_func("/qmp/dispatch/not-json", test_not_json);
    g_test_add_func("/qmp/dispatch/message-cut", test_message_cut);
    g_test_add_func("/qmp/print/any-bytes", test_print_any_bytes);
    g_test_add_func("/qmp/dispatch/capabilities", test_capabilities);
    g_test_add_func("/qmp/dispatch/negotiation", test_negotiation);
    g_test_add_func("/qmp/dispatch/ids", test_ids);
    g_test_add_func("/qmp/dispatch/version", test_version);
    g_test_add_func("/qmp/dispatch/query-commands", test_query_commands);
    g_test_add_func("/qmp/framing/texts", test_framing);
    g_test_add_func("/qmp/framing/limits", test_framing_limits);
    g_test_add_func("/qmp/server/session", test_server);
    g_test_add_func("/qmp/server/too-long", test_server_too_long);
    g_test_add_func("/qmp/server/held", test_server_held);
    g_test_add_func("/qmp/server/no-descriptor", test_server_no_descriptor);
    return g_test_run();
}
