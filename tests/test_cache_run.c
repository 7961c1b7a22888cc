/* SPDX-License-Identifier: MIT */
/* Appending against the attention modules of transformers as they ran (run_cache.py). */
#include "cache_run.h"
#include "support/half.h"
#include "support/numbers.h"
#include "support/test.h"

#include <math.h>

enum { CASES = 33 };

static struct cache_run run;
static double expected[CACHE_RUN_MOST];

static int64_t count_of(void)
{
    return (int64_t)(run.set.b * run.set.t * run.set.h * run.set.d);
}

/* Appends the whole of src to a plain tensor of that type. */
static int32_t append(void *out, int32_t dtype, posenc_error *error)
{
    const struct cache_settings *s = &run.set;
    posenc_tensor to;
    posenc_cache cache;
    posenc_tensor_contiguous(&to, out, dtype, (int64_t)s->b, (int64_t)s->t, (int64_t)s->h,
                             (int64_t)s->d);
    posenc_cache_plain(&cache, &to);
    return posenc_cache_append(&run.params, &run.src, &cache, error);
}

/* The largest distance from what ran, by the bound; the file has ten digits. */
static double worst(const float *out)
{
    double most = 0;
    for (int64_t i = 0; i < count_of(); i++) {
        double error = fabs((double)out[i] - expected[i]);
        double ratio = error / (run.bound[i] + 1e-9 * fabs(expected[i]) + 1e-12);
        most = isnan(ratio) ? (double)INFINITY : fmax(most, ratio);
    }
    return most;
}

static void load(const char *id)
{
    cache_run_load(&run, id, "append", 1);
    assert_int_equal(test_numbers("cache_run.txt", id, "out", expected, CACHE_RUN_MOST),
                     count_of());
}

static void models_are_met(void **state)
{
    static float out[CACHE_RUN_MOST];
    static uint16_t narrow[CACHE_RUN_MOST];
    size_t n = 0;
    char id[64];
    (void)state;
    for (; test_number_id("cache_run.txt", "append", n, id, sizeof(id)); n++) {
        posenc_error error = {0, ""};
        load(id);
        assert_int_equal(cache_run_make(&run, POSENC_RECIPE_HF_F32), POSENC_OK);
        test_ok(append(out, POSENC_F32, &error), &error);
        double ratio = worst(out);
        if (!(ratio <= 1))
            fail_msg("%s: %g times the bound", id, ratio);
        for (int32_t dtype = POSENC_F16; dtype <= POSENC_BF16; dtype++) {
            test_ok(append(narrow, dtype, &error), &error);
            for (int64_t i = 0; i < count_of(); i++)
                if (narrow[i] != test_narrow((double)out[i], dtype))
                    fail_msg("%s: number %lld was not rounded once", id, (long long)i);
        }
        cache_run_free(&run);
    }
    assert_int_equal(n, CASES);
}

/* A setting and what it becomes to be wrong; `relative`: is multiplied by that. */
struct option {
    const char *name;
    size_t offset;
    double wrong;
    int relative;
};

#define OPTION(name, wrong, relative) \
    {#name, offsetof(struct cache_settings, name), wrong, relative}

static const struct option options[] = {
    OPTION(norm, 0, 0),          OPTION(norm, -1, 0), /* the other norm */
    OPTION(after, 0, 0),         OPTION(eps, 0, 0),        OPTION(eps, 2, 1),
    OPTION(weight, 0, 0),        OPTION(plus_one, 0, 0),   OPTION(scale, 0, 0),
    OPTION(layout, 0, 0),        OPTION(layout, -1, 0), /* the other layout */
    OPTION(out_layout, 0, 0),    OPTION(rotary_offset, 0, 0),
    OPTION(base, 1.5, 1),        OPTION(scaling, 0, 0),    OPTION(factor, 2, 1),
    OPTION(attention_factor, 1, 0), OPTION(original, 0.015625, 1), OPTION(mscale, 2, 1),
    OPTION(mscale_all_dim, 2, 1), OPTION(low, 0.5, 1),     OPTION(high, 0.5, 1),
    OPTION(length, 0, 0), /* beyond the switch, or before it */
};

/* 0 where the option says nothing: one head is a projection, unscaled rows have no factor, and
 * turning whole heads leaves their length, so that without a weight a norm fits on both sides. */
static int counts_here(const struct option *option, double value)
{
    if (option->offset == offsetof(struct cache_settings, base))
        return run.set.layout > 0;
    if (option->offset == offsetof(struct cache_settings, after))
        return run.set.weight > 0 && value > 0;
    if (option->offset == offsetof(struct cache_settings, attention_factor))
        return run.set.scaling == POSENC_SCALING_YARN ||
               run.set.scaling == POSENC_SCALING_LONGROPE;
    if (option->offset == offsetof(struct cache_settings, norm) && option->wrong < 0)
        return run.set.h > 1;
    return value != 0;
}

/* What goes with a setting goes without it too, or the call would be refused. */
static void drop_dependents(void)
{
    struct cache_settings *s = &run.set;
    if (s->norm == 0)
        s->after = s->eps = s->weight = 0;
    if (s->weight == 0)
        s->plus_one = 0;
    if (s->layout == 0)
        s->after = 0;
}

/* Runs the case with the settings as they are. */
static int is_met(void)
{
    static float out[CACHE_RUN_MOST];
    posenc_error error = {0, ""};
    assert_int_equal(cache_run_make(&run, POSENC_RECIPE_HF_F32), POSENC_OK);
    test_ok(append(out, POSENC_F32, &error), &error);
    double ratio = worst(out);
    cache_run_free(&run);
    return ratio <= 1;
}

/* 1 if the case came out right all the same. */
static int met_with(const char *id, const struct option *option)
{
    double value;
    load(id);
    char *field = (char *)&run.set + option->offset;
    memcpy(&value, field, sizeof(value));
    double wrong = option->relative ? value * option->wrong : option->wrong;
    if (option->wrong < 0)
        wrong = value > 0 ? 3 - value : value;
    if (option->offset == offsetof(struct cache_settings, length) && value > 0)
        wrong = value > run.set.original ? run.set.original : run.set.original + 1;
    if (!counts_here(option, value) || wrong == value)
        return 0;
    memcpy(field, &wrong, sizeof(wrong));
    drop_dependents();
    return is_met();
}

static void flip(const char *id, size_t offset, const char *what)
{
    double value;
    load(id);
    memcpy(&value, (char *)&run.set + offset, sizeof(value));
    value = 1 - value;
    memcpy((char *)&run.set + offset, &value, sizeof(value));
    if (is_met())
        fail_msg("%s: also met with %s %g", id, what, value);
}

/* Each setting counts in every case that has it: without it the model is not met. */
static void every_option_counts(void **state)
{
    char id[64];
    (void)state;
    for (size_t n = 0; test_number_id("cache_run.txt", "append", n, id, sizeof(id)); n++) {
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
            if (met_with(id, &options[i]))
                fail_msg("%s: also met with another %s", id, options[i].name);
        load(id);
        double weight = run.set.weight, rotated = run.set.layout;
        if (weight > 0)
            flip(id, offsetof(struct cache_settings, plus_one), "weight_plus_one");
        if (weight > 0 && rotated > 0)
            flip(id, offsetof(struct cache_settings, after), "norm_after");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_are_met),
                                       cmocka_unit_test(every_option_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
