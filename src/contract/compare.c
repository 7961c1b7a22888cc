/* SPDX-License-Identifier: MIT */
/*
 * Comparing two contracts, and the fingerprint of one. Both look at the same facts
 * (compared.c). A frequency set counts by the fingerprint of its plan: what makes the same rows is
 * the same, however a file spells it. Its parameters are listed only to say why it differs.
 */
#include "../hash.h"
#include "compared.h"

enum { FORM = 1 }; /* of the serialisation */

static void hash_value(struct posenc_hash *hash, const struct posenc_value *value)
{
    posenc_hash_integer(hash, value->kind);
    switch (value->kind) {
    case POSENC_VALUE_INTEGER: posenc_hash_integer(hash, value->integer); break;
    case POSENC_VALUE_REAL: posenc_hash_real(hash, value->real); break;
    case POSENC_VALUE_TEXT: posenc_hash_text(hash, value->text); break;
    default: break;
    }
}

int32_t posenc_contract_settle(struct posenc_contract *contract, posenc_error *error)
{
    for (int32_t i = 0; i < contract->facts.num_sets; i++) {
        struct posenc_set *set = &contract->sets[i];
        posenc_rope_params params = set->params;
        posenc_plan *plan = NULL;
        params.isa = POSENC_ISA_SCALAR;
        posenc_error why;
        int32_t status = posenc_plan_create(&plan, &params, &why);
        if (status == POSENC_ERROR_MEMORY)
            return posenc_fail(error, status, "%s", why.text);
        /* What is read can be used: numbers that a plan refuses are the model's. */
        if (status)
            return posenc_fail(error, POSENC_ERROR_MODEL, "frequency set %s: %s", set->id,
                               why.text);
        set->attention_factor = posenc_plan_attention_factor(plan);
        posenc_plan_fingerprint(plan, set->fingerprint, NULL);
        posenc_plan_free(plan);
    }
    return POSENC_OK;
}

/* The set with this id, or NULL. */
static const struct posenc_set *find_set(const posenc_contract *contract, const char *id)
{
    for (int32_t i = 0; i < contract->facts.num_sets; i++)
        if (strcmp(contract->sets[i].id, id) == 0)
            return &contract->sets[i];
    return NULL;
}

/* The set whose id comes next after `last` in the order of bytes, or NULL: no order of a file's own
 * must count. */
static const struct posenc_set *next_set(const posenc_contract *contract, const char *last)
{
    const struct posenc_set *next = NULL;
    for (int32_t i = 0; i < contract->facts.num_sets; i++) {
        const struct posenc_set *set = &contract->sets[i];
        if ((!last || strcmp(set->id, last) > 0) && (!next || strcmp(set->id, next->id) < 0))
            next = set;
    }
    return next;
}

/* How a layer attends, if it does. */
static const char *layer_type(const posenc_contract *contract, int64_t layer)
{
    int attends = posenc_contract_layer_set(contract, layer) != POSENC_LAYER_NO_ATTENTION;
    return attends ? posenc_contract_layer_type(contract, layer) : "";
}

/* By which set a layer turns its heads, as a word. */
static const char *layer_word(const posenc_contract *contract, int64_t layer)
{
    int32_t set = posenc_contract_layer_set(contract, layer);
    return set >= 0                          ? contract->sets[set].id
           : set == POSENC_LAYER_NOT_ROTATED ? "not rotated"
                                             : "no attention";
}

int32_t posenc_contract_fingerprint(const posenc_contract *contract, uint8_t *fingerprint,
                                    posenc_error *error)
{
    if (!contract || !fingerprint)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given",
                           contract ? "fingerprint" : "contract");
    struct posenc_hash hash = posenc_hash_start();
    struct posenc_value value;
    const char *key;
    posenc_hash_integer(&hash, FORM);
    for (int i = 0; posenc_fact(contract, i, &key, &value); i++)
        hash_value(&hash, &value);
    posenc_hash_integer(&hash, contract->facts.num_sets);
    const struct posenc_set *set = NULL;
    while ((set = next_set(contract, set ? set->id : NULL))) {
        posenc_hash_text(&hash, set->id);
        posenc_hash_bytes(&hash, set->fingerprint, sizeof set->fingerprint);
        posenc_hash_integer(&hash, set->num_heads);
        posenc_hash_integer(&hash, set->num_kv_heads);
    }
    for (int64_t i = 0; i < contract->facts.num_layers; i++) {
        posenc_hash_text(&hash, layer_word(contract, i));
        posenc_hash_text(&hash, layer_type(contract, i));
    }
    posenc_hash_end(&hash, fingerprint);
    return POSENC_OK;
}

