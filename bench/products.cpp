/* SPDX-License-Identifier: MIT */
/* Limits of attention, compiled once per ISA with PRODUCTS (the table's name) set. Vectors of the
 * compiler's own and one text serve every ISA. */
#include "products.h"

#include <cstdint>
#include <cstring>

namespace bench {
namespace {

#if defined(__AVX512F__)
constexpr size_t bytes = 64;
#elif defined(__AVX2__)
constexpr size_t bytes = 32;
#else
constexpr size_t bytes = 16;
#endif
constexpr size_t lanes = bytes / sizeof(float);
typedef float vec __attribute__((vector_size(bytes), aligned(4), may_alias));
typedef uint32_t words __attribute__((vector_size(bytes), aligned(4), may_alias));

/* Two rows of 4 vectors at a time are enough chains for registers of any ISA. */
struct block {
    vec a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3;
};

float first(const block &s) {
    const vec a = s.a0 + s.a1 + s.a2 + s.a3, b = s.b0 + s.b1 + s.b2 + s.b3;
    const vec all = a + b + s.c0 + s.c1 + s.c2 + s.c3;
    return all[0];
}

float peak(size_t rounds) {
    block s = {};
    const vec x = vec{} + 0.5f, y = vec{} + 0.25f;
    s.a1 = x, s.a2 = s.a1 + x, s.a3 = s.a2 + x, s.b0 = s.a3 + x, s.b1 = s.b0 + x, s.b2 = s.b1 + x;
    s.b3 = s.b2 + x, s.c0 = s.b3 + x, s.c1 = s.c0 + x, s.c2 = s.c1 + x, s.c3 = s.c2 + x;
    for (size_t i = 0; i < 2 * rounds; i++) {
        s.a0 = s.a0 * x + y, s.a1 = s.a1 * x + y, s.a2 = s.a2 * x + y, s.a3 = s.a3 * x + y;
        s.b0 = s.b0 * x + y, s.b1 = s.b1 * x + y, s.b2 = s.b2 * x + y, s.b3 = s.b3 * x + y;
        s.c0 = s.c0 * x + y, s.c1 = s.c1 * x + y, s.c2 = s.c2 * x + y, s.c3 = s.c3 * x + y;
    }
    return first(s);
}

/* Three of the six rows. */
void three(block &s, const float *rows, const float *vectors) {
    const vec *k = reinterpret_cast<const vec *>(vectors);
    for (size_t c = 0; c < depth; c++, k += 4) {
        const vec k0 = k[0], k1 = k[1], k2 = k[2], k3 = k[3];
        const vec x = rows[c] - vec{}, y = rows[depth + c] - vec{}, z = rows[2 * depth + c] - vec{};
        s.a0 = x * k0 + s.a0, s.a1 = x * k1 + s.a1, s.a2 = x * k2 + s.a2, s.a3 = x * k3 + s.a3;
        s.b0 = y * k0 + s.b0, s.b1 = y * k1 + s.b1, s.b2 = y * k2 + s.b2, s.b3 = y * k3 + s.b3;
        s.c0 = z * k0 + s.c0, s.c1 = z * k1 + s.c1, s.c2 = z * k2 + s.c2, s.c3 = z * k3 + s.c3;
    }
}

float fed(const float *rows, const float *vectors, size_t rounds) {
    block s = {};
    for (size_t i = 0; i < rounds; i++) {
        three(s, rows, vectors);
        three(s, rows + 3 * depth, vectors);
    }
    return first(s);
}

float read(const float *data, size_t count) {
    words a = {}, b = a, c = a, d = a;
    const words *p = reinterpret_cast<const words *>(data);
    for (const words *end = p + count / lanes; p < end; p += 4)
        a ^= p[0], b ^= p[1], c ^= p[2], d ^= p[3];
    a ^= b ^ c ^ d;
    return static_cast<float>(a[0]);
}

} // namespace

extern const products PRODUCTS = {lanes, peak, fed, read};

} // namespace bench
