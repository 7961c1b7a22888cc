/* SPDX-License-Identifier: MIT */
/* Tables of the facts that change results: not names, sources, limits or notes. */
#include "compared.h"

int posenc_value_same(const struct posenc_value *a, const struct posenc_value *b)
{
    if (a->kind != b->kind)
        return 0;
    switch (a->kind) {
    case POSENC_VALUE_INTEGER: return a->integer == b->integer;
    case POSENC_VALUE_REAL: return a->real == b->real;
    case POSENC_VALUE_TEXT: return strcmp(a->text, b->text) == 0;
    default: return 1;
    }
}

/* How a member of a struct is stored. */
enum storage { INT32, INT64, DOUBLE, TEXT, SCHEME, LAYOUT, ROPE_TYPE };

struct member {
    const char *key;
    size_t offset;
    enum storage storage;
    uint32_t scalings; /* of a set: bit n = used by POSENC_SCALING n */
};

static const char *const scheme_names[] = {"none",    "rope",    "alibi",     "t5_relative_bias",
                                           "deberta", "learned", "sinusoidal"};
static const char *const rope_types[] = {"default",    "linear",    "llama3",  "yarn",
                                         "ntk",        "ntk_scaled", "ntk_mixed", "dynamic",
                                         "longrope",   "proportional"};

static const char *name_of(const char *const *names, size_t count, int32_t value)
{
    return value >= 0 && (size_t)value < count ? names[value] : "unknown";
}

static struct posenc_value text_value(const char *text)
{
    return (struct posenc_value){.kind = text ? POSENC_VALUE_TEXT : POSENC_VALUE_ABSENT,
                                 .text = text};
}

static struct posenc_value read_member(const void *from, const struct member *member)
{
    const char *at = (const char *)from + member->offset;
    int32_t narrow;
    struct posenc_value value = {.kind = POSENC_VALUE_INTEGER};
    memcpy(&narrow, at, sizeof narrow);
    switch (member->storage) {
    case INT64: memcpy(&value.integer, at, sizeof value.integer); break;
    case DOUBLE:
        value.kind = POSENC_VALUE_REAL;
        memcpy(&value.real, at, sizeof value.real);
        break;
    case TEXT:
        memcpy(&value.text, at, sizeof value.text);
        return text_value(value.text);
    case SCHEME: return text_value(name_of(scheme_names, 7, narrow));
    case LAYOUT: return text_value(narrow == POSENC_ADJACENT ? "adjacent" : "split_half");
    case ROPE_TYPE: return text_value(name_of(rope_types, 10, narrow));
    default: value.integer = narrow; break;
    }
    return value;
}

static const struct member model_members[] = {
    {"scheme", offsetof(posenc_contract_facts, scheme), SCHEME, 0},
    {"num_heads", offsetof(posenc_contract_facts, num_heads), INT64, 0},
    {"num_kv_heads", offsetof(posenc_contract_facts, num_kv_heads), INT64, 0},
    {"head_dim", offsetof(posenc_contract_facts, head_dim), INT64, 0},
    {"num_layers", offsetof(posenc_contract_facts, num_layers), INT64, 0},
    {"softmax_scale", offsetof(posenc_contract_facts, softmax_scale), DOUBLE, 0},
    {"logit_softcap", offsetof(posenc_contract_facts, logit_softcap), DOUBLE, 0},
    {"sliding_window", offsetof(posenc_contract_facts, sliding_window), INT64, 0},
    {"window_sides", offsetof(posenc_contract_facts, window_sides), INT32, 0},
    {"attention_chunk", offsetof(posenc_contract_facts, attention_chunk), INT64, 0},
    {"sink_layers", offsetof(posenc_contract_facts, sink_layers), TEXT, 0},
    {"query_scale.applies_to", offsetof(posenc_contract_facts, query_scale_layers), TEXT, 0},
    {"query_scale.factor", offsetof(posenc_contract_facts, query_scale_factor), DOUBLE, 0},
    {"query_scale.floor", offsetof(posenc_contract_facts, query_scale_floor), INT64, 0},
    {"query_scale.offset", offsetof(posenc_contract_facts, query_scale_offset), INT64, 0},
};

static const struct member alibi_members[] = {
    {"alibi.scaled", offsetof(posenc_contract_alibi, scaled), INT32, 0},
    {"alibi.max_bias", offsetof(posenc_contract_alibi, max_bias), DOUBLE, 0},
    {"alibi.bias", offsetof(posenc_contract_alibi, bias), TEXT, 0},
};

static const struct member t5_members[] = {
    {"t5.num_buckets", offsetof(posenc_contract_t5, num_buckets), INT32, 0},
    {"t5.max_distance", offsetof(posenc_contract_t5, max_distance), INT64, 0},
    {"t5.encoder", offsetof(posenc_contract_t5, encoder), INT32, 0},
    {"t5.decoder", offsetof(posenc_contract_t5, decoder), INT32, 0},
    {"t5.per_layer", offsetof(posenc_contract_t5, per_layer), INT32, 0},
};

