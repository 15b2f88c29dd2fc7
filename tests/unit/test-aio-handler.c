/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptor handlers: what is called when, deletion and re-use of
 * descriptors from callbacks, hang-up without spinning.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/aio.h"
#include "util/event-notifier.h"
#include "util/report.h"

static Clock *vclock;
static AioContext *ctx;
static GString *ran;

#define assert_log(s) do {                      \
        g_assert_cmpstr(ran->str, ==, s);       \
        g_string_truncate(ran, 0);              \
    } while (0)

static void log_read(void *opaque)
{
    g_string_append_c(ran, 'r');
}

static void log_write(void *opaque)
{
    g_string_append_c(ran, 'w');
}

static void log_hangup(void *opaque)
{
    g_string_append_c(ran, 'h');
}

static void log_timer(void *opaque)
{
    g_string_append_c(ran, 't');
}

static const AioHandlerOps plain_ops = {
    .readable = log_read,
    .writable = log_write,
};

static const AioHandlerOps hangup_ops = {
    .readable = log_read,
    .writable = log_write,
    .hangup = log_hangup,
};

static AioHandler *watch(int fd, unsigned want, const AioHandlerOps *ops,
                         void *opaque)
{
    g_autoptr(GError) err = NULL;
    AioHandler *h = aio_handler_new(ctx, fd, want, ops, opaque, &err);

    g_assert_no_error(err);
    g_assert_nonnull(h);
    return h;
}

static void make_pair(int fds[2])
{
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
                               SOCK_CLOEXEC, 0, fds), ==, 0);
}

static void put_byte(int fd)
{
    g_assert_cmpint(write(fd, "x", 1), ==, 1);
}

static void get_byte(int fd)
{
    char c;

    g_assert_cmpint(read(fd, &c, 1), ==, 1);
}

/* ---- events ---------------------------------------------------------- */

static void test_level(void)
{
    int fds[2];
    AioHandler *h;

    make_pair(fds);
    h = watch(fds[0], AIO_READ, &plain_ops, NULL);
    g_assert_false(aio_poll(ctx, false));
    put_byte(fds[1]);
    g_assert_true(aio_poll(ctx, true));
    g_assert_true(aio_poll(ctx, true));
    assert_log("rr");
    aio_handler_want(h, AIO_READ | AIO_WRITE);
    g_assert_true(aio_poll(ctx, true));
    assert_log("rw");
    aio_handler_want(h, AIO_WRITE);
    g_assert_true(aio_poll(ctx, true));
    assert_log("w");
    aio_handler_want(h, 0);
    g_assert_false(aio_poll(ctx, false));
    aio_handler_want(h, AIO_READ);
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    get_byte(fds[0]);
    g_assert_false(aio_poll(ctx, false));
    aio_handler_delete(h);
    put_byte(fds[1]);
    g_assert_false(aio_poll(ctx, false));
    close(fds[0]);
    close(fds[1]);
}

/* An eventfd that is never read: each write is an event. */
static void test_edge(void)
{
    EventNotifier e;
    AioHandler *h;

    event_notifier_init(&e, false, NULL);
    h = watch(e.fd, AIO_READ | AIO_EDGE, &plain_ops, NULL);
    for (unsigned i = 0; i < 3; i++) {
        event_notifier_set(&e);
        g_assert_true(aio_poll(ctx, true));
        assert_log("r");
        g_assert_false(aio_poll(ctx, false));
    }
    aio_handler_want(h, 0);
    event_notifier_set(&e);
    g_assert_false(aio_poll(ctx, false));
    /* Wanted again: what came meanwhile is not lost, and it is an edge. */
    aio_handler_want(h, AIO_READ);
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    g_assert_false(aio_poll(ctx, false));
    aio_handler_delete(h);
    event_notifier_cleanup(&e);
}

#define MANY    150

static void count_and_clear(void *opaque)
{
    g_string_append_c(ran, 'r');
    event_notifier_test_and_clear(opaque);
}

