/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent of the test guest: runs shell commands for the host over a tty.
 *
 * Protocol: lines, each complete in itself, so that either side can lose any
 * part of the stream (the guest reboots in the middle of a line) and be in
 * step again at the next newline.  TEXT has newline, carriage return, NUL
 * and backslash escaped as \n \r \0 \\ and is otherwise bytes.
 *
 *   host to guest    R SEQ TEXT     run TEXT with sh -c
 *                    K SEQ          kill that job's process group
 *   guest to host    H BOOT-ID      the agent is ready (again)
 *                    O SEQ TEXT     output, stdout and stderr as they come
 *                    X SEQ STATUS   job ended: exit status, or 128 + signal
 *
 * States of a job: free (pid 0), running with its pipe open, running with it
 * closed (out -1).  X is sent when the first process has ended and the pipe
 * was drained once: a background child that keeps the pipe open does not
 * hold the answer back, and should have its output redirected.
 *
 * Limits: JOBS jobs at a time, commands of LINE_MAX bytes.  A line that is
 * not understood is dropped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum {
    JOBS = 16,
    LINE_BYTES = 8192,
    CHUNK_BYTES = 256,  /* of output in one frame */
};

typedef struct Job {
    pid_t pid;
    unsigned long seq;
    int out;            /* read end of its stdout and stderr, -1: closed */
} Job;

static Job jobs[JOBS];
static int tty = -1;
static sigset_t no_signals;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void tty_write(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(tty, data, len);

        if (n < 0 && errno != EINTR) {
            die("write to the host");
        }
        if (n > 0) {
            data += n;
            len -= n;
        }
    }
}

static size_t escape(char *to, const char *from, size_t len)
{
    static const char special[] = "\n\r\0\\", letter[] = "nr0\\";
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        const char *s = memchr(special, from[i], 4);

        if (s) {
            to[n++] = '\\';
        }
        to[n++] = s ? letter[s - special] : from[i];
    }
    return n;
}

/* In place; an unknown escape stands for its letter. */
static void unescape(char *text)
{
    char *to = text;

    for (; *text; text++) {
        if (*text == '\\' && text[1]) {
            text++;
            *to++ = *text == 'n' ? '\n' : *text == 'r' ? '\r' : *text;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

static void send_output(const Job *job, const char *data, size_t len)
{
    char line[32 + 2 * CHUNK_BYTES];
    size_t n = snprintf(line, 32, "O %lu ", job->seq);

    n += escape(line + n, data, len);
    line[n++] = '\n';
    tty_write(line, n);
}

static void send_exit(unsigned long seq, int status)
{
    char line[64];

    tty_write(line, snprintf(line, sizeof(line), "X %lu %d\n", seq, status));
}

static void send_hello(void)
{
    char id[64] = "", line[80];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        ssize_t n = read(fd, id, sizeof(id) - 1);

        id[n > 0 ? strcspn(id, "\n") : 0] = '\0';
        close(fd);
    }
    /* The newline ends whatever a former boot left unfinished. */
    tty_write(line, snprintf(line, sizeof(line), "\nH %s\n", id));
}

static void job_close(Job *job)
{
    if (job->out >= 0) {
        close(job->out);
    }
    job->out = -1;
}

/* One frame of output, if there is any; false when nothing is left now. */
static bool job_output(Job *job)
{
    char data[CHUNK_BYTES];
    ssize_t n = read(job->out, data, sizeof(data));

    if (n > 0) {
        send_output(job, data, n);
    } else if (n == 0) {
        job_close(job);
    }
    return n > 0;
}

static void job_exec(int out, const char *command)
{
    int in = open("/dev/null", O_RDONLY);

    setsid();
    sigprocmask(SIG_SETMASK, &no_signals, NULL);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static void job_start(unsigned long seq, char *command)
{
    Job *job = jobs;
    int fds[2];

    while (job < jobs + JOBS && job->pid) {
        job++;
    }
    if (job == jobs + JOBS || pipe2(fds, O_CLOEXEC) < 0) {
        send_exit(seq, 126);
        return;
    }
    unescape(command);
    *job = (Job) { .pid = fork(), .seq = seq, .out = fds[0] };
    if (job->pid == 0) {
        job_exec(fds[1], command);
    }
    close(fds[1]);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    if (job->pid < 0) {
        job_close(job);
        job->pid = 0;
        send_exit(seq, 126);
    }
}

static void job_kill(unsigned long seq)
{
    for (Job *job = jobs; job < jobs + JOBS; job++) {
        if (job->pid && job->seq == seq) {
            kill(-job->pid, SIGKILL);
        }
    }
}

static void reap(int sigfd)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    while (read(sigfd, &info, sizeof(info)) > 0) {
    }
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (Job *job = jobs; job < jobs + JOBS; job++) {
            if (job->pid != pid) {
                continue;
            }
            while (job_output(job)) {
            }
            send_exit(job->seq, WIFEXITED(status) ? WEXITSTATUS(status)
                                                  : 128 + WTERMSIG(status));
            job_close(job);
            job->pid = 0;
        }
    }
}

static void handle_line(char *line)
{
    char *rest;
    unsigned long seq;

    if (line[0] == '\0' || line[1] != ' ') {
        return;
    }
    seq = strtoul(line + 2, &rest, 10);
    if (line[0] == 'R' && *rest == ' ') {
        job_start(seq, rest + 1);
    } else if (line[0] == 'K') {
        job_kill(seq);
    }
}

/* Collects bytes into lines; a line that is too long is dropped whole. */
static void tty_read(void)
{
    static char line[LINE_BYTES];
    static size_t len;
    char data[512];
    ssize_t n = read(tty, data, sizeof(data));

    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        die("read from the host");
    }
    for (ssize_t i = 0; i < n; i++) {
        if (data[i] != '\n') {
            line[len < LINE_BYTES - 1 ? len : 0] = data[i];
            len++;
            continue;
        }
        if (len < LINE_BYTES) {
            line[len] = '\0';
            handle_line(line);
        }
        len = 0;
    }
}

static void tty_open(const char *path)
{
    struct termios t;

    tty = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (tty < 0 || tcgetattr(tty, &t) < 0) {
        die(path);
    }
    cfmakeraw(&t);
    cfsetspeed(&t, B115200);
    t.c_cflag |= CLOCAL | CREAD;
    if (tcsetattr(tty, TCSANOW, &t) < 0) {
        die(path);
    }
}

int main(int argc, char **argv)
{
    struct pollfd fds[JOBS + 2];
    sigset_t child;
    int sigfd;

    if (argc != 2) {
        fprintf(stderr, "usage: guest-agent TTY\n");
        return 1;
    }
    tty_open(argv[1]);
    sigemptyset(&no_signals);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    sigfd = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    for (int i = 0; i < JOBS; i++) {
        jobs[i].out = -1;
    }
    send_hello();

    for (;;) {
        fds[JOBS] = (struct pollfd) { .fd = tty, .events = POLLIN };
        fds[JOBS + 1] = (struct pollfd) { .fd = sigfd, .events = POLLIN };
        for (int i = 0; i < JOBS; i++) {
            fds[i] = (struct pollfd) { .fd = jobs[i].out, .events = POLLIN };
        }
        if (poll(fds, JOBS + 2, -1) < 0) {
            continue;
        }
        for (int i = 0; i < JOBS; i++) {
            if (fds[i].revents) {
                job_output(&jobs[i]);
            }
        }
        if (fds[JOBS].revents) {
            tty_read();
        }
        if (fds[JOBS + 1].revents) {
            reap(sigfd);
        }
    }
}