/* The list that grows. */
struct list {
    posenc_contract_difference *to;
    size_t capacity, count;
};

static void cut(char *to, size_t size, const posenc_error *text)
{
    size_t length = strlen(text->text);
    if (length >= size)
        length = size - 1;
    memcpy(to, text->text, length);
    to[length] = '\0';
}

static void add(struct list *list, const posenc_error *key, const posenc_error *a,
                const posenc_error *b)
{
    if (list->count < list->capacity) {
        posenc_contract_difference *to = &list->to[list->count];
        memset(to, 0, sizeof *to);
        cut(to->key, sizeof to->key, key);
        cut(to->a, sizeof to->a, a);
        cut(to->b, sizeof to->b, b);
    }
    list->count++;
}

static void say(posenc_error *text, const struct posenc_value *value)
{
    switch (value->kind) {
    case POSENC_VALUE_INTEGER: posenc_fail(text, POSENC_OK, "%d", value->integer); break;
    case POSENC_VALUE_REAL: posenc_fail(text, POSENC_OK, "%g", value->real); break;
    case POSENC_VALUE_TEXT: posenc_fail(text, POSENC_OK, "%s", value->text); break;
    default: posenc_fail(text, POSENC_OK, "none"); break;
    }
}

/* Lists a pair of values unless they are the same. Nine digits may not tell two doubles apart: then
 * their distance does. */
static void check(struct list *list, const posenc_error *key, const struct posenc_value *a,
                  const struct posenc_value *b)
{
    posenc_error a_text, b_text;
    if (posenc_value_same(a, b))
        return;
    say(&a_text, a);
    say(&b_text, b);
    if (strcmp(a_text.text, b_text.text) == 0)
        posenc_fail(&b_text, POSENC_OK, "%g (%g more)", b->real, b->real - a->real);
    add(list, key, &a_text, &b_text);
}

static void key_of_set(posenc_error *key, const struct posenc_set *set, const char *name)
{
    posenc_fail(key, POSENC_OK, "rope[%s].%s", set->id, name);
}

/* The first element in which two arrays differ; the others say little. */
static void check_array(struct list *list, int index, const struct posenc_set *a,
                        const struct posenc_set *b)
{
    const char *name;
    int32_t a_count, b_count, i = 0;
    posenc_error key, a_text, b_text;
    posenc_set_array(a, index, &name, &a_count);
    posenc_set_array(b, index, &name, &b_count);
    while (i < a_count && i < b_count &&
           posenc_set_element(a, index, i) == posenc_set_element(b, index, i))
        i++;
    if (i == a_count && i == b_count)
        return;
    int both = i < a_count && i < b_count;
    posenc_fail(&key, POSENC_OK, "rope[%s].%s[%d]", a->id, name, (int64_t)i);
    if (both) {
        struct posenc_value x = {POSENC_VALUE_REAL, 0, posenc_set_element(a, index, i), NULL};
        struct posenc_value y = {POSENC_VALUE_REAL, 0, posenc_set_element(b, index, i), NULL};
        check(list, &key, &x, &y);
        return;
    }
    key_of_set(&key, a, name);
    posenc_fail(&a_text, POSENC_OK, "%d values", (int64_t)a_count);
    posenc_fail(&b_text, POSENC_OK, "%d values", (int64_t)b_count);
    add(list, &key, &a_text, &b_text);
}

