/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starting and stopping a ring: what is refused, with which words, and that a
 * queue which is not running does nothing.
 */
#include <string.h>

#include "vring-harness.h"

/* F09: verbs of a queue that was never started, or was stopped. */
static void check_stopped(VirtQueue *vq)
{
    VirtQueueElem *e;

    g_assert_false(virtqueue_started(vq));
    g_assert_false(virtqueue_broken(vq));
    g_assert_cmpuint(virtqueue_pop_batch(vq, &e, 1, SIZE_MAX), ==, 0);
    g_assert_cmpuint(virtqueue_publish(vq), ==, 0);
    g_assert_false(virtqueue_should_signal(vq));
    virtqueue_park(vq);
    g_assert_cmpint(virtqueue_arm(vq, 1), ==, VQ_ARM_EMPTY);
    virtqueue_disarm(vq);
    g_assert_cmpuint(virtqueue_call_event(vq), ==, 0);
    g_assert_false(virtqueue_avail_moved(vq));
    g_assert_cmpuint(virtqueue_in_flight(vq), ==, 0);
}

static void test_never_started(void)
{
    VirtQueue *vq = virtqueue_new("idle", 256, NULL, NULL);

    check_stopped(vq);
    g_assert_cmpuint(virtqueue_stop(vq), ==, 0);
    virtqueue_free(vq);
    virtqueue_free(NULL);
}

static void test_stopped(void)
{
    VringHarness *h = vring_harness_new(256, 0);

    for (unsigned i = 0; i < 7; i++) {
        vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    }
    g_assert_cmpuint(vring_harness_serve(h), ==, 7);
    vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    g_assert_cmpuint(virtqueue_stop(h->vq), ==, 7);
    vring_harness_snapshot(h);
    check_stopped(h->vq);
    g_assert_cmpuint(virtqueue_stop(h->vq), ==, 7);
    g_assert_cmpuint(virtqueue_last_avail(h->vq), ==, 7);
    vring_harness_assert_untouched(h);
    vring_harness_free(h);
}

/* F10: the live size rules, whatever it was before. */
static void test_size_changes(void)
{
    static const uint16_t sizes[] = { 256, 1024, 1, 1024, 2 };
    VringHarness *h = vring_harness_new(256, 0);

    for (unsigned s = 0; s < G_N_ELEMENTS(sizes); s++) {
        h->setup.size = sizes[s];
        vring_harness_restart(h);
        g_assert_cmpuint(virtqueue_size(h->vq), ==, sizes[s]);
        for (unsigned i = 0; i < sizes[s]; i++) {
            vring_driver_desc(&h->drv, i, VH_BUFFERS, 64, 0, 0);
            vring_driver_offer(&h->drv, i);
        }
        vring_driver_expose(&h->drv);
        g_assert_cmpuint(vring_harness_serve(h), ==, sizes[s]);
    }
    vring_harness_free(h);
}

typedef struct SetupCase {
    const char *name;
    void (*spoil)(VirtQueueSetup *s);
    const char *message;    /* glob */
} SetupCase;

static void size_zero(VirtQueueSetup *s)
{
    s->size = 0;
}

static void size_odd(VirtQueueSetup *s)
{
    s->size = 100;
}

static void size_too_large(VirtQueueSetup *s)
{
    s->size = 2048;
}

static void packed(VirtQueueSetup *s)
{
    s->features |= VH_FEATURE(VIRTIO_F_RING_PACKED);
}

static void desc_misaligned(VirtQueueSetup *s)
{
    s->desc += 8;
}

static void avail_misaligned(VirtQueueSetup *s)
{
    s->avail += 1;
}

static void used_misaligned(VirtQueueSetup *s)
{
    s->used += 2;
}

static void desc_unmapped(VirtQueueSetup *s)
{
    s->desc = VH_END;
}

static void desc_straddles(VirtQueueSetup *s)
{
    s->desc = VH_SPLIT - 16;
}

static void avail_straddles(VirtQueueSetup *s)
{
    s->avail = VH_SPLIT - 2;
}

static void used_leaves(VirtQueueSetup *s)
{
    s->used = VH_END - 4;
}

/* F16: all but the event word is there. */
static void avail_without_event(VirtQueueSetup *s)
{
    s->features |= VH_EVENT_IDX;
    s->avail = VH_END - (4 + 2 * s->size);
}

static void used_without_event(VirtQueueSetup *s)
{
    s->features |= VH_EVENT_IDX;
    s->used = VH_END - (4 + 8 * s->size);
}

static void index_ahead(VirtQueueSetup *s)
{
    s->last_avail = s->size + 1;
}

static void wrong_space(VirtQueueSetup *s)
{
    s->space = GUEST_SPACE_USER;
}

