/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listening Unix sockets: who may replace and who may remove a socket file.
 */
#include "util/unix-socket.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char *dir;

static char *path_of(const char *name)
{
    return g_build_filename(dir, name, NULL);
}

static bool can_connect(const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool good;

    strcpy(addr.sun_path, path);
    good = !connect(fd, (struct sockaddr *)&addr, sizeof(addr));
    close(fd);
    return good;
}

static void expect_refused(const char *path, const char *what)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(unix_listener_new(path, &err));
    g_assert_nonnull(err);
    g_assert_nonnull(strstr(err->message, path));
    g_assert_nonnull(strstr(err->message, what));
}

static void test_life(void)
{
    g_autofree char *path = path_of("a");
    UnixListener *l = unix_listener_new(path, NULL);
    struct stat st;

    g_assert_nonnull(l);
    g_assert_cmpint(lstat(path, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 07777, ==, 0600);
    g_assert_true(can_connect(path));
    unix_listener_free(l);
    g_assert_cmpint(lstat(path, &st), ==, -1);
}

static void expect_not_connected(const char *path, int error)
{
    g_autoptr(GError) err = NULL;

    g_assert_cmpint(unix_socket_connect(path, &err), ==, -1);
    g_assert_nonnull(err);
    g_assert_nonnull(strstr(err->message, path));
    g_assert_nonnull(strstr(err->message, g_strerror(error)));
}

static void test_connect(void)
{
    g_autofree char *path = path_of("a");
    UnixListener *l;
    int fd, peer;

    expect_not_connected(path, ENOENT);
    l = unix_listener_new(path, NULL);
    fd = unix_socket_connect(path, NULL);
    g_assert_cmpint(fd, >=, 0);
    peer = accept(unix_listener_fd(l), NULL, NULL);
    g_assert_cmpint(write(peer, "x", 1), ==, 1);
    close(peer);
    close(fd);
    unix_listener_free(l);
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    expect_not_connected(path, ECONNREFUSED);
    g_unlink(path);
}

static void test_live(void)
{
    g_autofree char *path = path_of("a");
    UnixListener *l = unix_listener_new(path, NULL);

    expect_refused(path, "in use");
    g_assert_true(can_connect(path));
    unix_listener_free(l);
}

static void test_stale(void)
{
    g_autofree char *path = path_of("a");
    UnixListener *l = unix_listener_new(path, NULL);
    UnixListener *next;

    /* As if its owner had been killed. */
    g_assert_cmpint(shutdown(unix_listener_fd(l), SHUT_RDWR), ==, 0);
    next = unix_listener_new(path, NULL);
    g_assert_nonnull(next);
    unix_listener_free(l);
    g_assert_true(can_connect(path));
    unix_listener_free(next);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

/* The file at the path is somebody else's by now: it stays. */
static void test_replaced(void)
{
    g_autofree char *path = path_of("a");
    UnixListener *l = unix_listener_new(path, NULL);
    UnixListener *other;

    g_assert_cmpint(unlink(path), ==, 0);
    other = unix_listener_new(path, NULL);
    unix_listener_free(l);
    g_assert_true(can_connect(path));
    unix_listener_free(other);
}

static void test_refused(void)
{
    g_autofree char *file = path_of("file");
    g_autofree char *missing = path_of("none/a");
    g_autofree char *pad = g_strnfill(108, 'x');

    g_assert_true(g_file_set_contents(file, "x", 1, NULL));
    expect_refused(file, "not a socket");
    g_assert_true(g_file_test(file, G_FILE_TEST_EXISTS));
    g_assert_cmpint(unlink(file), ==, 0);
    expect_refused(missing, "No such file");
    expect_refused(pad, "1 to 107");
    expect_refused("", "1 to 107");
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    dir = g_dir_make_tmp("unix-socket-XXXXXX", NULL);
    g_test_add_func("/unix-socket/life", test_life);
    g_test_add_func("/unix-socket/connect", test_connect);
    g_test_add_func("/unix-socket/live", test_live);
    g_test_add_func("/unix-socket/stale", test_stale);
    g_test_add_func("/unix-socket/replaced", test_replaced);
    g_test_add_func("/unix-socket/refused", test_refused);
    ret = g_test_run();
    g_assert_cmpint(rmdir(dir), ==, 0);
    g_free(dir);
    return ret;
}
