/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QmpFramer: cuts a byte stream into JSON texts.
 *
 * Requests may be spread over lines or share one, so a text ends where its
 * outermost bracket closes.  What does not start with a bracket, or has a
 * raw line end inside a string, cannot be a request: it ends at the line
 * end, and the parser will say what is wrong with it.
 */
#ifndef MONITOR_QMP_FRAMING_H
#define MONITOR_QMP_FRAMING_H

#include <glib.h>
#include <stdbool.h>

/* The longest text, in bytes; and the deepest nesting, as in QEMU. */
#define QMP_MAX_REQUEST_BYTES   ((size_t)1 << 20)
#define QMP_MAX_NESTING         1024

typedef struct QmpFramer {
    GString *buf;               /* bytes that are not yet part of a text */
    size_t scanned;             /* of which so many have been looked at */
    unsigned depth;
    bool in_string;
    bool escaped;
    bool too_deep;
} QmpFramer;

typedef enum QmpFrame {
    QMP_FRAME_NONE,             /* feed more */
    QMP_FRAME_TEXT,             /* a text; caller frees it */
    QMP_FRAME_TOO_DEEP,         /* a text that was thrown away */
    QMP_FRAME_TOO_LONG,         /* the stream is unusable from here */
} QmpFrame;

void qmp_framer_init(QmpFramer *f);
void qmp_framer_clear(QmpFramer *f);

/* qmp_framer_feed: append what was read. */
void qmp_framer_feed(QmpFramer *f, const char *bytes, size_t n);

/* qmp_framer_next: take the next text; call until QMP_FRAME_NONE. */
QmpFrame qmp_framer_next(QmpFramer *f, char **text);

#endif /* MONITOR_QMP_FRAMING_H */
