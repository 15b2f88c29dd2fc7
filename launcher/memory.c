/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory on the command line.
 *
 * Main memory is one of: -machine memory-backend=ID, -numa node,memdev=ID
 * for each node, or what the machine makes by itself of -m (and -mem-path).
 * Backends that have another use (plugged-in DIMMs) are treated alike: a
 * guest puts packets there as well, and QEMU shows us either nothing of
 * private memory or, 7.2, the file instead of the guest's pages.
 */
#include "memory.h"

#include <math.h>
#include <string.h>

#include "accel.h"
#include "util/keyval.h"
#include "util/report.h"

#define DEFAULT_RAM_BYTES   (128ULL << 20)
/* The machine rounds the size of -m up to this. */
#define RAM_ALIGN_BYTES     8192

/* ---- sizes ------------------------------------------------------------- */

static bool parse_hex(const char *text, unsigned shift, guint64 *bytes)
{
    char *end;
    guint64 value = g_ascii_strtoull(text + 2, &end, 16);

    if (*end || end == text + 2 || value > (guint64)G_MAXINT64 >> shift) {
        return false;
    }
    *bytes = value << shift;
    return true;
}

/*
 * A number with a suffix B, K, M, G, T, P or E, which may have a fraction, or
 * a hexadecimal number; without a suffix it counts 2^@shift bytes.
 */
static bool parse_size(const char *text, unsigned shift, guint64 *bytes)
{
    static const char suffixes[] = "BKMGTPE";
    const char *suffix;
    double value;
    char *end;

    if (g_str_has_prefix(text, "0x") || g_str_has_prefix(text, "0X")) {
        return parse_hex(text, shift, bytes);
    }
    value = g_ascii_strtod(text, &end);
    if (!g_ascii_isdigit(*text)) {
        return false;
    }
    if (*end) {
        suffix = strchr(suffixes, g_ascii_toupper(*end));
        if (!suffix || end[1]) {
            return false;
        }
        shift = 10 * (suffix - suffixes);
    }
    value = ldexp(value, shift);
    if (!(value < 0x1p62)) {
        return false;
    }
    *bytes = value;
    return true;
}

static bool machine_size(const CmdLine *cmd, guint64 *bytes, GError **errp)
{
    g_autofree char *size = machine_option(cmd, "memory.size");

    if (size && !parse_size(size, 0, bytes)) {
        vnet_set_error(errp, "-machine memory.size=%s: expected a number of "
                       "bytes, or a size such as 512M or 2G", size);
        return false;
    }
    return true;
}

/* The last size in any -m counts, or else the machine's. */
static bool ram_size(const CmdLine *cmd, guint64 *bytes, GError **errp)
{
    guint i;

    *bytes = 0;
    if (!machine_size(cmd, bytes, errp)) {
        return false;
    }
    CMDLINE_FOREACH (cmd, "m", i) {
        KeyVal *kv = keyval_parse("-m", cmdline_at(cmd, i)->value, "size",
                                  errp);
        const char *size = kv ? keyval_peek(kv, "size") : NULL;

        if (!kv) {
            return false;
        }
        if (size && !parse_size(size, 20, bytes)) {
            keyval_bad_value(kv, "size", size, "a number of MiB, or a size "
                             "such as 512M or 2G", errp);
            keyval_free(kv);
            return false;
        }
        keyval_free(kv);
    }
    if (!*bytes) {
        *bytes = DEFAULT_RAM_BYTES;
    }
    *bytes = (*bytes + RAM_ALIGN_BYTES - 1) & ~(RAM_ALIGN_BYTES - 1ULL);
    return true;
}

/* ---- shared memory ----------------------------------------------------- */

/* Huge pages need addresses and offsets that agree modulo their size. */
#define RAM_FILE_ALIGN  2097152

/* The file's path if memory is to be one; NULL: a memfd.  Caller frees. */
static char *ram_file(const LaunchEnv *env)
{
    int fd = env->open_ram ? env->open_ram(env->opaque) : -1;

    return fd < 0 ? NULL : g_strdup_printf("/proc/self/fd/%d", fd);
}

/* ---- main memory without a backend ------------------------------------- */

static const char *ram_id(const char *machine)
{
    return machine && g_str_has_prefix(machine, "microvm") ? "microvm.ram"
                                                           : "pc.ram";
}

static char *new_backend(const LaunchEnv *env, const char *id, guint64 bytes)
{
    g_autofree char *path = ram_file(env);

    if (!path) {
        return g_strdup_printf("memory-backend-memfd,id=%s,share=on,size=%"
                               G_GUINT64_FORMAT, id, bytes);
    }
    return g_strdup_printf("memory-backend-file,id=%s,share=on,size=%"
                           G_GUINT64_FORMAT ",mem-path=%s,align=%d",
                           id, bytes, path, RAM_FILE_ALIGN);
}

