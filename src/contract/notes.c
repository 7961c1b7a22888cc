/* SPDX-License-Identifier: MIT */
/* Assumed facts and warnings, in arrays of fixed size: a hostile file cannot make them grow. */
#include "reader.h"

posenc_error *posenc_warning(struct posenc_reader *reader, const struct posenc_node *node,
                             const char *key)
{
    struct posenc_contract *contract = reader->contract;
    int32_t index = contract->facts.num_warnings;
    if (index >= POSENC_MAX_WARNINGS) {
        struct posenc_note *last = &contract->warnings[POSENC_MAX_WARNINGS - 1];
        posenc_fail(&last->key, POSENC_OK, "");
        posenc_fail(&last->text, POSENC_OK, "there are more warnings than are kept");
        return NULL;
    }
    contract->facts.num_warnings++;
    struct posenc_note *note = &contract->warnings[index];
    const char *name = node ? node->name : "";
    posenc_fail(&note->key, POSENC_OK, "%s%s%s", name, *name ? "." : "", key);
    return &note->text;
}

static struct posenc_note *assume(struct posenc_reader *reader, const char *key, const char *why)
{
    int32_t index = reader->contract->facts.num_assumed;
    if (index >= POSENC_MAX_ASSUMED) {
        return NULL;
    }
    reader->contract->facts.num_assumed++;
    struct posenc_note *note = &reader->contract->assumed[index];
    posenc_fail(&note->key, POSENC_OK, "%s", key);
    posenc_fail(&note->text, POSENC_OK, "%s", why);
    return note;
}

void posenc_assume_integer(struct posenc_reader *reader, const char *key, int64_t value,
                           const char *why)
{
    struct posenc_note *note = assume(reader, key, why);
    if (note) {
        posenc_fail(&note->value, POSENC_OK, "%d", value);
    }
}

void posenc_assume_real(struct posenc_reader *reader, const char *key, double value,
                        const char *why)
{
    struct posenc_note *note = assume(reader, key, why);
    if (note) {
        posenc_fail(&note->value, POSENC_OK, "%g", value);
    }
}

void posenc_assume_text(struct posenc_reader *reader, const char *key, const char *value,
                        const char *why)
{
    struct posenc_note *note = assume(reader, key, why);
    if (note) {
        posenc_fail(&note->value, POSENC_OK, "%s", value);
    }
}
