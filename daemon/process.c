/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon as a process.
 *
 * Background: the child writes one byte into a pipe when it serves; the
 * parent takes end-of-file without that byte for failure.  The child reports
 * errors on the standard error that both share, so the parent says nothing.
 *
 * Privileges are per thread in Linux, so they are dropped while there is one
 * thread.  PR_SET_DUMPABLE is left alone: a front-end of the same user may
 * look at the daemon's memory as at any other process of his.
 */
#include "process.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/report.h"

static int ready_fd = -1;       /* of the child: its parent waits */

/* ---- start ------------------------------------------------------------- */

/* Or else a tap might become descriptor 2 and be written messages to. */
static void open_std_fds(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

static void raise_nofile(void)
{
    struct rlimit rl;

    if (!getrlimit(RLIMIT_NOFILE, &rl) && rl.rlim_cur < rl.rlim_max) {
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
}

void process_setup(void)
{
    open_std_fds();
    raise_nofile();
    signal(SIGPIPE, SIG_IGN);
}

/* ---- background -------------------------------------------------------- */

static G_NORETURN void wait_for_child(int fd)
{
    char byte;
    ssize_t n;

    do {
        n = read(fd, &byte, 1);
    } while (n < 0 && errno == EINTR);
    _exit(n == 1 ? 0 : 1);
}

bool process_daemonize(GError **errp)
{
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        vnet_set_error(errp, "--daemonize: pipe: %s", g_strerror(errno));
        return false;
    }
    pid = fork();
    if (pid < 0) {
        vnet_set_error(errp, "--daemonize: fork: %s", g_strerror(errno));
        close(fds[0]);
        close(fds[1]);
        return false;
    }
    if (pid > 0) {
        close(fds[1]);
        wait_for_child(fds[0]);
    }
    close(fds[0]);
    ready_fd = fds[1];
    setsid();
    return true;
}

static bool leave_std_fds(bool keep_stderr, GError **errp)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (fd < 0) {
        vnet_set_error(errp, "--daemonize: /dev/null: %s", g_strerror(errno));
        return false;
    }
    dup2(fd, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    if (!keep_stderr) {
        dup2(fd, STDERR_FILENO);
    }
    close(fd);
    return true;
}

bool process_ready(bool attached, GError **errp)
{
    ssize_t n;

    if (!attached && chdir("/") < 0) {
        vnet_set_error(errp, "--daemonize: chdir: %s", g_strerror(errno));
        return false;
    }
    if (!leave_std_fds(attached, errp)) {
        return false;
    }
    n = write(ready_fd, "", 1);
    close(ready_fd);
    ready_fd = -1;
    if (n != 1) {
        vnet_set_error(errp, "--daemonize: the parent process is gone");
        return false;
    }
    return true;
}

/* ---- signals ----------------------------------------------------------- */

/* A blocked signal would be read though it is ignored. */
static void add_unless_ignored(sigset_t *set, int signum)
{
    struct sigaction action;

    if (!sigaction(signum, NULL, &action) && action.sa_handler != SIG_IGN) {
        sigaddset(set, signum);
    }
}

static void end_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    add_unless_ignored(set, SIGINT);
    add_unless_ignored(set, SIGHUP);
}

void process_block_signals(void)
{
    sigset_t set;

    end_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

int process_signal_fd(GError **errp)
{
    sigset_t set;
    int fd;

    end_signals(&set);
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) {
        vnet_set_error(errp, "signalfd: %s", g_strerror(errno));
    }
    return fd;
}

/* ---- privileges -------------------------------------------------------- */

bool process_drop_privileges(GError **errp)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        vnet_set_error(errp, "cannot set no_new_privs: %s",
                       g_strerror(errno));
        return false;
    }
    capng_clear(CAPNG_SELECT_ALL);
    /* The bounding set needs CAP_SETPCAP; with no_new_privs and nothing in
     * the other sets it gives nobody anything. */
    capng_apply(CAPNG_SELECT_BOUNDS);
    if (capng_apply(CAPNG_SELECT_CAPS) < 0 ||
        capng_apply(CAPNG_SELECT_AMBIENT) < 0) {
        vnet_set_error(errp, "cannot drop capabilities: %s",
                       g_strerror(errno));
        return false;
    }
    return true;
}

/* ---- process id -------------------------------------------------------- */

struct PidFile {
    char *path;
    int fd;
};

static bool pidfile_lock(int fd, const char *path, GError **errp)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (!fcntl(fd, F_SETLK, &lock)) {
        return true;
    }
    fcntl(fd, F_GETLK, &lock);
    vnet_set_error(errp, "--pidfile '%s': in use by process %d: end that one "
                   "or choose another path", path, (int)lock.l_pid);
    return false;
}

static bool pidfile_write(int fd, const char *path, GError **errp)
{
    if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0) {
        vnet_set_error(errp, "--pidfile '%s': %s", path, g_strerror(errno));
        return false;
    }
    return true;
}

PidFile *pidfile_new(const char *path, GError **errp)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    PidFile *p;

    if (fd < 0) {
        vnet_set_error(errp, "--pidfile '%s': %s: check that its directory "
                       "exists and is writable", path, g_strerror(errno));
        return NULL;
    }
    if (!pidfile_lock(fd, path, errp)) {
        close(fd);
        return NULL;
    }
    p = g_new0(PidFile, 1);
    p->path = g_strdup(path);
    p->fd = fd;
    if (!pidfile_write(fd, path, errp)) {
        pidfile_free(p);
        return NULL;
    }
    return p;
}

void pidfile_free(PidFile *p)
{
    if (!p) {
        return;
    }
    unlink(p->path);
    close(p->fd);
    g_free(p->path);
    g_free(p);
}
