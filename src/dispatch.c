/* SPDX-License-Identifier: MIT */
/* One kernel table per ISA, and which of them this process may and will use. */
#include <stdatomic.h>
#include <stdlib.h>

#include "cpu.h"
#include "error.h"
#include "kernels.h"

static const char *const names[] = {"default", "scalar", "avx2", "avx512", "neon"};

/* Best last. An ISA that this build lacks has no table. */
static const struct posenc_kernels *const tables[] = {
    [POSENC_ISA_SCALAR] = &posenc_kernels_scalar,
#ifdef POSENC_HAVE_AVX2
    [POSENC_ISA_AVX2] = &posenc_kernels_avx2,
#endif
#ifdef POSENC_HAVE_AVX512
    [POSENC_ISA_AVX512] = &posenc_kernels_avx512,
#endif
#ifdef POSENC_HAVE_NEON
    [POSENC_ISA_NEON] = &posenc_kernels_neon,
#endif
};

enum { COUNT = sizeof(tables) / sizeof(tables[0]) };

/*
 * Detection is repeatable, so threads that race to it store the same value and need no lock. It is
 * kept because cpuid traps in virtual machines.
 */
static uint32_t features(void)
{
    static _Atomic uint32_t known;
    uint32_t found = atomic_load_explicit(&known, memory_order_relaxed);
    if (!found) {
        found = posenc_cpu_features();
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found;
}

int posenc_asks_ahead(int64_t bytes)
{
    return bytes > 1 << 20 && !(features() & POSENC_CPU_AMD);
}

int posenc_fetches_twice(void)
{
    return (features() & POSENC_CPU_AMD) != 0;
}

int32_t posenc_isa_available(int32_t isa)
{
    return isa > POSENC_ISA_DEFAULT && isa < COUNT && tables[isa] && (features() >> isa & 1);
}

static int32_t choose_default(void)
{
    const char *wanted = getenv("POSENC_ISA");
    int32_t best = POSENC_ISA_SCALAR;
    for (int32_t isa = 1; isa < COUNT; isa++) {
        if (!posenc_isa_available(isa))
            continue;
        best = isa;
        if (wanted && strcmp(wanted, names[isa]) == 0)
            return isa;
    }
    return best;
}

/* The first answer stays, even if the environment changes between two racing threads. */
int32_t posenc_isa_default(void)
{
    static _Atomic int32_t chosen;
    int32_t isa = atomic_load_explicit(&chosen, memory_order_relaxed), none = 0;
    if (!isa) {
        isa = choose_default();
        if (!atomic_compare_exchange_strong(&chosen, &none, isa))
            isa = none;
    }
    return isa;
}

const char *posenc_isa_name(int32_t isa)
{
    int known = isa >= 0 && isa < (int32_t)(sizeof(names) / sizeof(names[0]));
    return known ? names[isa] : NULL;
}

const struct posenc_kernels *posenc_kernels_get(int32_t isa)
{
    if (isa == POSENC_ISA_DEFAULT)
        isa = posenc_isa_default();
    return posenc_isa_available(isa) ? tables[isa] : NULL;
}

int32_t posenc_kernels_choose(const struct posenc_kernels **kernels, int32_t isa, const char *name,
                              posenc_error *error)
{
    if (!posenc_isa_name(isa))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be a POSENC_ISA_* value",
                           name, (int64_t)isa);
    *kernels = posenc_kernels_get(isa);
    if (*kernels)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED,
                       "%s is %d (%s): this CPU or this build does not offer it", name,
                       (int64_t)isa, posenc_isa_name(isa));
}
