/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keyval: both spellings, readers, messages, edits.
 *
 * What is legal and what it means follows QEMU's command line; the wording
 * of messages is our interface and is spelled out here once.
 */
#include <string.h>

#include "util/keyval.h"

static KeyVal *parse(const char *text)
{
    g_autoptr(GError) err = NULL;
    KeyVal *kv = keyval_parse("-netdev", text, "type", &err);

    g_assert_no_error(err);
    g_assert_nonnull(kv);
    return kv;
}

static void append_pair(const char *key, const char *value, void *opaque)
{
    g_string_append_printf(opaque, "[%s|%s]", key, value);
}

static char *dump(const KeyVal *kv)
{
    GString *out = g_string_new(NULL);

    keyval_foreach(kv, append_pair, out);
    return g_string_free(out, FALSE);
}

/* ---- parse and format ------------------------------------------------ */

typedef struct ParseCase {
    const char *text;
    const char *pairs;
    const char *formatted;      /* NULL: as @text */
} ParseCase;

static const ParseCase parse_cases[] = {
    { "", "" },
    { "user", "[type|user]" },
    { "user,id=n0", "[type|user][id|n0]" },
    { "type=user,id=n0", "[type|user][id|n0]" },
    { "id=n0,type=user", "[id|n0][type|user]" },
    { "user,id=n0,", "[type|user][id|n0]", "user,id=n0" },
    { "tap,vnet_hdr", "[type|tap][vnet_hdr|on]", "tap,vnet_hdr=on" },
    { "tap,vnet_hdr,id=a", "[type|tap][vnet_hdr|on][id|a]",
      "tap,vnet_hdr=on,id=a" },
    { "user,nofoo", "[type|user][nofoo|on]", "user,nofoo=on" },
    { "user,a=x,,y,b=,,", "[type|user][a|x,y][b|,]" },
    { "user,a=,b=", "[type|user][a|][b|]" },
    { "user,a=1=2", "[type|user][a|1=2]" },
    { "a,,b", "[type|a,b]" },
    { "user,hostfwd=tcp::1-:2,hostfwd=udp::3-:4",
      "[type|user][hostfwd|tcp::1-:2][hostfwd|udp::3-:4]" },
    { "stream,id=n,addr.type=unix,addr.path=/a,,b",
      "[type|stream][id|n][addr.type|unix][addr.path|/a,b]" },
    { "type={x,id=a", "[type|{x][id|a]" },
    { "user,user", "[type|user][user|on]", "user,user=on" },
    { "{}", "" },
    { "{\"type\":\"user\",\"id\":\"n0\"}", "[type|user][id|n0]" },
    { " {", "[type| {]" },
    { "{\"a\":true,\"b\":false,\"c\":null}", "[a|on][b|off][c|null]" },
    { "{\"a\":42,\"b\":-1,\"c\":1.5,\"d\":0}",
      "[a|42][b|-1][c|1.5][d|0]" },
    { "{\"a\":9223372036854775807,\"b\":-9223372036854775808}",
      "[a|9223372036854775807][b|-9223372036854775808]" },
    { "{\"a\":0.1,\"b\":1.0,\"c\":1e+30,\"d\":-0.0}",
      "[a|0.1][b|1.0][c|1e+30][d|-0.0]" },
    { "{\"a\":1E3,\"b\":1.50}", "[a|1000.0][b|1.5]",
      "{\"a\":1000.0,\"b\":1.5}" },
    { "{\"addr\":{\"type\":\"inet\",\"x\":{\"y\":1}},\"z\":2}",
      "[addr.type|inet][addr.x.y|1][z|2]" },
    { "{\"hostfwd\":[\"a\",\"b\"]}", "[hostfwd|a][hostfwd|b]" },
    { "{\"hostfwd\":[{\"str\":\"a\"},{\"str\":\"b\"}]}",
      "[hostfwd|a][hostfwd|b]" },
    { "{\"l\":[{\"b\":1},[2,3],{\"str\":1},4,{\"str\":\"s\",\"t\":5}]}",
      "[l.0.b|1][l.1|2][l.1|3][l.2.str|1][l|4][l.4.str|s][l.4.t|5]" },
    { "{\"e\":{},\"l\":[],\"x\":1}", "[x|1]" },
    { "{ 'a' : 'b,c' }\n", "[a|b,c]", "{\"a\":\"b,c\"}" },
    { "{\"a\":\"q\\\"\\\\ \\u00e9\"}", "[a|q\"\\ \u00e9]",
      "{\"a\":\"q\\\"\\\\ \u00e9\"}" },
    { "{\"a\":\"\\ud83d\\ude00\\/\\t\"}", "[a|\U0001f600/\t]",
      "{\"a\":\"\U0001f600/\\t\"}" },
    { "{\"a\":\"}]{[/\"}", "[a|}]{[/]" },
    { "{\"a.b\":1}", "[a.b|1]" },
};

