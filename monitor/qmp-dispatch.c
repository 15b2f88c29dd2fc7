/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One QMP request to one reply.
 *
 * Wording and error classes are QEMU's, so that clients which match on them
 * see no difference.  The checks run in QEMU's order: is it JSON, is it an
 * object, are its members known and of the right type, is the session in the
 * right state, does the command exist, do its arguments fit its table.
 *
 * Limit: no out-of-band execution; the capability is not offered.
 */
#include "monitor/qmp.h"

#include <string.h>

#include "qmp-framing.h"
#include "util/json-text.h"

G_DEFINE_QUARK(qmp-error-quark, qmp_error)

static const char *const error_class_names[] = {
    [QMP_ERROR_GENERIC] = "GenericError",
    [QMP_ERROR_COMMAND_NOT_FOUND] = "CommandNotFound",
    [QMP_ERROR_DEVICE_NOT_FOUND] = "DeviceNotFound",
};

#define qmp_set_error(errp, class, ...) \
    g_set_error(errp, QMP_ERROR, QMP_ERROR_##class, __VA_ARGS__)

JsonNode *qmp_empty(void)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_node_take_object(node, json_object_new());
    return node;
}

/* ---- text -------------------------------------------------------------- */

static char *to_text(JsonObject *obj)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    char *text;

    json_node_take_object(node, obj);
    text = json_text_format(node);
    json_node_unref(node);
    return text;
}

static JsonObject *error_object(const GError *err)
{
    JsonObject *obj = json_object_new();
    int class = err->domain == QMP_ERROR ? err->code : QMP_ERROR_GENERIC;

    json_object_set_string_member(obj, "class", error_class_names[class]);
    json_object_set_string_member(obj, "desc", err->message);
    return obj;
}

/* The reply: takes @value and @err, of which one is NULL. */
static char *reply_text(JsonNode *value, GError *err, JsonNode *id)
{
    JsonObject *reply = json_object_new();

    if (err) {
        json_object_set_object_member(reply, "error", error_object(err));
        g_error_free(err);
    } else {
        json_object_set_member(reply, "return", value);
    }
    if (id) {
        json_object_set_member(reply, "id", json_node_copy(id));
    }
    return to_text(reply);
}

char *qmp_error_reply(const char *desc)
{
    return reply_text(NULL, g_error_new_literal(QMP_ERROR, QMP_ERROR_GENERIC,
                                                desc), NULL);
}

/* ---- types ------------------------------------------------------------- */

static const char *const type_names[] = {
    [QMP_STRING] = "string",
    [QMP_BOOL] = "boolean",
    [QMP_INT] = "integer",
    [QMP_ARRAY] = "array",
    [QMP_OBJECT] = "object",
};

static bool has_type(JsonNode *node, QmpType type)
{
    static const GType value_types[] = {
        [QMP_STRING] = G_TYPE_STRING,
        [QMP_BOOL] = G_TYPE_BOOLEAN,
        [QMP_INT] = G_TYPE_INT64,
    };

    switch (type) {
    case QMP_ARRAY:
        return JSON_NODE_HOLDS_ARRAY(node);
    case QMP_OBJECT:
        return JSON_NODE_HOLDS_OBJECT(node);
    default:
        return JSON_NODE_HOLDS_VALUE(node) &&
               json_node_get_value_type(node) == value_types[type];
    }
}

/* ---- built-in commands ------------------------------------------------- */

static JsonNode *version_node(void)
{
    g_auto(GStrv) part = g_strsplit(VNET_VERSION, ".", 3);
    JsonObject *qemu = json_object_new();
    JsonObject *version = json_object_new();
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_object_set_int_member(qemu, "micro", g_ascii_strtoll(part[2], NULL,
                                                              10));
    json_object_set_int_member(qemu, "minor", g_ascii_strtoll(part[1], NULL,
                                                              10));
    json_object_set_int_member(qemu, "major", g_ascii_strtoll(part[0], NULL,
                                                              10));
    json_object_set_object_member(version, "qemu", qemu);
    json_object_set_string_member(version, "package", "qemu-virtio-net");
    json_node_take_object(node, version);
    return node;
}

