/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of --stats.
 *
 * A row is a ring; a column is a row of the table below: its head, its width,
 * and which value of the ring's it shows.
 */
#include "stats-table.h"

#include <math.h>
#include <string.h>

#include "util/report.h"

typedef enum StatsCount {
    COUNT_PACKETS,
    COUNT_BYTES,
    COUNT_KICKS,
    COUNT_FLUSHES,
    COUNT_CALLS,
    COUNT_FIRES,
    COUNT_DROPS,
    COUNT_MAX,
} StatsCount;

static const char *const count_names[COUNT_MAX] = {
    [COUNT_PACKETS] = "packets",
    [COUNT_BYTES] = "bytes",
    [COUNT_KICKS] = "kicks",
    [COUNT_FLUSHES] = "flushes",
    [COUNT_CALLS] = "calls",
    [COUNT_FIRES] = "fires",
    /* COUNT_DROPS: all that begin with "dropped-" */
};

/* As many as a histogram of 64-bit values may have. */
#define MAX_BOUNDARIES 64

typedef struct StatsRing {
    char *nic;
    unsigned index;
    bool tx;
    bool link;
    uint64_t counts[COUNT_MAX];
    unsigned n_boundaries;          /* 0: no histogram */
    uint64_t boundaries[MAX_BOUNDARIES];
    uint64_t waits[MAX_BOUNDARIES + 1];
} StatsRing;

struct StatsSample {
    GPtrArray *rings;               /* of StatsRing */
    unsigned nics;
};

/* ---- readings ---------------------------------------------------------- */

/* The value of a member, if it is there and of that type. */
static JsonNode *member(JsonObject *obj, const char *name, JsonNodeType type)
{
    JsonNode *node = json_object_get_member(obj, name);

    return node && json_node_get_node_type(node) == type ? node : NULL;
}

static uint64_t number(JsonObject *obj, const char *name)
{
    JsonNode *node = member(obj, name, JSON_NODE_VALUE);

    return node ? json_node_get_int(node) : 0;
}

static char *printable(JsonObject *obj, const char *name)
{
    JsonNode *node = member(obj, name, JSON_NODE_VALUE);
    const char *text = node ? json_node_get_string(node) : NULL;
    char *copy = g_strdup(text && *text ? text : "-");

    for (char *p = copy; *p; p++) {
        if (!g_ascii_isgraph(*p)) {
            *p = '?';
        }
    }
    return copy;
}

/* Returns how many there are, at most @max. */
static unsigned numbers(JsonObject *obj, const char *name, uint64_t *values,
                        unsigned max)
{
    JsonNode *node = member(obj, name, JSON_NODE_ARRAY);
    JsonArray *array = node ? json_node_get_array(node) : NULL;
    unsigned n = array ? MIN(json_array_get_length(array), max) : 0;

    for (unsigned i = 0; i < n; i++) {
        JsonNode *value = json_array_get_element(array, i);

        values[i] = JSON_NODE_HOLDS_VALUE(value) ? json_node_get_int(value)
                                                 : 0;
    }
    return n;
}

static void read_waits(StatsRing *ring, JsonObject *obj)
{
    JsonNode *hist = member(obj, "residence-us", JSON_NODE_OBJECT);
    unsigned n, bins;

    if (!hist) {
        return;
    }
    n = numbers(json_node_get_object(hist), "boundaries", ring->boundaries,
                MAX_BOUNDARIES);
    bins = numbers(json_node_get_object(hist), "bins", ring->waits,
                   MAX_BOUNDARIES + 1);
    ring->n_boundaries = bins == n + 1 ? n : 0;
}

static void read_drops(JsonObject *obj, const char *name, JsonNode *node,
                       gpointer opaque)
{
    StatsRing *ring = opaque;

    if (g_str_has_prefix(name, "dropped-")) {
        ring->counts[COUNT_DROPS] += number(obj, name);
    }
}

static void ring_free(gpointer opaque)
{
    StatsRing *ring = opaque;

    g_free(ring->nic);
    g_free(ring);
}