static void test_parse(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(parse_cases); i++) {
        const ParseCase *c = &parse_cases[i];
        KeyVal *kv = parse(c->text);
        g_autofree char *pairs = dump(kv);
        g_autofree char *formatted = keyval_format(kv);

        g_assert_cmpstr(pairs, ==, c->pairs);
        g_assert_cmpstr(formatted, ==, c->formatted ? c->formatted : c->text);
        keyval_free(kv);
    }
}

static void test_no_implied(void)
{
    KeyVal *kv = keyval_parse("--export", "user,id=x", NULL, NULL);
    g_autofree char *pairs = dump(kv);

    g_assert_cmpstr(pairs, ==, "[user|on][id|x]");
    g_assert_cmpstr(keyval_what(kv), ==, "--export");
    g_assert_cmpstr(keyval_subject(kv), ==, "--export id=x");
    keyval_free(kv);
}

static const struct {
    const char *text;
    const char *message;        /* a part of it */
} syntax_errors[] = {
    { "=x", "invalid parameter name '' in '=x'" },
    { "user,=x", "invalid parameter name '' in 'user,=x'" },
    { ",id=x", "invalid parameter name ''" },
    { ",", "invalid parameter name ''" },
    { "user,a=1,=", "invalid parameter name ''" },
    { "user,{a=1", "invalid parameter name '{a'" },
    { "{", "invalid JSON '{': object without an end" },
    { "{\"a\":1", "object without an end" },
    { "{\"a\":\"b", "string without an end" },
    { "{\"a\":\"b\\", "unknown escape" },
    { "{\"a\":\"\\x\"}", "unknown escape" },
    { "{\"a\":\"\\u12g4\"}", "unknown escape" },
    { "{\"a\":\"\\ud83dx\"}", "unknown escape" },
    { "{\"a\":\"\\ud83d\\ud83d\"}", "unknown escape" },
    { "{\"a\":\"\\ude00\"}", "unknown escape" },
    { "{\"a\":1,}", "invalid JSON" },
    { "{a:1}", "invalid JSON" },
    { "{\"a\" 1}", "invalid JSON" },
    { "{\"a\":1}}", "text after the end" },
    { "{\"a\":1} {}", "text after the end" },
    { "{\"a\":1]", "invalid JSON" },
    { "{\"a\":x}", "invalid JSON" },
    { "{/* */\"a\":1}", "comment" },
    { "{\"a\":010}", "number that is not plain decimal" },
    { "{\"a\":0x10}", "number that is not plain decimal" },
    { "{\"a\":9223372036854775808}", "number out of range" },
    { "{\"a\":-9223372036854775809}", "number out of range" },
    { "{\"a\":1e999}", "number out of range" },
    { "{\"a\":\"x\\u0000y\"}", "NUL character" },
    { "{\"a\":\"x\ny\"}", "control character" },
    { "{\"a\":1,\"b\":2,\"a\":3}", "repeated parameter name 'a'" },
    { "{\"x\":{\"b\":2,\"b\":3}}", "repeated parameter name 'b'" },
    { "{\"a\":{\"x\":1},\"a\":{\"x\":1}}", "repeated parameter name 'a'" },
    { "{\"\":1}", "empty parameter name" },
};