/* More than fit into one look at the kernel's list. */
static void test_many(void)
{
    static const AioHandlerOps ops = { .readable = count_and_clear };
    EventNotifier e[MANY];
    AioHandler *h[MANY];

    for (unsigned i = 0; i < MANY; i++) {
        event_notifier_init(&e[i], true, NULL);
        h[i] = watch(e[i].fd, AIO_READ, &ops, &e[i]);
    }
    while (aio_poll(ctx, false)) {
    }
    g_assert_cmpuint(ran->len, ==, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        aio_handler_delete(h[i]);
        event_notifier_cleanup(&e[i]);
    }
}

static void test_unwatchable(void)
{
    g_autoptr(GError) err = NULL;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    g_assert_null(aio_handler_new(ctx, fd, AIO_READ, &plain_ops, NULL, &err));
    g_assert_error(err, VNET_ERROR, 0);
    g_assert_nonnull(strstr(err->message, "Operation not permitted"));
    close(fd);
    g_clear_error(&err);
    g_assert_null(aio_handler_new(ctx, fd, 0, &plain_ops, NULL, &err));
    g_assert_nonnull(strstr(err->message, "Bad file descriptor"));
}

/* The two halves of a backend in one context. */
static void test_shared_fd(void)
{
    int fds[2];
    AioHandler *rx, *tx;

    make_pair(fds);
    rx = watch(fds[0], AIO_READ, &plain_ops, NULL);
    tx = watch(fds[0], AIO_WRITE, &plain_ops, NULL);
    put_byte(fds[1]);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpuint(ran->len, ==, 2);
    g_string_truncate(ran, 0);
    aio_handler_want(tx, 0);
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    aio_handler_delete(rx);
    g_assert_false(aio_poll(ctx, false));
    aio_handler_want(tx, AIO_WRITE);
    g_assert_true(aio_poll(ctx, true));
    assert_log("w");
    aio_handler_delete(tx);
    g_assert_false(aio_poll(ctx, false));
    close(fds[0]);
    close(fds[1]);
}

/* ---- changes from callbacks ------------------------------------------ */

typedef struct Peer {
    EventNotifier e;
    AioHandler *h;
    struct Peer *other;
    void (*act)(struct Peer *other);
} Peer;

/* Whichever of the two is called first acts on the other. */
static void act_on_other(void *opaque)
{
    Peer *p = opaque;

    g_string_append_c(ran, 'r');
    event_notifier_test_and_clear(&p->e);
    if (p->other->h) {
        p->act(p->other);
    }
}

static const AioHandlerOps peer_ops = { .readable = act_on_other };

static void peers_init(Peer p[2], void (*act)(Peer *other))
{
    for (unsigned i = 0; i < 2; i++) {
        event_notifier_init(&p[i].e, true, NULL);
        p[i].other = &p[!i];
        p[i].act = act;
        p[i].h = watch(p[i].e.fd, AIO_READ, &peer_ops, &p[i]);
    }
}

static void peers_cleanup(Peer p[2])
{
    for (unsigned i = 0; i < 2; i++) {
        aio_handler_delete(p[i].h);
        event_notifier_cleanup(&p[i].e);
    }
}

static void delete_peer(Peer *other)
{
    aio_handler_delete(other->h);
    other->h = NULL;
}

static void test_delete_other(void)
{
    Peer p[2];

    peers_init(p, delete_peer);
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    g_assert_true(!p[0].h != !p[1].h);
    g_assert_false(aio_poll(ctx, false));
    peers_cleanup(p);
}

static void test_delete_own(void)
{
    Peer p[2];

    peers_init(p, delete_peer);
    delete_peer(&p[1]);
    p[0].other = &p[0];
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    g_assert_null(p[0].h);
    g_assert_false(aio_poll(ctx, false));
    peers_cleanup(p);
}

/* The number lives on, in this very batch, as another descriptor. */
static void replace_peer(Peer *other)
{
    int fd = other->e.fd;

    aio_handler_delete(other->h);
    event_notifier_cleanup(&other->e);
    event_notifier_init(&other->e, false, NULL);
    g_assert_cmpint(other->e.fd, ==, fd);
    other->h = watch(fd, AIO_READ, &plain_ops, NULL);
}

