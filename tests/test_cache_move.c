/* SPDX-License-Identifier: MIT */
/* Cached keys moved by deltas: bits against rows and rotation in steps, for every kind of cache. */
#include "cache_store.h"
#include "support/half.h"

enum { KEYS = 100, CHANNELS = 96, AXES = 3, SETS = 2, LENGTH = 9000 };

/* The schemes that rows of a delta come from in different ways. */
enum scheme {
    PLAIN, YARN, DYNAMIC, LONGROPE, FACTORS, MULTIAXIS,
    HF_YARN, HF_DYNAMIC, VLLM_FACTORS, GGML_YARN, SCHEMES
};

static double divisors[2][CHANNELS / 2];
static const double linear_factors[SETS] = {2, 6};
static int32_t axis_of_pair[CHANNELS / 2];

static int is_exact(enum scheme scheme)
{
    return scheme <= MULTIAXIS;
}

static int has_sets(enum scheme scheme)
{
    return scheme == FACTORS || scheme == VLLM_FACTORS;
}

static void add_scaling(posenc_rope_params *p, enum scheme scheme)
{
    p->original_max_position = 4096;
    p->factor = 4;
    if (scheme == YARN || scheme == HF_YARN || scheme == GGML_YARN)
        p->scaling = POSENC_SCALING_YARN;
    if (scheme == DYNAMIC || scheme == HF_DYNAMIC)
        p->scaling = POSENC_SCALING_DYNAMIC_NTK;
    if (scheme == LONGROPE) {
        p->scaling = POSENC_SCALING_LONGROPE;
        p->short_factors = divisors[0];
        p->long_factors = divisors[1];
    }
    if (has_sets(scheme)) {
        p->scaling = POSENC_SCALING_LINEAR;
        p->factors = linear_factors;
        p->num_factors = SETS;
    }
    if (scheme == MULTIAXIS) {
        p->axes = AXES;
        p->axis_of_pair = axis_of_pair;
    }
    if (scheme == HF_YARN || scheme == HF_DYNAMIC)
        p->recipe = POSENC_RECIPE_HF_F32;
    if (scheme == VLLM_FACTORS)
        p->recipe = POSENC_RECIPE_VLLM;
    if (scheme == GGML_YARN)
        p->recipe = POSENC_RECIPE_GGML;
}

/* A plan for heads of `channels` or for windows that are as wide as them. */
static posenc_rope_params any_params(struct test_random *random, enum scheme scheme,
                                     int32_t channels)
{
    int32_t width = 2 * (1 + (int32_t)test_below(random, (uint32_t)channels / 2));
    if (scheme == HF_DYNAMIC && width == 2) width = 4; /* transformers divides by r - 2 */
    const int alone = test_below(random, 4) == 0;
    posenc_rope_params p = test_params(POSENC_ADJACENT + (int32_t)test_below(random, 2), channels,
                                       alone ? channels : width);
    p.out_layout = test_below(random, 2) ? POSENC_ADJACENT + (int32_t)test_below(random, 2) : 0;
    p.rotary_offset = alone ? 8 : (int32_t)test_below(random, (uint32_t)(channels - width) + 1);
    p.head_dim += alone ? 16 : 0;
    p.max_position = 100; /* no concern of deltas */
    add_scaling(&p, scheme);
    for (int32_t i = 0; i < CHANNELS / 2; i++) {
        divisors[0][i] = 1 + i / 64.0;
        divisors[1][i] = 2 + i / 8.0;
        axis_of_pair[i] = (int32_t)test_below(random, AXES);
    }
    return p;
}

/* Plans whose rows are what a delta's should be: frequencies alone, one for each set. */
static void unit_plans(const posenc_plan *plan, const posenc_rope_params *p,
                       posenc_plan *unit[SETS])
{
    double inv_freq[CHANNELS / 2];
    posenc_error error = {0, ""};
    for (int32_t n = 0; n < SETS; n++) {
        posenc_rope_params u = test_params(p->out_layout ? p->out_layout : p->layout, p->head_dim,
                                           p->rotary_dim);
        u.rotary_offset = p->rotary_offset;
        u.axes = p->axes;
        u.axis_of_pair = p->axis_of_pair;
        u.frequency_source = POSENC_FREQUENCIES_INVERSE;
        u.frequencies = inv_freq;
        test_ok(posenc_plan_inv_freq_at(plan, LENGTH, p->factors ? n : 0, inv_freq,
                                        (size_t)p->rotary_dim / 2, NULL, &error), &error);
        unit[n] = test_plan(&u);
    }
}