static void test_syntax_errors(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(syntax_errors); i++) {
        g_autoptr(GError) err = NULL;
        KeyVal *kv = keyval_parse("-device", syntax_errors[i].text, "driver",
                                  &err);

        g_assert_null(kv);
        g_assert_nonnull(err);
        g_assert_true(g_str_has_prefix(err->message, "-device: "));
        if (!strstr(err->message, syntax_errors[i].message)) {
            g_error("'%s' gives: %s", syntax_errors[i].text, err->message);
        }
        g_assert_null(keyval_parse("-device", syntax_errors[i].text, NULL,
                                   NULL));
    }
}

static void test_json_depth(void)
{
    for (unsigned depth = 62; depth <= 64; depth++) {
        g_autoptr(GString) text = g_string_new("{\"a\":");
        KeyVal *kv;

        for (unsigned i = 0; i < depth; i++) {
            g_string_append_c(text, '[');
        }
        for (unsigned i = 0; i < depth; i++) {
            g_string_append_c(text, ']');
        }
        g_string_append_c(text, '}');
        kv = keyval_parse("-device", text->str, NULL, NULL);
        g_assert_cmpint(!!kv, ==, depth + 1 <= 64);
        keyval_free(kv);
    }
}

/* ---- readers --------------------------------------------------------- */

static void test_strings(void)
{
    KeyVal *kv = parse("user,id=n0,net=a,net=b,addr.type=unix");
    g_autoptr(GError) err = NULL;
    const char **list;

    g_assert_cmpstr(keyval_peek(kv, "net"), ==, "b");
    g_assert_null(keyval_peek(kv, "host"));
    g_assert_true(keyval_has_prefix(kv, "addr"));
    g_assert_false(keyval_has_prefix(kv, "add"));
    g_assert_false(keyval_has_prefix(kv, "id"));
    g_assert_cmpstr(keyval_take(kv, "type"), ==, "user");
    g_assert_cmpstr(keyval_take_required(kv, "id", &err), ==, "n0");
    g_assert_cmpstr(keyval_take(kv, "net"), ==, "b");
    g_assert_cmpstr(keyval_take(kv, "net"), ==, "b");
    list = keyval_take_list(kv, "net");
    g_assert_cmpstr(list[0], ==, "a");
    g_assert_cmpstr(list[1], ==, "b");
    g_assert_null(list[2]);
    g_free(list);
    list = keyval_take_list(kv, "hostfwd");
    g_assert_null(list[0]);
    g_free(list);
    g_assert_null(keyval_take_required(kv, "ifname", &err));
    g_assert_cmpstr(err->message, ==,
                    "-netdev user,id=n0: parameter 'ifname' is missing");
    keyval_free(kv);
}

static void test_leftover(void)
{
    KeyVal *kv = parse("user,id=n0,hots=1.2.3.4");
    g_autoptr(GError) err = NULL;

    keyval_take(kv, "type");
    keyval_take(kv, "id");
    keyval_take(kv, "host");
    keyval_take(kv, "host");
    g_assert_false(keyval_check_empty(kv, &err));
    g_assert_cmpstr(err->message, ==,
                    "-netdev user,id=n0: unknown parameter 'hots' (value "
                    "'1.2.3.4'), accepted are: type, id, host");
    keyval_take(kv, "hots");
    g_assert_true(keyval_check_empty(kv, NULL));
    keyval_free(kv);
}

static const struct {
    const char *text;
    int value;                  /* -1: an error */
} bools[] = {
    { "on", 1 }, { "yes", 1 }, { "true", 1 }, { "y", 1 },
    { "off", 0 }, { "no", 0 }, { "false", 0 }, { "n", 0 },
    { "maybe", -1 }, { "", -1 }, { "On", -1 }, { "1", -1 }, { "0", -1 },
};

