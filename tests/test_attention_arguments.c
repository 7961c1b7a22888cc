/* SPDX-License-Identifier: MIT */
/* Attention: every option is checked whole, and nothing is written when one is refused. */
#include <posenc/posenc.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, TQ = 5, TK = 7, HQ = 6, HK = 3, D = 8, E = 8, R = 4, SPANS = 2, N = 2 };
enum { ARGUMENT = POSENC_ERROR_ARGUMENT, POSITION = POSENC_ERROR_POSITION,
       OVERLAP = POSENC_ERROR_OVERLAP };

/* All memory of a call, and a good call of every option that can stand beside the others. */
struct call {
    posenc_attention_params params;
    posenc_alibi_params alibi;
    posenc_t5_params t5;
    posenc_attention_deberta deberta;
    posenc_tensor q, k, v, out, state, lse, weights, bias, temperature, table, position_keys,
        query_rows, key_rows, output_rows;
    int64_t by_sequence[B + 1], query_starts[B + 1], key_starts[B + 1], weight_rows[N];
    int64_t key_positions[B * TK];
    double slopes[HQ];
    float sinks[HQ];
    float q_data[B * TQ * HQ * D], k_data[B * TK * HK * D], v_data[B * TK * HK * E];
    _Alignas(8) float out_data[B * TQ * HQ * E];
    float state_data[B * TQ * HQ * SPANS * (E + 17)];
    _Alignas(8) float lse_data[B * TQ * HQ];
    _Alignas(8) float weights_data[B * N * HQ * TK];
    float bias_data[B * TQ * HQ * TK];
    float temperature_data[B * TQ], table_data[32 * HQ], position_data[8 * HQ * D];
    float row_data[B * TK * R];
    _Alignas(8) char workspace[256];
};

static posenc_plan *plan;

static int make_plan(void **state)
{
    posenc_rope_params rope;
    (void)state;
    posenc_rope_params_init(&rope);
    rope.layout = POSENC_ADJACENT;
    rope.head_dim = D;
    rope.rotary_dim = R;
    rope.base = 10000;
    return posenc_plan_create(&plan, &rope, NULL);
}

static int free_plan(void **state)
{
    (void)state;
    posenc_plan_free(plan);
    return 0;
}

static void good_call(struct call *c)
{
    memset(c, 0, sizeof(*c));
    posenc_attention_params *p = &c->params;
    posenc_attention_params_init(p);
    posenc_alibi_params_init(&c->alibi);
    posenc_t5_params_init(&c->t5);
    c->alibi.form = POSENC_ALIBI_KEY;
    c->alibi.heads = HQ;
    c->deberta = (posenc_attention_deberta){sizeof(c->deberta), 4, 16, &c->position_keys, NULL};
    posenc_tensor_contiguous(&c->q, c->q_data, POSENC_F32, B, TQ, HQ, D);
    posenc_tensor_contiguous(&c->k, c->k_data, POSENC_F32, B, TK, HK, D);
    posenc_tensor_contiguous(&c->v, c->v_data, POSENC_F32, B, TK, HK, E);
    posenc_tensor_contiguous(&c->out, c->out_data, POSENC_F32, B, TQ, HQ, E);
    posenc_tensor_contiguous(&c->state, c->state_data, POSENC_F32, B, TQ, HQ, SPANS * (E + 17));
    posenc_tensor_contiguous(&c->lse, c->lse_data, POSENC_F32, B, TQ, HQ, 1);
    posenc_tensor_contiguous(&c->weights, c->weights_data, POSENC_F32, B, N, HQ, TK);
    posenc_tensor_contiguous(&c->bias, c->bias_data, POSENC_F32, B, TQ, HQ, TK);
    posenc_tensor_contiguous(&c->temperature, c->temperature_data, POSENC_F32, B, TQ, 1, 1);
    posenc_tensor_contiguous(&c->table, c->table_data, POSENC_F32, 1, 32, 1, HQ);
    posenc_tensor_contiguous(&c->position_keys, c->position_data, POSENC_F32, 1, 8, HQ, D);
    posenc_tensor_contiguous(&c->query_rows, c->row_data, POSENC_F32, B, TQ, 1, R);
    posenc_tensor_contiguous(&c->key_rows, c->row_data, POSENC_F32, B, TK, 1, R);
    posenc_tensor_contiguous(&c->output_rows, c->row_data, POSENC_F32, B, TQ, 1, R);
    p->key_counts = c->by_sequence;
    p->sinks = c->sinks;
    p->bias = &c->bias;
    p->temperature = &c->temperature;
    p->alibi = &c->alibi;
    c->alibi.key_positions = c->key_positions;
    p->rope = plan;
    p->query_rows = &c->query_rows;
    p->key_rows = &c->key_rows;
    p->output_rows = &c->output_rows;
    p->lse = &c->lse;
    p->weights = &c->weights;
    p->weight_rows = c->weight_rows;
    p->workspace = c->workspace;
    p->workspace_size = sizeof(c->workspace);
}