static void test_reused_fd(void)
{
    Peer p[2];

    peers_init(p, replace_peer);
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");            /* not the event of the old descriptor */
    g_assert_false(aio_poll(ctx, false));
    for (unsigned i = 0; i < 2; i++) {
        p[i].act = delete_peer;
        event_notifier_set(&p[i].e);
    }
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpuint(ran->len, >=, 1);
    peers_cleanup(p);
}

/* Taken back in the same batch: not called, and not forgotten. */
static void silence_peer(Peer *other)
{
    aio_handler_want(other->h, 0);
}

static void test_unwant_other(void)
{
    Peer p[2];

    peers_init(p, silence_peer);
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    g_assert_false(aio_poll(ctx, false));
    aio_handler_want(p[0].h, AIO_READ);
    aio_handler_want(p[1].h, AIO_READ);
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    peers_cleanup(p);
}

typedef struct Adder {
    EventNotifier e, added;
    AioHandler *h, *h_added;
} Adder;

static void add_handler(void *opaque)
{
    Adder *a = opaque;

    g_string_append_c(ran, 'a');
    event_notifier_test_and_clear(&a->e);
    a->h_added = watch(a->added.fd, AIO_READ, &plain_ops, NULL);
}

static void test_add_in_callback(void)
{
    static const AioHandlerOps ops = { .readable = add_handler };
    Adder a;

    event_notifier_init(&a.e, true, NULL);
    event_notifier_init(&a.added, true, NULL);
    a.h = watch(a.e.fd, AIO_READ, &ops, &a);
    g_assert_true(aio_poll(ctx, true));
    assert_log("a");
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    aio_handler_delete(a.h);
    aio_handler_delete(a.h_added);
    event_notifier_cleanup(&a.e);
    event_notifier_cleanup(&a.added);
}

static void delete_by_pointer(void *opaque)
{
    AioHandler **h = opaque;

    g_string_append_c(ran, 'd');
    aio_handler_delete(*h);
    *h = NULL;
}

/* Both directions ready, the first callback deletes: no second one. */
static void test_delete_before_writable(void)
{
    static const AioHandlerOps ops = {
        .readable = delete_by_pointer,
        .writable = log_write,
    };
    AioHandler *h;
    int fds[2];

    make_pair(fds);
    put_byte(fds[1]);
    h = watch(fds[0], AIO_READ | AIO_WRITE, &ops, &h);
    g_assert_true(aio_poll(ctx, true));
    assert_log("d");
    close(fds[0]);
    close(fds[1]);
}

/* ---- hang-up --------------------------------------------------------- */

/*
 * A context that spins returns from a blocking wait before its timer is due.
 * This needs the kernel to wait, so the clock is the real one; the result
 * does not depend on how long anything takes.
 */
static void assert_not_spinning(AioContext *real)
{
    AioTimer t;

    aio_timer_init(&t, real, log_timer, NULL);
    aio_timer_mod_ns(&t, aio_now_ns(real) + NS_PER_MS);
    g_assert_true(aio_poll(real, true));
    assert_log("t");
}

typedef struct HangupCase {
    const char *name;
    const AioHandlerOps *ops;
    unsigned want;
    const char *log;            /* of the first iteration */
    bool spins;                 /* the callback must end it, and does not */
} HangupCase;

static const HangupCase hangup_cases[] = {
    { "hangup", &hangup_ops, AIO_READ, "rh" },
    { "hangup-nothing-wanted", &hangup_ops, 0, "h" },
    { "hangup-write", &hangup_ops, AIO_WRITE, "h" },
    { "hangup-edge", &hangup_ops, AIO_READ | AIO_EDGE, "rh" },
    { "plain-read", &plain_ops, AIO_READ, "r", true },
    { "plain-write", &plain_ops, AIO_WRITE, "w", true },
    { "plain-nothing-wanted", &plain_ops, 0, "" },
};

