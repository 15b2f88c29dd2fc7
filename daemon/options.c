/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line of qemu-net-daemon: one row per option.
 *
 * The table is parsing, --help and (through --help) the manual.
 */
#include "options.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "hw/net/virtio-net-conf.h"
#include "hw/net/virtio-net-stats.h"
#include "net/net.h"
#include "objects.h"
#include "util/clock.h"
#include "util/report.h"

typedef enum OptionKind {
    OPTION_LIST,                /* GPtrArray *: may be repeated */
    OPTION_STRING,              /* const char *: the last one counts */
    OPTION_FLAG,                /* bool */
    OPTION_PRINT,               /* .print is called, and that is all */
} OptionKind;

typedef struct Option {
    const char *name;
    OptionKind kind;
    size_t offset;              /* of the field in DaemonOptions */
    const char *arg;            /* for help; NULL: takes no argument */
    const char *help;           /* lines end with '\n' but for the last */
    char *(*print)(void);       /* OPTION_PRINT; others: value "help" */
} Option;

static char *print_help(void);

static char *print_version(void)
{
    return g_strdup("qemu-net-daemon version " VNET_VERSION "\n");
}

static char *print_devices(void)
{
    g_autofree char *props = virtio_net_props_help(false);

    return g_strdup_printf("virtio-net-pci options:\n%s", props);
}

#define FIELD(f) .offset = offsetof(DaemonOptions, f)

static const Option options[] = {
    { "object", OPTION_LIST, FIELD(objects), .print = daemon_objects_help,
      .arg = "iothread,id=ID[,poll-max-ns=NS][,cpu-affinity=CPU[-CPU]]...",
      .help = "a thread with an event loop, for NICs that name it with\n"
              "iothread=ID; poll-max-ns bounds its busy polling" },
    { "netdev", OPTION_LIST, FIELD(netdevs), .print = net_backend_help,
      .arg = "TYPE,id=ID[,OPTION=VALUE]...",
      .help = "a network backend, with the options of QEMU's -netdev\n"
              "('--netdev help' lists the types)" },
    { "device", OPTION_LIST, FIELD(devices), .print = print_devices,
      .arg = "virtio-net-pci,id=ID,netdev=ID[,PROPERTY=VALUE]...",
      .help = "a NIC on that netdev\n"
              "('--device virtio-net-pci,help' lists the properties)" },
    { "export", OPTION_LIST, FIELD(exports), .print = daemon_export_help,
      .arg = "vhost-user-net,id=ID,device=ID,path=PATH",
      .help = "serve a NIC to a vhost-user front-end at a Unix socket; also\n"
              "addr.type=unix,addr.path=PATH, or addr.type=fd,addr.str=N for\n"
              "an inherited socket" },
    { "qmp", OPTION_LIST, FIELD(qmps),
      .arg = "unix:PATH,server=on,wait=off",
      .help = "a QMP monitor at a Unix socket" },
    { "pidfile", OPTION_STRING, FIELD(pidfile), .arg = "PATH",
      .help = "keep the process id in PATH, locked, while the daemon runs" },
    { "daemonize", OPTION_FLAG, FIELD(daemonize),
      .help = "go into the background, in a session of its own, once all\n"
              "sockets listen and privileges are dropped" },
    { "keep-stderr", OPTION_FLAG, FIELD(keep_stderr),
      .help = "with --daemonize: go on reporting to this standard error, and\n"
              "stay in this directory" },
    { "lifeline-fd", OPTION_STRING, FIELD(lifeline_fd), .arg = "N",
      .help = "end when the other side of pipe or socket N is closed" },
    { "private-dir", OPTION_STRING, FIELD(private_dir), .arg = "PATH",
      .help = "remove this directory at the end, if it is empty" },
    { "stats", OPTION_STRING, FIELD(stats), .print = virtio_net_stats_help,
      .arg = "PATH",
      .help = "serve nothing; show live what the daemon does whose monitor is\n"
              "at PATH ('--stats help' lists what is counted)" },
    { "interval", OPTION_STRING, FIELD(interval), .arg = "SECONDS",
      .help = "with --stats: time between two looks, 0.1 to 3600; default 1" },
    { "help", OPTION_PRINT, .print = print_help, .help = "this text" },
    { "version", OPTION_PRINT, .print = print_version,
      .help = "the version of this program" },
};

/* ---- help -------------------------------------------------------------- */

static void append_help(GString *out, const char *help)
{
    g_auto(GStrv) lines = g_strsplit(help, "\n", -1);

    for (char **line = lines; *line; line++) {
        g_string_append_printf(out, "        %s\n", *line);
    }
}

static char *print_help(void)
{
    GString *out = g_string_new(
        "Usage: qemu-net-daemon [OPTION]...\n"
        "Serve virtio network devices to QEMU or another vhost-user "
        "front-end.\n\n");

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        const Option *o = &options[i];

        g_string_append_printf(out, "  --%s%s%s\n", o->name,
                               o->arg ? " " : "", o->arg ? o->arg : "");
        append_help(out, o->help);
    }
    g_string_append(out, "\nObjects, netdevs, devices and exports may be "
                    "given in any order, and in JSON\n"
                    "('{\"type\": \"user\", \"id\": \"n0\"}').  SIGTERM, "
                    "SIGINT and SIGHUP end the daemon.\n");
    return g_string_free(out, FALSE);
}

