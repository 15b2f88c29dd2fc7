/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-net: the device (virtio 1.3, 5.1), without a transport.
 *
 * A VirtIONet serves N queue pairs between guest rings and a NetBackend.
 * A transport (vhost-user export, PCI in the qtest PC) owns negotiation and
 * registers and drives the device with the calls below.  Queue numbers are
 * the spec's: 2p receives, 2p+1 transmits, for pair p.
 *
 * All functions are for the main context, unless they say otherwise.  They
 * reach into the queues' contexts by waiting bottom halves; the queues never
 * wait for main, nor for each other.  The receive queues have one context,
 * the NIC's; the transmit queues that one, or threads of their own
 * (tx-thread=).  A wait is over when the pass in progress there is, which
 * ends after its batch of at most 64 packets.
 *
 * A ring has two independent flags (vhost-user, "Ring states"):
 *   started: between virtio_net_queue_start() and _stop();
 *   enabled: virtio_net_queue_enable().  Started and disabled: transmit is
 *            consumed and dropped, receive buffers are not used.
 */
#ifndef HW_NET_VIRTIO_NET_H
#define HW_NET_VIRTIO_NET_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "hw/net/virtio-net-conf.h"
#include "hw/net/virtio-net-stats.h"
#include "hw/virtio/virtqueue.h"
#include "net/net.h"
#include "system/guest-memory.h"
#include "util/aio.h"

typedef struct VirtIONet VirtIONet;

/*
 * virtio_net_new: create a NIC.
 * @conf: copied
 * @nb: its netdev, which it claims; must outlive the NIC
 * @ctx: the context of its queues; with tx-thread=, of its receive queues
 *
 * No thread runs before virtio_net_start(); what the NIC is asked until then
 * it does in the calling thread.
 *
 * Returns NULL with @errp set if the netdev belongs to another NIC, or the
 * kernel refuses what a thread's event loop needs.
 */
VirtIONet *virtio_net_new(const VirtIONetConf *conf, NetBackend *nb,
                          AioContext *ctx, GError **errp);

/*
 * virtio_net_start: create the threads of tx-thread= and move them to
 * tx-cpus=; nothing to do without.  Once, after the process has forked and
 * dropped its privileges, which are per thread.
 *
 * Returns false with @errp set if a thread cannot be had, or not on these
 * CPUs ("parameter 'tx-cpus' expects ..."): the caller prefixes whose, and
 * frees the NIC.
 */
bool virtio_net_start(VirtIONet *n, GError **errp);

/* virtio_net_free: stops all queues first; its threads have ended then. */
void virtio_net_free(VirtIONet *n);

const char *virtio_net_id(const VirtIONet *n);
NetBackend *virtio_net_backend(const VirtIONet *n);
unsigned virtio_net_max_pairs(const VirtIONet *n);

/* ---- negotiation ----------------------------------------------------- */

/*
 * virtio_net_offered_features: what this device and its backend can serve,
 * less what the configuration switches off (VIRTIO_NET_F_*, VIRTIO_RING_F_*,
 * VIRTIO_F_*).  Constant for the life of the NIC.
 */
uint64_t virtio_net_offered_features(const VirtIONet *n);

/*
 * virtio_net_set_features: what the driver accepted.
 *
 * Idempotent; rings that run go on undisturbed when nothing changed, and are
 * all quiesced around the change otherwise.  Bits that
 * were not offered: returns false and changes nothing.
 */
bool virtio_net_set_features(VirtIONet *n, uint64_t features, GError **errp);

/*
 * virtio_net_set_mtu: the front-end's MTU, which it advises to the guest:
 * nothing changes here, since a backend takes frames of any size.  False if
 * the guest could not be told: less than 68 (virtio 1.3, 5.1.4) or more than
 * 16 bits.
 */
bool virtio_net_set_mtu(VirtIONet *n, unsigned mtu);

/* ---- rings ----------------------------------------------------------- */

/*
 * virtio_net_queue_start: begin to serve ring @idx.
 * @setup: .features is ignored, the negotiated ones count
 * @map: guest memory; a reference is taken
 * @kick_fd: eventfd of the driver's kicks, taken over in any case (closed on
 *           failure and by stop), or -1: the ring is then only polled at
 *           start
 *
 * The ring is polled once, kick or not.  Returns false with @errp set for
 * what virtqueue_start() refuses.  An already started ring is stopped first.
 */
bool virtio_net_queue_start(VirtIONet *n, unsigned idx,
                            const VirtQueueSetup *setup, GuestMap *map,
                            int kick_fd, GError **errp);

/*
 * virtio_net_queue_stop: quiesce ring @idx.
 *
 * Bounded even with a backend that is stuck: what it holds is cancelled and
 * completed or un-popped, in order; used entries are published; a call that
 * was held back is sent; the ring is disarmed; then nothing touches guest
 * memory any more.  Returns the next available index.  Idempotent.
 */
uint16_t virtio_net_queue_stop(VirtIONet *n, unsigned idx);

bool virtio_net_queue_started(const VirtIONet *n, unsigned idx);
bool virtio_net_queue_broken(const VirtIONet *n, unsigned idx);

/*
 * virtio_net_queue_enable: see above; any time, remembered across stops.  Both
 * rings of the pair are quiesced around it.
 */
void virtio_net_queue_enable(VirtIONet *n, unsigned idx, bool enabled);

/*
 * virtio_net_queue_set_call: eventfd of the device's calls, taken over, or
 * -1 for none.  Any time.  The old one is not used any more once this
 * returns; if the ring runs, the new one is signalled once, since nobody can
 * tell whether the last call on the old one was seen.
 */
void virtio_net_queue_set_call(VirtIONet *n, unsigned idx, int fd);

/* virtio_net_queue_set_err: eventfd that is set when the ring breaks, or -1. */
void virtio_net_queue_set_err(VirtIONet *n, unsigned idx, int fd);

/*
 * virtio_net_set_map: all started rings go over to another map.  When this
 * returns, the device holds no reference to the old one.  A ring whose areas
 * are not in the new map breaks.
 */
void virtio_net_set_map(VirtIONet *n, GuestMap *map);

/* virtio_net_reset: stop and disable all rings, forget features. */
void virtio_net_reset(VirtIONet *n);

/* ---- network --------------------------------------------------------- */

/*
 * virtio_net_set_link: the administrator's switch.  Down: transmit is
 * consumed and dropped at once, nothing is received; up resumes without a
 * kick.  All rings are quiesced around the change.
 */
void virtio_net_set_link(VirtIONet *n, bool up);
bool virtio_net_link_up(const VirtIONet *n);

/*
 * virtio_net_announce: send a RARP for @mac through the backend, unless the
 * administrator's switch is off.
 */
void virtio_net_announce(VirtIONet *n, const uint8_t mac[6]);

/* ---- counters -------------------------------------------------------- */

/*
 * virtio_net_queue_stats: one ring's counters since creation.  They survive
 * stop and reset of the device.  Any thread; see virtio-net-stats.h.
 */
void virtio_net_queue_stats(const VirtIONet *n, unsigned idx,
                            VirtIONetQueueStats *out);

/*
 * virtio_net_queue_stats_base: the same since virtio_net_reset_stats().  All
 * who ask see the same zero.
 */
void virtio_net_queue_stats_base(const VirtIONet *n, unsigned idx,
                                 VirtIONetQueueStats *out);

/* virtio_net_reset_stats: all rings count from here; they may run. */
void virtio_net_reset_stats(VirtIONet *n);

#endif /* HW_NET_VIRTIO_NET_H */
