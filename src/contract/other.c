/* SPDX-License-Identifier: MIT */
/* The facts of ALiBi, T5, DeBERTa, learned and sinusoidal positions. */
#include "family.h"
#include "reader.h"

#include <string.h>

static int read_alibi(struct posenc_reader *reader)
{
    posenc_contract_alibi *alibi = &reader->contract->alibi;
    const struct posenc_family *family = reader->family;
    int falcon = family->kv_rule == POSENC_KV_FALCON;
    struct posenc_node config = {0};
    *alibi = (posenc_contract_alibi){.struct_size = sizeof *alibi, .scaled = falcon, .max_bias = 8};
    alibi->bias = family->bias ? family->bias : "slope*key_position";
    int found = posenc_get_object(reader, &reader->text, "attn_config", &config);
    if (found > 0) {
        found = posenc_get_real(reader, &config, "alibi_bias_max", &alibi->max_bias);
    }
    if (found < 0) {
        return -1;
    }
    if (!(alibi->max_bias > 0.0 && alibi->max_bias <= 64.0)) {
        return posenc_refuse(reader, &config, "alibi_bias_max", "must be > 0 and <= 64");
    }
    if (!found) {
        posenc_assume_integer(reader, "alibi_bias_max", 8, "the usual one: no key states it");
    }
    return 0;
}

static int read_t5(struct posenc_reader *reader)
{
    posenc_contract_t5 *t5 = &reader->contract->t5;
    const struct posenc_node *text = &reader->text;
    int64_t buckets = 32, distance = 128;
    int both = 1, decoder = 0;
    int counted = posenc_get_integer(reader, text, "relative_attention_num_buckets", 2, 65536,
                                     &buckets);
    int limited = posenc_get_integer(reader, text, "relative_attention_max_distance", 1,
                                     INT64_C(1) << 53, &distance);
    int paired = posenc_get_bool(reader, text, "is_encoder_decoder", &both);
    if (counted < 0 || limited < 0 || paired < 0 ||
        posenc_get_bool(reader, text, "is_decoder", &decoder) < 0) {
        return -1;
    }
    if (distance <= buckets / 2) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "must exceed half of the buckets, %d", buckets / 2);
        return limited ? posenc_refuse(reader, text, "relative_attention_max_distance", rule.text)
                       : posenc_refuse(reader, text, "relative_attention_num_buckets",
                                       "too many for the default distance of 128");
    }
    if (!counted) {
        posenc_assume_integer(reader, "relative_attention_num_buckets", buckets,
                              "the default of this model_type");
    }
    if (!limited) {
        posenc_assume_integer(reader, "relative_attention_max_distance", distance,
                              "the default of this model_type");
    }
    *t5 = (posenc_contract_t5){.struct_size = sizeof *t5, .num_buckets = (int32_t)buckets,
                               .max_distance = distance, .encoder = both || !decoder,
                               .decoder = both || decoder};
    if (reader->family->flags & POSENC_FAMILY_BUCKETS) {
        t5->encoder = 1;
        t5->decoder = 0;
    }
    t5->per_layer = (reader->family->flags & POSENC_FAMILY_PER_LAYER) != 0;
    return 0;
}

/* "c2p|p2c", or the same as a list. */
static int read_types(struct posenc_reader *reader, const char **types)
{
    const json_t *json = json_object_get(reader->text.json, "pos_att_type");
    const char *text = json_string_value(json);
    int bits = 0;
    if (json_is_array(json)) {
        size_t i;
        json_t *entry;
        json_array_foreach(json, i, entry) {
            const char *name = json_string_value(entry);
            int bit = !name ? 0 : strcmp(name, "c2p") == 0 ? 1 : strcmp(name, "p2c") == 0 ? 2 : 0;
            bits = bit ? bits | bit : 4;
        }
    } else if (text) {
        bits = strcmp(text, "c2p|p2c") == 0 || strcmp(text, "p2c|c2p") == 0 ? 3
               : strcmp(text, "c2p") == 0                                  ? 1
               : strcmp(text, "p2c") == 0                                  ? 2
               : strcmp(text, "") == 0                                     ? 0
                                                                           : 4;
    } else if (json && !json_is_null(json)) {
        bits = 4;
    }
    if (bits & 4) {
        return posenc_refuse(reader, &reader->text, "pos_att_type", "must be c2p, p2c or c2p|p2c");
    }
    *types = bits == 3 ? "c2p|p2c" : bits == 1 ? "c2p" : bits == 2 ? "p2c" : NULL;
    return 0;
}

/* A table whose row is position + offset. `rows` < 1: the file does not give them. */
static int read_learned(struct posenc_reader *reader, int64_t hidden, int64_t rows)
{
    const struct posenc_family *family = reader->family;
    posenc_contract_learned *learned = &reader->contract->learned;
    int64_t offset = family->offset, pad = 1;
    if (rows < 1) {
        return posenc_refuse_missing(reader, &reader->text, "max_position_embeddings",
                                     "a learned table needs it");
    }
    if (family->flags & POSENC_FAMILY_PADDED) {
        int found = posenc_get_integer(reader, &reader->text, "pad_token_id", 0, INT32_MAX, &pad);
        if (found < 0) {
            return -1;
        }
        if (!found) {
            posenc_assume_integer(reader, "pad_token_id", pad, "the default of this model_type");
        }
        offset = pad + 1;
    }
    rows += family->extra;
    if (offset >= rows) {
        return posenc_refuse(reader, &reader->text, "pad_token_id",
                             "leaves no row of the table: positions start behind it");
    }
    *learned = (posenc_contract_learned){.struct_size = sizeof *learned, .dim = (int32_t)hidden,
                                         .table_rows = rows, .position_offset = offset,
                                         .usable_positions = rows - offset};
    return 0;
}

