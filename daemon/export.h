/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --export: what it says.  The export itself is hw/virtio/vhost-user.
 */
#ifndef DAEMON_EXPORT_H
#define DAEMON_EXPORT_H

#include <glib.h>
#include <stdbool.h>

/* Strings belong to the struct. */
typedef struct DaemonExportConf {
    char *what;                 /* for messages */
    char *id;
    char *device;
    char *path;                 /* NULL: fd */
    int fd;
} DaemonExportConf;

/*
 * daemon_export_parse: returns false with @errp set: one line that names
 * option, value and remedy.  daemon_export_clear() is due in any case.
 */
bool daemon_export_parse(DaemonExportConf *conf, const char *text,
                         GError **errp);
void daemon_export_clear(DaemonExportConf *conf);

/* daemon_export_help: for "--export help".  Caller frees. */
char *daemon_export_help(void);

#endif /* DAEMON_EXPORT_H */
