/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of -netdev tap, with QEMU's names, meanings and defaults.
 *
 * What QEMU has and this does not (vhost, helpers) is refused by name, unless
 * it is switched off anyway.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "tap-internal.h"

#define TAP_DEFAULT_SCRIPT      "/etc/qemu-ifup"
#define TAP_DEFAULT_DOWNSCRIPT  "/etc/qemu-ifdown"

#define TAP_NO_VHOST \
    "vhost-net is not used here; leave it out, or leave the NIC to the " \
    "stock QEMU"
#define TAP_NO_HELPER \
    "helper programs belong to -netdev bridge, which is not available; " \
    "use ifname= or fd="

static const struct {
    const char *key;
    bool off_is_fine;       /* a switch, of which "off" is accepted */
    const char *reason;
} tap_refused[] = {
    { "vhost",      true,  TAP_NO_VHOST " (vhost=off)" },
    { "vhostforce", true,  TAP_NO_VHOST },
    { "vhostfd",    false, TAP_NO_VHOST },
    { "vhostfds",   false, TAP_NO_VHOST },
    { "poll-us",    false, TAP_NO_VHOST },
    { "helper",     false, TAP_NO_HELPER },
    { "br",         false, TAP_NO_HELPER },
};

/* Properties of the interface, which whoever opened it has decided. */
static const char *const tap_not_with_fd[] = {
    "ifname", "script", "downscript", "vnet_hdr", "queues",
};

static bool tap_check_refused(KeyVal *kv, GError **errp)
{
    for (size_t i = 0; i < G_N_ELEMENTS(tap_refused); i++) {
        const char *key = tap_refused[i].key;
        const char *value = keyval_peek(kv, key);
        bool on = true;

        if (!value) {
            continue;
        }
        if (tap_refused[i].off_is_fine &&
            !keyval_take_bool(kv, key, &on, errp)) {
            return false;
        }
        if (on) {
            net_set_error(errp, kv, "%s=%s: %s", key, value,
                          tap_refused[i].reason);
            return false;
        }
    }
    return true;
}

/* ---- descriptors ----------------------------------------------------- */

static bool tap_add_fd(TapOptions *o, const char *key, const char *text,
                       const KeyVal *kv, GError **errp)
{
    guint64 fd;

    if (!g_ascii_string_to_unsigned(text, 10, 0, INT_MAX, &fd, NULL)) {
        net_set_error(errp, kv, "%s=%s is not the number of an open file "
                      "descriptor", key, text);
        return false;
    }
    for (unsigned i = 0; i < o->queues; i++) {
        if (o->fds[i] == (int)fd) {
            net_set_error(errp, kv, "%s: %s is there twice; each queue "
                          "has its own", key, text);
            return false;
        }
    }
    if (o->queues == TAP_MAX_QUEUES) {
        net_set_error(errp, kv, "%s: more than %u queues", key,
                      TAP_MAX_QUEUES);
        return false;
    }
    o->fds[o->queues++] = fd;
    return true;
}

static bool tap_parse_fds(TapOptions *o, KeyVal *kv, GError **errp)
{
    const char *fd = keyval_take(kv, "fd");
    const char *fds = keyval_take(kv, "fds");
    g_auto(GStrv) list = NULL;

    if (fd && fds) {
        net_set_error(errp, kv, "fd=%s and fds=%s exclude each other", fd,
                      fds);
        return false;
    }
    if (fd) {
        return tap_add_fd(o, "fd", fd, kv, errp);
    }
    list = g_strsplit(fds, ":", -1);
    for (char **p = list; *p; p++) {
        if (!tap_add_fd(o, "fds", *p, kv, errp)) {
            return false;
        }
    }
    return true;
}

static bool tap_parse_passed(TapOptions *o, KeyVal *kv, GError **errp)
{
    for (size_t i = 0; i < G_N_ELEMENTS(tap_not_with_fd); i++) {
        const char *value = keyval_peek(kv, tap_not_with_fd[i]);

        if (value) {
            net_set_error(errp, kv, "%s=%s has no meaning for a tap that "
                          "is passed with fd= or fds=", tap_not_with_fd[i],
                          value);
            return false;
        }
    }
    o->have_fds = true;
    return tap_parse_fds(o, kv, errp);
}

/* ---- an interface of ours -------------------------------------------- */

static const char *tap_take_script(KeyVal *kv, const char *key,
                                   const char *otherwise)
{
    const char *script = keyval_take(kv, key);

    if (!script) {
        return otherwise;
    }
    return *script && !g_str_equal(script, "no") ? script : NULL;
}

/* Nobody asked for it: one that is not there is not missed. */
static const char *tap_default_downscript(void)
{
    return g_file_test(TAP_DEFAULT_DOWNSCRIPT, G_FILE_TEST_IS_EXECUTABLE)
           ? TAP_DEFAULT_DOWNSCRIPT : NULL;
}

static bool tap_parse_interface(TapOptions *o, KeyVal *kv, GError **errp)
{
    const char *ifname = keyval_take(kv, "ifname");
    uint64_t queues = 1;

    if (ifname && g_strlcpy(o->ifname, ifname, IFNAMSIZ) >= IFNAMSIZ) {
        net_set_error(errp, kv, "ifname=%s is longer than %d characters",
                      ifname, IFNAMSIZ - 1);
        return false;
    }
    o->script = tap_take_script(kv, "script", TAP_DEFAULT_SCRIPT);
    o->downscript = tap_take_script(kv, "downscript",
                                    tap_default_downscript());
    o->vnet_hdr_required = keyval_peek(kv, "vnet_hdr");
    if (!keyval_take_bool(kv, "vnet_hdr", &o->vnet_hdr, errp) ||
        !keyval_take_uint(kv, "queues", 1, TAP_MAX_QUEUES, &queues, errp)) {
        return false;
    }
    o->vnet_hdr_required = o->vnet_hdr_required && o->vnet_hdr;
    o->queues = queues;
    return true;
}

bool tap_options_parse(TapOptions *o, KeyVal *kv, GError **errp)
{
    uint64_t sndbuf = 0;

    *o = (TapOptions) { .vnet_hdr = true };
    if (!tap_check_refused(kv, errp)) {
        return false;
    }
    if (keyval_peek(kv, "fd") || keyval_peek(kv, "fds")) {
        if (!tap_parse_passed(o, kv, errp)) {
            return false;
        }
    } else if (!tap_parse_interface(o, kv, errp)) {
        return false;
    }
    o->sndbuf_required = keyval_peek(kv, "sndbuf");
    if (!keyval_take_size(kv, "sndbuf", 0, UINT64_MAX, &sndbuf, errp)) {
        return false;
    }
    /* The ioctl takes an int; more than that is as good as no limit. */
    o->sndbuf_bytes = sndbuf ? MIN(sndbuf, INT_MAX) : INT_MAX;
    return keyval_check_empty(kv, errp);
}
