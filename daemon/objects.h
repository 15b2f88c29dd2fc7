/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --object: iothreads.
 *
 * Main context.
 */
#ifndef DAEMON_OBJECTS_H
#define DAEMON_OBJECTS_H

#include <glib.h>
#include <stdbool.h>

#include "util/iothread.h"

typedef struct DaemonObject DaemonObject;

/*
 * daemon_object_new: create an object from its option; a thread does not
 * start yet.  Returns NULL with @errp set: one line that names option, value
 * and remedy.
 */
DaemonObject *daemon_object_new(const char *text, GError **errp);
void daemon_object_free(DaemonObject *obj);

const char *daemon_object_id(const DaemonObject *obj);
AioContext *daemon_object_context(const DaemonObject *obj);

/* daemon_object_start: start the thread and move it to its CPUs. */
bool daemon_object_start(DaemonObject *obj, GError **errp);

/* daemon_objects_help: for "--object help".  Caller frees. */
char *daemon_objects_help(void);

#endif /* DAEMON_OBJECTS_H */
