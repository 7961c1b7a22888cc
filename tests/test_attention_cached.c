/* SPDX-License-Identifier: MIT */
/* Attention over caches of every kind: the bits of the same keys in plain memory. */
#include "attention_caches.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attention_support.h"
#include "support/half.h"
#include "support/test.h"

static const char *const kinds[] = {"", "contiguous", "ring", "paged"};

/* One random call with options over a cache of a kind, whole or by spans. */
static void compare_call(int32_t kind, unsigned with, int64_t step, uint64_t seed)
{
    struct options o;
    struct caches c;
    char options[200], text[260];
    if (step)
        with &= ~(unsigned)WITH_WEIGHTS;
    options_init(&o, with, seed);
    caches_init(&c, &o, kind, seed + 1);
    snprintf(text, sizeof(text), "%s, seed %llu, %s", kinds[kind], (unsigned long long)seed,
             options_text(with, options, sizeof(options)));
    caches_compare(&c, POSENC_ISA_DEFAULT, step, text);
    caches_free(&c);
    options_free(&o);
}

/* Each option alone, over each kind: no option is left to chance. */
static void each_option_has_the_bits_of_plain_memory(void **state)
{
    (void)state;
    for (unsigned option = 0; option < OPTION_COUNT; option++)
        for (int i = 0; i < (1u << option == WITH_LONG || test_quick() ? 2 : 8); i++)
            for (int32_t kind = POSENC_CACHE_CONTIGUOUS; kind <= POSENC_CACHE_PAGED; kind++)
                compare_call(kind, 1u << option | (i % 2 ? WITH_WEIGHTS | WITH_LSE : WITH_WINDOW),
                             0, 1000 * option + (uint64_t)i);
}

/* Arrays by stored key are by slot of the own sequence. */
static void arrays_go_by_slot(void **state)
{
    static const unsigned with[] = {WITH_ALIBI | WITH_PACKED, WITH_ROPE, WITH_ROPE | WITH_PACKED,
                                    WITH_BIAS | WITH_PACKED | WITH_WEIGHTS};
    (void)state;
    for (int i = 0; i < 120; i++)
        for (int32_t kind = POSENC_CACHE_CONTIGUOUS; kind <= POSENC_CACHE_PAGED; kind++)
            compare_call(kind, with[i % 4], 0, 77000 + (uint64_t)i);
}

static void any_options_have_the_bits_of_plain_memory(void **state)
{
    uint64_t seed = 21;
    (void)state;
    for (int i = 0; i < (test_quick() ? 40 : 300); i++)
        for (int32_t kind = POSENC_CACHE_CONTIGUOUS; kind <= POSENC_CACHE_PAGED; kind++) {
            unsigned with = options_choose(&seed);
            compare_call(kind, with, 0, seed);
        }
}

/* Steps of decoding with few options, whole or by spans: mostly tiles of keys equally apart. */
static void decoding_has_the_bits_of_plain_memory(void **state)
{
    const unsigned few = WITH_CAUSAL | WITH_WINDOW | WITH_PLACES | WITH_COUNTS | WITH_PACKED |
                         WITH_SINKS | WITH_SCALES | WITH_LONG | WITH_HEADS_FIRST | WITH_KEEP;
    uint64_t seed = 23;
    (void)state;
    for (int i = 0; i < (test_quick() ? 20 : 100); i++)
        for (int32_t kind = POSENC_CACHE_CONTIGUOUS; kind <= POSENC_CACHE_PAGED; kind++) {
            unsigned with = WITH_DECODING | (options_choose(&seed) & few);
            compare_call(kind, with, i % 3, seed);
        }
}

static void spans_over_caches_join_to_the_whole(void **state)
{
    uint64_t seed = 22;
    (void)state;
    for (int i = 0; i < (test_quick() ? 8 : 40); i++)
        for (int32_t kind = POSENC_CACHE_CONTIGUOUS; kind <= POSENC_CACHE_PAGED; kind++) {
            unsigned with = options_choose(&seed) | (i % 2 ? WITH_LONG : 0);
            compare_call(kind, with, 1 + i % 3, seed);
        }
}

/* A sequence of `keys` tokens in plain memory, seen with a window and kept keys. */
static struct problem windowed(int64_t queries, int64_t keys, int64_t channels)
{
    struct problem p;
    problem_init(&p, (struct shape){1, queries, keys, 4, 1, channels, channels, 1}, 31);
    p.params.window_left = 70;
    p.params.keep = 5;
    return p;
}

