/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run: see the header.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/unix-socket.h"
#include "vnet-bench-host.h"
#include "vnet-bench-run.h"

/* ---- signals --------------------------------------------------------- */

static sigset_t ending_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

void bench_run_signals(void)
{
    sigset_t set = ending_signals();

    sigprocmask(SIG_BLOCK, &set, NULL);
}

int bench_run_wait(int64_t ns)
{
    sigset_t set = ending_signals();
    struct timespec ts = { ns / NS_PER_SEC, ns % NS_PER_SEC };
    int sig = sigtimedwait(&set, NULL, &ts);

    return MAX(sig, 0);
}

/* ---- set-up ---------------------------------------------------------- */

static bool connect_all(BenchRun *run, int *socks, GError **errp)
{
    for (unsigned i = 0; i < run->n; i++) {
        socks[i] = unix_socket_connect(run->conf->connect[i], errp);
        if (socks[i] < 0) {
            return false;
        }
        /* Whoever waits for answers wants a socket that does. */
        fcntl(socks[i], F_SETFL, 0);
    }
    run->daemon = bench_daemon_find(socks[0], errp);
    return run->daemon != NULL;
}

static bool reach_nics(BenchRun *run, int *socks, GError **errp)
{
    const BenchConf *conf = run->conf;

    if (conf->connect) {
        return connect_all(run, socks, errp);
    }
    if (conf->daemon.backend == BENCH_TAP && !bench_host_enter(errp)) {
        return false;
    }
    run->daemon = bench_daemon_start(&conf->daemon, run->n, socks, errp);
    return run->daemon != NULL;
}

static bool is_peer(const BenchRun *run, unsigned i)
{
    return run->conf->daemon.backend == BENCH_PAIR && i % 2;
}

static bool make_guest(BenchRun *run, unsigned i, int sock, GError **errp)
{
    const BenchConf *conf = run->conf;
    BenchNic *nic = bench_nic_new(sock, conf->daemon.ring, conf->event_idx,
                                  errp);

    if (!nic) {
        return false;
    }
    run->guests[i] = bench_guest_new(nic, &conf->costs,
                                     is_peer(run, i) ? BENCH_NAPI
                                                     : conf->completions,
                                     conf->seed + i);
    if (is_peer(run, i)) {
        bench_loads_add_peer(run->guests[i], conf->tick_ns);
    } else {
        bench_loads_add(run->guests[i], conf->loads, &conf->load);
    }
    return true;
}

/* Each socket is the NIC's from the attempt on; the rest are closed here. */
static bool make_guests(BenchRun *run, int *socks, GError **errp)
{
    bool good = true;

    for (unsigned i = 0; i < run->n; i++) {
        if (good) {
            good = make_guest(run, i, socks[i], errp);
        } else {
            close(socks[i]);
        }
    }
    return good;
}

static bool set_up(BenchRun *run, GError **errp)
{
    g_autofree int *socks = g_new(int, run->n);

    memset(socks, -1, sizeof(int) * run->n);
    if (!reach_nics(run, socks, errp)) {
        for (unsigned i = 0; i < run->n; i++) {
            close(socks[i]);
        }
        return false;
    }
    if (!make_guests(run, socks, errp)) {
        return false;
    }
    if (run->conf->daemon.backend == BENCH_TAP && !run->conf->connect) {
        run->host = bench_host_new(run->n, run->conf->tick_ns, errp);
        return run->host != NULL;
    }
    return true;
}

bool bench_run_init(BenchRun *run, const BenchConf *conf, GError **errp)
{
    bool good;

    *run = (BenchRun) { .conf = conf };
    run->n = conf->nics * (conf->daemon.backend == BENCH_PAIR ? 2 : 1);
    run->guests = g_new0(BenchGuest *, run->n);
    good = set_up(run, errp);
    if (!good) {
        int status = bench_daemon_end(g_steal_pointer(&run->daemon));

        run->ended = WIFEXITED(status) && WEXITSTATUS(status);
    }
    return good;
}

/* ---- measurement ----------------------------------------------------- */

static void for_all(BenchRun *run, void (*fn)(BenchGuest *g))
{
    for (unsigned i = 0; i < run->n; i++) {
        fn(run->guests[i]);
    }
}

int bench_run_measure(BenchRun *run)
{
    int64_t before_ns;
    int sig;

    for_all(run, bench_guest_start);
    sig = bench_run_wait(run->conf->warm_up_ns);
    before_ns = bench_daemon_cpu_ns(run->daemon);
    for_all(run, bench_guest_measure);
    if (!sig) {
        sig = bench_run_wait(run->conf->measure_ns);
    }
    run->cpu_ns = bench_daemon_cpu_ns(run->daemon) - before_ns;
    for_all(run, bench_guest_stop);
    return sig;
}

BenchGuest *bench_run_guest(const BenchRun *run, unsigned i)
{
    return run->guests[i * (run->n / run->conf->nics)];
}

bool bench_run_cleanup(BenchRun *run)
{
    bench_host_free(run->host);
    for (unsigned i = 0; i < run->n; i++) {
        if (run->guests[i]) {
            bench_guest_free(run->guests[i]);
        }
    }
    g_free(run->guests);
    return bench_daemon_end(run->daemon) == 0;
}