static StatsRing *ring_new(JsonObject *nic, JsonObject *obj)
{
    JsonNode *link = member(nic, "link", JSON_NODE_VALUE);
    StatsRing *ring = g_new0(StatsRing, 1);

    ring->nic = printable(nic, "id");
    ring->link = !link || json_node_get_boolean(link);
    ring->index = number(obj, "index");
    ring->tx = ring->index % 2;
    for (unsigned i = 0; i < COUNT_MAX; i++) {
        if (count_names[i]) {
            ring->counts[i] = number(obj, count_names[i]);
        }
    }
    json_object_foreach_member(obj, read_drops, ring);
    read_waits(ring, obj);
    return ring;
}

static bool read_rings(StatsSample *s, JsonNode *nic)
{
    JsonNode *node = JSON_NODE_HOLDS_OBJECT(nic)
        ? member(json_node_get_object(nic), "queues", JSON_NODE_ARRAY) : NULL;
    JsonArray *queues;

    if (!node) {
        return false;
    }
    queues = json_node_get_array(node);
    for (guint i = 0; i < json_array_get_length(queues); i++) {
        JsonNode *ring = json_array_get_element(queues, i);

        if (!JSON_NODE_HOLDS_OBJECT(ring)) {
            return false;
        }
        g_ptr_array_add(s->rings, ring_new(json_node_get_object(nic),
                                           json_node_get_object(ring)));
    }
    s->nics++;
    return true;
}

static bool read_nics(StatsSample *s, JsonNode *value)
{
    JsonArray *nics;

    if (!JSON_NODE_HOLDS_ARRAY(value)) {
        return false;
    }
    nics = json_node_get_array(value);
    for (guint i = 0; i < json_array_get_length(nics); i++) {
        if (!read_rings(s, json_array_get_element(nics, i))) {
            return false;
        }
    }
    return true;
}

StatsSample *stats_sample_new(JsonNode *value, GError **errp)
{
    g_autoptr(StatsSample) s = g_new0(StatsSample, 1);

    s->rings = g_ptr_array_new_with_free_func(ring_free);
    if (!read_nics(s, value)) {
        vnet_set_error(errp, "the counters have a form that is not known");
        return NULL;
    }
    return g_steal_pointer(&s);
}

void stats_sample_free(StatsSample *s)
{
    if (s) {
        g_ptr_array_free(s->rings, TRUE);
        g_free(s);
    }
}

/* ---- histograms -------------------------------------------------------- */

static double bin_begin(const uint64_t *boundaries, unsigned bin)
{
    return bin ? boundaries[bin - 1] : 0;
}

static double bin_end(const uint64_t *boundaries, unsigned n, unsigned bin)
{
    return bin < n ? boundaries[bin] : bin_begin(boundaries, bin);
}

static uint64_t hist_total(const uint64_t *bins, unsigned n)
{
    uint64_t total = 0;

    for (unsigned i = 0; i <= n; i++) {
        total += bins[i];
    }
    return total;
}

double stats_hist_mean(const uint64_t *bins, const uint64_t *boundaries,
                       unsigned n)
{
    uint64_t total = hist_total(bins, n);
    double sum = 0;

    for (unsigned i = 0; i <= n; i++) {
        sum += bins[i] * (bin_begin(boundaries, i) +
                          bin_end(boundaries, n, i)) / 2;
    }
    return total ? sum / total : NAN;
}

double stats_hist_quantile(const uint64_t *bins, const uint64_t *boundaries,
                           unsigned n, double share)
{
    uint64_t total = hist_total(bins, n);
    double wanted = share * total, below = 0;

    for (unsigned i = 0; i <= n && total; i++) {
        if (bins[i] && below + bins[i] >= wanted) {
            double begin = bin_begin(boundaries, i);

            return begin + (bin_end(boundaries, n, i) - begin) *
                           (wanted - below) / bins[i];
        }
        below += bins[i];
    }
    return NAN;
}

/* ---- what happened in between ------------------------------------------ */

typedef enum StatsValue {
    VALUE_PACKETS,
    VALUE_MBITS,
    VALUE_KICKS,
    VALUE_PER_FLUSH,
    VALUE_CALLS,
    VALUE_MEAN,
    VALUE_P99,
    VALUE_FIRES,
    VALUE_DROPS,
    VALUE_MAX,
} StatsValue;

