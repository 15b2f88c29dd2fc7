/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PROBE(): a static user-space probe (USDT), for perf, bpftrace and SystemTap.
 *
 * A probe is a nop in the code and a note in the program that says where it
 * is and where its arguments are: integers and pointers that the code has at
 * hand.  So an argument should cost nothing to make; a string is a pointer
 * that stays valid.  All probes and their arguments are described in
 * docs/devel/tracing.rst, against which the program is checked.
 *
 * Without sys/sdt.h at build time probes vanish; their arguments are still
 * compiled, and never evaluated.
 */
#ifndef UTIL_PROBE_H
#define UTIL_PROBE_H

#ifdef CONFIG_PROBES

#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#define PROBE(name, ...) STAP_PROBEV(qemu_virtio_net, name, __VA_ARGS__)

#else

static inline void probe_ignore(int unused, ...)
{
}

#define PROBE(name, ...)                                                     \
    do {                                                                     \
        if (0) {                                                             \
            probe_ignore(0, __VA_ARGS__);                                    \
        }                                                                    \
    } while (0)

#endif

#endif /* UTIL_PROBE_H */
