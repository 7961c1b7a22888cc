/* SPDX-License-Identifier: MIT */
/* Cached keys moved by deltas: bits against rows and rotation in steps, for every kind of cache. */
#include "cache_schemes.h"
#include "cache_store.h"
#include "support/half.h"

enum { KEYS = 100 };

/* Plans whose rows are what a delta's should be: frequencies alone, one for each set. */
static void unit_plans(const posenc_plan *plan, const posenc_rope_params *p,
                       posenc_plan *unit[SCHEME_SETS])
{
    double inv_freq[SCHEME_CHANNELS / 2];
    posenc_error error = {0, ""};
    for (int32_t n = 0; n < SCHEME_SETS; n++) {
        posenc_rope_params u = test_params(p->out_layout ? p->out_layout : p->layout, p->head_dim,
                                           p->rotary_dim);
        u.rotary_offset = p->rotary_offset;
        u.axes = p->axes;
        u.axis_of_pair = p->axis_of_pair;
        u.frequency_source = POSENC_FREQUENCIES_INVERSE;
        u.frequencies = inv_freq;
        test_ok(posenc_plan_inv_freq_at(plan, SCHEME_LENGTH, p->factors ? n : 0, inv_freq,
                                        (size_t)p->rotary_dim / 2, NULL, &error), &error);
        unit[n] = test_plan(&u);
    }
}

/* Deltas of all kinds, and the same as numbers. */
struct deltas {
    posenc_positions positions;
    union {
        int32_t i32[SCHEME_AXES][STORE_SEQUENCES][KEYS];
        int64_t i64[SCHEME_AXES][STORE_SEQUENCES][KEYS];
        double f64[SCHEME_AXES][STORE_SEQUENCES][KEYS];
    } ids;
    double value[SCHEME_AXES][STORE_SEQUENCES][KEYS];
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
            for (int a = 0; a < SCHEME_AXES; a++) {
                const int from = axes > 1 ? a : 0;
                double value = (double)test_unit(random) * (test_below(random, 2) ? 40 : 1e6);
                d->value[a][b][t] = still || test_below(random, 8) == 0 ? 0 : value;
                if (one && t) d->value[a][b][t] = d->value[a][b][0];
                if (from != a) d->value[a][b][t] = d->value[0][b][t];
                put_id(d, a, b, t);
            }
            d->sets[b][t] = one && t ? d->sets[b][0] : (int32_t)test_below(random, SCHEME_SETS);
        }
}

static void any_deltas(struct deltas *d, struct test_random *random, enum scheme scheme)
{
    const int axes = scheme == MULTIAXIS && test_below(random, 4) ? SCHEME_AXES : 1;
    const int one = test_below(random, 3) == 0;
    static const int32_t dtypes[3] = {POSENC_I32, POSENC_I64, POSENC_F64};
    posenc_positions_start(&d->positions, 0);
    posenc_positions *p = &d->positions;
    p->length = SCHEME_LENGTH;
    p->kind = POSENC_POSITIONS_IDS;
    p->dtype = dtypes[test_below(random, scheme_is_exact(scheme) ? 3 : 2)];
    p->ids = &d->ids;
    p->axes = axes;
    p->axis_stride = STORE_SEQUENCES * KEYS;
    p->stride[0] = KEYS;
    p->stride[1] = !one;
    if (scheme_has_sets(scheme)) {
        p->sets = d->sets[0];
        p->set_stride[0] = KEYS;
        p->set_stride[1] = !one;
    }
    any_ids(d, random, axes, one);
}

/* One key by the plain way: floats, a row, a rotation, one rounding. */
static void expect_key(const struct store *s, posenc_plan *const unit[SCHEME_SETS],
                       const posenc_rope_params *p, const struct deltas *d, int64_t sequence, int b,
                       int t, int64_t key)
{
    float row[SCHEME_CHANNELS], heads[3 * SCHEME_CHANNELS];
    double at[SCHEME_AXES];
    posenc_tensor rows, x;
    posenc_error error = {0, ""};
    posenc_positions positions = {.struct_size = sizeof positions, .kind = POSENC_POSITIONS_IDS,
                                  .dtype = POSENC_F64, .ids = at, .axes = p->axes,
                                  .axis_stride = 1};
    int still = 1;
    for (int a = 0; a < SCHEME_AXES; a++) {
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

/* The same keys expected in one memory and moved in its copy: the whole memory is compared. */
static void one_case(struct test_random *random, enum scheme scheme)
{
    static struct deltas d;
    const struct store_form form = store_any(random);
    struct store s;
    store_new(&s, &form, random);
    posenc_rope_params p = scheme_params(random, scheme, (int32_t)form.channels);
    posenc_plan *plan = scheme_plan(p, scheme, random), *unit[SCHEME_SETS];
    posenc_error error = {0, ""};
    unit_plans(plan, &p, unit);
    any_deltas(&d, random, scheme);
    const struct store_keys r = store_any_keys(&s, random);
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
    for (int n = 0; n < SCHEME_SETS; n++) posenc_plan_free(unit[n]);
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
