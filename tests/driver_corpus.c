/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over the files of a folder: the regression half of fuzzing. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, got;

    if (!file)
        return -1;
    data = malloc(1u << 24);
    if (data)
        while ((got = fread(data + size, 1, (1u << 24) - size, file)) > 0)
            size += got;
    fclose(file);
    if (!data)
        return -1;
    /* A copy of the exact size, so that ASan sees one byte too far. */
    uint8_t *exact = malloc(size ? size : 1);
    if (exact) {
        memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
    }
    free(exact);
    free(data);
    return exact ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct dirent *entry;
    unsigned int count = 0;
    DIR *dir;

    if (argc != 2 || !(dir = opendir(argv[1]))) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    while ((entry = readdir(dir))) {
        char path[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        if (run_file(path) < 0) {
            perror(path);
            return 1;
        }
        count++;
    }
    closedir(dir);
    printf("%u inputs\n", count);
    return count ? 0 : 1;
}
