/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cutting a QMP byte stream into JSON texts.
 *
 * The scanner knows brackets and strings only.  It never backs up: each byte
 * is looked at once, so a client that sends one byte at a time costs no more
 * than one that sends a request at a time.
 *
 * States: before a text (depth 0, buffer empty or white space), in a text
 * (depth > 0), in a string in it, and in garbage (depth 0, first byte not a
 * bracket).
 */
#include "qmp-framing.h"

#include <string.h>

void qmp_framer_init(QmpFramer *f)
{
    *f = (QmpFramer) { .buf = g_string_new(NULL) };
}

void qmp_framer_clear(QmpFramer *f)
{
    g_string_free(f->buf, TRUE);
    f->buf = NULL;
}

void qmp_framer_feed(QmpFramer *f, const char *bytes, size_t n)
{
    g_string_append_len(f->buf, bytes, n);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(QmpFramer *f)
{
    size_t n = 0;

    while (n < f->buf->len && is_space(f->buf->str[n])) {
        n++;
    }
    g_string_erase(f->buf, 0, n);
}

static void scan_string(QmpFramer *f, char c)
{
    if (f->escaped) {
        f->escaped = false;
    } else if (c == '\\') {
        f->escaped = true;
    } else if (c == '"') {
        f->in_string = false;
    }
}

/* True if @c, the byte at the scan position, ends the text. */
static bool scan_byte(QmpFramer *f, char c)
{
    if (c == '\n' && (f->in_string || f->depth == 0)) {
        return true;
    }
    if (f->in_string) {
        scan_string(f, c);
        return false;
    }
    switch (c) {
    case '"':
        f->in_string = f->depth > 0;
        return false;
    case '{':
    case '[':
        if (f->depth > 0 || f->scanned == 0) {
            f->depth++;
        }
        f->too_deep |= f->depth > QMP_MAX_NESTING;
        return false;
    case '}':
    case ']':
        return f->depth > 0 && --f->depth == 0;
    default:
        return false;
    }
}

static QmpFrame cut(QmpFramer *f, size_t n, char **text)
{
    QmpFrame frame = f->too_deep ? QMP_FRAME_TOO_DEEP : QMP_FRAME_TEXT;

    if (frame == QMP_FRAME_TEXT) {
        *text = g_malloc(n + 1);
        memcpy(*text, f->buf->str, n);
        (*text)[n] = '\0';
        /* A NUL would end the text early; let the parser refuse it. */
        for (size_t i = 0; i < n; i++) {
            if (f->buf->str[i] == '\0') {
                (*text)[i] = '\x01';
            }
        }
    }
    g_string_erase(f->buf, 0, n);
    f->scanned = 0;
    f->depth = 0;
    f->in_string = f->escaped = f->too_deep = false;
    return frame;
}

QmpFrame qmp_framer_next(QmpFramer *f, char **text)
{
    *text = NULL;
    if (f->scanned == 0) {
        skip_space(f);
    }
    while (f->scanned < f->buf->len) {
        bool end = scan_byte(f, f->buf->str[f->scanned]);

        f->scanned++;
        if (f->scanned > QMP_MAX_REQUEST_BYTES) {
            return QMP_FRAME_TOO_LONG;
        }
        if (end) {
            return cut(f, f->scanned, text);
        }
    }
    return QMP_FRAME_NONE;
}
