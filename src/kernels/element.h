/* SPDX-License-Identifier: MIT */
/*
 * Loads and stores of any dtype as float vectors: one more step of the vector layer, for N lanes.
 *
 * Template. Set N to the lane count and include; LANES(name) pastes it. The dtype is a constant of
 * the instantiation, so the switch disappears. `at` counts elements.
 */
#define POSENC_PASTE_(a, b) a##_##b
#define POSENC_PASTE(a, b) POSENC_PASTE_(a, b)
#define POSENC_TYPE_(n) f32x##n
#define POSENC_TYPE(n) POSENC_TYPE_(n)
#define LANES(name) POSENC_PASTE(name, N)
#define FLOATS POSENC_TYPE(N)
#define BF16S POSENC_PASTE(bf16_pairs, N)

static POSENC_INLINE FLOATS LANES(load)(const char *p, size_t at, int dtype)
{
    switch (dtype) {
    case POSENC_F32:
        return LANES(load_f32)((const float *)(const void *)p + at);
    case POSENC_F16:
        return LANES(load_f16)((const uint16_t *)(const void *)p + at);
    default:
        return LANES(load_bf16)((const uint16_t *)(const void *)p + at);
    }
}

static POSENC_INLINE void LANES(store)(char *p, size_t at, int dtype, FLOATS v)
{
    switch (dtype) {
    case POSENC_F32:
        LANES(store_f32)((float *)(void *)p + at, v);
        break;
    case POSENC_F16:
        LANES(store_f16)((uint16_t *)(void *)p + at, v);
        break;
    default:
        LANES(store_bf16)((uint16_t *)(void *)p + at, v);
        break;
    }
}