static void use_t5(struct call *c)
{
    c->params.alibi = NULL;
    c->params.t5 = &c->t5;
    c->params.t5_table = &c->table;
}

static void use_deberta(struct call *c)
{
    c->params.alibi = NULL;
    c->params.deberta = &c->deberta;
}

/* Both sequences in one batch row. */
static void pack(struct call *c)
{
    posenc_tensor *all[] = {&c->q, &c->k, &c->v, &c->out, &c->lse, &c->weights, &c->bias,
                            &c->temperature, &c->query_rows, &c->key_rows, &c->output_rows};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        all[i]->shape[0] = 1;
    c->params.sequences = B;
    c->params.query_starts = c->query_starts;
    c->params.key_starts = c->key_starts;
    c->query_starts[1] = 2;
    c->query_starts[B] = TQ;
    c->key_starts[1] = 3;
    c->key_starts[B] = TK;
}

static void assert_status(struct call *c, int32_t status, const char *text)
{
    static struct call before;
    posenc_error error = {0};
    memcpy(&before, c, sizeof(before));
    assert_int_equal(posenc_attention(&c->params, &c->q, &c->k, &c->v, &c->out, &error), status);
    if (status && (error.code != status || !strstr(error.text, text)))
        fail_msg("wanted \"%s\", got %d \"%s\"", text, (int)error.code, error.text);
    if (status)
        assert_memory_equal(&before, c, sizeof(before));
}

static void good_calls_are_taken(void **state)
{
    struct call *c = malloc(sizeof(*c));
    (void)state;
    good_call(c);
    assert_status(c, POSENC_OK, "");
    use_t5(c);
    assert_status(c, POSENC_OK, "");
    good_call(c);
    use_deberta(c);
    assert_status(c, POSENC_OK, "");
    good_call(c);
    c->alibi.key_positions = NULL;
    pack(c);
    assert_status(c, POSENC_OK, "");
    free(c);
}

#define AT(field) offsetof(struct call, field), sizeof(((struct call *)0)->field)

enum { PLAIN = 0, T5, DEBERTA, PACKED };

struct fault {
    size_t offset, size;
    int32_t status;
    const char *text;
    int use;
    int64_t value;
};