static const struct member deberta_members[] = {
    {"deberta.position_buckets", offsetof(posenc_contract_deberta, position_buckets), INT32, 0},
    {"deberta.max_relative_positions", offsetof(posenc_contract_deberta, max_relative_positions),
     INT64, 0},
    {"deberta.pos_att_type", offsetof(posenc_contract_deberta, pos_att_type), TEXT, 0},
};

static const struct member learned_members[] = {
    {"learned.dim", offsetof(posenc_contract_learned, dim), INT32, 0},
    {"learned.position_offset", offsetof(posenc_contract_learned, position_offset), INT64, 0},
    {"learned.applies_to", offsetof(posenc_contract_learned, applies_to), TEXT, 0},
};

static const struct member sinusoidal_members[] = {
    {"sinusoidal.dim", offsetof(posenc_contract_sinusoidal, dim), INT32, 0},
    {"sinusoidal.row_offset", offsetof(posenc_contract_sinusoidal, row_offset), INT64, 0},
    {"sinusoidal.kind", offsetof(posenc_contract_sinusoidal, kind), TEXT, 0},
    {"sinusoidal.freq_divisor", offsetof(posenc_contract_sinusoidal, freq_divisor), TEXT, 0},
    {"sinusoidal.applies_to", offsetof(posenc_contract_sinusoidal, applies_to), TEXT, 0},
};

/* Room for the facts of any scheme. */
union answer {
    uint32_t struct_size;
    posenc_contract_facts facts;
    posenc_contract_alibi alibi;
    posenc_contract_t5 t5;
    posenc_contract_deberta deberta;
    posenc_contract_learned learned;
    posenc_contract_sinusoidal sinusoidal;
};

/* Each asks one public function; 0 where the model has none of it. */
static int ask(const posenc_contract *contract, int group, union answer *to)
{
    static const uint32_t sizes[] = {sizeof to->facts,   sizeof to->alibi,   sizeof to->t5,
                                     sizeof to->deberta, sizeof to->learned, sizeof to->sinusoidal};
    memset(to, 0, sizeof *to);
    to->struct_size = sizes[group];
    switch (group) {
    case 0: return !posenc_contract_get_facts(contract, &to->facts, NULL);
    case 1: return !posenc_contract_get_alibi(contract, &to->alibi, NULL);
    case 2: return !posenc_contract_get_t5(contract, &to->t5, NULL);
    case 3: return !posenc_contract_get_deberta(contract, &to->deberta, NULL);
    case 4: return !posenc_contract_get_learned(contract, &to->learned, NULL);
    default: return !posenc_contract_get_sinusoidal(contract, &to->sinusoidal, NULL);
    }
}

static const struct {
    const struct member *members;
    int count;
} groups[] = {
    {model_members, sizeof model_members / sizeof model_members[0]},
    {alibi_members, sizeof alibi_members / sizeof alibi_members[0]},
    {t5_members, sizeof t5_members / sizeof t5_members[0]},
    {deberta_members, sizeof deberta_members / sizeof deberta_members[0]},
    {learned_members, sizeof learned_members / sizeof learned_members[0]},
    {sinusoidal_members, sizeof sinusoidal_members / sizeof sinusoidal_members[0]},
};

int posenc_fact(const posenc_contract *contract, int index, const char **key,
                struct posenc_value *value)
{
    size_t group = 0;
    while (group < sizeof groups / sizeof groups[0] && index >= groups[group].count)
        index -= groups[group++].count;
    if (group == sizeof groups / sizeof groups[0])
        return 0;
    union answer answer;
    const struct member *member = &groups[group].members[index];
    *key = member->key;
    *value = (struct posenc_value){.kind = POSENC_VALUE_ABSENT};
    if (ask(contract, (int)group, &answer))
        *value = read_member(&answer, member);
    /* -1 stands for a number that is not there. */
    if ((value->kind == POSENC_VALUE_INTEGER && value->integer == -1) ||
        (value->kind == POSENC_VALUE_REAL && value->real == -1))
        value->kind = POSENC_VALUE_ABSENT;
    return 1;
}

enum {
    ALL = -1,
    SCALED = ~(1 << POSENC_SCALING_NONE),
    LLAMA3 = 1 << POSENC_SCALING_LLAMA3,
    YARN = 1 << POSENC_SCALING_YARN,
    MIXED = 1 << POSENC_SCALING_NTK_MIXED,
    DYNAMIC = 1 << POSENC_SCALING_DYNAMIC_NTK,
    LONGROPE = 1 << POSENC_SCALING_LONGROPE,
    PROPORTIONAL = 1 << POSENC_SCALING_PROPORTIONAL
};

