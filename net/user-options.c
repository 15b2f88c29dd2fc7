/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of -netdev user, with QEMU's names, meanings and defaults.
 *
 * The guest's network is 10.0.2.0/24 with .2 the host, .3 the name server and
 * .15 the first DHCP lease, and fec0::/64 with ::2 and ::3.
 */
#include <arpa/inet.h>
#include <string.h>

#include "user-internal.h"

#define USER_DEFAULT_NET        "10.0.2.0/24"
#define USER_DEFAULT_PREFIX6    "fec0::"
#define USER_MAX_NAME_BYTES     255     /* a DHCP option's length is a byte */

/* Offsets of the defaults in a network of 16 bits of hosts, or fewer. */
#define USER_HOST_OFFSET        0x0202
#define USER_DNS_OFFSET         0x0203
#define USER_DHCP_OFFSET        0x020f

/* Masks of networks that were given without one: by class, or private. */
static const struct {
    uint32_t match, net, mask;
} user_classes[] = {
    { 0x80000000, 0x00000000, 0xff000000 },     /* A */
    { 0xfff00000, 0xac100000, 0xfff00000 },     /* 172.16/12 */
    { 0xc0000000, 0x80000000, 0xffff0000 },     /* B */
    { 0xffff0000, 0xc0a80000, 0xffff0000 },     /* 192.168/16 */
    { 0xffff0000, 0xc6120000, 0xfffe0000 },     /* 198.18/15 */
    { 0xe0000000, 0xc0000000, 0xffffff00 },     /* C */
    { 0x00000000, 0x00000000, 0xfffffff0 },     /* anything else */
};

/* ---- IPv4 ------------------------------------------------------------ */

static bool user_parse_mask(const char *text, struct in_addr *mask)
{
    guint64 bits;

    if (inet_pton(AF_INET, text, mask) == 1) {
        return true;
    }
    if (!g_ascii_string_to_unsigned(text, 10, 4, 30, &bits, NULL)) {
        return false;
    }
    mask->s_addr = htonl(UINT32_MAX << (32 - bits));
    return true;
}

static void user_class_mask(struct in_addr net, struct in_addr *mask)
{
    uint32_t addr = ntohl(net.s_addr);
    size_t i = 0;

    while ((addr & user_classes[i].match) != user_classes[i].net) {
        i++;
    }
    mask->s_addr = htonl(user_classes[i].mask);
}

static bool user_parse_net(SlirpConfig *cfg, const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, "/", 2);

    if (!parts[0] || inet_pton(AF_INET, parts[0], &cfg->vnetwork) != 1) {
        return false;
    }
    if (!parts[1]) {
        user_class_mask(cfg->vnetwork, &cfg->vnetmask);
    } else if (!user_parse_mask(parts[1], &cfg->vnetmask)) {
        return false;
    }
    cfg->vnetwork.s_addr &= cfg->vnetmask.s_addr;
    return true;
}

static struct in_addr user_default_addr(const SlirpConfig *cfg,
                                        uint32_t offset)
{
    return (struct in_addr) {
        cfg->vnetwork.s_addr | (htonl(offset) & ~cfg->vnetmask.s_addr)
    };
}

/*
 * Take the address of @key, or its default; it must lie in the network, or
 * may lie outside if that is @anywhere.
 */
static bool user_take_addr(const SlirpConfig *cfg, KeyVal *kv,
                           const char *key, uint32_t offset, bool anywhere,
                           struct in_addr *addr, GError **errp)
{
    const char *text = keyval_take(kv, key);

    *addr = user_default_addr(cfg, offset);
    if (!text) {
        return true;
    }
    if (inet_pton(AF_INET, text, addr) != 1) {
        net_set_error(errp, kv, "%s=%s is not an IPv4 address", key, text);
        return false;
    }
    if (!anywhere &&
        (addr->s_addr & cfg->vnetmask.s_addr) != cfg->vnetwork.s_addr) {
        net_set_error(errp, kv, "%s=%s lies outside of the guest's "
                      "network; change it or net=", key, text);
        return false;
    }
    return true;
}