char *qmp_greeting(void)
{
    JsonObject *qmp = json_object_new();
    JsonObject *greeting = json_object_new();

    json_object_set_member(qmp, "version", version_node());
    json_object_set_array_member(qmp, "capabilities", json_array_new());
    json_object_set_object_member(greeting, "QMP", qmp);
    return to_text(greeting);
}

/* There is none to enable: the first one, if any, is refused. */
static bool check_capabilities(JsonArray *enable, GError **errp)
{
    JsonNode *name;

    if (!json_array_get_length(enable)) {
        return true;
    }
    name = json_array_get_element(enable, 0);
    if (!has_type(name, QMP_STRING)) {
        qmp_set_error(errp, GENERIC, "Invalid parameter type for "
                      "'enable[0]', expected: string");
    } else {
        qmp_set_error(errp, GENERIC, "Parameter 'enable' does not accept "
                      "value '%s'", json_node_get_string(name));
    }
    return false;
}

static JsonNode *cmd_qmp_capabilities(void *opaque, JsonObject *args,
                                      GError **errp)
{
    QmpSession *session = opaque;

    if (json_object_has_member(args, "enable") &&
        !check_capabilities(json_object_get_array_member(args, "enable"),
                            errp)) {
        return NULL;
    }
    session->negotiated = true;
    return qmp_empty();
}

static JsonNode *cmd_query_version(void *opaque, JsonObject *args,
                                   GError **errp)
{
    return version_node();
}

static JsonNode *cmd_query_commands(void *opaque, JsonObject *args,
                                    GError **errp);

static const QmpArg qmp_capabilities_args[] = {
    { "enable", QMP_ARRAY, .optional = true },
    { NULL }
};

/* Their opaque is the session. */
static const QmpCommand builtin_commands[] = {
    { "qmp_capabilities", qmp_capabilities_args, cmd_qmp_capabilities },
    { "query-version", NULL, cmd_query_version },
    { "query-commands", NULL, cmd_query_commands },
    { NULL }
};

static void list_commands(JsonArray *list, const QmpCommand *cmd)
{
    for (; cmd->name; cmd++) {
        JsonObject *entry = json_object_new();

        json_object_set_string_member(entry, "name", cmd->name);
        json_array_add_object_element(list, entry);
    }
}

static JsonNode *cmd_query_commands(void *opaque, JsonObject *args,
                                    GError **errp)
{
    QmpSession *session = opaque;
    JsonArray *list = json_array_new();
    JsonNode *node = json_node_new(JSON_NODE_ARRAY);

    list_commands(list, builtin_commands);
    list_commands(list, session->commands);
    json_node_take_array(node, list);
    return node;
}

/* ---- arguments --------------------------------------------------------- */

static const QmpArg *find_arg(const QmpArg *args, const char *name)
{
    for (; args && args->name; args++) {
        if (!strcmp(args->name, name)) {
            return args;
        }
    }
    return NULL;
}

static bool check_arguments(const QmpArg *table, JsonObject *args,
                            GError **errp)
{
    g_autoptr(GList) names = json_object_get_members(args);

    for (const QmpArg *a = table; a && a->name; a++) {
        if (!json_object_has_member(args, a->name)) {
            if (!a->optional) {
                qmp_set_error(errp, GENERIC, "Parameter '%s' is missing",
                              a->name);
                return false;
            }
        } else if (!has_type(json_object_get_member(args, a->name),
                             a->type)) {
            qmp_set_error(errp, GENERIC, "Invalid parameter type for '%s', "
                          "expected: %s", a->name, type_names[a->type]);
            return false;
        }
    }
    for (GList *l = names; l; l = l->next) {
        if (!find_arg(table, l->data)) {
            qmp_set_error(errp, GENERIC, "Parameter '%s' is unexpected",
                          (char *)l->data);
            return false;
        }
    }
    return true;
}

/* ---- requests ---------------------------------------------------------- */

static const QmpCommand *find_command(const QmpCommand *cmd, const char *name)
{
    for (; cmd->name; cmd++) {
        if (!strcmp(cmd->name, name)) {
            return cmd;
        }
    }
    return NULL;
}

