/* SPDX-License-Identifier: MIT */
/* prog_stdio FOLDER: stdio in many ways, for comparing what a recorder derives with strace. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char bytes[40000];

static FILE *open_in(const char *folder, const char *name, const char *mode)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, mode);
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void write_many_ways(const char *folder)
{
    FILE *file = open_in(folder, "lines", "w");

    for (int i = 0; i < 1000; i++) {
        fputs("hello world", file);
        fputc('\n', file);
        fprintf(file, "%d %s\n", i, "more");
        if (i % 100 == 0)
            fwrite(bytes, 1, (size_t)i * 12, file);
    }
    fseek(file, 10, SEEK_SET);
    fputs("abc", file);
    fclose(file);
    file = open_in(folder, "unbuffered", "w");
    setvbuf(file, NULL, _IONBF, 0);
    fprintf(file, "%s and %d\n", "text", 42);
    fputs("words", file);
    fputc('x', file);
    fwrite(bytes, 1, 9000, file);
    fclose(file);
    file = open_in(folder, "small", "w");
    setvbuf(file, NULL, _IOFBF, 1000);
    for (int i = 0; i < 50; i++)
        fprintf(file, "%0*d\n", i * 7 + 1, i);
    fflush(file);
    fputs("after the flush", file);
    fclose(file);
    file = open_in(folder, "lines", "a");
    fputs("the end\n", file);
    fclose(file);
}

static void read_many_ways(const char *folder)
{
    FILE *file = open_in(folder, "lines", "r");
    char *line = NULL, word[100];
    size_t room = 0;

    while (fgets(bytes, 300, file))
        ;
    fclose(file);
    file = open_in(folder, "lines", "r");
    while (fread(bytes, 1, 8192, file) > 0)
        ;
    if (fread(bytes, 1, 8192, file) || fread(bytes, 1, 100, file))
        exit(1);
    clearerr(file);
    if (fread(bytes, 1, 100, file))
        exit(1);
    fclose(file);
    file = open_in(folder, "lines", "r");
    while (fread(bytes, 1, 1000, file) == 1000)
        ;
    fclose(file);
    file = open_in(folder, "lines", "r");
    while (getline(&line, &room, file) > 0)
        ;
    rewind(file);
    while (getc(file) != EOF)
        ;
    fclose(file);
    file = open_in(folder, "lines", "r");
    for (int i = 0; i < 100; i++)
        if (fscanf(file, "%99s", word) != 1)
            exit(1);
    fseek(file, 20000, SEEK_SET);
    fgetc(file);
    fseek(file, -3, SEEK_CUR);
    fgetc(file);
    fclose(file);
    free(line);
}

static void read_and_write(const char *folder)
{
    FILE *file = open_in(folder, "both", "w+");

    fwrite(bytes, 1, 10000, file);
    rewind(file);
    if (fread(bytes, 1, 5000, file) != 5000)
        exit(1);
    fseek(file, 0, SEEK_END);
    fputs("more", file);
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    memset(bytes, 'x', sizeof(bytes));
    write_many_ways(argv[1]);
    read_many_ways(argv[1]);
    read_and_write(argv[1]);
    fputs("left for exit to write\n", open_in(argv[1], "left", "w"));
    return 0;
}
