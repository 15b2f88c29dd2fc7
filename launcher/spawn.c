/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes.
 *
 * The launcher becomes QEMU by exec, so that whoever started it has QEMU as
 * its child: signals, exit status and descriptors are as ever.  The daemon
 * is started before that and is nobody's child when it serves.  It inherits
 * exactly what it needs: a descriptor that it holds by accident would keep
 * its other side from seeing the end of QEMU.
 */
#include "spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/report.h"

#define DIR_TEMPLATE    "qemu-net-XXXXXX"
/* What the paths in it are longer: "/nic4294967295.sock". */
#define DIR_ROOM        20

/* ---- lifeline ---------------------------------------------------------- */

/* Standard descriptors that were closed by whoever started us stay closed. */
static int above_standard(int fd)
{
    int other = fd > STDERR_FILENO ? fd : fcntl(fd, F_DUPFD,
                                                STDERR_FILENO + 1);

    if (other != fd) {
        close(fd);
    }
    return other;
}

bool lifeline_new(Lifeline *l, GError **errp)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0) {
        vnet_set_error(errp, "socketpair: %s", g_strerror(errno));
        return false;
    }
    fds[0] = above_standard(fds[0]);
    fds[1] = above_standard(fds[1]);
    /* Of the two only .qemu survives the exec of QEMU. */
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    *l = (Lifeline) { .daemon = fds[0], .qemu = fds[1] };
    return true;
}

void lifeline_cut(Lifeline *l)
{
    char byte;
    ssize_t n;

    close(l->daemon);
    shutdown(l->qemu, SHUT_WR);
    do {
        n = read(l->qemu, &byte, 1);
    } while (n > 0 || (n < 0 && errno == EINTR));
    close(l->qemu);
}

/* ---- signals ----------------------------------------------------------- */

static const int end_signals[] = { SIGHUP, SIGINT, SIGTERM };

static bool is_ignored(int signum)
{
    struct sigaction action;

    return !sigaction(signum, NULL, &action) && action.sa_handler == SIG_IGN;
}

void signals_hold(HeldSignals *held)
{
    sigemptyset(&held->set);
    for (size_t i = 0; i < G_N_ELEMENTS(end_signals); i++) {
        /* A blocked signal would wait though it is ignored */
        if (!is_ignored(end_signals[i])) {
            sigaddset(&held->set, end_signals[i]);
        }
    }
    sigprocmask(SIG_BLOCK, &held->set, &held->before);
}

bool signals_came(const HeldSignals *held)
{
    sigset_t pending;

    if (sigpending(&pending)) {
        return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(end_signals); i++) {
        int signum = end_signals[i];

        if (sigismember(&held->set, signum) &&
            !sigismember(&held->before, signum) &&
            sigismember(&pending, signum)) {
            return true;
        }
    }
    return false;
}

void signals_release(const HeldSignals *held)
{
    sigprocmask(SIG_SETMASK, &held->before, NULL);
}

/* ---- private directory ------------------------------------------------- */

static bool fits(const char *base)
{
    return strlen(base) + strlen("/" DIR_TEMPLATE) + DIR_ROOM <
           sizeof(((struct sockaddr_un *)NULL)->sun_path);
}

/* Returns NULL with errno set. */
static char *make_dir_in(const char *base)
{
    char *dir = g_build_filename(base, DIR_TEMPLATE, NULL);

    /* A umask may have taken our own rights as well */
    if (mkdtemp(dir) && !chmod(dir, 0700)) {
        return dir;
    }
    g_free(dir);
    return NULL;
}

char *private_dir_new(GError **errp)
{
    const char *bases[] = { g_getenv("XDG_RUNTIME_DIR"), g_getenv("TMPDIR"),
                            "/tmp" };
    char *dir = NULL;

    for (size_t i = 0; !dir && i < G_N_ELEMENTS(bases); i++) {
        if (bases[i] && g_path_is_absolute(bases[i]) && fits(bases[i])) {
            dir = make_dir_in(bases[i]);
        }
    }
    if (!dir) {
        vnet_set_error(errp, "cannot make a directory for sockets in /tmp: "
                       "%s: set XDG_RUNTIME_DIR to a directory of yours",
                       g_strerror(errno));
    }
    return dir;
}

void private_dir_remove(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *entry;

    while (d && (entry = readdir(d))) {
        if (g_str_has_suffix(entry->d_name, ".sock")) {
            unlinkat(dirfd(d), entry->d_name, 0);
        }
    }
    if (d) {
        closedir(d);
    }
    rmdir(dir);
}

/* ---- programs ---------------------------------------------------------- */

static bool is_kept(const GArray *keep, int fd)
{
    for (guint i = 0; i < keep->len; i++) {
        if (g_array_index(keep, int, i) == fd) {
            return true;
        }
    }
    return false;
}

/* In the child.  What is open is listed first: closing while listing would
 * change the list. */
static void close_others(const GArray *keep)
{
    DIR *d = opendir("/proc/self/fd");
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(int));
    struct dirent *entry;

    while (d && (entry = readdir(d))) {
        int fd = atoi(entry->d_name);

        if (fd > STDERR_FILENO && !is_kept(keep, fd)) {
            g_array_append_val(fds, fd);
        }
    }
    if (d) {
        closedir(d);
    }
    for (guint i = 0; i < fds->len; i++) {
        close(g_array_index(fds, int, i));
    }
    for (guint i = 0; i < keep->len; i++) {
        fcntl(g_array_index(keep, int, i), F_SETFD, 0);
    }
}

static G_NORETURN void run_child(char **argv, const GArray *keep)
{
    if (keep) {
        close_others(keep);
    }
    execv(argv[0], argv);
    report_error("cannot run '%s': %s", argv[0], g_strerror(errno));
    _exit(127);
}

SpawnResult spawn_wait(char **argv, const GArray *keep, int *status,
                       GError **errp)
{
    int wait_status = 0;
    pid_t pid = fork();

    if (pid < 0) {
        vnet_set_error(errp, "fork: %s", g_strerror(errno));
        return SPAWN_ERROR;
    }
    if (pid == 0) {
        run_child(argv, keep);
    }
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
        /* a signal of somebody else's */
    }
    if (!WIFEXITED(wait_status)) {
        vnet_set_error(errp, "'%s' was killed by signal %d", argv[0],
                       WTERMSIG(wait_status));
        return SPAWN_ERROR;
    }
    *status = WEXITSTATUS(wait_status);
    return *status ? SPAWN_FAILED : SPAWN_DONE;
}

void spawn_close_on_exec(const GArray *fds)
{
    for (guint i = 0; i < fds->len; i++) {
        fcntl(g_array_index(fds, int, i), F_SETFD, FD_CLOEXEC);
    }
}
