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

/* Keeps a vector in a register: read from memory by each product, three loads for two of them would
 * be the limit, not the products. */
inline vec kept(vec x) {
#if defined(__x86_64__)
    __asm__("" : "+v"(x));
#elif defined(__aarch64__)
    __asm__("" : "+w"(x));
#endif
    return x;
}

#if defined(__AVX512F__) || defined(__aarch64__)
/* All six rows: 24 sums, 4 vectors and a row's number fit 32 registers. */
void six(block &s, block &t, const float *rows, const float *vectors) {
    const vec *k = reinterpret_cast<const vec *>(vectors);
    for (size_t c = 0; c < depth; c++, k += 4) {
        const vec k0 = kept(k[0]), k1 = kept(k[1]), k2 = kept(k[2]), k3 = kept(k[3]);
        vec x = rows[c] - vec{};
        s.a0 = x * k0 + s.a0, s.a1 = x * k1 + s.a1, s.a2 = x * k2 + s.a2, s.a3 = x * k3 + s.a3;
        x = rows[depth + c] - vec{};
        s.b0 = x * k0 + s.b0, s.b1 = x * k1 + s.b1, s.b2 = x * k2 + s.b2, s.b3 = x * k3 + s.b3;
        x = rows[2 * depth + c] - vec{};
        s.c0 = x * k0 + s.c0, s.c1 = x * k1 + s.c1, s.c2 = x * k2 + s.c2, s.c3 = x * k3 + s.c3;
        x = rows[3 * depth + c] - vec{};
        t.a0 = x * k0 + t.a0, t.a1 = x * k1 + t.a1, t.a2 = x * k2 + t.a2, t.a3 = x * k3 + t.a3;
        x = rows[4 * depth + c] - vec{};
        t.b0 = x * k0 + t.b0, t.b1 = x * k1 + t.b1, t.b2 = x * k2 + t.b2, t.b3 = x * k3 + t.b3;
        x = rows[5 * depth + c] - vec{};
        t.c0 = x * k0 + t.c0, t.c1 = x * k1 + t.c1, t.c2 = x * k2 + t.c2, t.c3 = x * k3 + t.c3;
    }
}
#else
/* Three rows: 12 sums, a vector and three rows' numbers fit 16 registers. */
void three(block &s, const float *rows, const float *vectors) {
    const vec *k = reinterpret_cast<const vec *>(vectors);
    for (size_t c = 0; c < depth; c++, k += 4) {
        const vec x = rows[c] - vec{}, y = rows[depth + c] - vec{}, z = rows[2 * depth + c] - vec{};
        vec v = kept(k[0]);
        s.a0 = x * v + s.a0, s.b0 = y * v + s.b0, s.c0 = z * v + s.c0;
        v = kept(k[1]);
        s.a1 = x * v + s.a1, s.b1 = y * v + s.b1, s.c1 = z * v + s.c1;
        v = kept(k[2]);
        s.a2 = x * v + s.a2, s.b2 = y * v + s.b2, s.c2 = z * v + s.c2;
        v = kept(k[3]);
        s.a3 = x * v + s.a3, s.b3 = y * v + s.b3, s.c3 = z * v + s.c3;
    }
}

void six(block &s, block &t, const float *rows, const float *vectors) {
    three(s, rows, vectors);
    three(t, rows + 3 * depth, vectors);
}
#endif

float fed(const float *rows, const float *vectors, size_t rounds) {
    block s = {}, t = {};
    for (size_t i = 0; i < rounds; i++)
        six(s, t, rows, vectors);
    return first(s) + first(t);
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
