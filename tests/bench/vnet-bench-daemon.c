/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon under load: see the header.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/report.h"
#include "vnet-bench-daemon.h"
#include "vnet-bench-host.h"

struct BenchDaemon {
    pid_t pid;
    bool ours;
};

/* ---- command line ---------------------------------------------------- */

static char *netdev(BenchBackend backend, unsigned i)
{
    g_autofree char *tap = bench_host_tap(i);

    switch (backend) {
    case BENCH_TAP:
        return g_strdup_printf("tap,id=n%u,ifname=%s,script=no,downscript=no",
                               i, tap);
    case BENCH_PAIR:
        return g_strdup_printf("hubport,id=n%u,hubid=%u", i, i / 2);
    default:
        return g_strdup_printf("hubport,id=n%u,hubid=%u", i, i);
    }
}

static void add(GPtrArray *argv, const char *option, char *value)
{
    g_ptr_array_add(argv, g_strdup(option));
    g_ptr_array_add(argv, value);
}

static void add_nic(GPtrArray *argv, const BenchDaemonConf *conf, unsigned i,
                    int sock)
{
    g_autofree char *thread = g_strdup_printf(",iothread=io%u", i);

    if (conf->iothreads) {
        add(argv, "--object", g_strdup_printf("iothread,id=io%u", i));
    }
    add(argv, "--netdev", netdev(conf->backend, i));
    add(argv, "--device",
        g_strdup_printf("virtio-net-pci,id=nic%u,netdev=n%u,rx_queue_size=%u,"
                        "tx_queue_size=%u%s%s%s", i, i, conf->ring, conf->ring,
                        conf->iothreads ? thread : "",
                        conf->props ? "," : "",
                        conf->props ? conf->props : ""));
    add(argv, "--export",
        g_strdup_printf("vhost-user-net,id=e%u,device=nic%u,addr.type=fd,"
                        "addr.str=%d", i, i, sock));
}

static GPtrArray *command_line(const BenchDaemonConf *conf, unsigned nics,
                               const int *socks)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(argv, g_strdup(conf->program));
    for (unsigned i = 0; i < nics; i++) {
        add_nic(argv, conf, i, socks[i]);
    }
    g_ptr_array_add(argv, NULL);
    return argv;
}

/* ---- start and end --------------------------------------------------- */

static bool make_sockets(unsigned nics, int *ours, int *theirs, GError **errp)
{
    for (unsigned i = 0; i < nics; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
            vnet_set_error(errp, "socketpair: %s", g_strerror(errno));
            return false;
        }
        ours[i] = pair[0];
        theirs[i] = pair[1];
    }
    return true;
}

/*
 * Signals of the terminal are ours, so it has a session of its own; it dies
 * with us, also if we had no time to say so.
 */
static void run_child(char **argv, const int *socks, unsigned nics,
                      pid_t parent)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(1);
    }
    for (unsigned i = 0; i < nics; i++) {
        fcntl(socks[i], F_SETFD, 0);
    }
    execv(argv[0], argv);
    report_error("cannot run '%s': %s", argv[0], g_strerror(errno));
    _exit(1);
}

static pid_t spawn(const BenchDaemonConf *conf, unsigned nics, const int *socks)
{
    GPtrArray *argv = command_line(conf, nics, socks);
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        run_child((char **)argv->pdata, socks, nics, parent);
    }
    g_ptr_array_free(argv, TRUE);
    return pid;
}

static void close_all(const int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

BenchDaemon *bench_daemon_start(const BenchDaemonConf *conf, unsigned nics,
                                int *socks, GError **errp)
{
    g_autofree int *theirs = g_new(int, nics);
    BenchDaemon *d = NULL;
    pid_t pid = -1;

    memset(socks, -1, sizeof(int) * nics);
    memset(theirs, -1, sizeof(int) * nics);
    if (make_sockets(nics, socks, theirs, errp)) {
        pid = spawn(conf, nics, theirs);
        if (pid < 0) {
            vnet_set_error(errp, "fork: %s", g_strerror(errno));
        }
    }
    close_all(theirs, nics);
    if (pid >= 0) {
        d = g_new0(BenchDaemon, 1);
        *d = (BenchDaemon) { .pid = pid, .ours = true };
    }
    return d;
}

BenchDaemon *bench_daemon_find(int sock, GError **errp)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    BenchDaemon *d;

    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
        vnet_set_error(errp, "SO_PEERCRED: %s", g_strerror(errno));
        return NULL;
    }
    d = g_new0(BenchDaemon, 1);
    d->pid = peer.pid;
    return d;
}

int bench_daemon_end(BenchDaemon *d)
{
    int status = 0;

    if (d && d->ours) {
        kill(d->pid, SIGTERM);
        while (waitpid(d->pid, &status, 0) < 0 && errno == EINTR) {
            continue;
        }
    }
    g_free(d);
    return status;
}

/* ---- CPU ------------------------------------------------------------- */

/* The first word of schedstat: nanoseconds on a CPU. */
static int64_t thread_cpu_ns(const char *dir, const char *tid)
{
    g_autofree char *path = g_build_filename(dir, tid, "schedstat", NULL);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL)
           ? g_ascii_strtoll(text, NULL, 10) : 0;
}

int64_t bench_daemon_cpu_ns(const BenchDaemon *d)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task", d->pid);
    GDir *dir = g_dir_open(path, 0, NULL);
    int64_t total = 0;
    const char *tid;

    while (dir && (tid = g_dir_read_name(dir))) {
        total += thread_cpu_ns(path, tid);
    }
    if (dir) {
        g_dir_close(dir);
    }
    return total;
}