static bool user_parse_ipv4(SlirpConfig *cfg, KeyVal *kv, GError **errp)
{
    const char *ip = keyval_take(kv, "ip");     /* QEMU's older word: a /24 */
    const char *net = keyval_take(kv, "net");
    g_autofree char *ip_net = ip ? g_strdup_printf("%s/24", ip) : NULL;
    const char *text = net ? net : ip ? ip_net : USER_DEFAULT_NET;

    if (!user_parse_net(cfg, text)) {
        net_set_error(errp, kv, "net=%s: expected ADDRESS[/MASK], with a "
                      "mask of 4 to 30 bits", text);
        return false;
    }
    /* A name server outside is a real one, which DHCP tells the guest. */
    if (!user_take_addr(cfg, kv, "host", USER_HOST_OFFSET, false,
                        &cfg->vhost, errp) ||
        !user_take_addr(cfg, kv, "dns", USER_DNS_OFFSET, !cfg->restricted,
                        &cfg->vnameserver, errp) ||
        !user_take_addr(cfg, kv, "dhcpstart", USER_DHCP_OFFSET, false,
                        &cfg->vdhcp_start, errp)) {
        return false;
    }
    if (cfg->vhost.s_addr == cfg->vnameserver.s_addr ||
        cfg->vdhcp_start.s_addr == cfg->vhost.s_addr ||
        cfg->vdhcp_start.s_addr == cfg->vnameserver.s_addr) {
        net_set_error(errp, kv, "host=, dns= and dhcpstart= must be three "
                      "different addresses");
        return false;
    }
    return true;
}

/* ---- IPv6 ------------------------------------------------------------ */

static bool user_in_prefix(const SlirpConfig *cfg, const struct in6_addr *a)
{
    unsigned bytes = cfg->vprefix_len / 8, bits = cfg->vprefix_len % 8;
    uint8_t differ = a->s6_addr[bytes] ^ cfg->vprefix_addr6.s6_addr[bytes];

    return !memcmp(a, &cfg->vprefix_addr6, bytes) &&
           !(differ & (0xff00 >> bits));
}

static bool user_take_addr6(const SlirpConfig *cfg, KeyVal *kv,
                            const char *key, uint8_t last, bool anywhere,
                            struct in6_addr *addr, GError **errp)
{
    const char *text = keyval_take(kv, key);

    *addr = cfg->vprefix_addr6;
    addr->s6_addr[15] |= last;
    if (!text) {
        return true;
    }
    if (inet_pton(AF_INET6, text, addr) != 1 ||
        (!anywhere && !user_in_prefix(cfg, addr))) {
        net_set_error(errp, kv, "%s=%s is not an IPv6 address%s", key, text,
                      anywhere ? "" : " in the guest's network");
        return false;
    }
    return true;
}

static bool user_parse_prefix6(SlirpConfig *cfg, KeyVal *kv, GError **errp)
{
    const char *net = keyval_take(kv, "ipv6-net");
    const char *prefix = keyval_take(kv, "ipv6-prefix");
    uint64_t len = 64;
    g_auto(GStrv) parts = NULL;

    if (!keyval_take_uint(kv, "ipv6-prefixlen", 0, 126, &len, errp)) {
        return false;
    }
    if (net) {
        parts = g_strsplit(net, "/", 2);
        prefix = parts[0];
    }
    if (parts && parts[0] && parts[1] &&
        !g_ascii_string_to_unsigned(parts[1], 10, 0, 126, &len, NULL)) {
        net_set_error(errp, kv, "ipv6-net=%s: the prefix length is "
                      "between 0 and 126", net);
        return false;
    }
    prefix = prefix ? prefix : USER_DEFAULT_PREFIX6;
    if (inet_pton(AF_INET6, prefix, &cfg->vprefix_addr6) != 1) {
        net_set_error(errp, kv, "%s=%s is not an IPv6 prefix",
                      net ? "ipv6-net" : "ipv6-prefix", net ? net : prefix);
        return false;
    }
    cfg->vprefix_len = len;
    return true;
}

static bool user_parse_ipv6(SlirpConfig *cfg, KeyVal *kv, GError **errp)
{
    return user_parse_prefix6(cfg, kv, errp) &&
           user_take_addr6(cfg, kv, "ipv6-host", 2, false, &cfg->vhost6,
                           errp) &&
           user_take_addr6(cfg, kv, "ipv6-dns", 3, !cfg->restricted,
                           &cfg->vnameserver6, errp);
}

/* ---- all ------------------------------------------------------------- */

/* An address of a protocol that is off would be ignored: refuse it. */
static bool user_check_off(KeyVal *kv, const char *switch_key,
                           const char *const *keys, GError **errp)
{
    for (; *keys; keys++) {
        if (keyval_peek(kv, *keys)) {
            net_set_error(errp, kv, "%s=%s needs %s=on", *keys,
                          keyval_peek(kv, *keys), switch_key);
            return false;
        }
    }
    return true;
}

