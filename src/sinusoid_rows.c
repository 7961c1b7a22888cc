/* SPDX-License-Identifier: MIT */
/* Rows of a sinusoid for a stretch of tokens: positions staged once, then any of its pairs. */
#include "sinusoid_rows.h"

/* The position of a token if it is an integer. */
static int whole_position(const struct posenc_sinusoid_stretch *s, size_t t, int64_t *p)
{
    *p = s->positions.dtype == POSENC_F64 ? (int64_t)s->ids.real[t] : s->ids.whole[t];
    return s->positions.dtype != POSENC_F64 || (double)*p == s->ids.real[t];
}

/* A run of the token alone. */
static struct posenc_run run_at(const struct posenc_sinusoid_stretch *s, size_t t)
{
    int64_t p;
    const int real = !whole_position(s, t, &p);
    const uint32_t size = real ? 0 : (uint32_t)(p < 0 ? -p : p);
    return (struct posenc_run){
        .first = (uint8_t)t,
        .count = 1,
        .step = (uint8_t)(size % POSENC_SINUSOID_STEPS),
        .real = (uint8_t)real,
        .negative = !real && p < 0,
        .base = size - size % POSENC_SINUSOID_STEPS,
    };
}

/* Takes the token behind a run into it if it goes on that way. */
static int takes(struct posenc_run *run, const struct posenc_run *next)
{
    if (run->real || next->real || run->base != next->base || run->negative != next->negative) {
        run->count = (uint8_t)(run->count + (run->real && next->real));
        return run->real && next->real;
    }
    const int last = run->step + (run->direction > 0 ? run->count - 1 : 0);
    const int direction = next->step - last;
    if (direction < -1 || direction > 1 || (run->count > 1 && direction != run->direction))
        return 0;
    run->count++;
    run->direction = (int8_t)direction;
    if (next->step < run->step)
        run->step = next->step;
    return 1;
}

/* All pairs share the runs, so that they are found once and not for every chunk of pairs. */
static void find_runs(struct posenc_sinusoid_stretch *s)
{
    s->runs = 0;
    for (size_t t = 0; t < s->tokens; t++) {
        const struct posenc_run next = run_at(s, t);
        if (t == 0 || !takes(&s->run[s->runs - 1], &next))
            s->run[s->runs++] = next;
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
    for (size_t t = 0; t < s->tokens; t++) {
        const int64_t token = s->token + (int64_t)t;
        if (real)
            s->ids.real[t] =
                (double)offset + posenc_real_position(positions, axis, s->batch, token);
        else
            s->ids.whole[t] = offset + posenc_position(positions, axis, s->batch, token);
    }
    find_runs(s);
}

int posenc_sinusoid_is_padding(const struct posenc_sinusoid_stretch *s, size_t t, int64_t padding)
{
    int64_t p;
    return padding >= 0 && whole_position(s, t, &p) && p == padding;
}

void posenc_sinusoid_rows(const posenc_sinusoid *sinusoid, const struct posenc_sinusoid_axis *axis,
                          const struct posenc_sinusoid_stretch *s, size_t first, size_t tokens,
                          const struct posenc_rows_target *to)
{
    const struct posenc_rows_span span = {&axis->plan, &s->positions, 0, (int64_t)first, tokens};
    const int64_t size = posenc_dtype_size(to->dtype);
    posenc_rows_fill(&span, to);
    for (size_t t = 0; t < tokens; t++)
        if (posenc_sinusoid_is_padding(s, first + t, sinusoid->params.padding_row)) {
            memset((char *)to->cos + (ptrdiff_t)t * to->stride * size, 0, to->count * (size_t)size);
            memset((char *)to->sin + (ptrdiff_t)t * to->stride * size, 0, to->count * (size_t)size);
        }
}
