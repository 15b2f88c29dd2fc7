/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Comparison of two rates that are measured in turn, A B A B A: is B more, less
 * or the same?
 *
 * Each B is compared with the mean of its neighbours, so that what changes by
 * itself, and steadily, does not count.  It goes on until the mean difference
 * is clear of its own scatter, or until there are enough pairs.
 *
 * One pair alone says nothing about its own scatter.  So what such pairs were
 * seen to scatter before, without any B, is put in beforehand: on a host with
 * other work that may be a third, and decisions then take their time.
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
    TX_VERDICT_EQUAL,       /* if there is a difference, it is small */
    TX_VERDICT_WORSE,       /* B is less */
    TX_VERDICT_UNKNOWN,     /* enough for once, and nothing is clear */
} TxVerdict;

typedef struct TxComparison {
    unsigned pairs;
    unsigned limit;         /* of pairs, this time */
    unsigned near;          /* pairs that differ by next to nothing */
    int64_t sum;            /* of differences */
    int64_t squares;
    int64_t drift;          /* squares of A against A, as of pairs */
    int64_t variance;       /* known before */
} TxComparison;

/* Of pairs on a host of which nothing is known: 15 % each. */
#define TX_VARIANCE_FIRST   (150 * 150)

/* tx_difference: (@b - @a) over their mean; 0 if both are 0. */
int64_t tx_difference(uint64_t a, uint64_t b);

/*
 * tx_variance_add: returns @variance with the difference @d of one more pair in
 * which B was no other than A.
 */
int64_t tx_variance_add(int64_t variance, int64_t d);

/*
 * tx_comparison_begin: to go on where it ended with UNKNOWN, or from an empty
 * one.  @variance: of tx_variance_add() or tx_comparison_end(), or
 * TX_VARIANCE_FIRST.
 * tx_comparison_end: returns the variance with what this comparison showed of
 * it.
 */
void tx_comparison_begin(TxComparison *c, int64_t variance);
int64_t tx_comparison_end(const TxComparison *c);

/*
 * tx_comparison_add: one more pair differs by @d, and its two A by @drift;
 * returns what is known now.
 */
TxVerdict tx_comparison_add(TxComparison *c, int64_t d, int64_t drift);

/* tx_comparison_mean: of the differences; at least one pair. */
int64_t tx_comparison_mean(const TxComparison *c);

#endif /* HW_NET_VIRTIO_NET_TX_COMPARE_H */