/* Both are on, unless one of them alone was switched on, or off. */
static bool user_parse_families(SlirpConfig *cfg, KeyVal *kv, GError **errp)
{
    static const char *const keys4[] = {
        "net", "ip", "host", "dns", "dhcpstart", NULL
    };
    static const char *const keys6[] = {
        "ipv6-net", "ipv6-prefix", "ipv6-prefixlen", "ipv6-host", "ipv6-dns",
        NULL
    };
    bool has4 = keyval_peek(kv, "ipv4"), has6 = keyval_peek(kv, "ipv6");
    bool v4 = true, v6 = true;

    if (!keyval_take_bool(kv, "ipv4", &v4, errp) ||
        !keyval_take_bool(kv, "ipv6", &v6, errp)) {
        return false;
    }
    cfg->in_enabled = v4 && (has4 || !has6 || !v6);
    cfg->in6_enabled = v6 && (has6 || !has4 || !v4);
    if (!cfg->in_enabled && !cfg->in6_enabled) {
        net_set_error(errp, kv, "ipv4=off and ipv6=off leave no protocol");
        return false;
    }
    return (cfg->in_enabled || user_check_off(kv, "ipv4", keys4, errp)) &&
           (cfg->in6_enabled || user_check_off(kv, "ipv6", keys6, errp));
}

static bool user_take_name(KeyVal *kv, const char *key,
                           const char **out, GError **errp)
{
    *out = keyval_take(kv, key);
    if (*out && strlen(*out) > USER_MAX_NAME_BYTES) {
        net_set_error(errp, kv, "%s= is longer than %d bytes", key,
                      USER_MAX_NAME_BYTES);
        return false;
    }
    return true;
}

static bool user_parse_services(UserOptions *o, KeyVal *kv, GError **errp)
{
    SlirpConfig *cfg = &o->cfg;
    const char *tftp;

    if (keyval_peek(kv, "smb") || keyval_peek(kv, "smbserver")) {
        net_set_error(errp, kv, "smb= and smbserver= are not available; "
                      "share files with tftp= or over the network");
        return false;
    }
    if (!user_take_name(kv, "hostname", &cfg->vhostname, errp) ||
        !user_take_name(kv, "domainname", &cfg->vdomainname, errp) ||
        !user_take_name(kv, "bootfile", &cfg->bootfile, errp) ||
        !user_take_name(kv, "tftp-server-name", &cfg->tftp_server_name,
                        errp)) {
        return false;
    }
    tftp = keyval_take(kv, "tftp");
    /* Read at each request, when this may not be our directory any more */
    o->tftp_path = tftp ? g_canonicalize_filename(tftp, NULL) : NULL;
    cfg->tftp_path = o->tftp_path;
    o->dnssearch = keyval_take_list(kv, "dnssearch");
    cfg->vdnssearch = o->dnssearch[0] ? o->dnssearch : NULL;
    return true;
}

/* Before the addresses: it says where they may lie. */
static bool user_parse_restrict(SlirpConfig *cfg, KeyVal *kv, GError **errp)
{
    bool restricted = false;

    if (!keyval_take_bool(kv, "restrict", &restricted, errp)) {
        return false;
    }
    cfg->restricted = restricted;
    return true;
}

bool user_options_parse(UserOptions *o, KeyVal *kv, GError **errp)
{
    *o = (UserOptions) {
        .cfg.version = SLIRP_CONFIG_VERSION_MAX,
        .hostfwd = g_array_new(FALSE, FALSE, sizeof(UserHostFwd)),
        .guestfwd = g_array_new(FALSE, FALSE, sizeof(UserGuestFwd)),
    };
    return user_parse_restrict(&o->cfg, kv, errp) &&
           user_parse_families(&o->cfg, kv, errp) &&
           user_parse_ipv4(&o->cfg, kv, errp) &&
           user_parse_ipv6(&o->cfg, kv, errp) &&
           user_parse_services(o, kv, errp) &&
           user_parse_forwards(o, kv, errp) &&
           keyval_check_empty(kv, errp);
}

void user_options_clear(UserOptions *o)
{
    g_free(o->tftp_path);
    g_free(o->dnssearch);
    g_array_free(o->hostfwd, TRUE);
    g_array_free(o->guestfwd, TRUE);
}
