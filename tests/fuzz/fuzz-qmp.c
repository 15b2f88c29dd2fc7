/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: what a QMP client sends.
 *
 * Any bytes are cut into requests, the same ones however they arrive, and
 * each request has one reply: an object with either "return" or "error", on
 * one line, and with the "id" of the request.  The commands are a monitor's
 * own, with a NIC to act on, and some that read arguments of all types.
 */
#include <stdlib.h>
#include <string.h>

#include "../../monitor/qmp-framing.h"
#include "monitor/qmp-cmds-net.h"
#include "util/clock.h"
#include "util/keyval.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* ---- commands: arguments of all types, read as the table promises ------- */

static JsonNode *cmd_read(void *opaque, JsonObject *args, GError **errp)
{
    check(json_object_get_string_member(args, "s"));
    json_object_get_boolean_member_with_default(args, "b", false);
    json_object_get_int_member_with_default(args, "i", 0);
    if (json_object_has_member(args, "a")) {
        check(json_object_get_array_member(args, "a"));
    }
    if (json_object_has_member(args, "o")) {
        check(json_object_get_object_member(args, "o"));
    }
    return qmp_empty();
}

static JsonNode *cmd_fail(void *opaque, JsonObject *args, GError **errp)
{
    g_set_error_literal(errp, QMP_ERROR, QMP_ERROR_DEVICE_NOT_FOUND, "none");
    return NULL;
}

static const QmpArg read_args[] = {
    { "s", QMP_STRING },
    { "b", QMP_BOOL, .optional = true },
    { "i", QMP_INT, .optional = true },
    { "a", QMP_ARRAY, .optional = true },
    { "o", QMP_OBJECT, .optional = true },
    { NULL }
};

static const QmpCommand own_commands[] = {
    { "read", read_args, cmd_read },
    { "fail", NULL, cmd_fail },
    { NULL }
};

static GArray *commands;        /* of QmpCommand: ours, and those of NICs */
static QmpNetTarget target;

static void ignore_quit(void *opaque)
{
}

static VirtIONet *new_nic(void)
{
    AioContext *ctx = aio_context_new("fuzz", clock_virtual_new(0), NULL);
    KeyVal *kv = keyval_parse("--netdev", "hubport,id=n0,hubid=0", "type",
                              NULL);
    NetBackend *nb = net_backend_new(kv, ctx, NULL);
    VirtIONetConf conf;

    check(nb);
    keyval_free(kv);
    virtio_net_conf_init(&conf);
    g_strlcpy(conf.id, "v0", sizeof(conf.id));
    return virtio_net_new(&conf, nb, ctx, NULL);
}

static void add_commands(const QmpCommand *cmd)
{
    for (; cmd->name; cmd++) {
        g_array_append_vals(commands, cmd, 1);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    commands = g_array_new(TRUE, FALSE, sizeof(QmpCommand));
    add_commands(own_commands);
    add_commands(qmp_net_commands);
    target = (QmpNetTarget) { g_ptr_array_new(), ignore_quit, NULL };
    g_ptr_array_add(target.nics, new_nic());
    return 0;
}

/* ---- replies ------------------------------------------------------------ */

static void check_reply(const char *reply)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root;
    JsonObject *obj;

    check(!strpbrk(reply, "\r\n"));
    check(json_parser_load_from_data(parser, reply, -1, NULL));
    root = json_parser_get_root(parser);
    check(root && JSON_NODE_HOLDS_OBJECT(root));
    obj = json_node_get_object(root);
    check(json_object_has_member(obj, "return") !=
          json_object_has_member(obj, "error"));
    check(json_object_get_size(obj) ==
          1u + json_object_has_member(obj, "id"));
}

/* ---- frames ------------------------------------------------------------- */

/* The next frame as text; NULL: no more of them. */
static char *next_frame(QmpFramer *f)
{
    char *text;

    switch (qmp_framer_next(f, &text)) {
    case QMP_FRAME_TEXT:
        check(strlen(text) <= QMP_MAX_REQUEST_BYTES);
        return text;
    case QMP_FRAME_TOO_DEEP:
        return g_strdup("too deep");
    case QMP_FRAME_TOO_LONG:
    case QMP_FRAME_NONE:
    default:
        return NULL;
    }
}

/* All frames of @data, which arrives @step bytes at a time. */
static GPtrArray *cut(const uint8_t *data, size_t size, size_t step)
{
    GPtrArray *frames = g_ptr_array_new_with_free_func(g_free);
    QmpFramer f;
    char *text;

    qmp_framer_init(&f);
    for (size_t i = 0; i < size; i += step) {
        qmp_framer_feed(&f, (const char *)data + i, MIN(step, size - i));
        while ((text = next_frame(&f))) {
            g_ptr_array_add(frames, text);
        }
    }
    qmp_framer_clear(&f);
    return frames;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QmpSession session = { (const QmpCommand *)commands->data, &target,
                           false };
    g_autoptr(GPtrArray) frames = cut(data, size, MAX(size, 1));
    g_autoptr(GPtrArray) slowly = cut(data, size, 1);

    check(frames->len == slowly->len);
    for (guint i = 0; i < frames->len; i++) {
        g_autofree char *reply = qmp_dispatch(&session, frames->pdata[i]);

        check(!strcmp(frames->pdata[i], slowly->pdata[i]));
        check_reply(reply);
    }
    return 0;
}
