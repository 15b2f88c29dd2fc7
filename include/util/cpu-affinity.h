/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CPUs a thread may run on, from option to kernel: cpu-affinity= of an
 * iothread, tx-cpus= of a NIC.
 *
 * Two steps, since an option is read long before its thread exists; which
 * CPUs there are is known to the kernel only, in the second.
 */
#ifndef UTIL_CPU_AFFINITY_H
#define UTIL_CPU_AFFINITY_H

#include <glib.h>
#include <sched.h>
#include <stdbool.h>

#include "util/aio.h"
#include "util/keyval.h"

/*
 * cpu_affinity_take: all values of @key, each a CPU number or FIRST-LAST
 * ("cpu-affinity=0-3,cpu-affinity=8").
 * @cpus: out; empty if the key is absent
 *
 * Any thread.  Returns false with @errp set if a value is neither.
 */
bool cpu_affinity_take(KeyVal *kv, const char *key, cpu_set_t *cpus,
                       GError **errp);

/*
 * cpu_affinity_apply: move the thread that runs @ctx to @cpus; an empty set
 * leaves it where it is.
 * @key: the option, for the message
 *
 * Main context; it waits for the thread.  Returns false with @errp set if the
 * kernel refuses one of them, since there is no such CPU, it is offline, or a
 * cpuset forbids it: "parameter 'KEY' expects CPUs among 0-3, not '7'", which
 * the caller prefixes by whose parameter it is.
 */
bool cpu_affinity_apply(AioContext *ctx, const char *key,
                        const cpu_set_t *cpus, GError **errp);

#endif /* UTIL_CPU_AFFINITY_H */
