/* SPDX-License-Identifier: MIT */
/*
 * From the words of a command line to inputs: per-CPU sets by base name, directories, members
 * of archives, and text for the formats that are given as text.
 */
#ifndef CONVERT_OPERANDS_H
#define CONVERT_OPERANDS_H

#include "convert/input.h"

struct operands {
    struct input_list inputs;
    /* The format of a directory that was given, or NULL: content does not say it again. */
    const struct importer *importer;
    char *notes[8]; /* "siblings exist": owned */
    size_t note_count;
    /* Every file that was opened, so that an output can be kept off them. */
    struct operands_file {
        uint64_t device, inode;
    } * files;
    size_t file_count;
};

/*
 * A path that is a file is that file; NAME where NAME.blktrace.0 ... exist is all of those; a
 * directory is its *.blktrace.CPU files, or all of its files when a format takes directories
 * and knows them. importer is the forced one, or NULL. Errors: diag set.
 */
int operands_add(struct operands *operands, const char *word, const struct importer *importer,
                 struct diag *diag);
/* Is path one of the files that are read? */
bool operands_include(const struct operands *operands, const char *path);
void operands_release(struct operands *operands);

#endif
