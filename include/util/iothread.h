/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IOThread: a thread that runs one AioContext (-object iothread).
 *
 * Life: iothread_new() creates the context, which can be populated at once;
 * iothread_start() creates the thread (privileges are dropped in between, as
 * they are per thread); iothread_free() ends and joins it.  Main context only.
 */
#ifndef UTIL_IOTHREAD_H
#define UTIL_IOTHREAD_H

#include "util/aio.h"

typedef struct IOThread IOThread;

IOThread *iothread_new(const char *id, Clock *clock, GError **errp);
const char *iothread_id(const IOThread *iot);
AioContext *iothread_context(const IOThread *iot);

/* iothread_start: returns false with @errp set if no thread can be had. */
bool iothread_start(IOThread *iot, GError **errp);

/*
 * iothread_free: stop and join the thread if it runs, free the context,
 * whose handlers, timers and bottom halves must be gone.
 */
void iothread_free(IOThread *iot);

#endif /* UTIL_IOTHREAD_H */