static void test_bool(void)
{
    g_autoptr(GError) err = NULL;
    KeyVal *kv;
    bool out = true;

    for (size_t i = 0; i < G_N_ELEMENTS(bools); i++) {
        g_autofree char *text = g_strdup_printf("user,b=%s", bools[i].text);

        kv = parse(text);
        out = bools[i].value == 0;
        g_assert_cmpint(keyval_take_bool(kv, "b", &out, NULL), ==,
                        bools[i].value >= 0);
        if (bools[i].value >= 0) {
            g_assert_cmpint(out, ==, bools[i].value);
        }
        keyval_free(kv);
    }

    kv = parse("{\"type\":\"user\",\"id\":\"n0\",\"a\":true,\"b\":false,"
               "\"restrict\":\"maybe\"}");
    g_assert_true(keyval_take_bool(kv, "a", &out, NULL) && out);
    g_assert_true(keyval_take_bool(kv, "b", &out, NULL) && !out);
    out = true;
    g_assert_true(keyval_take_bool(kv, "absent", &out, NULL) && out);
    g_assert_false(keyval_take_bool(kv, "restrict", &out, &err));
    g_assert_true(out);
    g_assert_cmpstr(err->message, ==, "-netdev user,id=n0: parameter "
                    "'restrict' expects 'on' or 'off', not 'maybe'");
    keyval_free(kv);
}

typedef struct NumberCase {
    const char *text;
    bool size;
    uint64_t min, max;
    bool ok;
    uint64_t value;
} NumberCase;

static const NumberCase numbers[] = {
    { "0", false, 0, 10, true, 0 },
    { "10", false, 0, 10, true, 10 },
    { "11", false, 0, 10, false },
    { "1", false, 2, 10, false },
    { "0x10", false, 0, 100, true, 16 },
    { "0XfF", false, 0, 255, true, 255 },
    { "010", false, 0, 100, true, 10 },
    { "18446744073709551615", false, 0, UINT64_MAX, true, UINT64_MAX },
    { "0xffffffffffffffff", false, 0, UINT64_MAX, true, UINT64_MAX },
    { "18446744073709551616", false, 0, UINT64_MAX, false },
    { "-1", false, 0, UINT64_MAX, false },
    { "+1", false, 0, 10, false },
    { " 1", false, 0, 10, false },
    { "1 ", false, 0, 10, false },
    { "", false, 0, 10, false },
    { "0x", false, 0, 10, false },
    { "0x-1", false, 0, UINT64_MAX, false },
    { "1k", false, 0, 10000, false },
    { "1.0", false, 0, 10, false },
    { "5", true, 0, 10, true, 5 },
    { "1k", true, 0, UINT64_MAX, true, 1024 },
    { "2K", true, 0, UINT64_MAX, true, 2048 },
    { "3M", true, 0, UINT64_MAX, true, 3ULL << 20 },
    { "4g", true, 0, UINT64_MAX, true, 4ULL << 30 },
    { "5T", true, 0, UINT64_MAX, true, 5ULL << 40 },
    { "0x10k", true, 0, UINT64_MAX, true, 16384 },
    { "16777215T", true, 0, UINT64_MAX, true, 16777215ULL << 40 },
    { "16777216T", true, 0, UINT64_MAX, false },
    { "2k", true, 0, 2047, false },
    { "1kB", true, 0, UINT64_MAX, false },
    { "1X", true, 0, UINT64_MAX, false },
    { "k", true, 0, UINT64_MAX, false },
    { "-1k", true, 0, UINT64_MAX, false },
};

static void test_numbers(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        const NumberCase *c = &numbers[i];
        g_autofree char *text = g_strdup_printf("user,v=%s", c->text);
        KeyVal *kv = parse(text);
        uint64_t out = 4711;
        bool ok = (c->size ? keyval_take_size : keyval_take_uint)
                  (kv, "v", c->min, c->max, &out, NULL);

        g_test_message("%s", text);
        g_assert_cmpint(ok, ==, c->ok);
        g_assert_cmpuint(out, ==, c->ok ? c->value : 4711);
        keyval_free(kv);
    }
}

