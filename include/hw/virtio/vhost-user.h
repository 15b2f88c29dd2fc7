/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user export: gives a NIC to a front-end (QEMU, DPDK virtio-user) over
 * a Unix stream socket.
 *
 * One front-end at a time; further ones wait in the listen queue.  When the
 * front-end goes away the rings are quiesced and the export listens again.
 * A message that breaks the protocol ends that connection with one line,
 * closes the descriptors it brought, and has no other effect.
 *
 * Everything runs in the main context.
 */
#ifndef HW_VIRTIO_VHOST_USER_H
#define HW_VIRTIO_VHOST_USER_H

#include "hw/net/virtio-net.h"

typedef struct VhostUserExport VhostUserExport;

/*
 * vhost_user_export_new_path: create the socket, mode 0600 unless the umask
 * says less, and listen.  A stale socket file (nobody listens) is replaced; a
 * live one, or a file of another kind, is an error and stays.
 *
 * Returns NULL with @errp set: one line naming the path and the remedy.
 */
VhostUserExport *vhost_user_export_new_path(const char *id, VirtIONet *nic,
                                            AioContext *main_ctx,
                                            const char *path, GError **errp);

/*
 * vhost_user_export_new_fd: as above on a descriptor, taken over: a listening
 * socket, or a connected one (which then is all there will ever be).
 */
VhostUserExport *vhost_user_export_new_fd(const char *id, VirtIONet *nic,
                                          AioContext *main_ctx, int fd,
                                          GError **errp);

/*
 * vhost_user_export_free: drop the connection, quiesce, stop listening, and
 * unlink the socket if it is still ours.
 */
void vhost_user_export_free(VhostUserExport *exp);

const char *vhost_user_export_id(const VhostUserExport *exp);
bool vhost_user_export_connected(const VhostUserExport *exp);

#endif /* HW_VIRTIO_VHOST_USER_H */
