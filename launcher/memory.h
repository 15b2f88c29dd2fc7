/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory on the command line: makes it memory that another process can
 * see, which is what vhost-user asks for.
 *
 * Pure but for the files that the environment opens.
 */
#ifndef LAUNCHER_MEMORY_H
#define LAUNCHER_MEMORY_H

#include "rewrite.h"

/*
 * memory_rewrite: edit @cmd.
 *
 * No backend given: shared memory named as the machine's own RAM would be,
 * so that migration streams match.  A private memory-backend-ram becomes
 * shared memory of the same id.  Either is a memfd, or the file that the
 * environment opens.  What cannot be changed without changing its meaning
 * (private file memory) is an error.
 *
 * Returns false with @errp set: one line that names option and remedy.
 */
bool memory_rewrite(CmdLine *cmd, const LaunchEnv *env, GError **errp);

#endif /* LAUNCHER_MEMORY_H */
