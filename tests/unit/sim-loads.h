/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What guests do with a network card: closed loops, which wait for what they
 * sent, and senders that do not care.
 *
 * Each function adds one flow to a guest and returns it.
 */
#ifndef TESTS_UNIT_SIM_LOADS_H
#define TESTS_UNIT_SIM_LOADS_H

#include "sim-guest.h"

/*
 * Datagrams as fast as the socket takes them: it holds @socket_pkts, and wakes
 * its process when half of them are gone.
 */
SimFlow *sim_udp(SimGuest *g, uint32_t bytes, unsigned socket_pkts);

/*
 * A TCP stream of writes of @write_bytes.  Two packets may be on their way to
 * the card; what is written meanwhile makes the next one larger, up to 64 KiB.
 */
SimFlow *sim_tcp(SimGuest *g, uint32_t write_bytes);

/* Request and response; after the response, the client thinks. */
SimFlow *sim_rr(SimGuest *g, uint32_t request_bytes, uint32_t response_bytes,
                int64_t think_ns);

/* A TCP stream to the guest: what is not acknowledged is at most @window. */
SimFlow *sim_receive(SimGuest *g, uint32_t window);

/* One echo request each @gap_ns, answered by the host's kernel. */
SimFlow *sim_ping(SimGuest *g, int64_t gap_ns);

/*
 * @burst packets each @gap_ns whatever happens to them; @random: the gaps are
 * exponential.  What finds no room is lost.
 */
SimFlow *sim_open_loop(SimGuest *g, uint32_t bytes, unsigned burst,
                       int64_t gap_ns, bool random);

#endif /* TESTS_UNIT_SIM_LOADS_H */
