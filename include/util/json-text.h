/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON text as RFC 8259 has it, around json-glib, which parses more than that
 * and prints what is not JSON.
 *
 * Pure functions, for any context.
 */
#ifndef UTIL_JSON_TEXT_H
#define UTIL_JSON_TEXT_H

#include <json-glib/json-glib.h>

/*
 * json_text_check: may this text go to json-glib?
 * @text: UTF-8 that begins with '{' or '['
 * @max_depth: levels of nesting that are allowed
 *
 * Returns NULL, or in a few words what is wrong: what json-glib would
 * silently take for something else (numbers out of range, NUL characters,
 * half surrogate pairs, comments, a second value), and deeper nesting.  Text
 * without objection may still not be JSON: json-glib refuses that.
 */
const char *json_text_check(const char *text, unsigned max_depth);

/*
 * json_text_append: print a tree, compactly.
 *
 * What is not UTF-8 in a string or a name becomes U+FFFD.
 */
void json_text_append(GString *out, JsonNode *node);

/* json_text_format: as json_text_append().  Caller frees. */
char *json_text_format(JsonNode *node);

#endif /* UTIL_JSON_TEXT_H */
