/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scripted vhost-user front-end for tests.
 *
 * It lives in the thread that also runs the export's context: a call writes
 * to the socket, turns the event loop until nothing happens any more, and
 * then looks at what has come back.  Nothing waits, so what did not come by
 * then never will.
 *
 * Lines that the export writes to stderr while the loop turns are kept, and
 * asked for with vu_client_take_lines().
 */
#ifndef TESTS_UNIT_VHOST_USER_CLIENT_H
#define TESTS_UNIT_VHOST_USER_CLIENT_H

#include "hw/virtio/vhost-user.h"
#include "vhost-user-proto.h"

/* What a message led to. */
typedef enum VuOutcome {
    VU_OUT_SILENT,              /* nothing came, the connection is there */
    VU_OUT_ACK,                 /* success was acknowledged */
    VU_OUT_NACK,                /* failure was acknowledged */
    VU_OUT_CLOSED,              /* nothing came, the connection is gone */
    VU_OUT_NACK_CLOSED,
} VuOutcome;

typedef struct VuClient {
    AioContext *ctx;            /* of the export; NULL: somebody else runs it */
    int fd;                     /* -1: closed by us */
    uint32_t flags;             /* added to each request */
    int log_fd;
} VuClient;

/* vu_client_init: @fd is a connected socket, taken over. */
void vu_client_init(VuClient *cl, AioContext *ctx, int fd);
void vu_client_close(VuClient *cl);

/* vu_client_cleanup: close, and assert that no line is left unasked for. */
void vu_client_cleanup(VuClient *cl);

/* vu_client_turn: run the loop until it is quiet. */
void vu_client_turn(VuClient *cl);

/* vu_client_take_lines: what stderr got since the last time; caller frees. */
char *vu_client_take_lines(VuClient *cl);

/* vu_client_expect_line: exactly one line, which contains @part. */
void vu_client_expect_line(VuClient *cl, const char *part);

/* vu_client_write: bytes with descriptors, which stay the caller's. */
void vu_client_write(VuClient *cl, const void *bytes, size_t len,
                     const int *fds, unsigned nfds);

/* vu_client_put: write one message, without turning the loop. */
void vu_client_put(VuClient *cl, uint32_t request, const void *payload,
                   uint32_t size, const int *fds, unsigned nfds);

/* vu_client_outcome: turn the loop, take at most one acknowledgement. */
VuOutcome vu_client_outcome(VuClient *cl, uint32_t request);

/* vu_client_send: put, then outcome. */
VuOutcome vu_client_send(VuClient *cl, uint32_t request, const void *payload,
                         uint32_t size, const int *fds, unsigned nfds);

/*
 * vu_client_get: a request with a reply of its own and no payload.  Asserts
 * that the reply is there, with flags 5 and 8 bytes, and returns it.
 */
uint64_t vu_client_get(VuClient *cl, uint32_t request);

/* vu_client_get_base: GET_VRING_BASE, checked likewise. */
uint32_t vu_client_get_base(VuClient *cl, uint32_t index);

/* Messages by shape. */
VuOutcome vu_client_u64(VuClient *cl, uint32_t request, uint64_t value);
VuOutcome vu_client_state(VuClient *cl, uint32_t request, uint32_t index,
                          uint32_t num);

/* vu_client_fd: KICK, CALL or ERR; @fd stays the caller's, -1 sends none. */
VuOutcome vu_client_fd(VuClient *cl, uint32_t request, uint32_t index, int fd);

/* vu_client_eventfd: the same with a new eventfd that nobody keeps. */
VuOutcome vu_client_eventfd(VuClient *cl, uint32_t request, uint32_t index);

VuOutcome vu_client_mem_table(VuClient *cl, const VuRegion *regions,
                              const int *fds, unsigned n);

/* vu_client_mem_reg: ADD_MEM_REG; REM_MEM_REG with @fd -1. */
VuOutcome vu_client_mem_reg(VuClient *cl, uint32_t request,
                            const VuRegion *region, int fd);

/* Descriptors of this process, for leak checks. */
unsigned vu_count_fds(void);

/* vu_memfd: anonymous memory of @bytes. */
int vu_memfd(size_t bytes);

#endif /* TESTS_UNIT_VHOST_USER_CLIENT_H */