static void test_hangup(const void *opaque)
{
    const HangupCase *c = opaque;
    AioHandler *h;
    int fds[2];

    ran = g_string_new(NULL);
    ctx = aio_context_new("test", clock_monotonic(), NULL);
    make_pair(fds);
    h = watch(fds[0], c->want, c->ops, NULL);
    put_byte(fds[1]);
    close(fds[1]);
    g_assert_cmpint(aio_poll(ctx, false), ==, *c->log != '\0');
    assert_log(c->log);
    if (!c->spins) {
        g_assert_false(aio_poll(ctx, false));
        assert_not_spinning(ctx);
    }
    /* Asking again puts it back. */
    aio_handler_want(h, AIO_READ);
    g_assert_true(aio_poll(ctx, false));
    assert_log(c->ops == &hangup_ops ? "rh" : "r");
    aio_handler_delete(h);
    close(fds[0]);
    aio_context_free(ctx);
    g_string_free(ran, TRUE);
}

typedef struct Drain {
    int fd;
    AioHandler *h;
} Drain;

static void drain_read(void *opaque)
{
    Drain *d = opaque;
    char buf[16];
    ssize_t n;

    while ((n = read(d->fd, buf, sizeof(buf))) > 0) {
        g_string_append_len(ran, buf, n);
    }
}

static void drain_hangup(void *opaque)
{
    Drain *d = opaque;

    g_string_append_c(ran, '.');
    aio_handler_delete(d->h);
    d->h = NULL;
}

/* The usual server: nothing of what was sent is lost, and it ends once. */
static void test_hangup_drains(void)
{
    static const AioHandlerOps ops = {
        .readable = drain_read,
        .hangup = drain_hangup,
    };
    Drain d;
    int fds[2];

    make_pair(fds);
    d.fd = fds[0];
    d.h = watch(d.fd, AIO_READ, &ops, &d);
    for (unsigned i = 0; i < 40; i++) {
        put_byte(fds[1]);
    }
    close(fds[1]);
    g_assert_true(aio_poll(ctx, true));
    assert_log("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.");
    g_assert_null(d.h);
    g_assert_false(aio_poll(ctx, false));
    close(fds[0]);
}

/* An error event without hang-up: nobody reads the pipe any more. */
static void test_pipe_error(void)
{
    AioHandler *h;
    int fds[2];

    g_assert_cmpint(pipe2(fds, O_NONBLOCK | O_CLOEXEC), ==, 0);
    h = watch(fds[1], 0, &hangup_ops, NULL);
    g_assert_false(aio_poll(ctx, false));
    close(fds[0]);
    g_assert_true(aio_poll(ctx, true));
    assert_log("h");
    g_assert_false(aio_poll(ctx, false));
    aio_handler_delete(h);
    close(fds[1]);
}

static void run_case(const void *opaque)
{
    void (*const *fn)(void) = opaque;

    vclock = clock_virtual_new(0);
    ctx = aio_context_new("test", vclock, NULL);
    ran = g_string_new(NULL);
    (*fn)();
    aio_context_free(ctx);
    clock_free(vclock);
    g_string_free(ran, TRUE);
}

static const struct {
    const char *path;
    void (*fn)(void);
} tests[] = {
    { "/aio-handler/level", test_level },
    { "/aio-handler/edge", test_edge },
    { "/aio-handler/many", test_many },
    { "/aio-handler/unwatchable", test_unwatchable },
    { "/aio-handler/shared-fd", test_shared_fd },
    { "/aio-handler/delete-other", test_delete_other },
    { "/aio-handler/delete-own", test_delete_own },
    { "/aio-handler/reused-fd", test_reused_fd },
    { "/aio-handler/unwant-other", test_unwant_other },
    { "/aio-handler/add-in-callback", test_add_in_callback },
    { "/aio-handler/delete-before-writable", test_delete_before_writable },
    { "/aio-handler/hangup-drains", test_hangup_drains },
    { "/aio-handler/pipe-error", test_pipe_error },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_test_add_data_func(tests[i].path, &tests[i].fn, run_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(hangup_cases); i++) {
        g_autofree char *path = g_strconcat("/aio-handler/hangup/",
                                            hangup_cases[i].name, NULL);

        g_test_add_data_func(path, &hangup_cases[i], test_hangup);
    }
    return g_test_run();
}
