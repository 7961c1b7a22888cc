/* SPDX-License-Identifier: MIT */
/* Rows of a sinusoid for a stretch of tokens: positions staged once, then any of its pairs. */
#include "sinusoid_rows.h"

/* All pairs share the runs, so that they are found once and not for every chunk of pairs. */
static void find_runs(struct posenc_sinusoid_stretch *s)
{
    struct posenc_run *run = s->run;
    s->runs = 0;
    for (size_t t = 0; t < s->tokens; t++) {
        const int64_t p = s->ids.whole[t];
        const uint32_t size = (uint32_t)(p < 0 ? -p : p), base = size - size % POSENC_ROW_STEPS;
        const uint64_t sign = p < 0 ? UINT64_C(1) << 63 : 0;
        s->steps[t] = (uint8_t)(size % POSENC_ROW_STEPS);
        if (t == 0 || run->base != base || run->sine_sign != sign) {
            run = &s->run[s->runs++];
            *run = (struct posenc_run){(uint8_t)t, 0, base, sign};
        }
        run->count++;
    }
}

void posenc_sinusoid_stage(struct posenc_sinusoid_stretch *s, const posenc_sinusoid *sinusoid,
                           const posenc_positions *positions, int axis)
{
    const int64_t offset = sinusoid->params.position_offset;
    const int real = posenc_positions_are_real(positions);
    s->positions = (posenc_positions){
        .struct_size = sizeof(s->positions),
        .kind = POSENC_POSITIONS_IDS,
        .dtype = real ? POSENC_F64 : POSENC_I64,
        .ids = &s->ids,
        .stride = {0, 1},
    };
    s->runs = 0;
    if (real) {
        for (size_t t = 0; t < s->tokens; t++)
            s->ids.real[t] = (double)offset + posenc_real_position(positions, axis, s->batch,
                                                                   s->token + (int64_t)t);
        return;
    }
    for (size_t t = 0; t < s->tokens; t++)
        s->ids.whole[t] =
            offset + posenc_position(positions, axis, s->batch, s->token + (int64_t)t);
    find_runs(s);
}

static int is_padding(const struct posenc_sinusoid_stretch *s, size_t t, int64_t padding)
{
    return s->positions.dtype == POSENC_F64 ? s->ids.real[t] == (double)padding
                                            : s->ids.whole[t] == padding;
}

static void clear_padding(const struct posenc_sinusoid_stretch *s, int64_t padding,
                          const struct posenc_rows_target *to)
{
    const int64_t size = posenc_dtype_size(to->dtype);
    const size_t bytes = to->count * (size_t)size;
    for (size_t t = 0; t < s->tokens; t++)
        if (is_padding(s, t, padding)) {
            memset((char *)to->cos + (ptrdiff_t)t * to->stride * size, 0, bytes);
            memset((char *)to->sin + (ptrdiff_t)t * to->stride * size, 0, bytes);
        }
}

void posenc_sinusoid_rows(const posenc_sinusoid *sinusoid, const struct posenc_sinusoid_axis *axis,
                          const struct posenc_sinusoid_stretch *s,
                          const struct posenc_rows_target *to)
{
    const int64_t padding = sinusoid->params.padding_row;
    posenc_rows_fill(&(struct posenc_rows_span){&axis->plan, &s->positions, 0, 0, s->tokens}, to);
    if (padding >= 0)
        clear_padding(s, padding, to);
}