static const struct fault faults[] = {
    {AT(params.align), ARGUMENT, "params.align is 3", 0, 3},
    {AT(params.head_map), ARGUMENT, "params.head_map is -1", 0, -1},
    {AT(params.window_left), ARGUMENT, "params.window_left is -1", 0, -1},
    {AT(params.window_right), ARGUMENT, "params.window_right is -1", 0, -1},
    {AT(params.chunk), ARGUMENT, "params.chunk is -1", 0, -1},
    {AT(params.query_offset), ARGUMENT, "only POSENC_ALIGN_OFFSET (2) reads it", 0, 1},
    {AT(params.first_key), ARGUMENT, "params.first_key is -1", 0, -1},
    {AT(params.first_key), POSITION, "relative terms need all within", 0,
     (INT64_C(1) << 30) + 1},
    {AT(params.sequences), ARGUMENT, "params.sequences is -1", 0, -1},
    {AT(params.sequences), ARGUMENT, "q.shape[0] is 2 with params.sequences 2", 0, 2},
    {AT(params.rotate_from), ARGUMENT, "params.rotate_from is 8", 0, 8},
    {AT(params.rotate_from), ARGUMENT, "params.rotate_from is -1", 0, -1},
    {AT(params.rope), ARGUMENT, "params.rope is NULL with query_rows", 0, 0},
    {AT(params.weight_rows), ARGUMENT, "params.weight_rows is NULL", 0, 0},
    {AT(params.weights), ARGUMENT, "params.weight_rows is given without weights", 0, 0},
    {AT(params.workspace), ARGUMENT, "params.workspace is NULL", 0, 0},
    {AT(by_sequence[1]), ARGUMENT, "params.key_counts[1] is 8: must be 0..7", 0, TK + 1},
    {AT(by_sequence[0]), ARGUMENT, "params.key_counts[0] is -1", 0, -1},
    {AT(weight_rows[1]), ARGUMENT, "params.weight_rows[1] is 5: must be 0..4", 0, TQ},
    {AT(weight_rows[0]), ARGUMENT, "params.weight_rows[0] is -1", 0, -1},
    {AT(alibi.form), ARGUMENT, "params.alibi: params.form is 0", 0, 0},
    {AT(alibi.form), ARGUMENT, "params.alibi: params.key_positions is given with form 1", 0, 1},
    {AT(alibi.causal), ARGUMENT, "params.alibi has query_offset 0, causal 1", 0, 1},
    {AT(alibi.query_offset), ARGUMENT, "params.alibi has query_offset 3", 0, 3},
    {AT(alibi.heads), ARGUMENT, "params.alibi: bias.shape[2] is 6", 0, HQ - 1},
    {AT(key_positions[TK * B - 1]), POSITION, "params.alibi: params.key_positions[13]", 0,
     INT64_C(1) << 31},
    {AT(params.t5), ARGUMENT, "params.t5_table is given without params.t5", T5, 0},
    {AT(params.t5_table), ARGUMENT, "params.t5 is given without params.t5_table", T5, 0},
    {AT(t5.num_buckets), ARGUMENT, "params.t5: params.num_buckets is 3", T5, 3},
    {AT(t5.num_buckets), ARGUMENT, "params.t5_table.shape[1] is 32: must be 64", T5, 64},
    {AT(t5.causal), ARGUMENT, "params.t5 has query_offset 0, causal 1", T5, 1},
    {AT(table.shape[3]), ARGUMENT, "params.t5_table.shape[3] is 5", T5, HQ - 1},
    {AT(deberta.buckets), ARGUMENT, "params.deberta: buckets is 1", DEBERTA, 1},
    {AT(deberta.position_keys), ARGUMENT, "params.deberta has neither", DEBERTA, 0},
    {AT(deberta.struct_size), ARGUMENT, "params.deberta.struct_size is 4", DEBERTA, 4},
    {AT(position_keys.shape[1]), ARGUMENT, "params.deberta.position_keys.shape[1] is 7", DEBERTA,
     7},
    {AT(query_starts[0]), ARGUMENT, "params.query_starts[0] is 1: must be 0", PACKED, 1},
    {AT(query_starts[1]), ARGUMENT, "params.query_starts[1] is 6: must be 0..5", PACKED, 6},
    {AT(query_starts[B]), ARGUMENT, "params.query_starts[2] is 4: must be 5", PACKED, 4},
    {AT(key_starts[1]), ARGUMENT, "params.key_starts[1] is -1", PACKED, -1},
    {AT(params.key_starts), ARGUMENT, "params.key_starts is NULL", PACKED, 0},
    {AT(by_sequence[0]), ARGUMENT, "params.key_counts[0] is 4: must be 0..3", PACKED, 4},
    {AT(params.sequences), ARGUMENT, "params.query_starts is given with sequences 0", PACKED, 0},
    {AT(bias.shape[3]), ARGUMENT, "params.bias.shape[3] is 1: must be 7", 0, 1},
    {AT(bias.shape[1]), ARGUMENT, "params.bias.shape[1] is 2: must be 5 or 1", 0, 2},
    {AT(bias.dtype), ARGUMENT, "params.bias.dtype is 4", 0, POSENC_I32},
    {AT(temperature.dtype), ARGUMENT, "params.temperature.dtype is 2", 0, POSENC_F16},
    {AT(lse.shape[3]), ARGUMENT, "params.lse.shape[3] is 2: must be 1", 0, 2},
    {AT(lse.dtype), ARGUMENT, "params.lse.dtype is 3", 0, POSENC_BF16},
    {AT(weights.shape[3]), ARGUMENT, "params.weights.shape[3] is 6: must be 7", 0, 6},
    {AT(query_rows.shape[3]), ARGUMENT, "params.query_rows.shape[3] is 2: must be 4", 0, 2},
    {AT(key_rows.shape[1]), ARGUMENT, "params.key_rows.shape[1] is 6: must be 7", 0, 6},
    {AT(output_rows.dtype), ARGUMENT, "params.output_rows.dtype is 2", 0, POSENC_F16},
};

