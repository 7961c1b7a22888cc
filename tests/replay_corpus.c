/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzzer's function over a kept corpus, without the fuzzer. The file holds inputs one after
 * another, each as its size in decimal, a line feed, and that many bytes (pack_corpus.py).
 *
 * usage: replay_corpus FILE
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 1 << 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 1 done, 0 at the end of the file, -1 where it breaks off. Each input has memory of exactly its
 * size, so that a sanitizer sees a byte too many. */
static int run_next(FILE *file)
{
    unsigned long size;
    int read = fscanf(file, "%lu", &size);
    if (read == EOF)
        return 0;
    if (read != 1 || size > LARGEST || fgetc(file) != '\n')
        return -1;
    uint8_t *data = malloc(size ? size : 1);
    int whole = data && fread(data, 1, size, file) == size;
    if (whole)
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    return whole ? 1 : -1;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    int count = 0, more;
    if (!file)
        return fprintf(stderr, "usage: replay_corpus FILE\n"), 2;
    while ((more = run_next(file)) > 0)
        count++;
    fclose(file);
    printf("%d inputs%s\n", count, more ? ", then the file breaks off" : "");
    return more || !count;
}
