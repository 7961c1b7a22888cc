/* SPDX-License-Identifier: MIT */
/* A whole GGUF file, from its header to the contract. */
#include "gguf.h"
#include "gguf_arch.h"

/* The architecture fixes the pair layout, which no key states: an unknown one is refused. */
static int find_arch(struct posenc_gguf_reader *from)
{
    struct posenc_gguf_text name = {NULL, 0};
    int found = posenc_gguf_string(from, "general.architecture", &name);
    if (found == 0) {
        return posenc_gguf_refuse_missing(from, "general.architecture",
                                          "it decides the pair layout, which cannot be guessed");
    }
    if (found < 0) {
        return -1;
    }
    from->arch = posenc_gguf_arch_find(name.bytes, name.length);
    if (!from->arch) {
        return posenc_gguf_refuse(from, "general.architecture",
                                  "unknown, so its pair layout would be a guess");
    }
    from->reader->contract->facts.model_type = from->arch->name;
    if (from->arch->flags & POSENC_GGUF_UNREAD) {
        posenc_fail(posenc_warning(from->reader, NULL, "general.architecture"), POSENC_OK,
                    "llama.cpp does not run it: its rotation here is that of the model");
    }
    return 0;
}

/* Adapters and vision towers have keys of the same names that mean other things. */
static int check_type(struct posenc_gguf_reader *from)
{
    struct posenc_gguf_text type = {NULL, 0};
    int found = posenc_gguf_string(from, "general.type", &type);
    if (found > 0 && (type.length != 5 || memcmp(type.bytes, "model", 5) != 0)) {
        return posenc_gguf_refuse(from, "general.type", "must be \"model\"");
    }
    return found < 0 ? -1 : 0;
}

static int read_model(struct posenc_gguf_reader *from)
{
    posenc_contract_facts *facts = &from->reader->contract->facts;
    if (check_type(from) < 0 || find_arch(from) < 0 || posenc_gguf_shape(from) < 0 ||
        posenc_gguf_layers(from) < 0) {
        return -1;
    }
    facts->scheme = from->arch->scheme;
    facts->source = "gguf";
    if (facts->scheme == POSENC_SCHEME_ROPE ? posenc_gguf_rope(from) < 0
                                            : posenc_gguf_other(from) < 0) {
        return -1;
    }
    posenc_gguf_reach(from);
    return posenc_gguf_scales(from);
}

int posenc_read_gguf(struct posenc_reader *reader, const struct posenc_file *file)
{
    struct posenc_gguf_reader from = {.reader = reader};
    reader->status = posenc_gguf_load(&from.gguf, file, reader->error);
    int answer = reader->status == POSENC_OK ? read_model(&from) : -1;
    posenc_gguf_free(&from.gguf);
    return answer;
}
