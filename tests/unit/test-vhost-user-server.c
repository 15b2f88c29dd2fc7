/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user, the export's socket: whose turn it is, what happens to the
 * file, and sockets that come as descriptors.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vhost-user-rig.h"

static VhostUserExport *new_path(VuRig *rig, GError **errp)
{
    return vhost_user_export_new_path("exp1", rig->nic, rig->ctx, rig->path,
                                      errp);
}

static VhostUserExport *new_fd(VuRig *rig, int fd, GError **errp)
{
    return vhost_user_export_new_fd("exp1", rig->nic, rig->ctx, fd, errp);
}

/* ---- turns -------------------------------------------------------------- */

static void test_second_waits(void)
{
    VuClient second;
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_client_init(&second, rig.ctx, vu_rig_dial(&rig));
    vu_client_put(&second, VU_GET_QUEUE_NUM, NULL, 0, NULL, 0);
    g_assert_cmpint(vu_client_outcome(&second, VU_GET_QUEUE_NUM), ==,
                    VU_OUT_SILENT);
    g_assert_cmpuint(vu_client_get(&rig.cl, VU_GET_QUEUE_NUM), ==, 1);

    /* The first goes, the second is served what it has already sent. */
    vu_client_close(&rig.cl);
    g_assert_cmpint(vu_client_outcome(&second, VU_GET_QUEUE_NUM), ==,
                    VU_OUT_NACK);       /* the answer 1 looks like that */
    g_assert_cmpuint(vu_client_get(&second, VU_GET_QUEUE_NUM), ==, 1);
    vu_client_cleanup(&second);
    vu_rig_cleanup(&rig);
}

/* One that gave up waiting does not stop the next. */
static void test_waiting_one_goes(void)
{
    VuRig rig;

    vu_rig_init(&rig, 1);
    close(vu_rig_dial(&rig));
    vu_rig_reconnect(&rig);
    g_assert_cmpuint(vu_client_get(&rig.cl, VU_GET_QUEUE_NUM), ==, 1);
    vu_rig_cleanup(&rig);
}

static void test_many_reconnects(void)
{
    unsigned fds;
    VuRig rig;

    vu_rig_init(&rig, 1);
    fds = vu_count_fds();
    for (unsigned i = 0; i < 1000; i++) {
        vu_rig_reconnect(&rig);
    }
    g_assert_cmpuint(vu_count_fds(), ==, fds);
    g_assert_cmpuint(rig.nic->resets, ==, 1000);
    vu_rig_cleanup(&rig);
}

/* limit_fds: no descriptor can be had any more; returns the old limit. */
static rlim_t limit_fds(void)
{
    int lowest_free = dup(STDERR_FILENO);
    struct rlimit limit;
    rlim_t old;

    close(lowest_free);
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    old = limit.rlim_cur;
    limit.rlim_cur = lowest_free;
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    return old;
}

static void unlimit_fds(rlim_t old)
{
    struct rlimit limit;

    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    limit.rlim_cur = old;
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
}

/* Said once, and tried again later, without spinning meanwhile. */
static void test_no_descriptor_to_spare(void)
{
    int saved = dup(STDERR_FILENO);
    rlim_t old;
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_client_close(&rig.cl);
    rig.cl.fd = vu_rig_dial(&rig);
    /* Not vu_client_turn(): that needs a descriptor, too. */
    dup2(rig.cl.log_fd, STDERR_FILENO);
    old = limit_fds();
    while (aio_poll(rig.ctx, false)) {
    }
    unlimit_fds(old);
    dup2(saved, STDERR_FILENO);
    close(saved);
    vu_client_expect_line(&rig.cl, "cannot accept a connection");
    g_assert_false(vhost_user_export_connected(rig.exp));

    clock_virtual_advance(rig.clock, 100 * NS_PER_MS);
    vu_client_turn(&rig.cl);
    g_assert_true(vhost_user_export_connected(rig.exp));
    rig.fds_before--;           /* saved */
    vu_rig_cleanup(&rig);
}

static void test_free_while_connected(void)
{
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_rig_negotiate(&rig, true);
    vu_rig_memory(&rig);
    vu_rig_start_ring(&rig, 0, 256, 0);
    vhost_user_export_free(rig.exp);
    rig.exp = NULL;
    g_assert_false(rig.nic->rings[0].started);
    g_assert_cmpint(vu_client_outcome(&rig.cl, 0), ==, VU_OUT_CLOSED);
    vu_rig_cleanup(&rig);
}

/* ---- the file ----------------------------------------------------------- */

static void test_file(void)
{
    struct stat st;
    VuRig rig;

    vu_rig_init(&rig, 1);
    g_assert_cmpint(stat(rig.path, &st), ==, 0);
    g_assert_true(S_ISSOCK(st.st_mode));
    g_assert_cmphex(st.st_mode & 0777, ==, 0600);
    vu_rig_cleanup(&rig);
}

static void expect_refused(VuRig *rig, const char *part)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(new_path(rig, &err));
    g_assert_nonnull(strstr(err->message, part));
    g_assert_nonnull(strstr(err->message, rig->path));
    g_assert_cmpint(access(rig->path, F_OK), ==, 0);
}

static void test_live_socket(void)
{
    VuRig rig;

    vu_rig_init(&rig, 1);
    expect_refused(&rig, "in use");
    /* Also while nobody is connected. */
    vu_client_close(&rig.cl);
    expect_refused(&rig, "in use");
    vu_rig_reconnect(&rig);
    vu_rig_cleanup(&rig);
}

