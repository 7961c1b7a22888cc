/* SPDX-License-Identifier: MIT */
/* The JSON files beside config.json that describe a model. */
#ifndef POSENC_CONTRACT_JSON_FILES_H
#define POSENC_CONTRACT_JSON_FILES_H

#include "reader.h"

/* params.c: params.json of Meta and of Mistral, by their keys. */
int posenc_is_params(const json_t *root);
int posenc_read_params(struct posenc_reader *reader);

/* params_scaling.c: the scaling of its one frequency set; mistral tells whose file it is. */
int posenc_read_params_scaling(struct posenc_reader *reader, struct posenc_set *set, int mistral);
int posenc_read_params_query(struct posenc_reader *reader, int mistral);

/* genai.c: genai_config.json of onnxruntime-genai. */
int posenc_is_genai(const json_t *root);
int posenc_read_genai(struct posenc_reader *reader);

#endif