static bool wants_help(const char *value)
{
    return !strcmp(value, "help") || g_str_has_suffix(value, ",help");
}

static DaemonOptionsResult print_text(char *text)
{
    fputs(text, stdout);
    g_free(text);
    return DAEMON_OPTIONS_DONE;
}

/* ---- parsing ----------------------------------------------------------- */

/* @name ends at "=" or at the end. */
static const Option *find_option(const char *name, size_t len)
{
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        if (strlen(options[i].name) == len &&
            !memcmp(options[i].name, name, len)) {
            return &options[i];
        }
    }
    return NULL;
}

static DaemonOptionsResult apply(DaemonOptions *opt, const Option *o,
                                 char *value)
{
    void *field = (char *)opt + o->offset;

    switch (o->kind) {
    case OPTION_LIST:
        assert(value);
        if (o->print && wants_help(value)) {
            return print_text(o->print());
        }
        g_ptr_array_add(*(GPtrArray **)field, value);
        break;
    case OPTION_STRING:
        if (o->print && wants_help(value)) {
            return print_text(o->print());
        }
        *(const char **)field = value;
        break;
    case OPTION_FLAG:
        *(bool *)field = true;
        break;
    case OPTION_PRINT:
        return print_text(o->print());
    }
    return DAEMON_OPTIONS_RUN;
}

/* Parse the option at argv[*i], and leave *i at its last word. */
static DaemonOptionsResult parse_one(DaemonOptions *opt, char **argv, int *i,
                                     GError **errp)
{
    char *word = argv[*i];
    const char *name = word + strspn(word, "-");
    size_t len = strcspn(name, "=");
    const Option *o = find_option(name, len);
    char *value = name[len] ? (char *)name + len + 1 : NULL;

    if (name == word || name > word + 2 || !o) {
        vnet_set_error(errp, "unknown option '%s': see --help", word);
        return DAEMON_OPTIONS_ERROR;
    }
    if (value && !o->arg) {
        vnet_set_error(errp, "option '--%s' takes no argument: '%s'", o->name,
                       word);
        return DAEMON_OPTIONS_ERROR;
    }
    if (!value && o->arg) {
        value = argv[*i + 1];
        if (!value) {
            vnet_set_error(errp, "option '--%s' needs an argument: %s",
                           o->name, o->arg);
            return DAEMON_OPTIONS_ERROR;
        }
        ++*i;
    }
    return apply(opt, o, value);
}

static bool parse_interval(DaemonOptions *opt, GError **errp)
{
    const char *text = opt->interval ? opt->interval : "1";
    char *end;
    double seconds = g_ascii_strtod(text, &end);

    if (!g_ascii_isdigit(*text) || *end || !(seconds >= 0.1) ||
        seconds > 3600) {
        vnet_set_error(errp, "--interval '%s': expected seconds, 0.1 to 3600",
                       text);
        return false;
    }
    opt->interval_ns = seconds * NS_PER_SEC;
    return true;
}

static bool serves_something(const DaemonOptions *opt)
{
    return opt->objects->len || opt->netdevs->len || opt->devices->len ||
           opt->exports->len || opt->qmps->len || opt->pidfile ||
           opt->private_dir || opt->lifeline_fd || opt->daemonize ||
           opt->keep_stderr;
}

/* What the options are together. */
static bool check_options(DaemonOptions *opt, GError **errp)
{
    if (opt->stats && serves_something(opt)) {
        vnet_set_error(errp, "--stats '%s': shows another daemon and serves "
                       "nothing: leave out all options but --interval",
                       opt->stats);
        return false;
    }
    if (opt->stats) {
        return parse_interval(opt, errp);
    }
    if (opt->interval) {
        vnet_set_error(errp, "--interval '%s': only with --stats PATH",
                       opt->interval);
        return false;
    }
    if (!opt->exports->len) {
        vnet_set_error(errp, "nothing to serve: add --netdev, --device and "
                       "--export, see --help");
        return false;
    }
    return true;
}

DaemonOptionsResult daemon_options_parse(DaemonOptions *opt, int argc,
                                         char **argv, GError **errp)
{
    *opt = (DaemonOptions) {
        .objects = g_ptr_array_new(),
        .netdevs = g_ptr_array_new(),
        .devices = g_ptr_array_new(),
        .exports = g_ptr_array_new(),
        .qmps = g_ptr_array_new(),
    };
    for (int i = 1; i < argc; i++) {
        DaemonOptionsResult result = parse_one(opt, argv, &i, errp);

        if (result != DAEMON_OPTIONS_RUN) {
            return result;
        }
    }
    return check_options(opt, errp) ? DAEMON_OPTIONS_RUN
                                    : DAEMON_OPTIONS_ERROR;
}

void daemon_options_clear(DaemonOptions *opt)
{
    g_ptr_array_free(opt->objects, TRUE);
    g_ptr_array_free(opt->netdevs, TRUE);
    g_ptr_array_free(opt->devices, TRUE);
    g_ptr_array_free(opt->exports, TRUE);
    g_ptr_array_free(opt->qmps, TRUE);
}
