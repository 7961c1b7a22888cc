/* SPDX-License-Identifier: MIT */
/* Which scheme is in force: the class's own, unless a key that the class reads says otherwise. */
#include "family.h"
#include "reader.h"

#include <string.h>

static int refuse_scheme(struct posenc_reader *reader, const char *key, const char *scheme)
{
    posenc_error rule;
    posenc_fail(&rule, POSENC_OK, "asks for %s, which is not supported here", scheme);
    return posenc_refuse(reader, &reader->text, key, rule.text);
}

/* What position_embedding_type may say. */
static const struct type_name {
    const char *name;
    int scheme; /* -1: known, not supported */
} type_names[] = {
    {"absolute", POSENC_FAMILY_LEARNED},
    {"learned", POSENC_FAMILY_LEARNED},
    {"alibi", POSENC_FAMILY_ALIBI},
    {"rotary", POSENC_FAMILY_ROPE},
    {"rope", POSENC_FAMILY_ROPE},
    {"nope", POSENC_FAMILY_NONE},
    {"relative_key", -1},
    {"relative_key_query", -1},
};

static int scheme_by_type(struct posenc_reader *reader)
{
    static const char key[] = "position_embedding_type";
    const char *type = NULL;
    int found = posenc_get_string(reader, &reader->text, key, &type);
    if (found < 0) {
        return -1;
    }
    if (!found && (reader->family->flags & POSENC_FAMILY_ROPE_BY_TYPE)) {
        reader->scheme = POSENC_FAMILY_NONE;
        posenc_assume_text(reader, key, "null", "this model_type rotates only where it says rope");
    }
    if (!found) {
        return 0;
    }
    for (size_t i = 0; i < sizeof type_names / sizeof type_names[0]; i++) {
        if (strcmp(type_names[i].name, type) == 0) {
            reader->scheme = type_names[i].scheme;
            return reader->scheme < 0 ? refuse_scheme(reader, key, type) : 0;
        }
    }
    return posenc_refuse(reader, &reader->text, key, "unknown scheme");
}

/* Falcon and classes that carry its key. */
static int scheme_by_switch(struct posenc_reader *reader)
{
    static const char *const keys[] = {"alibi", "use_alibi"};
    for (size_t i = 0; i < 2; i++) {
        int on = 0;
        if (posenc_get_bool(reader, &reader->text, keys[i], &on) < 0) {
            return -1;
        }
        if (on && reader->family->kv_rule == POSENC_KV_FALCON) {
            reader->scheme = POSENC_FAMILY_ALIBI;
        } else if (on && reader->scheme != POSENC_FAMILY_ALIBI) {
            return refuse_scheme(reader, keys[i], "alibi");
        }
    }
    return 0;
}

/* MPT: attn_config.alibi wins over the learned table that learned_pos_emb announces. */
static int scheme_of_mpt(struct posenc_reader *reader)
{
    struct posenc_node config = {0};
    int alibi = 0, learned = 1, rope = 0;
    int found = posenc_get_object(reader, &reader->text, "attn_config", &config);
    if (found < 0 || posenc_get_bool(reader, &reader->text, "learned_pos_emb", &learned) < 0) {
        return -1;
    }
    if (found && (posenc_get_bool(reader, &config, "alibi", &alibi) < 0 ||
                  posenc_get_bool(reader, &config, "rope", &rope) < 0)) {
        return -1;
    }
    if (rope) {
        return posenc_refuse(reader, &config, "rope", "rope in this model_type is unknown");
    }
    if (!alibi) {
        reader->scheme = learned ? POSENC_FAMILY_LEARNED : POSENC_FAMILY_NONE;
    } else if (json_is_true(json_object_get(reader->text.json, "learned_pos_emb"))) {
        posenc_fail(posenc_warning(reader, &reader->text, "learned_pos_emb"), POSENC_OK,
                    "is true but attn_config.alibi is true: alibi counts, there is no table");
    }
    return 0;
}