/* Deltas of all kinds, and the same as numbers. */
struct deltas {
    posenc_positions positions;
    union { int32_t i32[AXES][STORE_SEQUENCES][KEYS]; int64_t i64[AXES][STORE_SEQUENCES][KEYS];
            double f64[AXES][STORE_SEQUENCES][KEYS]; } ids;
    double value[AXES][STORE_SEQUENCES][KEYS];
    int32_t sets[STORE_SEQUENCES][KEYS];
};

static void put_id(struct deltas *d, int a, int b, int t)
{
    double *value = &d->value[a][b][t];
    if (d->positions.dtype == POSENC_I32) d->ids.i32[a][b][t] = (int32_t)(*value = (int64_t)*value);
    if (d->positions.dtype == POSENC_I64) d->ids.i64[a][b][t] = (int64_t)(*value = (int64_t)*value);
    if (d->positions.dtype == POSENC_F64) d->ids.f64[a][b][t] = *value;
}

static void any_ids(struct deltas *d, struct test_random *random, int axes, int one)
{
    for (int b = 0; b < STORE_SEQUENCES; b++)
        for (int t = 0; t < KEYS; t++) {
            const int still = test_below(random, 4) == 0;
            for (int a = 0; a < AXES; a++) {
                const int from = axes > 1 ? a : 0;
                double value = (double)test_unit(random) * (test_below(random, 2) ? 40 : 1e6);
                d->value[a][b][t] = still || test_below(random, 8) == 0 ? 0 : value;
                if (one && t) d->value[a][b][t] = d->value[a][b][0];
                if (from != a) d->value[a][b][t] = d->value[0][b][t];
                put_id(d, a, b, t);
            }
            d->sets[b][t] = one && t ? d->sets[b][0] : (int32_t)test_below(random, SETS);
        }
}

static void any_deltas(struct deltas *d, struct test_random *random, enum scheme scheme)
{
    const int axes = scheme == MULTIAXIS && test_below(random, 4) ? AXES : 1;
    const int one = test_below(random, 3) == 0;
    static const int32_t dtypes[3] = {POSENC_I32, POSENC_I64, POSENC_F64};
    posenc_positions_start(&d->positions, 3 - (int64_t)test_below(random, 40));
    posenc_positions *p = &d->positions;
    p->length = LENGTH;
    if (axes > 1 || test_below(random, 4)) {
        p->kind = POSENC_POSITIONS_IDS;
        p->dtype = dtypes[test_below(random, is_exact(scheme) ? 3 : 2)];
        p->ids = &d->ids;
        p->axes = axes;
        p->axis_stride = STORE_SEQUENCES * KEYS;
        p->stride[0] = KEYS;
        p->stride[1] = !one;
    }
    if (has_sets(scheme)) {
        p->sets = d->sets[0];
        p->set_stride[0] = KEYS;
        p->set_stride[1] = !one;
    }
    any_ids(d, random, axes, one);
    for (int a = 0; p->kind == POSENC_POSITIONS_START && a < AXES; a++)
        for (int b = 0; b < STORE_SEQUENCES; b++)
            for (int t = 0; t < KEYS; t++)
                d->value[a][b][t] = (double)(p->start + t);
}

