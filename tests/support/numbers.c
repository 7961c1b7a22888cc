/* SPDX-License-Identifier: MIT */
/* A reader of the plain number files, so that the core's tests need no JSON library. */
#include "numbers.h"

#include "test.h"

#include <stdio.h>

#ifndef POSENC_TEST_DATA
#define POSENC_TEST_DATA "tests/data"
#endif

const char *test_data_path(const char *file, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", POSENC_TEST_DATA, file);
    return path;
}

static FILE *open_data(const char *file)
{
    char path[1024];
    FILE *stream = fopen(test_data_path(file, path, sizeof path), "r");

    if (stream == NULL) fail_msg("cannot open %s", path);
    return stream;
}

/* 1 if the next word of `*line` is `word`; steps over it then. */
static int starts_with(const char **line, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*line, word, length) != 0 || (*line)[length] != ' ') return 0;
    *line += length + 1;
    return 1;
}

size_t test_numbers(const char *file, const char *id, const char *name, double *values,
                    size_t capacity)
{
    static char line[1 << 16];
    size_t count = 0;
    FILE *stream = open_data(file);

    while (fgets(line, sizeof line, stream)) {
        const char *rest = line;
        char *end;

        if (!starts_with(&rest, id) || !starts_with(&rest, name)) continue;
        for (;;) {
            double value = strtod(rest, &end);

            if (end == rest) break;
            if (count == capacity)
                fail_msg("%s %s %s: more than %zu values", file, id, name, count);
            values[count++] = value;
            rest = end;
        }
        fclose(stream);
        return count;
    }
    fclose(stream);
    fail_msg("%s has no line \"%s %s\"", file, id, name);
    return 0;
}

int test_number_id(const char *file, const char *name, size_t n, char *id, size_t size)
{
    static char line[1 << 16];
    FILE *stream = open_data(file);
    int found = 0;

    while (!found && fgets(line, sizeof line, stream)) {
        size_t length = strcspn(line, " ");
        const char *rest = line + length + 1;

        if (line[length] == '\0' || !starts_with(&rest, name) || n-- > 0) continue;
        assert_true(length < size);
        memcpy(id, line, length);
        id[length] = '\0';
        found = 1;
    }
    fclose(stream);
    return found;
}
