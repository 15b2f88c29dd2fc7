/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --object iothread,id=ID,poll-max-ns=NS,cpu-affinity=CPUS
 *
 * QEMU's iothread object, with its default of poll-max-ns.  cpu-affinity
 * repeats like that of QEMU's thread-context ("cpu-affinity=0-3,
 * cpu-affinity=8"); it is applied by the thread itself, from its first bottom
 * half, since the thread exists only after privileges are dropped.
 */
#include "objects.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "util/clock.h"
#include "util/keyval.h"
#include "util/report.h"

/* As QEMU: long enough for the next packet of a stream, short enough to be
 * lost in a request/response. */
#define IOTHREAD_POLL_MAX_NS    32768

struct DaemonObject {
    IOThread *iothread;
    cpu_set_t cpus;             /* empty: wherever the kernel likes */
    int affinity_errno;         /* the thread's answer */
};

char *daemon_objects_help(void)
{
    return g_strdup("iothread options:\n"
                    "  id=<str>               - name for iothread=ID\n"
                    "  poll-max-ns=<uint64>   - longest busy polling, 0 = "
                    "none (default: 32768)\n"
                    "  cpu-affinity=<cpus>    - CPU or FIRST-LAST to run on, "
                    "may be repeated\n");
}

static bool parse_cpus(const char *text, cpu_set_t *cpus)
{
    char *end;
    guint64 first = g_ascii_strtoull(text, &end, 10);
    guint64 last = first;

    if (!g_ascii_isdigit(*text)) {
        return false;
    }
    if (*end == '-' && g_ascii_isdigit(end[1])) {
        last = g_ascii_strtoull(end + 1, &end, 10);
    }
    if (*end || last < first || last >= CPU_SETSIZE) {
        return false;
    }
    for (guint64 cpu = first; cpu <= last; cpu++) {
        CPU_SET(cpu, cpus);
    }
    return true;
}

static bool take_cpus(KeyVal *kv, cpu_set_t *cpus, GError **errp)
{
    g_autofree const char **list = keyval_take_list(kv, "cpu-affinity");

    CPU_ZERO(cpus);
    for (const char **text = list; *text; text++) {
        if (!parse_cpus(*text, cpus)) {
            keyval_bad_value(kv, "cpu-affinity", *text,
                             "a CPU number or FIRST-LAST", errp);
            return false;
        }
    }
    return true;
}

static DaemonObject *iothread_from_keyval(KeyVal *kv, GError **errp)
{
    DaemonObject *obj;
    uint64_t poll_max_ns = IOTHREAD_POLL_MAX_NS;
    cpu_set_t cpus;
    const char *id = keyval_take_required(kv, "id", errp);
    IOThread *iothread;

    if (!id ||
        !keyval_take_uint(kv, "poll-max-ns", 0, NS_PER_SEC, &poll_max_ns,
                          errp) ||
        !take_cpus(kv, &cpus, errp) || !keyval_check_empty(kv, errp)) {
        return NULL;
    }
    iothread = iothread_new(id, clock_monotonic(), errp);
    if (!iothread) {
        return NULL;
    }
    aio_context_set_poll_max_ns(iothread_context(iothread), poll_max_ns);
    obj = g_new0(DaemonObject, 1);
    obj->iothread = iothread;
    obj->cpus = cpus;
    return obj;
}

DaemonObject *daemon_object_new(const char *text, GError **errp)
{
    KeyVal *kv = keyval_parse("--object", text, "qom-type", errp);
    DaemonObject *obj = NULL;
    const char *type;

    if (!kv) {
        return NULL;
    }
    type = keyval_take(kv, "qom-type");
    if (type && !strcmp(type, "iothread")) {
        obj = iothread_from_keyval(kv, errp);
    } else {
        vnet_set_error(errp, "--object %s: unknown object type '%s', known "
                       "is 'iothread'", text, type ? type : "");
    }
    keyval_free(kv);
    return obj;
}

void daemon_object_free(DaemonObject *obj)
{
    iothread_free(obj->iothread);
    g_free(obj);
}

const char *daemon_object_id(const DaemonObject *obj)
{
    return iothread_id(obj->iothread);
}

AioContext *daemon_object_context(const DaemonObject *obj)
{
    return iothread_context(obj->iothread);
}

static void set_affinity_bh(void *opaque)
{
    DaemonObject *obj = opaque;

    obj->affinity_errno = sched_setaffinity(0, sizeof(obj->cpus), &obj->cpus)
                          ? errno : 0;
}

bool daemon_object_start(DaemonObject *obj, GError **errp)
{
    if (!iothread_start(obj->iothread, errp)) {
        return false;
    }
    if (CPU_COUNT(&obj->cpus) == 0) {
        return true;
    }
    aio_wait_bh_oneshot(daemon_object_context(obj), set_affinity_bh, obj);
    if (obj->affinity_errno) {
        vnet_set_error(errp, "--object iothread,id=%s: cannot move the thread "
                       "to the CPUs of cpu-affinity: %s",
                       daemon_object_id(obj),
                       g_strerror(obj->affinity_errno));
        return false;
    }
    return true;
}