static void each_number_is_checked(void **state)
{
    static const struct {
        size_t offset;
        double value;
        const char *text;
    } wrong[] = {
        {offsetof(struct call, params.scale), NAN, "params.scale is nan"},
        {offsetof(struct call, params.multiplier), INFINITY, "params.multiplier is inf"},
        {offsetof(struct call, params.softcap), -1, "params.softcap is -1"},
        {offsetof(struct call, params.softcap), NAN, "params.softcap is nan"},
        {offsetof(struct call, params.softcap), 1e-40, "params.softcap is 1e-40"},
    };
    struct call *c = malloc(sizeof(*c));
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        good_call(c);
        memcpy((char *)c + wrong[i].offset, &wrong[i].value, sizeof(double));
        assert_status(c, ARGUMENT, wrong[i].text);
    }
    good_call(c);
    c->params.scale = 1e30;
    c->params.multiplier = -1e30;
    assert_status(c, ARGUMENT, "params.scale x params.multiplier is -1e+60");
    free(c);
}

static void each_fault_is_refused(void **state)
{
    struct call *c = malloc(sizeof(*c));
    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
        const struct fault *f = &faults[i];
        int32_t narrow = (int32_t)f->value;
        good_call(c);
        if (f->use == T5)
            use_t5(c);
        if (f->use == DEBERTA)
            use_deberta(c);
        if (f->use == PACKED) {
            c->alibi.key_positions = NULL;
            pack(c);
        }
        memcpy((char *)c + f->offset,
               f->size == 4 ? (const void *)&narrow : (const void *)&f->value, f->size);
        assert_status(c, f->status, f->text);
    }
    free(c);
}

static void one_relative_term_at_most(void **state)
{
    struct call *c = malloc(sizeof(*c));
    (void)state;
    good_call(c);
    c->params.deberta = &c->deberta;
    assert_status(c, ARGUMENT, "params.alibi and params.deberta are both given");
    use_t5(c);
    assert_status(c, ARGUMENT, "params.t5 and params.deberta are both given");
    good_call(c);
    use_t5(c);
    c->params.alibi = &c->alibi;
    assert_status(c, ARGUMENT, "params.alibi and params.t5 are both given");
    free(c);
}

