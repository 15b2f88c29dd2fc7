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
 * own, if the host allows that: a child makes the mount there.  It shares our
 * descriptor table, so the file it opens is open here, too.
 */
#include "huge-ram.h"

#include <fcntl.h>
#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
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
        fd = openat(mount, ".", O_TMPFILE | O_RDWR, 0600);
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

static int open_in_namespace(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int fd = -1;
    int answer[2];
    pid_t pid;

    if (pipe2(answer, O_CLOEXEC) < 0) {
        return -1;
    }
    pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        if (enter_namespace(uid, gid)) {
            fd = open_in_mount();
        }
        _exit(write(answer[1], &fd, sizeof(fd)) != sizeof(fd));
    }
    /* The child's end is ours as well: it is gone before this is read. */
    if (pid < 0 || waitpid(pid, NULL, 0) != pid ||
        fcntl(answer[0], F_SETFL, O_NONBLOCK) < 0 ||
        read(answer[0], &fd, sizeof(fd)) != sizeof(fd)) {
        fd = -1;
    }
    close(answer[0]);
    close(answer[1]);
    return fd;
}

int huge_ram_open(void)
{
    int fd;

    if (!wanted()) {
        return -1;
    }
    fd = open_in_mount();
    return fd >= 0 ? fd : open_in_namespace();
}