static const SetupCase setup_cases[] = {
    { "size-zero", size_zero, "*ring size 0 is not between 1 and 1024" },
    { "size-not-a-power-of-two", size_odd,
      "*ring size 100 is not a power of two" },
    { "size-too-large", size_too_large,
      "*ring size 2048 is not between 1 and 1024" },
    { "packed", packed, "*packed rings are not supported" },
    { "desc-misaligned", desc_misaligned, "*not aligned to 16 bytes" },
    { "avail-misaligned", avail_misaligned, "*not aligned to 2 bytes" },
    { "used-misaligned", used_misaligned, "*not aligned to 4 bytes" },
    { "desc-unmapped", desc_unmapped, "*not inside one memory region" },
    { "desc-straddles", desc_straddles, "*not inside one memory region" },
    { "avail-straddles", avail_straddles, "*not inside one memory region" },
    { "used-leaves-memory", used_leaves, "*not inside one memory region" },
    { "avail-without-event-word", avail_without_event,
      "*available ring*not inside one memory region" },
    { "used-without-event-word", used_without_event,
      "*used ring*not inside one memory region" },
    { "index-too-far-ahead", index_ahead, "*available index 257 is more*" },
    { "wrong-address-space", wrong_space, "*not inside one memory region" },
};

static void test_setup(gconstpointer data)
{
    const SetupCase *c = data;
    VringHarness *h = vring_harness_new(256, 0);
    VirtQueueSetup setup = h->setup;
    GError *err = NULL;

    virtqueue_stop(h->vq);
    c->spoil(&setup);
    vring_harness_snapshot(h);
    g_assert_false(virtqueue_start(h->vq, &setup, h->map, &err));
    g_assert_nonnull(err);
    g_assert_true(g_pattern_match_simple(c->message, err->message));
    g_assert_true(g_str_has_prefix(err->message, "harness: "));
    g_error_free(err);
    vring_harness_assert_untouched(h);
    check_stopped(h->vq);
    /* And nobody holds the map: freeing waits for that. */
    vring_harness_restart(h);
    vring_harness_free(h);
}

/* F16: without EVENT_IDX those bytes are nobody's. */
static void test_no_event_word(void)
{
    VringHarness *h = vring_harness_new(256, 0);
    VirtQueueSetup setup = h->setup;
    GError *err = NULL;

    virtqueue_stop(h->vq);
    setup.avail = VH_END - (4 + 2 * setup.size);
    virtqueue_start(h->vq, &setup, h->map, &err);
    g_assert_no_error(err);
    virtqueue_stop(h->vq);
    setup = h->setup;
    setup.used = VH_END - (4 + 8 * setup.size);
    virtqueue_start(h->vq, &setup, h->map, &err);
    g_assert_no_error(err);
    vring_harness_free(h);
}

/* The ring's addresses as a front-end's own. */
static void test_user_space(void)
{
    VringHarness *h = vring_harness_new(256, 0);
    GError *err = NULL;

    virtqueue_stop(h->vq);
    h->setup.space = GUEST_SPACE_USER;
    h->setup.desc += VH_UADDR;
    h->setup.avail += VH_UADDR;
    h->setup.used += VH_UADDR;
    virtqueue_start(h->vq, &h->setup, h->map, &err);
    g_assert_no_error(err);
    vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    g_assert_cmpuint(vring_harness_serve(h), ==, 1);
    vring_harness_free(h);
}

/* A region that starts at an odd place of this process. */
static void test_misaligned_region(void)
{
    VirtQueue *vq = virtqueue_new("odd", 256, NULL, NULL);
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    g_autofree uint8_t *ram = g_malloc(0x4001);
    GuestRegionInfo info = { .gpa = 0x1000, .size = 0x4000, .uaddr = 0x1000 };
    VirtQueueSetup setup = { .size = 4, .desc = 0x1000, .avail = 0x2000,
                             .used = 0x3000 };
    GError *err = NULL;
    GuestMap *map;

    g_assert_true(guest_map_builder_add_ram(b, &info, ram + 1, NULL));
    map = guest_map_builder_finish(b);
    g_assert_false(virtqueue_start(vq, &setup, map, &err));
    g_assert_true(g_str_has_suffix(err->message, "that is not aligned"));
    g_error_free(err);
    virtqueue_free(vq);
    guest_map_release_wait(map);
}

/* A new map that does not have the ring. */
static void test_remap_loses_ring(void)
{
    VringHarness *h = vring_harness_new(256, 0);
    GuestMapBuilder *b = guest_map_builder_new(h->map);
    GuestRegionInfo info = guest_map_region_info(h->map, 0);
    GError *err = NULL;
    GuestMap *map;

    g_assert_cmpuint(info.gpa, ==, VH_BASE);
    g_assert_true(guest_map_builder_remove(b, &info));
    map = guest_map_builder_finish(b);
    g_assert_false(virtqueue_remap(h->vq, map, &err));
    g_assert_nonnull(err);
    g_error_free(err);
    guest_map_unref(map);
    g_assert_cmpuint(h->breaks, ==, 1);
    vring_harness_assert_broken(h,
        "ring is not inside guest memory any more");
    vring_harness_free(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(setup_cases); i++) {
        g_autofree char *name = g_strconcat("/vring/setup/",
                                            setup_cases[i].name, NULL);

        g_test_add_data_func(name, &setup_cases[i], test_setup);
    }
    g_test_add_func("/vring/setup/no-event-word", test_no_event_word);
    g_test_add_func("/vring/setup/user-space", test_user_space);
    g_test_add_func("/vring/setup/misaligned-region", test_misaligned_region);
    g_test_add_func("/vring/setup/never-started", test_never_started);
    g_test_add_func("/vring/setup/stopped", test_stopped);
    g_test_add_func("/vring/setup/size-changes", test_size_changes);
    g_test_add_func("/vring/setup/remap-loses-ring", test_remap_loses_ring);
    return g_test_run();
}
