/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hostfwd= and guestfwd= of -netdev user.
 *
 * Both are "[tcp|udp]:ADDRESS:PORT-TARGET".  A host rule's target is
 * "[ADDRESS]:PORT" in the guest's network; a guest rule's target is a command,
 * run once for each connection, or a TCP address, connected to once for each
 * connection.  QEMU's other character devices are refused by name.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "user-internal.h"

#define USER_HOSTFWD_FORM \
    "[tcp|udp]:[hostaddr]:hostport-[guestaddr]:guestport"
#define USER_GUESTFWD_FORM \
    "[tcp]:server:port-cmd:command or [tcp]:server:port-tcp:host:port"

/* Cuts the next word off at @separator; NULL if there is none. */
static char *user_cut(char **rest, char separator)
{
    char *word = *rest, *end = strchr(word, separator);

    if (!end) {
        return NULL;
    }
    *end = '\0';
    *rest = end + 1;
    return word;
}

static bool user_parse_port(const char *text, unsigned min, uint16_t *port)
{
    guint64 value;

    if (!text ||
        !g_ascii_string_to_unsigned(text, 10, min, 65535, &value, NULL)) {
        return false;
    }
    *port = value;
    return true;
}

/* An empty address is 0.0.0.0 if that is @optional. */
static bool user_parse_addr(const char *text, bool optional,
                            struct in_addr *addr)
{
    addr->s_addr = INADDR_ANY;
    if (text && !*text) {
        return optional;
    }
    return text && inet_pton(AF_INET, text, addr) == 1;
}

/* Returns NULL or what is wrong. */
static const char *user_parse_hostfwd(UserHostFwd *f, char *rest)
{
    char *proto = user_cut(&rest, ':');
    char *host_addr, *host_port, *guest_addr;

    if (!proto || (*proto && strcmp(proto, "tcp") && strcmp(proto, "udp"))) {
        return "protocol";
    }
    f->udp = !strcmp(proto, "udp");
    host_addr = user_cut(&rest, ':');
    if (!user_parse_addr(host_addr, true, &f->host_addr)) {
        return "host address";
    }
    host_port = user_cut(&rest, '-');
    if (!user_parse_port(host_port, 0, &f->host_port)) {
        return "host port";
    }
    guest_addr = user_cut(&rest, ':');
    if (!user_parse_addr(guest_addr, true, &f->guest_addr)) {
        return "guest address";
    }
    return user_parse_port(rest, 1, &f->guest_port) ? NULL : "guest port";
}

/* Names are looked up once, here, where waiting harms nobody. */
static const char *user_resolve(UserGuestFwd *f, const char *text)
{
    const struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV,
    };
    g_autofree char *copy = g_strdup(text);
    char *port = strrchr(copy, ':'), *host = copy;
    struct addrinfo *found;

    if (!port || port == copy) {
        return "target address";
    }
    *port++ = '\0';
    if (*host == '[' && port[-2] == ']') {
        port[-2] = '\0';
        host++;
    }
    if (getaddrinfo(host, port, &hints, &found) != 0) {
        return "target address";
    }
    memcpy(&f->tcp, found->ai_addr, found->ai_addrlen);
    f->tcp_len = found->ai_addrlen;
    freeaddrinfo(found);
    return NULL;
}

/* As above; the target, which is the end of @f->text, is not copied. */
static const char *user_parse_guestfwd(UserGuestFwd *f, char *rest)
{
    const char *start = rest;
    char *proto = user_cut(&rest, ':');
    const char *target;

    if (!proto || (*proto && strcmp(proto, "tcp"))) {
        return "protocol";
    }
    if (!user_parse_addr(user_cut(&rest, ':'), false, &f->server)) {
        return "server address";
    }
    if (!user_parse_port(user_cut(&rest, '-'), 1, &f->port)) {
        return "port";
    }
    target = f->text + (rest - start);
    if (g_str_has_prefix(target, "cmd:") && target[4]) {
        f->command = target + 4;
        return NULL;
    }
    if (g_str_has_prefix(target, "tcp:")) {
        return user_resolve(f, target + 4);
    }
    return "target (other character devices are not available)";
}

static bool user_parse_hostfwds(UserOptions *o, KeyVal *kv, GError **errp)
{
    g_autofree const char **list = keyval_take_list(kv, "hostfwd");

    for (const char **p = list; *p; p++) {
        g_autofree char *copy = g_strdup(*p);
        UserHostFwd f = { .text = *p };
        const char *wrong = user_parse_hostfwd(&f, copy);

        if (wrong) {
            net_set_error(errp, kv, "hostfwd=%s: bad %s; expected "
                          USER_HOSTFWD_FORM, *p, wrong);
            return false;
        }
        g_array_append_val(o->hostfwd, f);
    }
    return true;
}

bool user_parse_forwards(UserOptions *o, KeyVal *kv, GError **errp)
{
    g_autofree const char **list = NULL;

    if (!user_parse_hostfwds(o, kv, errp)) {
        return false;
    }
    list = keyval_take_list(kv, "guestfwd");
    for (const char **p = list; *p; p++) {
        g_autofree char *copy = g_strdup(*p);
        UserGuestFwd f = { .text = *p };
        const char *wrong = user_parse_guestfwd(&f, copy);

        if (wrong) {
            net_set_error(errp, kv, "guestfwd=%s: bad %s; expected "
                          USER_GUESTFWD_FORM, *p, wrong);
            return false;
        }
        g_array_append_val(o->guestfwd, f);
    }
    return true;
}