static const StatsRing *find_ring(const StatsSample *s, const StatsRing *like)
{
    for (guint i = 0; s && i < s->rings->len; i++) {
        const StatsRing *ring = s->rings->pdata[i];

        if (ring->index == like->index && !strcmp(ring->nic, like->nic)) {
            return ring;
        }
    }
    return NULL;
}

/* A counter that went down was reset. */
static uint64_t grown(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

static void take_waits(double *values, const StatsRing *now,
                       const StatsRing *before)
{
    uint64_t bins[MAX_BOUNDARIES + 1];
    unsigned n = now->n_boundaries;

    if (!n || before->n_boundaries != n) {
        return;
    }
    for (unsigned i = 0; i <= n; i++) {
        bins[i] = grown(now->waits[i], before->waits[i]);
    }
    values[VALUE_MEAN] = stats_hist_mean(bins, now->boundaries, n);
    values[VALUE_P99] = stats_hist_quantile(bins, now->boundaries, n, 0.99);
}

static void take_rates(double *values, const StatsRing *now,
                       const StatsRing *before, double seconds)
{
    double grew[COUNT_MAX];

    for (unsigned i = 0; i < COUNT_MAX; i++) {
        grew[i] = grown(now->counts[i], before->counts[i]);
    }
    values[VALUE_PACKETS] = grew[COUNT_PACKETS] / seconds;
    values[VALUE_MBITS] = grew[COUNT_BYTES] * 8 / seconds / 1e6;
    values[VALUE_KICKS] = grew[COUNT_KICKS] / seconds;
    values[VALUE_CALLS] = grew[COUNT_CALLS] / seconds;
    values[VALUE_DROPS] = grew[COUNT_DROPS] / seconds;
    if (grew[COUNT_FLUSHES]) {
        values[VALUE_PER_FLUSH] = grew[COUNT_PACKETS] / grew[COUNT_FLUSHES];
    }
    if (now->tx) {
        values[VALUE_FIRES] = grew[COUNT_FIRES] / seconds;
    }
}

static void take_values(double *values, const StatsRing *now,
                        const StatsRing *before, double seconds)
{
    for (unsigned i = 0; i < VALUE_MAX; i++) {
        values[i] = NAN;
    }
    if (before && seconds > 0) {
        take_rates(values, now, before, seconds);
        take_waits(values, now, before);
    }
}

/* ---- lines ------------------------------------------------------------- */

/* With names of 4 letters they fill 80 columns. */
static const struct {
    const char *head;
    int width;
    int decimals;
} columns_of[VALUE_MAX] = {
    [VALUE_PACKETS] = { "PKT/S", 10, 0 },
    [VALUE_MBITS] = { "MBIT/S", 9, 1 },
    [VALUE_KICKS] = { "KICK/S", 8, 0 },
    [VALUE_PER_FLUSH] = { "PKT/FL", 7, 1 },
    [VALUE_CALLS] = { "CALL/S", 8, 0 },
    [VALUE_MEAN] = { "WAIT/US", 8, 1 },
    [VALUE_P99] = { "P99/US", 7, 0 },
    [VALUE_FIRES] = { "FIRE/S", 7, 0 },
    [VALUE_DROPS] = { "DROP/S", 7, 0 },
};

/* Little is not nothing, and what is too long keeps its column. */
static void append_value(GString *line, StatsValue which, double value)
{
    int width = columns_of[which].width;
    int decimals = columns_of[which].decimals;

    if (isnan(value)) {
        g_string_append_printf(line, "%*s", width, "-");
    } else if (value > 0 && value < 0.95 * pow(10, -decimals)) {
        g_string_append_printf(line, "%*s", width, decimals ? "<0.1" : "<1");
    } else if (value >= pow(10, width - 2 - 2 * decimals)) {
        g_string_append_printf(line, "%*.0e", width, value);
    } else {
        g_string_append_printf(line, "%*.*f", width, decimals, value);
    }
}

static char *ring_nic(const StatsRing *ring)
{
    return g_strconcat(ring->nic, ring->link ? "" : " (down)", NULL);
}

static int nic_width(const StatsSample *s)
{
    size_t width = strlen("NIC");

    for (guint i = 0; i < s->rings->len; i++) {
        g_autofree char *nic = ring_nic(s->rings->pdata[i]);

        width = MAX(width, strlen(nic));
    }
    return width;
}

static void append_heads(GString *line, int width)
{
    g_string_append_printf(line, "%-*s %-4s", width, "NIC", "RING");
    for (unsigned i = 0; i < VALUE_MAX; i++) {
        g_string_append_printf(line, "%*s", columns_of[i].width,
                               columns_of[i].head);
    }
}

static void append_ring(GString *line, int width, const StatsRing *ring,
                        const double *values)
{
    g_autofree char *nic = ring_nic(ring);
    g_autofree char *name = g_strdup_printf("%s%u", ring->tx ? "tx" : "rx",
                                            ring->index / 2);

    g_string_append_printf(line, "%-*s %-4s", width, nic, name);
    for (unsigned i = 0; i < VALUE_MAX; i++) {
        append_value(line, i, values[i]);
    }
}

char *stats_table_lines(const StatsSample *now, const StatsSample *before,
                        double seconds, double at, bool header)
{
    GString *out = g_string_new(NULL);
    int width = nic_width(now);

    if (header) {
        g_string_append_printf(out, "%8s ", "SECONDS");
        append_heads(out, width);
        g_string_append_c(out, '\n');
    }
    for (guint i = 0; i < now->rings->len; i++) {
        const StatsRing *ring = now->rings->pdata[i];
        double values[VALUE_MAX];

        take_values(values, ring, find_ring(before, ring), seconds);
        g_string_append_printf(out, "%8.1f ", at);
        append_ring(out, width, ring, values);
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, FALSE);
}

/* ---- the screen -------------------------------------------------------- */

#define PLAIN   ""
#define BOLD    "\033[1m"
#define REVERSE "\033[7m"
#define RESET   "\033[0m"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

typedef struct Screen {
    GString *out;
    unsigned columns;
    unsigned rows;
    unsigned used;
} Screen;

/* Nothing once the screen is full. */
static void add_line(Screen *s, const char *style, const char *text)
{
    if (s->used == s->rows) {
        return;
    }
    if (s->used) {
        g_string_append(s->out, "\r\n");
    }
    /* Cleared first: after a full line the cursor is still in its column. */
    g_string_append_printf(s->out, CLEAR_LINE "%s%.*s%s", style,
                           (int)s->columns, text, *style ? RESET : "");
    s->used++;
}

static void add_rings(Screen *s, const StatsSample *now,
                      const StatsSample *before, double seconds)
{
    int width = nic_width(now);
    unsigned left = s->rows - s->used;
    unsigned n = now->rings->len <= left ? now->rings->len
                                         : left - MIN(left, 1);

    for (unsigned i = 0; i < n; i++) {
        const StatsRing *ring = now->rings->pdata[i];
        g_autoptr(GString) line = g_string_new(NULL);
        double values[VALUE_MAX];

        take_values(values, ring, find_ring(before, ring), seconds);
        append_ring(line, width, ring, values);
        add_line(s, values[VALUE_DROPS] > 0 ? BOLD : PLAIN, line->str);
    }
    if (n < now->rings->len) {
        g_autofree char *more = g_strdup_printf(
            "... and %u more: enlarge the window", now->rings->len - n);

        add_line(s, PLAIN, more);
    }
}

char *stats_table_screen(const StatsSample *now, const StatsSample *before,
                         double seconds, const char *title, unsigned columns,
                         unsigned rows)
{
    Screen s = { g_string_new(NULL), columns, rows };
    g_autofree char *first = g_strdup_printf(
        "%s: %u NIC%s, %u ring%s (q: quit)", title, now->nics,
        now->nics == 1 ? "" : "s", now->rings->len,
        now->rings->len == 1 ? "" : "s");
    g_autoptr(GString) heads = g_string_new(NULL);

    append_heads(heads, nic_width(now));
    add_line(&s, BOLD, first);
    add_line(&s, PLAIN, "");
    add_line(&s, REVERSE, heads->str);
    add_rings(&s, now, before, seconds);
    if (s.used < rows) {
        g_string_append(s.out, "\r\n" CLEAR_BELOW);
    }
    return g_string_free(s.out, FALSE);
}
