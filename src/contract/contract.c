/* SPDX-License-Identifier: MIT */
/* The public functions of libposenc-contract. */
#include "file.h"
#include "gguf.h"
#include "json_files.h"
#include "reader.h"

#include <errno.h>
#include <stdlib.h>

/* What a file is follows from its content: each kind has keys that the others lack. */
static int read_kind(struct posenc_reader *reader)
{
    if (posenc_is_genai(reader->root.json)) {
        return posenc_read_genai(reader);
    }
    return posenc_is_params(reader->root.json) ? posenc_read_params(reader)
                                               : posenc_read_hf(reader);
}

static int read_json(struct posenc_reader *reader, const struct posenc_file *file)
{
    reader->status =
        posenc_json_load(&reader->root.json, file->bytes, file->length, reader->error);
    int answer = reader->status == POSENC_OK ? read_kind(reader) : -1;
    json_decref(reader->root.json);
    return answer;
}

static int32_t read_file(posenc_contract **contract, const struct posenc_file *file,
                         posenc_error *error)
{
    struct posenc_reader reader = {.error = error, .contract = posenc_contract_new()};
    if (!reader.contract) {
        return posenc_fail(error, POSENC_ERROR_MEMORY, "no memory for a contract");
    }
    int answer = posenc_file_is_gguf(file->bytes, file->length) ? posenc_read_gguf(&reader, file)
                                                                : read_json(&reader, file);
    int32_t status = answer < 0 ? reader.status : posenc_contract_settle(reader.contract, error);
    if (status != POSENC_OK) {
        posenc_contract_free(reader.contract);
        return status;
    }
    *contract = reader.contract;
    return POSENC_OK;
}

int32_t posenc_contract_parse(posenc_contract **contract, const char *data, size_t length,
                              posenc_error *error)
{
    if (!contract) {
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "contract is NULL: must be given");
    }
    if (!data) {
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "data is NULL: must be given");
    }
    const struct posenc_file file = {
        .bytes = data, .length = length, .size = length, .descriptor = -1};
    int saved = errno;
    int32_t status = read_file(contract, &file, error);
    errno = saved;
    return status;
}

int32_t posenc_contract_open(posenc_contract **contract, const char *path, posenc_error *error)
{
    if (!contract) {
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "contract is NULL: must be given");
    }
    if (!path) {
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "path is NULL: must be given");
    }
    struct posenc_file file;
    int saved = errno;
    int32_t status = posenc_file_open(path, &file, error);
    if (status == POSENC_OK) {
        status = read_file(contract, &file, error);
    }
    posenc_file_close(&file);
    errno = saved;
    return status;
}

void posenc_contract_free(posenc_contract *contract)
{
    if (contract) {
        posenc_disown(contract);
        free(contract);
    }
}

static int32_t check_index(int32_t index, int32_t count, posenc_error *error)
{
    if (index >= 0 && index < count) {
        return POSENC_OK;
    }
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "index is %d: must be >= 0 and < %d",
                       (int64_t)index, (int64_t)count);
}

int32_t posenc_contract_get_facts(const posenc_contract *contract, posenc_contract_facts *facts,
                                  posenc_error *error)
{
    static const posenc_contract_facts none;
    return posenc_give(contract, "facts", facts, contract ? &contract->facts : &none, sizeof none,
                       error);
}

static void give_axes(posenc_contract_set *answer, const struct posenc_set *from)
{
    answer->axes = from->params.axes > 1 ? from->params.axes : 1;
    answer->num_sections = from->num_sections;
    answer->sections = from->num_sections ? from->sections : NULL;
    answer->axis_of_pair = from->params.axis_of_pair;
    answer->interleaved = from->interleaved;
    answer->depends_on_length = from->params.scaling == POSENC_SCALING_DYNAMIC_NTK ||
                                from->params.scaling == POSENC_SCALING_LONGROPE;
}

int32_t posenc_contract_get_set(const posenc_contract *contract, int32_t index,
                                posenc_contract_set *set, posenc_error *error)
{
    posenc_contract_set answer = {0};
    if (contract) {
        int32_t status = check_index(index, contract->facts.num_sets, error);
        if (status != POSENC_OK) {
            return status;
        }
        const struct posenc_set *from = &contract->sets[index];
        answer.layout = from->params.layout;
        answer.id = from->id;
        answer.rope_type = from->rope_type;
        answer.base = from->params.base;
        answer.head_dim = from->params.head_dim;
        answer.rotary_dim = from->params.rotary_dim;
        answer.rotary_offset = from->params.rotary_offset;
        answer.num_heads = from->num_heads;
        answer.num_kv_heads = from->num_kv_heads;
        answer.original_max_position = from->original_max_position;
        give_axes(&answer, from);
    }
    return posenc_give(contract, "set", set, &answer, sizeof answer, error);
}

int32_t posenc_contract_plan_params(const posenc_contract *contract, int32_t index,
                                    posenc_rope_params *params, posenc_error *error)
{
    posenc_rope_params answer = {0};
    if (contract) {
        int32_t status = check_index(index, contract->facts.num_sets, error);
        if (status != POSENC_OK) {
            return status;
        }
        answer = contract->sets[index].params;
    }
    return posenc_give(contract, "params", params, &answer, sizeof answer, error);
}

static int has_layer(const posenc_contract *contract, int64_t layer)
{
    return contract && layer >= 0 && layer < contract->facts.num_layers;
}

int32_t posenc_contract_layer_set(const posenc_contract *contract, int64_t layer)
{
    return has_layer(contract, layer) ? contract->layers[layer].set : POSENC_LAYER_INVALID;
}

const char *posenc_contract_layer_type(const posenc_contract *contract, int64_t layer)
{
    return has_layer(contract, layer) ? posenc_layer_names[contract->layers[layer].kind].type
                                      : NULL;
}

static int32_t give_note(const posenc_contract *contract, const struct posenc_note *notes,
                         int32_t count, int32_t index, posenc_contract_note *note,
                         posenc_error *error)
{
    posenc_contract_note answer = {0};
    if (contract) {
        int32_t status = check_index(index, count, error);
        if (status != POSENC_OK) {
            return status;
        }
        answer.key = notes[index].key.text;
        answer.value = notes[index].value.text[0] ? notes[index].value.text : NULL;
        answer.text = notes[index].text.text;
    }
    return posenc_give(contract, "note", note, &answer, sizeof answer, error);
}

int32_t posenc_contract_get_assumed(const posenc_contract *contract, int32_t index,
                                    posenc_contract_note *note, posenc_error *error)
{
    return give_note(contract, contract ? contract->assumed : NULL,
                     contract ? contract->facts.num_assumed : 0, index, note, error);
}

int32_t posenc_contract_get_warning(const posenc_contract *contract, int32_t index,
                                    posenc_contract_note *note, posenc_error *error)
{
    return give_note(contract, contract ? contract->warnings : NULL,
                     contract ? contract->facts.num_warnings : 0, index, note, error);
}