/* What is written, against what is read and what else is written. */
static void shared_memory_is_refused(void **state)
{
    struct call *c = malloc(sizeof(*c));
    (void)state;
    const struct {
        size_t pointer;
        void *to;
        const char *text;
    } shared[] = {
        {offsetof(struct call, lse.data), c->out_data, "out and params.lse"},
        {offsetof(struct call, lse.data), c->bias_data, "params.lse and params.bias"},
        {offsetof(struct call, out.data), c->q_data, "out and q"},
        {offsetof(struct call, out.data), c->row_data, "out and params.query_rows"},
        {offsetof(struct call, lse.data), c->temperature_data, "params.lse and params.temperature"},
        {offsetof(struct call, weights.data), c->lse_data, "params.lse and params.weights"},
        {offsetof(struct call, params.sinks), c->lse_data, "params.lse and params.sinks"},
        {offsetof(struct call, params.weight_rows), c->lse_data,
         "params.lse and params.weight_rows"},
        {offsetof(struct call, params.key_counts), c->out_data, "out and params.key_counts"},
        {offsetof(struct call, alibi.key_positions), c->weights_data,
         "params.weights and params.alibi.key_positions"},
        {offsetof(struct call, params.workspace), c->k_data, "k and params.workspace"},
        {offsetof(struct call, params.workspace), c->out_data, "out and params.workspace"},
        {offsetof(struct call, params.sinks), c->workspace, "params.workspace and params.sinks"},
    };
    for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++) {
        good_call(c);
        memcpy((char *)c + shared[i].pointer, &shared[i].to, sizeof(void *));
        assert_status(c, OVERLAP, shared[i].text);
    }
    free(c);
}

/* Plans for which posenc_rotate refuses INVERSE too. */
static void results_turn_back_by_plans_that_can(void **state)
{
    static const double divisors[R / 2] = {1, 1};
    struct call *c = malloc(sizeof(*c));
    posenc_rope_params rope;
    posenc_plan *other = NULL;
    (void)state;
    posenc_rope_params_init(&rope);
    rope.layout = POSENC_ADJACENT;
    rope.head_dim = D;
    rope.rotary_dim = R;
    rope.xpos = POSENC_XPOS_QUERIES;
    assert_int_equal(posenc_plan_create(&other, &rope, NULL), POSENC_OK);
    good_call(c);
    c->params.rope = other;
    assert_status(c, ARGUMENT, "params.output_rows: direction is POSENC_INVERSE");
    c->params.output_rows = NULL;
    assert_status(c, POSENC_OK, "");
    posenc_plan_free(other);
    rope.xpos = POSENC_XPOS_NONE;
    rope.scaling = POSENC_SCALING_LONGROPE;
    rope.original_max_position = 16;
    rope.short_factors = rope.long_factors = divisors;
    rope.short_attention = 1;
    rope.long_attention = 2;
    assert_int_equal(posenc_plan_create(&other, &rope, NULL), POSENC_OK);
    good_call(c);
    c->params.rope = other;
    assert_status(c, ARGUMENT, "attention factor is 1 or 2 by length");
    posenc_plan_free(other);
    free(c);
}

static int32_t spans(struct call *c, int64_t first, posenc_error *error)
{
    return posenc_attention_spans(&c->params, &c->q, &c->k, &c->v, first, &c->state, error);
}