static bool add_backend(CmdLine *cmd, const LaunchEnv *env, GError **errp)
{
    g_autofree char *machine = machine_option(cmd, "type");
    const char *id = ram_id(machine);
    guint64 bytes;
    guint i;

    if (!ram_size(cmd, &bytes, errp)) {
        return false;
    }
    CMDLINE_FOREACH (cmd, "mem-path", i) {
        vnet_set_error(errp, "-mem-path %s: this memory is private to QEMU, "
                       "and a NIC of ours has to share it: instead give "
                       "-object memory-backend-file,id=%s,size=%"
                       G_GUINT64_FORMAT ",mem-path=%s,share=on -machine "
                       "memory-backend=%s", cmdline_at(cmd, i)->value, id,
                       bytes, cmdline_at(cmd, i)->value, id);
        return false;
    }
    cmdline_append(cmd, "-object", new_backend(env, id, bytes));
    cmdline_append(cmd, "-machine",
                   g_strdup_printf("memory-backend=%s", id));
    return true;
}

/* ---- backends ---------------------------------------------------------- */

/* The ids of all backends that are main memory. */
static GPtrArray *main_backends(const CmdLine *cmd)
{
    GPtrArray *ids = g_ptr_array_new_with_free_func(g_free);
    char *machine = machine_option(cmd, "memory-backend");
    guint i;

    if (machine) {
        g_ptr_array_add(ids, machine);
    }
    CMDLINE_FOREACH (cmd, "numa", i) {
        KeyVal *kv = keyval_parse("-numa", cmdline_at(cmd, i)->value, "type",
                                  NULL);
        const char *memdev = kv ? keyval_peek(kv, "memdev") : NULL;

        if (memdev) {
            g_ptr_array_add(ids, g_strdup(memdev));
        }
        keyval_free(kv);
    }
    return ids;
}

/* What share= says; @otherwise if it says nothing. */
static bool is_shared(KeyVal *kv, bool otherwise)
{
    /* A bad value is for QEMU to refuse. */
    keyval_take_bool(kv, "share", &otherwise, NULL);
    return otherwise;
}

static void share(CmdLine *cmd, guint i, KeyVal *kv)
{
    keyval_set_bool(kv, "share", true);
    cmdline_edit(cmd, i, keyval_format(kv));
}

/*
 * @is_main: it is there until QEMU ends.  Memory that can be unplugged stays a
 * memfd: the inherited descriptor would keep its pages.
 */
static void share_ram(CmdLine *cmd, guint i, KeyVal *kv, bool is_main,
                      const LaunchEnv *env)
{
    g_autofree char *path = is_main ? ram_file(env) : NULL;

    if (path) {
        keyval_set(kv, "qom-type", "memory-backend-file");
        keyval_set(kv, "mem-path", path);
        keyval_set_uint(kv, "align", RAM_FILE_ALIGN);
    } else {
        keyval_set(kv, "qom-type", "memory-backend-memfd");
    }
    share(cmd, i, kv);
}

static bool rewrite_backend(CmdLine *cmd, guint i, KeyVal *kv,
                            GPtrArray *main_ids, const LaunchEnv *env,
                            GError **errp)
{
    const char *type = keyval_peek(kv, "qom-type");
    const char *id = keyval_peek(kv, "id");
    bool is_main;

    if (!type || !id) {
        return true;
    }
    is_main = g_ptr_array_find_with_equal_func(main_ids, id, g_str_equal,
                                               NULL);
    if (!strcmp(type, "memory-backend-ram")) {
        share_ram(cmd, i, kv, is_main, env);
    } else if (!strcmp(type, "memory-backend-memfd") && !is_shared(kv, true)) {
        share(cmd, i, kv);
    } else if (!strcmp(type, "memory-backend-file") &&
               !is_shared(kv, false)) {
        vnet_set_error(errp, "-object memory-backend-file,id=%s: this memory "
                       "is private to QEMU (share=off), and a NIC of ours has "
                       "to share it: add share=on", id);
        return false;
    }
    return true;
}

bool memory_rewrite(CmdLine *cmd, const LaunchEnv *env, GError **errp)
{
    g_autoptr(GPtrArray) main_ids = main_backends(cmd);
    guint i;

    CMDLINE_FOREACH (cmd, "object", i) {
        KeyVal *kv = keyval_parse("-object", cmdline_at(cmd, i)->value,
                                  "qom-type", NULL);
        bool good = !kv || rewrite_backend(cmd, i, kv, main_ids, env,
                                           errp);

        keyval_free(kv);
        if (!good) {
            return false;
        }
    }
    return main_ids->len > 0 || add_backend(cmd, env, errp);
}