static void test_stale_socket(void)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    GError *err = NULL;
    VuRig rig;
    int fd;

    vu_rig_init(&rig, 1);
    vu_client_close(&rig.cl);
    vhost_user_export_free(rig.exp);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_strlcpy(addr.sun_path, rig.path, sizeof(addr.sun_path));
    g_assert_cmpint(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), ==, 0);
    close(fd);
    rig.exp = new_path(&rig, &err);
    g_assert_no_error(err);
    rig.cl.fd = vu_rig_dial(&rig);
    g_assert_cmpuint(vu_client_get(&rig.cl, VU_GET_QUEUE_NUM), ==, 1);
    vu_rig_cleanup(&rig);
}

static void test_not_a_socket(void)
{
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_client_close(&rig.cl);
    vhost_user_export_free(rig.exp);
    rig.exp = NULL;
    g_assert_true(g_file_set_contents(rig.path, "precious", -1, NULL));
    expect_refused(&rig, "not a socket");
    unlink(rig.path);
    vu_rig_cleanup(&rig);
}

/* A file that somebody put in the place of ours is not ours to remove. */
static void test_file_of_another(void)
{
    VuRig rig;

    vu_rig_init(&rig, 1);
    unlink(rig.path);
    g_assert_true(g_file_set_contents(rig.path, "precious", -1, NULL));
    vu_client_close(&rig.cl);
    vhost_user_export_free(rig.exp);
    rig.exp = NULL;
    g_assert_cmpint(unlink(rig.path), ==, 0);
    vu_rig_cleanup(&rig);
}

/* ---- descriptors -------------------------------------------------------- */

static void test_connected_fd(void)
{
    VhostUserExport *exp;
    VuClient cl;
    VuRig rig;
    int pair[2];

    vu_rig_init(&rig, 1);
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
    exp = new_fd(&rig, pair[0], NULL);
    g_assert_cmpstr(vhost_user_export_id(exp), ==, "exp1");
    vu_client_init(&cl, rig.ctx, pair[1]);
    g_assert_cmpuint(vu_client_get(&cl, VU_GET_QUEUE_NUM), ==, 1);
    vu_client_cleanup(&cl);
    g_assert_false(vhost_user_export_connected(exp));
    vhost_user_export_free(exp);
    vu_rig_cleanup(&rig);
}

static void test_listening_fd(void)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    GError *err = NULL;
    VuRig rig;
    int fd;

    vu_rig_init(&rig, 1);
    vu_client_close(&rig.cl);
    vhost_user_export_free(rig.exp);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_strlcpy(addr.sun_path, rig.path, sizeof(addr.sun_path));
    g_assert_cmpint(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), ==, 0);
    g_assert_cmpint(listen(fd, 1), ==, 0);
    rig.exp = new_fd(&rig, fd, &err);
    g_assert_no_error(err);
    for (unsigned i = 0; i < 3; i++) {
        vu_rig_reconnect(&rig);
        g_assert_cmpuint(vu_client_get(&rig.cl, VU_GET_QUEUE_NUM), ==, 1);
    }
    /* Whoever made the file removes it. */
    vu_client_close(&rig.cl);
    vhost_user_export_free(rig.exp);
    rig.exp = NULL;
    g_assert_cmpint(unlink(rig.path), ==, 0);
    vu_rig_cleanup(&rig);
}

static void expect_fd_refused(VuRig *rig, int fd)
{
    g_autoptr(GError) err = NULL;

    g_assert_cmpint(fd, >=, 0);
    g_assert_null(new_fd(rig, fd, &err));
    g_assert_nonnull(strstr(err->message, "not a Unix stream socket"));
    g_assert_cmpint(fcntl(fd, F_GETFD), ==, -1);        /* taken over */
}

static void test_bad_fds(void)
{
    VuRig rig;
    int pair[2];

    vu_rig_init(&rig, 1);
    expect_fd_refused(&rig, open("/dev/null", O_RDWR));
    expect_fd_refused(&rig, socket(AF_INET, SOCK_STREAM, 0));
    expect_fd_refused(&rig, socket(AF_UNIX, SOCK_STREAM, 0));
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    expect_fd_refused(&rig, pair[0]);
    close(pair[1]);
    vu_rig_cleanup(&rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vhost-user/turn/second-waits", test_second_waits);
    g_test_add_func("/vhost-user/turn/waiting-one-goes",
                    test_waiting_one_goes);
    g_test_add_func("/vhost-user/turn/reconnects", test_many_reconnects);
    g_test_add_func("/vhost-user/turn/no-descriptor",
                    test_no_descriptor_to_spare);
    g_test_add_func("/vhost-user/turn/free-while-connected",
                    test_free_while_connected);
    g_test_add_func("/vhost-user/file/mode", test_file);
    g_test_add_func("/vhost-user/file/live", test_live_socket);
    g_test_add_func("/vhost-user/file/stale", test_stale_socket);
    g_test_add_func("/vhost-user/file/not-a-socket", test_not_a_socket);
    g_test_add_func("/vhost-user/file/of-another", test_file_of_another);
    g_test_add_func("/vhost-user/fd/connected", test_connected_fd);
    g_test_add_func("/vhost-user/fd/listening", test_listening_fd);
    g_test_add_func("/vhost-user/fd/bad", test_bad_fds);
    return g_test_run();
}
