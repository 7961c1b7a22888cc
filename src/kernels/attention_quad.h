/* SPDX-License-Identifier: MIT */
/*
 * Four vectors of channels of values, and the chains that they go to.
 *
 * Template, included by attention_direct.h and attention_even.h after attention_vector.h.
 */

static POSENC_INLINE struct quad zero_quad(void)
{
    vector zero = V(set1_)(0.0f);
    return (struct quad){zero, zero, zero, zero};
}

static POSENC_INLINE struct quad fma_quad(vector x, struct quad y, struct quad s)
{
    return (struct quad){V(fma_)(x, y.a, s.a), V(fma_)(x, y.b, s.b), V(fma_)(x, y.c, s.c),
                         V(fma_)(x, y.d, s.d)};
}

/* The values that all vectors of channels read, from channel c on. Those of BF16 as their even and
 * their odd channels, which widen by one operation instead of two: the chains are put in order at
 * the end of the tile. */
static POSENC_INLINE struct quad load_quad(struct stored value, int64_t c, int dtype)
{
    if (dtype == POSENC_BF16) {
        const uint16_t *row = (const uint16_t *)value.row + c;
        V(bf16_pairs_) x = V(load_even_odd_)(row), y = V(load_even_odd_)(row + 2 * LANES);
        return (struct quad){V(even_bf16_)(x), V(odd_bf16_)(x), V(even_bf16_)(y), V(odd_bf16_)(y)};
    }
    return (struct quad){load_stored(value, c, dtype), load_stored(value, c + LANES, dtype),
                         load_stored(value, c + 2 * LANES, dtype),
                         load_stored(value, c + 3 * LANES, dtype)};
}

static POSENC_INLINE void add_chain(float *o, vector a, vector chain)
{
    V(store_f32_)(o, V(fma_)(V(load_f32_)(o), a, chain));
}

static POSENC_INLINE void add_chains(float *o, float a, struct quad s, int dtype)
{
    vector scale = V(set1_)(a);
    if (dtype == POSENC_BF16)
        s = (struct quad){V(zip_lower_)(s.a, s.b), V(zip_upper_)(s.a, s.b),
                          V(zip_lower_)(s.c, s.d), V(zip_upper_)(s.c, s.d)};
    add_chain(o, scale, s.a);
    add_chain(o + LANES, scale, s.b);
    add_chain(o + 2 * LANES, scale, s.c);
    add_chain(o + 3 * LANES, scale, s.d);
}
