/* SPDX-License-Identifier: MIT */
/* First use from many threads at once, in fresh processes; one plan shared by all (B44-a). */
#include "support/random.h"
#include "support/test.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 64, TOKENS = 7, HEADS = 2, WIDTH = 32, COUNT = TOKENS * HEADS * WIDTH };

struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const posenc_plan *shared; /* NULL: each makes its own, as its first call into the library */
    int which;                 /* varies the first call */
    int failed;
    int32_t isa;
    float data[COUNT];
};

static void fill(float *data)
{
    struct test_random random = {61};

    for (int i = 0; i < COUNT; i++) data[i] = test_unit(&random);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    posenc_plan *own = NULL;
    const posenc_plan *plan = worker->shared;

    fill(worker->data);
    pthread_barrier_wait(worker->barrier);
    if (worker->which % 3 == 0) worker->isa = posenc_isa_default();
    if (worker->which % 3 == 1) worker->failed |= !posenc_isa_available(POSENC_ISA_SCALAR);
    if (plan == NULL) {
        worker->failed |= posenc_plan_create_simple(&own, POSENC_SPLIT_HALF, WIDTH, 10000, NULL);
        plan = own;
    }
    worker->failed |=
        posenc_rope_flat(plan, worker->data, NULL, POSENC_F32, 1, TOKENS, HEADS, 0, 100, NULL);
    worker->isa = posenc_isa_default();
    posenc_plan_free(own);
    return NULL;
}

/* Releases all threads at once. Returns 0 if all agree on the kernels and on the bits. */
static int run_threads(const posenc_plan *shared)
{
    static struct worker workers[THREADS];
    pthread_barrier_t barrier;
    int failed = 0;

    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        memset(&workers[i], 0, sizeof workers[i]);
        workers[i].barrier = &barrier;
        workers[i].shared = shared;
        workers[i].which = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        failed |= workers[i].failed || workers[i].isa != workers[0].isa;
        failed |= memcmp(workers[i].data, workers[0].data, sizeof workers[i].data) != 0;
    }
    pthread_barrier_destroy(&barrier);
    return failed;
}

/* The library is fresh in every child: this process must not have called it yet. */
static void test_first_use(void **state)
{
    int processes = test_quick() ? 3 : 100;

    (void)state;
    for (int i = 0; i < processes; i++) {
        int status = 0;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) _exit(run_threads(NULL) ? 1 : 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0) fail_msg("process %d of %d ended with status 0x%x", i, processes, status);
    }
}

static void test_shared_plan(void **state)
{
    float alone[COUNT];
    posenc_plan *plan = NULL;

    (void)state;
    test_ok(posenc_plan_create_simple(&plan, POSENC_SPLIT_HALF, WIDTH, 10000, NULL), NULL);
    assert_int_equal(run_threads(plan), 0);
    fill(alone);
    test_ok(posenc_rope_flat(plan, alone, NULL, POSENC_F32, 1, TOKENS, HEADS, 0, 100, NULL), NULL);
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_use), /* first: see there */
        cmocka_unit_test(test_shared_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