/* A copy of plain keys in a ring of `slots`, up to key `last`. */
static void put_in_ring(posenc_cache *ring, const posenc_tensor *plain, int64_t last)
{
    int64_t slots = ring->rows.shape[1], row = plain->shape[2] * plain->shape[3];
    int64_t slot = last < ring->keep ? last
                                     : ring->keep + (last - ring->keep) % (slots - ring->keep);
    memcpy((float *)ring->rows.data + slot * row, element(plain, 0, last, 0),
           (size_t)row * sizeof(float));
}

/* The window fits the ring: what a query sees is there when its turn comes. */
static void decoding_over_a_ring_is_the_prefill(void **state)
{
    enum { KEYS = 260, SLOTS = 75 };
    struct problem p = windowed(KEYS, KEYS, 40);
    static float k_rows[SLOTS * 40], v_rows[SLOTS * 40], out_row[4 * 40];
    posenc_cache k, v;
    posenc_tensor t, out;
    posenc_error error = {0, ""};
    (void)state;
    run(&p, POSENC_ISA_DEFAULT);
    posenc_tensor_contiguous(&t, k_rows, POSENC_F32, 1, SLOTS, 1, 40);
    posenc_cache_plain(&k, &t);
    k.kind = POSENC_CACHE_RING;
    k.keep = p.params.keep;
    v = k;
    v.rows.data = v_rows;
    posenc_tensor_contiguous(&out, out_row, POSENC_F32, 1, 1, 4, 40);
    for (int64_t last = 0; last < KEYS; last++) {
        const posenc_tensor q = tokens_of(&p.q, last, 1);
        int64_t count = last + 1;
        put_in_ring(&k, &p.k, last);
        put_in_ring(&v, &p.v, last);
        p.params.key_counts = &count;
        test_ok(posenc_attention_cached(&p.params, &q, &k, &v, &out, &error), &error);
        assert_memory_equal(out_row, element(&p.out, 0, last, 0), sizeof(out_row));
    }
    problem_free(&p);
}

/* keep hides what a bias of -inf hides: by tiles, by rows, by spans that are passed over. */
static void keep_is_a_bias_of_minus_infinity(void **state)
{
    static const int64_t queries[] = {1, 2, 11, 40};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int64_t keep = 0; keep < 300; keep = 3 * keep + 1) {
            struct problem p = windowed(queries[i], 2300, 33);
            posenc_tensor expected = p.out, bias;
            float *values = malloc((size_t)(queries[i] * 2300) * sizeof(float));
            expected.data = malloc(tensor_bytes(&p.out));
            assert_true(values && expected.data);
            p.params.keep = keep;
            run(&p, POSENC_ISA_DEFAULT);
            memcpy(expected.data, p.out.data, tensor_bytes(&p.out));
            posenc_tensor_contiguous(&bias, values, POSENC_F32, 1, queries[i], 1, 2300);
            for (int64_t n = 0; n < queries[i] * 2300; n++) {
                int64_t j = n % 2300, place = 2300 - queries[i] + n / 2300;
                values[n] = j < keep || place - j < p.params.window_left ? 0 : -INFINITY;
            }
            p.params.bias = &bias;
            p.params.keep = p.params.window_left = 0;
            run(&p, POSENC_ISA_DEFAULT);
            assert_memory_equal(expected.data, p.out.data, tensor_bytes(&p.out));
            free(expected.data);
            free(values);
            problem_free(&p);
        }
}

enum { PAGE_SLOTS = 16, PAGES = 100 };

/* A paged cache whose pages are pages of the machine, in falling order. */
struct fenced {
    char *map;
    size_t page;
    int32_t table[PAGES];
    posenc_cache cache;
};

static void fenced_init(struct fenced *f, const posenc_tensor *plain)
{
    f->page = (size_t)sysconf(_SC_PAGESIZE);
    f->map = mmap(NULL, PAGES * f->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                  0);
    assert_true(f->map != MAP_FAILED);
    posenc_cache_init(&f->cache);
    f->cache.kind = POSENC_CACHE_PAGED;
    posenc_tensor_contiguous(&f->cache.rows, f->map, POSENC_F32, PAGES, PAGE_SLOTS, 1,
                             plain->shape[3]);
    f->cache.pages = f->table;
    f->cache.sequences = 1;
    f->cache.sequence_pages = f->cache.page_stride = PAGES;
    for (int i = 0; i < PAGES; i++) {
        f->table[i] = PAGES - 1 - i;
        memcpy(f->map + (size_t)f->table[i] * f->page, element(plain, 0, i * PAGE_SLOTS, 0),
               f->page);
    }
}