static bool check_member(const char *name, JsonNode *node, GError **errp)
{
    if (!strcmp(name, "execute")) {
        if (!has_type(node, QMP_STRING)) {
            qmp_set_error(errp, GENERIC, "QMP input member 'execute' must be "
                          "a string");
            return false;
        }
    } else if (!strcmp(name, "arguments")) {
        if (!has_type(node, QMP_OBJECT)) {
            qmp_set_error(errp, GENERIC, "QMP input member 'arguments' must "
                          "be an object");
            return false;
        }
    } else if (strcmp(name, "id") != 0) {
        qmp_set_error(errp, GENERIC, "QMP input member '%s' is unexpected",
                      name);
        return false;
    }
    return true;
}

static bool check_request(JsonObject *req, GError **errp)
{
    g_autoptr(GList) names = json_object_get_members(req);

    for (GList *l = names; l; l = l->next) {
        if (!check_member(l->data, json_object_get_member(req, l->data),
                          errp)) {
            return false;
        }
    }
    if (!json_object_has_member(req, "execute")) {
        qmp_set_error(errp, GENERIC, "QMP input lacks member 'execute'");
        return false;
    }
    return true;
}

static bool check_state(const QmpSession *session, const char *name,
                        GError **errp)
{
    bool negotiate = !strcmp(name, "qmp_capabilities");

    if (!session->negotiated && !negotiate) {
        qmp_set_error(errp, COMMAND_NOT_FOUND, "Expecting capabilities "
                      "negotiation with 'qmp_capabilities'");
        return false;
    }
    if (session->negotiated && negotiate) {
        qmp_set_error(errp, COMMAND_NOT_FOUND, "Capabilities negotiation is "
                      "already complete, command ignored");
        return false;
    }
    return true;
}

static JsonNode *execute(QmpSession *session, JsonObject *req, GError **errp)
{
    const char *name;
    const QmpCommand *cmd;
    void *opaque = session;
    g_autoptr(JsonObject) args = NULL;

    if (!check_request(req, errp)) {
        return NULL;
    }
    name = json_object_get_string_member(req, "execute");
    if (!check_state(session, name, errp)) {
        return NULL;
    }
    cmd = find_command(builtin_commands, name);
    if (!cmd) {
        cmd = find_command(session->commands, name);
        opaque = session->opaque;
    }
    if (!cmd) {
        qmp_set_error(errp, COMMAND_NOT_FOUND,
                      "The command %s has not been found", name);
        return NULL;
    }
    args = json_object_has_member(req, "arguments")
        ? json_object_ref(json_object_get_object_member(req, "arguments"))
        : json_object_new();
    if (!check_arguments(cmd->args, args, errp)) {
        return NULL;
    }
    return cmd->run(opaque, args, errp);
}

static JsonParser *parse(const char *text, GError **errp)
{
    g_autoptr(JsonParser) parser = json_parser_new_immutable();
    g_autoptr(GError) err = NULL;
    const char *why = "not UTF-8";

    if (!g_utf8_validate(text, -1, NULL) ||
        (why = json_text_check(text, QMP_MAX_NESTING))) {
        qmp_set_error(errp, GENERIC, "JSON parse error, %s", why);
        return NULL;
    }
    if (!json_parser_load_from_data(parser, text, -1, &err)) {
        const char *reason = strchr(err->message, ':');

        /* The library's text starts with a position in its own notation. */
        reason = reason ? strrchr(err->message, ':') + 1 : err->message;
        qmp_set_error(errp, GENERIC, "JSON parse error,%s%s",
                      *reason == ' ' ? "" : " ", reason);
        return NULL;
    }
    return g_steal_pointer(&parser);
}

char *qmp_dispatch(QmpSession *session, const char *text)
{
    GError *err = NULL;
    g_autoptr(JsonParser) parser = NULL;
    JsonNode *root;
    JsonNode *value;
    JsonObject *req;

    /* Only these two can start what the framing found to be balanced. */
    if (*text != '{' && *text != '[') {
        return qmp_error_reply("QMP input must be a JSON object");
    }
    parser = parse(text, &err);
    if (!parser) {
        return reply_text(NULL, err, NULL);
    }
    root = json_parser_get_root(parser);
    if (!root || !JSON_NODE_HOLDS_OBJECT(root)) {
        return qmp_error_reply("QMP input must be a JSON object");
    }
    req = json_node_get_object(root);
    value = execute(session, req, &err);
    return reply_text(value, err, json_object_get_member(req, "id"));
}
