/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --object iothread,id=ID,poll-max-ns=NS,cpu-affinity=CPUS
 *
 * QEMU's iothread object, with its default of poll-max-ns.  cpu-affinity
 * repeats like that of QEMU's thread-context ("cpu-affinity=0-3,
 * cpu-affinity=8"); it is applied when the thread exists, which is only after
 * privileges are dropped.
 */
#include "objects.h"

#include <string.h>

#include "util/clock.h"
#include "util/cpu-affinity.h"
#include "util/keyval.h"
#include "util/report.h"

/* As QEMU: long enough for the next packet of a stream, short enough to be
 * lost in a request/response. */
#define IOTHREAD_POLL_MAX_NS    32768

struct DaemonObject {
    IOThread *iothread;
    cpu_set_t cpus;             /* empty: wherever the kernel likes */
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
        !cpu_affinity_take(kv, "cpu-affinity", &cpus, errp) ||
        !keyval_check_empty(kv, errp)) {
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

bool daemon_object_start(DaemonObject *obj, GError **errp)
{
    if (iothread_start(obj->iothread, errp) &&
        cpu_affinity_apply(daemon_object_context(obj), "cpu-affinity",
                           &obj->cpus, errp)) {
        return true;
    }
    g_prefix_error(errp, "--object iothread,id=%s: ", daemon_object_id(obj));
    return false;
}