static void spans_and_join_have_their_own_rules(void **state)
{
    struct call *c = malloc(sizeof(*c));
    posenc_error error;
    (void)state;
    good_call(c);
    assert_int_equal(spans(c, 0, &error), ARGUMENT);
    assert_non_null(strstr(error.text, "params.weights is given"));
    c->params.weights = NULL;
    c->params.weight_rows = NULL;
    assert_int_equal(spans(c, 0, &error), ARGUMENT);
    assert_non_null(strstr(error.text, "params.lse is given"));
    c->params.lse = NULL;
    assert_int_equal(spans(c, 0, &error), ARGUMENT);
    assert_non_null(strstr(error.text, "params.output_rows is given"));
    c->params.output_rows = NULL;
    assert_int_equal(spans(c, -1, &error), ARGUMENT);
    assert_int_equal(spans(c, 0, &error), POSENC_OK);
    assert_int_equal(posenc_attention_join(&c->params, &c->state, &c->out, &error), POSENC_OK);
    c->state.shape[3]--;
    assert_int_equal(spans(c, 0, &error), ARGUMENT);
    assert_non_null(strstr(error.text, "state.shape[3] is 49: must be a multiple"));
    assert_int_equal(posenc_attention_join(&c->params, &c->state, &c->out, &error), ARGUMENT);
    good_call(c);
    c->params.weights = NULL;
    c->params.weight_rows = NULL;
    c->state.data = c->out_data;
    c->state.shape[0] = 1;
    assert_int_equal(posenc_attention_join(&c->params, &c->state, &c->out, &error), ARGUMENT);
    c->state.shape[0] = B;
    c->out.data = c->state_data;
    c->state.data = c->state_data;
    assert_int_equal(posenc_attention_join(&c->params, &c->state, &c->out, &error), OVERLAP);
    free(c);
}

static void workspace_takes_only_shapes_that_exist(void **state)
{
    size_t bytes = 1;
    (void)state;
    assert_int_equal(posenc_attention_workspace(1, 8, 8, 128, 128, &bytes, NULL), POSENC_OK);
    assert_int_equal(bytes, 0);
    bytes = 77;
    assert_int_equal(posenc_attention_workspace(-1, 8, 8, 128, 128, &bytes, NULL), ARGUMENT);
    assert_int_equal(posenc_attention_workspace(1, 0, 8, 128, 128, &bytes, NULL), ARGUMENT);
    assert_int_equal(posenc_attention_workspace(1, 8, 9, 128, 128, &bytes, NULL), ARGUMENT);
    assert_int_equal(posenc_attention_workspace(1, 8, 3, 128, 128, &bytes, NULL), ARGUMENT);
    assert_int_equal(posenc_attention_workspace(1, 8, 8, 4097, 128, &bytes, NULL), ARGUMENT);
    assert_int_equal(posenc_attention_workspace(1, 8, 8, 128, 0, &bytes, NULL), ARGUMENT);
    assert_int_equal(posenc_attention_workspace(1, 8, 8, 128, 128, NULL, NULL), ARGUMENT);
    assert_int_equal(bytes, 77);
}

static size_t workspace_of(int64_t queries, int64_t channels, int64_t values)
{
    size_t bytes = 0;
    assert_int_equal(posenc_attention_workspace(queries, 1, 1, channels, values, &bytes, NULL),
                     POSENC_OK);
    return bytes;
}

/* A workspace that a call would not use, or one row that has no room on the stack. */
static void workspace_is_wanted_where_the_stack_is_short(void **state)
{
    (void)state;
    assert_int_equal(workspace_of(0, 4096, 4096), 0);
    assert_int_equal(workspace_of(1, 1024, 1024), 0);
    assert_int_equal(workspace_of(12, 16, 16), 0);
    assert_true(workspace_of(256, 128, 128) > 1 << 19);
    assert_true(workspace_of(1, 4096, 4096) > 1 << 16);
    assert_int_equal(workspace_of(INT64_C(1) << 40, 128, 128), workspace_of(256, 128, 128));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_calls_are_taken),
        cmocka_unit_test(each_number_is_checked),
        cmocka_unit_test(each_fault_is_refused),
        cmocka_unit_test(one_relative_term_at_most),
        cmocka_unit_test(shared_memory_is_refused),
        cmocka_unit_test(results_turn_back_by_plans_that_can),
        cmocka_unit_test(spans_and_join_have_their_own_rules),
        cmocka_unit_test(workspace_takes_only_shapes_that_exist),
        cmocka_unit_test(workspace_is_wanted_where_the_stack_is_short),
    };
    return cmocka_run_group_tests(tests, make_plan, free_plan);
}