/* One key by the plain way: floats, a row, a rotation, one rounding. */
static void expect_key(const struct store *s, posenc_plan *const unit[SETS],
                       const posenc_rope_params *p, const struct deltas *d, int64_t sequence, int b,
                       int t, int64_t key)
{
    float row[CHANNELS], heads[3 * CHANNELS];
    double at[AXES];
    posenc_tensor rows, x;
    posenc_error error = {0, ""};
    posenc_positions positions = {.struct_size = sizeof positions, .kind = POSENC_POSITIONS_IDS,
                                  .dtype = POSENC_F64, .ids = at, .axes = p->axes,
                                  .axis_stride = 1};
    int still = 1;
    for (int a = 0; a < AXES; a++) {
        at[a] = d->value[a][b][t];
        if (at[a] != 0 && a < (p->axes > 1 ? p->axes : 1)) still = 0;
    }
    if (still) return;
    const posenc_plan *plan = unit[p->factors ? d->sets[b][t] : 0];
    posenc_tensor_contiguous(&rows, row, POSENC_F32, 1, 1, 1, p->rotary_dim);
    posenc_tensor_contiguous(&x, heads, POSENC_F32, 1, 1, s->form.heads, s->form.channels);
    for (int64_t h = 0; h < s->form.heads; h++)
        for (int64_t c = 0; c < s->form.channels; c++)
            heads[h * s->form.channels + c] = store_value(s, sequence, key, h, c);
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
    test_ok(posenc_rotate(plan, POSENC_FORWARD, &rows, &x, NULL, NULL, NULL, &error), &error);
    const int64_t window = s->form.channels == p->rotary_dim ? 0 : p->rotary_offset;
    for (int64_t h = 0; h < s->form.heads; h++)
        store_part(s, sequence, key, h, heads + h * s->form.channels, window,
                   window + p->rotary_dim);
}

static posenc_plan *plan_for(posenc_rope_params p, enum scheme scheme, struct test_random *random)
{
    int32_t isas[TEST_ISAS];
    const size_t n = test_isas(isas);
    p.isa = test_below(random, 2) ? POSENC_ISA_DEFAULT : isas[test_below(random, (uint32_t)n)];
    if (scheme == VLLM_FACTORS) p.max_position = 0;
    return test_plan(&p);
}

/* The keys of one call: some that a ring holds, any others. */
struct range { int64_t sequence, first, count; };

static struct range any_range(const struct store *s, struct test_random *random)
{
    const int late = test_below(random, 3) != 0;
    int64_t low, high, other_low, other_high;
    struct range r = {(int64_t)test_below(random, (uint32_t)s->form.sequences + 1) - 1, 0, 0};
    store_range(s, r.sequence < 0 ? 0 : r.sequence, late, &low, &high);
    for (int64_t i = 0; r.sequence < 0 && i < s->form.sequences; i++) {
        store_range(s, i, late, &other_low, &other_high);
        low = other_low > low ? other_low : low;
        high = other_high < high ? other_high : high;
    }
    if (s->form.kind == POSENC_CACHE_RING && s->form.more == 0) {
        low = 0;
        high = s->form.keys;
    }
    if (high <= low) return (struct range){r.sequence, low, 0};
    r.first = low + test_below(random, (uint32_t)(high - low));
    r.count = test_below(random, (uint32_t)(high - r.first) + 1);
    return r;
}

/* The same keys expected in one memory and moved in its copy: the whole memory is compared. */
static void one_case(struct test_random *random, enum scheme scheme)
{
    static struct deltas d;
    const struct store_form form = store_any(random);
    struct store s;
    store_new(&s, &form, random);
    posenc_rope_params p = any_params(random, scheme, (int32_t)form.channels);
    posenc_plan *plan = plan_for(p, scheme, random), *unit[SETS];
    posenc_error error = {0, ""};
    unit_plans(plan, &p, unit);
    any_deltas(&d, random, scheme);
    const struct range r = any_range(&s, random);
    void *before = store_snapshot(&s);
    for (int64_t i = 0; i < form.sequences; i++)
        for (int64_t t = 0; (r.sequence < 0 || r.sequence == i) && t < r.count; t++)
            expect_key(&s, unit, &p, &d, i, r.sequence < 0 ? (int)i : 0, (int)t, r.first + t);
    void *after = store_snapshot(&s);
    store_restore(&s, before);
    test_ok(posenc_cache_move(plan, &d.positions, &s.cache, r.sequence, r.first, r.count, &error),
            &error);
    if (!store_same(&s, after))
        fail_msg("scheme %d, kind %d, dtype %d, order %d, sequence %lld, keys %lld + %lld", scheme,
                 form.kind, form.dtype, form.order, (long long)r.sequence, (long long)r.first,
                 (long long)r.count);
    for (int n = 0; n < SETS; n++) posenc_plan_free(unit[n]);
    posenc_plan_free(plan);
    store_free(&s);
}

static void any_cache_has_the_bits_of_rows_and_rotation(void **state)
{
    struct test_random random = {20};
    (void)state;
    for (int i = 0; i < (test_quick() ? 200 : 2000); i++)
        one_case(&random, (enum scheme)(i % SCHEMES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cache_has_the_bits_of_rows_and_rotation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