/* Both sizes of Baichuan have the same model_type and keys. */
static int scheme_by_width(struct posenc_reader *reader)
{
    int64_t hidden = 4096;
    if (posenc_get_integer(reader, &reader->text, "hidden_size", 1, INT32_MAX, &hidden) < 0) {
        return -1;
    }
    reader->scheme = hidden == 4096 ? POSENC_FAMILY_ROPE : POSENC_FAMILY_ALIBI;
    posenc_assume_text(reader, "scheme", hidden == 4096 ? "\"rope\"" : "\"alibi\"",
                       "by hidden_size: no key tells the two sizes of this model_type apart");
    return 0;
}

/* OLMo Hybrid: a base that is written as null, in the block or else beside it, is no rotation. */
static int scheme_by_base(struct posenc_reader *reader)
{
    static const char *const keys[] = {"rope_parameters", "rope_scaling"};
    const json_t *base = NULL;
    for (size_t i = 0; i < 2 && !base; i++) {
        struct posenc_node block = {0};
        if (posenc_get_object(reader, &reader->text, keys[i], &block) < 0) {
            return -1;
        }
        base = block.json ? json_object_get(block.json, "rope_theta") : NULL;
    }
    base = base ? base : json_object_get(reader->text.json, "rope_theta");
    if (base && json_is_null(base)) {
        reader->scheme = POSENC_FAMILY_NONE;
        posenc_assume_text(reader, "scheme", "\"none\"", "rope_theta is null: no layer is rotated");
    }
    return 0;
}

/* Keys by which a class that rotates plainly does something that nothing here describes. */
static int refuse_others(struct posenc_reader *reader)
{
    static const char *const numbers[][2] = {{"rotary_scaling_factor", "dynamic ntk"},
                                             {"rotary_emb_scale_base", "xpos"}};
    int on = 0;
    if (posenc_get_bool(reader, &reader->text, "position_encoding_2d", &on) < 0) {
        return -1;
    }
    if (on) {
        return refuse_scheme(reader, "position_encoding_2d", "rope of two halves");
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double value = 0.0;
        int found = posenc_get_real(reader, &reader->text, numbers[i][0], &value);
        if (found != 0) {
            return found < 0 ? -1 : refuse_scheme(reader, numbers[i][0], numbers[i][1]);
        }
    }
    return 0;
}

/* Zamba2: use_mem_rope turns it on. Earlier classes enlarge the base for use_long_context. */
static int scheme_of_zamba(struct posenc_reader *reader)
{
    int on = 0, enlarged = 0;
    int found = posenc_get_bool(reader, &reader->text, "use_mem_rope", &on);
    if (found < 0 || posenc_get_bool(reader, &reader->text, "use_long_context", &enlarged) < 0) {
        return -1;
    }
    if (on && enlarged) {
        return refuse_scheme(reader, "use_long_context", "an enlarged base that sources dispute");
    }
    if (!found) {
        posenc_assume_text(reader, "use_mem_rope", "false", "the default of this model_type");
    }
    reader->scheme = on ? POSENC_FAMILY_ROPE : POSENC_FAMILY_NONE;
    return 0;
}

int posenc_read_scheme(struct posenc_reader *reader)
{
    const struct posenc_family *family = reader->family;
    int answer = 0;
    reader->scheme = (int)family->scheme;
    if (family->flags & (POSENC_FAMILY_TYPED | POSENC_FAMILY_ROPE_BY_TYPE)) {
        answer = scheme_by_type(reader);
    } else if (family->flags & POSENC_FAMILY_BY_WIDTH) {
        answer = scheme_by_width(reader);
    } else if (family->flags & POSENC_FAMILY_DOUBLED) {
        answer = scheme_of_zamba(reader);
    } else if (family->flags & POSENC_FAMILY_NULL_BASE) {
        answer = scheme_by_base(reader);
    } else if (strcmp(family->model_type, "mpt") == 0) {
        answer = scheme_of_mpt(reader);
    }
    return answer < 0 || scheme_by_switch(reader) < 0 ? -1 : refuse_others(reader);
}