static void test_number_messages(void)
{
    KeyVal *kv = parse("{\"type\":\"tap\",\"sndbuf\":1.5,\"queues\":-3}");
    g_autoptr(GError) err = NULL;
    uint64_t out;

    g_assert_false(keyval_take_uint(kv, "queues", 1, 256, &out, &err));
    g_assert_cmpstr(err->message, ==, "-netdev tap: parameter 'queues' "
                    "expects a number between 1 and 256, not '-3'");
    g_clear_error(&err);
    g_assert_false(keyval_take_size(kv, "sndbuf", 0, 4096, &out, &err));
    g_assert_cmpstr(err->message, ==, "-netdev tap: parameter 'sndbuf' "
                    "expects a size between 0 and 4096 bytes (suffixes k, M, "
                    "G, T), not '1.5'");
    keyval_free(kv);
}

static void test_enum(void)
{
    static const char *const names[] = { "bh", "timer", "adaptive", NULL };
    g_autoptr(GError) err = NULL;
    KeyVal *kv = keyval_parse("-device", "virtio-net-pci,tx=timer,rx=fast",
                              "driver", NULL);
    unsigned out = 9;

    g_assert_true(keyval_take_enum(kv, "absent", names, &out, &err));
    g_assert_cmpuint(out, ==, 9);
    g_assert_true(keyval_take_enum(kv, "tx", names, &out, &err));
    g_assert_cmpuint(out, ==, 1);
    g_assert_false(keyval_take_enum(kv, "rx", names, &out, &err));
    g_assert_cmpstr(err->message, ==, "-device virtio-net-pci: parameter "
                    "'rx' expects 'bh', 'timer' or 'adaptive', not 'fast'");
    keyval_free(kv);
}

/* ---- edits ----------------------------------------------------------- */

static void test_edit_dotted(void)
{
    KeyVal *kv = parse("tap,id=n0,fd=3,fd=4,script=no");
    const char *taken = keyval_take(kv, "fd");
    g_autofree char *text = NULL;

    keyval_set(kv, "fd", "9");
    keyval_set(kv, "path", "/a,b");
    keyval_set_bool(kv, "on", true);
    keyval_set_uint(kv, "vectors", 0);
    g_assert_true(keyval_remove(kv, "script"));
    g_assert_false(keyval_remove(kv, "script"));
    keyval_set(kv, "id", "n1");
    text = keyval_format(kv);
    g_assert_cmpstr(text, ==, "tap,id=n1,fd=9,path=/a,,b,on=on,vectors=0");
    g_assert_cmpstr(taken, ==, "4");
    g_assert_cmpstr(keyval_subject(kv), ==, "-netdev tap,id=n1");
    keyval_free(kv);
}

