/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU affinity.
 *
 * sched_setaffinity() takes a set that has only one usable CPU in it and
 * forgets the others without a word.  So the thread first asks for all CPUs,
 * and what it got is what it may use.
 */
#include "util/cpu-affinity.h"

#include <errno.h>
#include <string.h>

#include "util/report.h"

/* ---- text ------------------------------------------------------------ */

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

bool cpu_affinity_take(KeyVal *kv, const char *key, cpu_set_t *cpus,
                       GError **errp)
{
    g_autofree const char **list = keyval_take_list(kv, key);

    CPU_ZERO(cpus);
    for (const char **text = list; *text; text++) {
        if (!parse_cpus(*text, cpus)) {
            keyval_bad_value(kv, key, *text, "a CPU number or FIRST-LAST",
                             errp);
            return false;
        }
    }
    return true;
}

/* "0-3,8" */
static char *format_cpus(const cpu_set_t *cpus)
{
    GString *out = g_string_new(NULL);

    for (int first = 0; first < CPU_SETSIZE; first++) {
        int last = first;

        if (!CPU_ISSET(first, cpus)) {
            continue;
        }
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus)) {
            last++;
        }
        g_string_append_printf(out, "%s%d", out->len ? "," : "", first);
        if (last > first) {
            g_string_append_printf(out, "-%d", last);
        }
        first = last;
    }
    return g_string_free(out, FALSE);
}

/* ---- the thread ------------------------------------------------------ */

typedef struct Move {
    const cpu_set_t *cpus;
    cpu_set_t usable;
    cpu_set_t refused;
    int err;
} Move;

static bool look_for_usable(Move *m)
{
    cpu_set_t all;

    memset(&all, 0xff, sizeof(all));
    return !sched_setaffinity(0, sizeof(all), &all) &&
           !sched_getaffinity(0, sizeof(m->usable), &m->usable);
}

static void move_bh(void *opaque)
{
    Move *m = opaque;

    if (!look_for_usable(m)) {
        m->err = errno;
        return;
    }
    CPU_XOR(&m->refused, m->cpus, &m->usable);
    CPU_AND(&m->refused, &m->refused, m->cpus);
    if (CPU_COUNT(&m->refused) == 0 &&
        sched_setaffinity(0, sizeof(*m->cpus), m->cpus) < 0) {
        m->err = errno;
    }
}

bool cpu_affinity_apply(AioContext *ctx, const char *key,
                        const cpu_set_t *cpus, GError **errp)
{
    g_autofree char *usable = NULL, *refused = NULL;
    Move move = { .cpus = cpus };

    if (CPU_COUNT(cpus) == 0) {
        return true;
    }
    aio_wait_bh_oneshot(ctx, move_bh, &move);
    if (move.err) {
        vnet_set_error(errp, "parameter '%s': cannot choose CPUs: %s; leave "
                       "it out", key, g_strerror(move.err));
        return false;
    }
    if (CPU_COUNT(&move.refused)) {
        usable = format_cpus(&move.usable);
        refused = format_cpus(&move.refused);
        vnet_set_error(errp, "parameter '%s' expects CPUs among %s, not "
                       "'%s'", key, usable, refused);
        return false;
    }
    return true;
}