static int read_deberta(struct posenc_reader *reader, int64_t hidden)
{
    posenc_contract_deberta *deberta = &reader->contract->deberta;
    const struct posenc_node *text = &reader->text;
    int64_t buckets = -1, limit = -1;
    int relative = 0, biased = 1;
    if (posenc_get_bool(reader, text, "relative_attention", &relative) < 0 ||
        posenc_get_bool(reader, text, "position_biased_input", &biased) < 0 ||
        posenc_get_integer(reader, text, "position_buckets", -1, 65536, &buckets) < 0 ||
        posenc_get_integer(reader, text, "max_relative_positions", -1, INT64_C(1) << 53,
                           &limit) < 0) {
        return -1;
    }
    if (!relative) {
        reader->scheme = biased ? POSENC_FAMILY_LEARNED : POSENC_FAMILY_NONE;
    } else {
        *deberta = (posenc_contract_deberta){.struct_size = sizeof *deberta};
        deberta->position_buckets = buckets > 0 ? (int32_t)buckets : -1;
        deberta->max_relative_positions = limit < 1 ? reader->contract->facts.max_position : limit;
        if (read_types(reader, &deberta->pos_att_type) < 0) {
            return -1;
        }
    }
    return biased ? read_learned(reader, hidden, reader->contract->facts.max_position) : 0;
}

static int read_sinusoidal(struct posenc_reader *reader, int64_t hidden)
{
    const struct posenc_family *family = reader->family;
    posenc_contract_sinusoidal *waves = &reader->contract->sinusoidal;
    int64_t rows = reader->contract->facts.max_position, table = 0, pad = 1;
    *waves = (posenc_contract_sinusoidal){.struct_size = sizeof *waves, .dim = (int32_t)hidden,
                                          .rows = rows, .kind = family->kind,
                                          .freq_divisor = family->divisor,
                                          .row_offset = family->offset};
    if (family->flags & POSENC_FAMILY_PADDED) {
        int found = posenc_get_integer(reader, &reader->text, "pad_token_id", 0, INT32_MAX, &pad);
        if (found < 0) {
            return -1;
        }
        if (!found) {
            posenc_assume_integer(reader, "pad_token_id", pad, "the default of this model_type");
        }
        waves->row_offset = pad + 1;
    }
    if (!(family->flags & POSENC_FAMILY_DECODER_TABLE)) {
        return 0;
    }
    int found = posenc_get_integer(reader, &reader->text, "max_target_positions", 1,
                                   INT64_C(1) << 53, &table);
    if (found < 0 || read_learned(reader, hidden, found ? table : 448) < 0) {
        return -1;
    }
    if (!found) {
        posenc_assume_integer(reader, "max_target_positions", 448,
                              "the default of this model_type");
    }
    waves->applies_to = "encoder";
    reader->contract->learned.applies_to = "decoder";
    return 0;
}

/* The width of a table's rows. */
static int read_hidden(struct posenc_reader *reader, int64_t *hidden)
{
    static const char *const keys[] = {"hidden_size", "n_embd", "n_embed", "d_model", "dim", NULL};
    const posenc_contract_facts *facts = &reader->contract->facts;
    *hidden = facts->num_heads * facts->head_dim;
    return posenc_get_spelled(reader, &reader->text, keys, 1, INT32_MAX, hidden, NULL);
}

int posenc_read_other(struct posenc_reader *reader)
{
    posenc_contract_facts *facts = &reader->contract->facts;
    int64_t hidden = 0;
    int answer = read_hidden(reader, &hidden) < 0 ? -1 : 0;
    static const int32_t schemes[] = {
        [POSENC_FAMILY_NONE] = POSENC_SCHEME_NONE,
        [POSENC_FAMILY_ALIBI] = POSENC_SCHEME_ALIBI,
        [POSENC_FAMILY_T5] = POSENC_SCHEME_T5,
        [POSENC_FAMILY_DEBERTA] = POSENC_SCHEME_DEBERTA,
        [POSENC_FAMILY_LEARNED] = POSENC_SCHEME_LEARNED,
        [POSENC_FAMILY_SINUSOIDAL] = POSENC_SCHEME_SINUSOIDAL,
    };
    if (answer < 0) {
        return -1;
    }
    switch (reader->scheme) {
    case POSENC_FAMILY_ALIBI: answer = read_alibi(reader); break;
    case POSENC_FAMILY_T5: answer = read_t5(reader); break;
    case POSENC_FAMILY_DEBERTA: answer = read_deberta(reader, hidden); break;
    case POSENC_FAMILY_LEARNED:
        answer = read_learned(reader, hidden, facts->max_position);
        if (answer == 0 && (reader->family->flags & POSENC_FAMILY_BUCKETS)) {
            answer = read_t5(reader);
        }
        break;
    case POSENC_FAMILY_SINUSOIDAL: answer = read_sinusoidal(reader, hidden); break;
    default: break;
    }
    facts->scheme = schemes[reader->scheme];
    return answer;
}
