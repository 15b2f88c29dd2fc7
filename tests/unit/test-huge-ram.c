/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The launcher's memory file, on the host as it is: skipped where the host
 * wants no such file or does not let us.
 */
#include "huge-ram.h"

#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE_BYTES  (2UL << 20)
#define RAM_BYTES   (4 * HUGE_BYTES)
#define NOBODY      65534

enum { PASSED, NOT_HERE, NOT_HUGE, NOT_EMPTY, NOT_KEPT };

static unsigned long huge_bytes(const void *p, const char *what)
{
    g_autofree char *text = NULL;
    g_autofree char *start = g_strdup_printf("\n%lx-", (unsigned long)p);
    const char *at;

    g_assert_true(g_file_get_contents("/proc/self/smaps", &text, NULL, NULL));
    at = strstr(text, start);
    at = at ? strstr(at, what) : NULL;
    g_assert_nonnull(at);
    return g_ascii_strtoull(at + strlen(what), NULL, 10) << 10;
}

/* As QEMU does it: at an aligned address, huge pages asked for.  Returns how
 * much of the memory has some. */
static unsigned long touch(int fd, const char *what)
{
    int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    char *room = mmap(NULL, RAM_BYTES + 2 * HUGE_BYTES, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *p = (char *)(((uintptr_t)room + HUGE_BYTES - 1) & -HUGE_BYTES);

    g_assert(room != MAP_FAILED);
    g_assert(mmap(p, RAM_BYTES, PROT_READ | PROT_WRITE, kind | MAP_FIXED, fd,
                  0) == p);
    madvise(p, RAM_BYTES, MADV_HUGEPAGE);
    for (size_t i = 0; i < RAM_BYTES; i += HUGE_BYTES) {
        p[i] = 1;
    }
    return huge_bytes(p, what);
}

static int check_pages(int fd)
{
    g_assert_cmpint(ftruncate(fd, RAM_BYTES), ==, 0);
    if (touch(fd, "ShmemPmdMapped:")) {
        return PASSED;
    }
    /* A host without huge pages to spare has none for QEMU either. */
    return touch(-1, "AnonHugePages:") ? NOT_HUGE : NOT_HERE;
}

static int check_file(void)
{
    g_autofree char *path = NULL;
    struct stat st;
    int fd = huge_ram_open();
    int again;

    if (fd < 0) {
        return NOT_HERE;
    }
    if (fstat(fd, &st) < 0 || st.st_size || st.st_nlink) {
        return NOT_EMPTY;
    }
    /* QEMU inherits it, and opens it once more by this path. */
    path = g_strdup_printf("/proc/self/fd/%d", fd);
    again = open(path, O_RDWR);
    if (again < 0 || fcntl(fd, F_GETFD) & FD_CLOEXEC) {
        return NOT_KEPT;
    }
    close(fd);
    return check_pages(again);
}

static void judge(int verdict)
{
    if (verdict == NOT_HERE) {
        g_test_skip("no such memory on this host");
        return;
    }
    g_assert_cmpint(verdict, ==, PASSED);
}

static char *mounts(void)
{
    char *text;

    g_assert_true(g_file_get_contents("/proc/self/mountinfo", &text, NULL,
                                      NULL));
    return text;
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

static void test_pages(void)
{
    g_autofree char *before = mounts();
    g_autofree char *after = NULL;
    unsigned open_before = open_descriptors();
    int verdict = check_file();

    judge(verdict);
    after = mounts();
    g_assert_cmpstr(before, ==, after);
    g_assert_cmpuint(open_descriptors(), ==,
                     open_before + (verdict != NOT_HERE));
}

/* As a user without rights; the child is one, and stays what he is. */
static void test_unprivileged(void)
{
    int status;
    pid_t pid;

    if (geteuid() != 0) {
        g_test_skip("the other case was it");
        return;
    }
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        if (setresgid(NOBODY, NOBODY, NOBODY) ||
            setresuid(NOBODY, NOBODY, NOBODY)) {
            _exit(NOT_HERE);
        }
        /* As after an exec: else /proc/self is root's. */
        prctl(PR_SET_DUMPABLE, 1);
        status = check_file();
        _exit(geteuid() == NOBODY ? status : NOT_KEPT);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    judge(WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/huge-ram/pages", test_pages);
    g_test_add_func("/huge-ram/unprivileged", test_unprivileged);
    return g_test_run();
}