/* Takes the memory of a page away, and its entry. */
static void fenced_drop(struct fenced *f, int i)
{
    mprotect(f->map + (size_t)f->table[i] * f->page, f->page, PROT_NONE);
    f->table[i] = i % 2 ? INT32_MIN : PAGES + i;
}

/* Keys [begin, end) are wanted, and those of params.keep. */
static void drop_unseen(struct fenced f[2], int64_t keep, int64_t begin, int64_t end)
{
    for (int i = 0; i < PAGES; i++)
        if (i * PAGE_SLOTS >= keep && ((i + 1) * PAGE_SLOTS <= begin || i * PAGE_SLOTS >= end))
            for (int n = 0; n < 2; n++)
                fenced_drop(&f[n], i);
}

static void unseen_pages_are_never_touched(void **state)
{
    static const int64_t queries[] = {1, 3, 20, 50}, keeps[] = {0, 1, 16, 17, 70};
    const int64_t channels = sysconf(_SC_PAGESIZE) / (PAGE_SLOTS * (int64_t)sizeof(float));
    (void)state;
    for (int i = 0; i < 20; i++) {
        int64_t keep = keeps[i % 5], n = queries[i / 5], last = PAGES * PAGE_SLOTS - 37;
        struct problem p = windowed(n, PAGES * PAGE_SLOTS, channels);
        struct fenced f[2];
        posenc_error error = {0, ""};
        float *expected = malloc(tensor_bytes(&p.out));
        assert_non_null(expected);
        p.params.keep = keep;
        p.params.key_counts = &last;
        run(&p, POSENC_ISA_DEFAULT);
        memcpy(expected, p.out.data, tensor_bytes(&p.out));
        fenced_init(&f[0], &p.k);
        fenced_init(&f[1], &p.v);
        drop_unseen(f, keep, last - n - 69, last);
        memset(p.out.data, FILL_BYTE, tensor_bytes(&p.out));
        test_ok(posenc_attention_cached(&p.params, &p.q, &f[0].cache, &f[1].cache, &p.out, &error),
                &error);
        assert_memory_equal(expected, p.out.data, tensor_bytes(&p.out));
        for (int m = 0; m < 2; m++)
            munmap(f[m].map, PAGES * f[m].page);
        free(expected);
        problem_free(&p);
    }
}

/* Sums of one span need the pages of that span alone. */
static void spans_need_their_own_pages_alone(void **state)
{
    const int64_t channels = sysconf(_SC_PAGESIZE) / (PAGE_SLOTS * (int64_t)sizeof(float));
    const int64_t last = PAGES * PAGE_SLOTS;
    struct problem p = windowed(2, last, channels);
    struct fenced f[2];
    posenc_tensor state_of_span;
    float *sums = calloc((size_t)(2 * 4 * (channels + 17)), sizeof(float));
    posenc_error error = {0, ""};
    (void)state;
    assert_non_null(sums);
    p.params.key_counts = &last;
    p.params.window_left = p.params.keep = 0;
    posenc_tensor_contiguous(&state_of_span, sums, POSENC_F32, 1, 2, 4, channels + 17);
    fenced_init(&f[0], &p.k);
    fenced_init(&f[1], &p.v);
    drop_unseen(f, 0, POSENC_ATTENTION_SPAN, PAGES * PAGE_SLOTS);
    test_ok(posenc_attention_cached_spans(&p.params, &p.q, &f[0].cache, &f[1].cache, 1,
                                          &state_of_span, &error),
            &error);
    assert_int_equal(posenc_attention_cached_spans(&p.params, &p.q, &f[0].cache, &f[1].cache, 0,
                                                   &state_of_span, &error),
                     POSENC_ERROR_POSITION);
    for (int m = 0; m < 2; m++)
        munmap(f[m].map, PAGES * f[m].page);
    free(sums);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_has_the_bits_of_plain_memory),
        cmocka_unit_test(arrays_go_by_slot),
        cmocka_unit_test(any_options_have_the_bits_of_plain_memory),
        cmocka_unit_test(decoding_has_the_bits_of_plain_memory),
        cmocka_unit_test(spans_over_caches_join_to_the_whole),
        cmocka_unit_test(decoding_over_a_ring_is_the_prefill),
        cmocka_unit_test(keep_is_a_bias_of_minus_infinity),
        cmocka_unit_test(unseen_pages_are_never_touched),
        cmocka_unit_test(spans_need_their_own_pages_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