static const struct member set_members[] = {
    {"rope_type", offsetof(posenc_rope_params, scaling), ROPE_TYPE, (uint32_t)ALL},
    {"theta", offsetof(posenc_rope_params, base), DOUBLE, (uint32_t)ALL},
    {"head_dim", offsetof(posenc_rope_params, head_dim), INT32, (uint32_t)ALL},
    {"rotary_dim", offsetof(posenc_rope_params, rotary_dim), INT32, (uint32_t)ALL},
    {"layout", offsetof(posenc_rope_params, layout), LAYOUT, (uint32_t)ALL},
    {"rotary_offset", offsetof(posenc_rope_params, rotary_offset), INT32, (uint32_t)ALL},
    {"factor", offsetof(posenc_rope_params, factor), DOUBLE, (uint32_t)SCALED},
    {"original_max_position", offsetof(posenc_rope_params, original_max_position), DOUBLE,
     LLAMA3 | YARN | DYNAMIC | LONGROPE},
    {"low_freq_factor", offsetof(posenc_rope_params, low_freq_factor), DOUBLE, LLAMA3},
    {"high_freq_factor", offsetof(posenc_rope_params, high_freq_factor), DOUBLE, LLAMA3},
    {"beta_fast", offsetof(posenc_rope_params, beta_fast), DOUBLE, YARN},
    {"beta_slow", offsetof(posenc_rope_params, beta_slow), DOUBLE, YARN},
    {"truncate", offsetof(posenc_rope_params, truncate), INT32, YARN},
    {"yarn_blend", offsetof(posenc_rope_params, yarn_blend), INT32, YARN},
    {"mixed_exponent", offsetof(posenc_rope_params, mixed_exponent), DOUBLE, MIXED},
    {"rotating_pairs", offsetof(posenc_rope_params, rotating_pairs), INT32, PROPORTIONAL},
    {"length", offsetof(posenc_rope_params, length), INT64, DYNAMIC},
    {"frequency_source", offsetof(posenc_rope_params, frequency_source), INT32, (uint32_t)ALL},
    {"mrope.axes", offsetof(posenc_rope_params, axes), INT32, (uint32_t)ALL},
    {"recipe", offsetof(posenc_rope_params, recipe), INT32, (uint32_t)ALL},
    {"row_dtype", offsetof(posenc_rope_params, row_dtype), INT32, (uint32_t)ALL},
    {"xpos", offsetof(posenc_rope_params, xpos), INT32, (uint32_t)ALL},
    {"xpos_scale_base", offsetof(posenc_rope_params, xpos_scale_base), DOUBLE, (uint32_t)ALL},
    {"xpos_center", offsetof(posenc_rope_params, xpos_center), INT64, (uint32_t)ALL},
};

enum { SET_MEMBERS = sizeof set_members / sizeof set_members[0] };

int posenc_set_fact(const struct posenc_set *set, int index, const char **key,
                    struct posenc_value *value)
{
    if (index > SET_MEMBERS)
        return 0;
    *value = (struct posenc_value){.kind = POSENC_VALUE_ABSENT};
    if (index == SET_MEMBERS) {
        *key = "attention_factor";
        *value = (struct posenc_value){.kind = POSENC_VALUE_REAL, .real = set->attention_factor};
        return 1;
    }
    const struct member *member = &set_members[index];
    *key = member->key;
    if (member->scalings >> (uint32_t)set->params.scaling & 1)
        *value = read_member(&set->params, member);
    if (member->storage == INT64 && value->integer == 0)
        value->kind = POSENC_VALUE_ABSENT; /* no length is fixed, no center pinned */
    return 1;
}

/* Of LongRoPE's two lists the one that a set with a fixed length cannot reach does not count. */
static int is_out_of_reach(const posenc_rope_params *p, int index)
{
    if (p->scaling != POSENC_SCALING_LONGROPE || p->length < 1)
        return 0;
    int is_long = (double)p->length > p->original_max_position;
    return index == (is_long ? 3 : 4);
}

static const char *const array_keys[] = {"mrope.axis_of_pair", "frequencies", "factors",
                                         "short_factors", "long_factors"};

static const double *reals_of(const posenc_rope_params *p, int index)
{
    const double *const arrays[] = {NULL, p->frequencies, p->factors, p->short_factors,
                                    p->long_factors};
    return arrays[index];
}

int posenc_set_array(const struct posenc_set *set, int index, const char **key, int32_t *count)
{
    if (index >= (int)(sizeof array_keys / sizeof array_keys[0]))
        return 0;
    const posenc_rope_params *p = &set->params;
    int given = index == 0 ? p->axis_of_pair != NULL
                           : reals_of(p, index) != NULL && !is_out_of_reach(p, index);
    *key = array_keys[index];
    *count = !given ? 0 : index == 2 ? p->num_factors : p->rotary_dim / 2;
    return 1;
}

double posenc_set_element(const struct posenc_set *set, int index, int32_t i)
{
    return index == 0 ? (double)set->params.axis_of_pair[i] : reals_of(&set->params, index)[i];
}
