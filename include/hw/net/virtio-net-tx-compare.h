/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Comparison of two rates that are measured in turn, A B A B A: is B more, less
 * or the same?
 *
 * Each B is compared with the mean of its neighbours, so that what changes by
 * itself, and steadily, does not count.  It goes on until the mean difference
 * is clear of its own scatter, or until there are enough pairs.
 *
 * Pure.  All numbers of differences are in 1/1000 of the rate.
 */
#ifndef HW_NET_VIRTIO_NET_TX_COMPARE_H
#define HW_NET_VIRTIO_NET_TX_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum TxVerdict {
    TX_VERDICT_NONE,        /* go on */
    TX_VERDICT_BETTER,      /* B is clearly more */
    TX_VERDICT_EQUAL,       /* no difference that could be told */
    TX_VERDICT_WORSE,       /* B is less */
} TxVerdict;

typedef struct TxComparison {
    unsigned pairs;
    unsigned near;          /* pairs that differ by next to nothing */
    int64_t sum;            /* of differences */
    int64_t squares;
} TxComparison;

/* tx_difference: (@b - @a) over their mean; 0 if both are 0. */
int64_t tx_difference(uint64_t a, uint64_t b);

/* tx_comparison_add: one more pair differs by @d; returns what is known now. */
TxVerdict tx_comparison_add(TxComparison *c, int64_t d);

/* tx_comparison_mean: of the differences; at least one pair. */
int64_t tx_comparison_mean(const TxComparison *c);

#endif /* HW_NET_VIRTIO_NET_TX_COMPARE_H */