static void test_edit_implied(void)
{
    static const struct {
        const char *value, *text;
    } cases[] = {
        { "a,b", "a,,b,id=x" },
        { "a=b", "type=a=b,id=x" },
        { "{", "type={,id=x" },
        { "", "type=,id=x" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        KeyVal *kv = parse("tap,id=x"), *again;
        g_autofree char *text = NULL;

        keyval_set(kv, "type", cases[i].value);
        text = keyval_format(kv);
        g_assert_cmpstr(text, ==, cases[i].text);
        again = parse(text);
        g_assert_cmpstr(keyval_peek(again, "type"), ==, cases[i].value);
        keyval_free(again);
        keyval_free(kv);
    }
}

static void test_edit_json(void)
{
    KeyVal *kv = parse("{\"type\":\"tap\",\"n\":7,\"f\":1.0,\"u\":{\"deep\":"
                       "[1,{\"x\":null}]},\"fds\":[\"3\",\"4\"],\"b\":true}");
    const char *taken = keyval_take(kv, "type");
    g_autofree char *text = NULL;

    keyval_set(kv, "type", "vhost-user");
    keyval_set_uint(kv, "vectors", 0);
    keyval_set_bool(kv, "b", false);
    keyval_set(kv, "addr.path", "/x");
    keyval_set(kv, "addr.type", "unix");
    keyval_set(kv, "n.sub", "y");
    keyval_set(kv, "fds", "9");
    text = keyval_format(kv);
    g_assert_cmpstr(text, ==,
                    "{\"type\":\"vhost-user\",\"n\":7,\"f\":1.0,\"u\":"
                    "{\"deep\":[1,{\"x\":null}]},\"fds\":\"9\",\"b\":false,"
                    "\"vectors\":0,\"addr\":{\"path\":\"/x\",\"type\":"
                    "\"unix\"},\"n.sub\":\"y\"}");
    g_assert_cmpstr(taken, ==, "tap");
    g_assert_cmpstr(keyval_peek(kv, "vectors"), ==, "0");
    keyval_free(kv);
}

/* One key from several places: an edit leaves one. */
static void test_edit_json_ambiguous(void)
{
    static const struct {
        const char *before, *key, *after;
    } cases[] = {
        { "{\"a.b\":1,\"a\":{\"b\":2},\"c\":3}", "a.b",
          "{\"a.b\":7,\"a\":{},\"c\":3}" },
        { "{\"l\":[{\"k\":1}],\"c\":3}", "l.0.k",
          "{\"c\":3,\"l\":{\"0\":{\"k\":7}}}" },
        { "{\"c\":1}", "c.", "{\"c\":1,\"c.\":7}" },
        { "{\"c\":1}", ".c", "{\"c\":1,\".c\":7}" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        KeyVal *kv = parse(cases[i].before);
        g_autofree char *text = NULL;

        keyval_set_uint(kv, cases[i].key, 7);
        g_assert_cmpstr(keyval_peek(kv, cases[i].key), ==, "7");
        text = keyval_format(kv);
        g_assert_cmpstr(text, ==, cases[i].after);
        keyval_free(kv);
    }
}

static void test_remove_json(void)
{
    KeyVal *kv = parse("{\"a\":1,\"l\":[\"x\",\"y\"],\"o\":{\"p\":1,\"q\":2},"
                       "\"m\":[{\"k\":1},2]}");
    g_autofree char *text = NULL;

    g_assert_true(keyval_remove(kv, "a"));
    g_assert_true(keyval_remove(kv, "l"));
    g_assert_true(keyval_remove(kv, "o.p"));
    g_assert_true(keyval_remove(kv, "m.0.k"));
    g_assert_false(keyval_remove(kv, "o"));
    text = keyval_format(kv);
    g_assert_cmpstr(text, ==, "{\"o\":{\"q\":2}}");
    keyval_free(kv);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/keyval/parse", test_parse);
    g_test_add_func("/keyval/no-implied", test_no_implied);
    g_test_add_func("/keyval/syntax-errors", test_syntax_errors);
    g_test_add_func("/keyval/json-depth", test_json_depth);
    g_test_add_func("/keyval/strings", test_strings);
    g_test_add_func("/keyval/leftover", test_leftover);
    g_test_add_func("/keyval/bool", test_bool);
    g_test_add_func("/keyval/numbers", test_numbers);
    g_test_add_func("/keyval/number-messages", test_number_messages);
    g_test_add_func("/keyval/enum", test_enum);
    g_test_add_func("/keyval/edit-dotted", test_edit_dotted);
    g_test_add_func("/keyval/edit-implied", test_edit_implied);
    g_test_add_func("/keyval/edit-json", test_edit_json);
    g_test_add_func("/keyval/edit-json-ambiguous", test_edit_json_ambiguous);
    g_test_add_func("/keyval/remove-json", test_remove_json);
    return g_test_run();
}
