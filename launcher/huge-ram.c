/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared guest memory with huge pages.
 *
 * QEMU's own memory is anonymous and has huge pages on any host that leaves
 * transparent_hugepage/enabled as it comes.  A memfd goes by another setting,
 * transparent_hugepage/shmem_enabled, whose default is never; and small pages
 * cost the guest at every memory access.  A tmpfs mount has a setting of its
 * own, huge=.  So the memory is a nameless file in a tmpfs that is mounted
 * nowhere and that only this file keeps alive.
 *
 * A mount asks for CAP_SYS_ADMIN.  Any user has it in a user namespace of his
 * own, if the host allows that.  All of it is tried in a child, which sends the
 * descriptor: a host may answer mount calls by killing who makes them.
 */
#include "huge-ram.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define THP_DIR "/sys/kernel/mm/transparent_hugepage/"

/* ---- what the host wants ----------------------------------------------- */

/* One of the words in a file such as "always [madvise] never" is in force. */
static bool setting_is(const char *path, const char *word)
{
    g_autofree char *marked = g_strdup_printf("[%s]", word);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) &&
           strstr(text, marked);
}

/*
 * Not if the host has no huge pages for QEMU's own memory either, or has them
 * for memfds (or has forbidden just that: "deny").
 */
static bool wanted(void)
{
    return (setting_is(THP_DIR "enabled", "madvise") ||
            setting_is(THP_DIR "enabled", "always")) &&
           setting_is(THP_DIR "shmem_enabled", "never");
}

/* ---- the file ---------------------------------------------------------- */

/* size=0: as large as a memfd may be, where tmpfs's default is half the RAM. */
static bool configure(int fs)
{
    return !fsconfig(fs, FSCONFIG_SET_STRING, "huge", "advise", 0) &&
           !fsconfig(fs, FSCONFIG_SET_STRING, "size", "0", 0) &&
           !fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0700", 0) &&
           !fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

static int open_in_mount(void)
{
    int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
    int mount = -1;
    int fd = -1;

    if (fs >= 0 && configure(fs)) {
        mount = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID |
                        MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    }
    if (mount >= 0) {
        fd = openat(mount, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        close(mount);
    }
    if (fs >= 0) {
        close(fs);
    }
    return fd;
}

/* ---- with a user namespace --------------------------------------------- */

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) ==
                           (ssize_t)strlen(text);

    if (fd >= 0) {
        close(fd);
    }
    return good;
}

/* Be root of a namespace in which this user is himself: the file is his. */
static bool enter_namespace(uid_t uid, gid_t gid)
{
    char uids[48], gids[48];

    snprintf(uids, sizeof(uids), "%u %u 1\n", uid, uid);
    snprintf(gids, sizeof(gids), "%u %u 1\n", gid, gid);
    return !unshare(CLONE_NEWUSER | CLONE_NEWNS) &&
           write_file("/proc/self/uid_map", uids) &&
           write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/gid_map", gids);
}

static int open_anyhow(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int fd = open_in_mount();

    if (fd < 0 && enter_namespace(uid, gid)) {
        fd = open_in_mount();
    }
    return fd;
}

/* ---- the child --------------------------------------------------------- */

typedef union FdMsg {
    char space[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
} FdMsg;

/* One byte with a descriptor. */
static struct msghdr fd_message(FdMsg *control, struct iovec *iov)
{
    static char byte;

    *iov = (struct iovec) { &byte, 1 };
    memset(control, 0, sizeof(*control));
    return (struct msghdr) {
        .msg_iov = iov,
        .msg_iovlen = 1,
        .msg_control = control->space,
        .msg_controllen = sizeof(control->space),
    };
}

static void send_fd(int sock, int fd)
{
    FdMsg control;
    struct iovec iov;
    struct msghdr msg = fd_message(&control, &iov);
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    sendmsg(sock, &msg, MSG_NOSIGNAL);
}

/* -1 if the other end closed instead. */
static int receive_fd(int sock)
{
    FdMsg control;
    struct iovec iov;
    struct msghdr msg = fd_message(&control, &iov);
    struct cmsghdr *c;
    ssize_t n;
    int fd = -1;

    do {
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    c = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    }
    return fd;
}

static int open_in_child(void)
{
    int ends[2];
    int fd = -1;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        fd = open_anyhow();
        if (fd >= 0) {
            send_fd(ends[1], fd);
        }
        _exit(0);
    }
    close(ends[1]);
    if (pid > 0) {
        fd = receive_fd(ends[0]);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
            /* a signal of somebody else's */
        }
    }
    close(ends[0]);
    return fd;
}

/* QEMU opens it by this path; not all hosts let it. */
static bool can_reopen(int fd)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC);

    if (again >= 0) {
        close(again);
    }
    return again >= 0;
}

int huge_ram_open(void)
{
    int inherited = -1;
    int fd = wanted() ? open_in_child() : -1;

    if (fd < 0) {
        return -1;
    }
    if (can_reopen(fd)) {
        /* Not where messages go, if the caller has closed that. */
        inherited = fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
    }
    close(fd);
    return inherited;
}