static void hex(posenc_error *text, const uint8_t bytes[POSENC_HASH_BYTES])
{
    for (int i = 0; i < 2 * POSENC_HASH_BYTES; i++)
        text->text[i] = "0123456789abcdef"[bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
    text->text[2 * POSENC_HASH_BYTES] = '\0';
}

/* Why two sets of one id make different rows: their parameters, or else their fingerprints. */
static void check_rows(struct list *list, const struct posenc_set *a, const struct posenc_set *b)
{
    struct posenc_value x, y;
    const char *name;
    posenc_error key, a_text, b_text;
    int32_t count;
    size_t before = list->count;
    if (memcmp(a->fingerprint, b->fingerprint, sizeof a->fingerprint) == 0)
        return;
    for (int i = 0; posenc_set_fact(a, i, &name, &x); i++) {
        posenc_set_fact(b, i, &name, &y);
        key_of_set(&key, a, name);
        check(list, &key, &x, &y);
    }
    for (int i = 0; posenc_set_array(a, i, &name, &count); i++)
        check_array(list, i, a, b);
    if (list->count > before)
        return;
    key_of_set(&key, a, "inv_freq");
    hex(&a_text, a->fingerprint);
    hex(&b_text, b->fingerprint);
    add(list, &key, &a_text, &b_text);
}

static void check_heads(struct list *list, const struct posenc_set *set, const char *name,
                        int32_t a, int32_t b)
{
    posenc_error key;
    struct posenc_value x = {POSENC_VALUE_INTEGER, a, 0, NULL};
    struct posenc_value y = {POSENC_VALUE_INTEGER, b, 0, NULL};
    key_of_set(&key, set, name);
    check(list, &key, &x, &y);
}

static void check_sets(struct list *list, const posenc_contract *a, const posenc_contract *b)
{
    posenc_error key, a_text, b_text;
    const struct posenc_set *x = NULL, *y = NULL;
    while ((x = next_set(a, x ? x->id : NULL))) {
        y = find_set(b, x->id);
        if (y) {
            check_rows(list, x, y);
            check_heads(list, x, "num_heads", x->num_heads, y->num_heads);
            check_heads(list, x, "num_kv_heads", x->num_kv_heads, y->num_kv_heads);
            continue;
        }
        posenc_fail(&key, POSENC_OK, "rope[%s]", x->id);
        posenc_fail(&a_text, POSENC_OK, "%s", x->rope_type);
        posenc_fail(&b_text, POSENC_OK, "none");
        add(list, &key, &a_text, &b_text);
    }
    while ((y = next_set(b, y ? y->id : NULL))) {
        if (find_set(a, y->id))
            continue;
        posenc_fail(&key, POSENC_OK, "rope[%s]", y->id);
        posenc_fail(&a_text, POSENC_OK, "none");
        posenc_fail(&b_text, POSENC_OK, "%s", y->rope_type);
        add(list, &key, &a_text, &b_text);
    }
}

static int same_layer(const posenc_contract *a, int64_t i, const posenc_contract *b, int64_t k)
{
    return strcmp(layer_word(a, i), layer_word(b, k)) == 0 &&
           strcmp(layer_type(a, i), layer_type(b, k)) == 0;
}

static void say_layer(posenc_error *text, const posenc_contract *contract, int64_t layer)
{
    const char *type = layer_type(contract, layer);
    posenc_fail(text, POSENC_OK, "%s%s%s", layer_word(contract, layer), *type ? ", " : "", type);
}

/* Neighbours that differ alike make one line. A different number of layers is a fact by itself. */
static void check_layers(struct list *list, const posenc_contract *a, const posenc_contract *b)
{
    int64_t layers = a->facts.num_layers, next;
    posenc_error key, a_text, b_text;
    if (b->facts.num_layers < layers)
        layers = b->facts.num_layers;
    for (int64_t i = 0; i < layers; i = next) {
        next = i + 1;
        if (same_layer(a, i, b, i))
            continue;
        while (next < layers && same_layer(a, next, a, i) && same_layer(b, next, b, i))
            next++;
        posenc_fail(&key, POSENC_OK, next > i + 1 ? "layer_sets[%d..%d]" : "layer_sets[%d]", i,
                    next - 1);
        say_layer(&a_text, a, i);
        say_layer(&b_text, b, i);
        add(list, &key, &a_text, &b_text);
    }
}

int32_t posenc_contract_compare(const posenc_contract *a, const posenc_contract *b,
                                posenc_contract_difference *differences, size_t capacity,
                                size_t *count, posenc_error *error)
{
    const char *missing = !a ? "a" : !b ? "b" : !count ? "count" : NULL;
    if (!missing && capacity && !differences)
        missing = "differences";
    if (missing)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given", missing);
    struct list list = {differences, capacity, 0};
    struct posenc_value x, y;
    const char *name;
    posenc_error key;
    for (int i = 0; posenc_fact(a, i, &name, &x); i++) {
        posenc_fact(b, i, &name, &y);
        posenc_fail(&key, POSENC_OK, "%s", name);
        check(&list, &key, &x, &y);
    }
    check_sets(&list, a, b);
    check_layers(&list, a, b);
    *count = list.count;
    return POSENC_OK;
}
