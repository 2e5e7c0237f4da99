/* SPDX-License-Identifier: MIT */
/*
 * Inputs as the core makes them: convert/importer.h is what an importer sees of one.
 *
 * An input opens its file at the first read, so that a list may be longer than the limit of
 * open files, and unpacks compressed files and tar members on the way. One thread at a time.
 */
#ifndef CONVERT_INPUT_H
#define CONVERT_INPUT_H

#include "convert/importer.h"

struct input_list {
    struct input **items; /* owned */
    size_t count, capacity;
};

/* A path ("-" is standard input); every member when it is a tar. The diag outlives the list. */
int input_list_add_path(struct input_list *list, const char *path, struct diag *diag);
/* Bytes that outlive the list. */
int input_list_add_memory(struct input_list *list, const char *name, const void *bytes,
                          size_t length, struct diag *diag);
void input_list_release(struct input_list *list);

/* Closes a file that nothing was consumed of; it opens again at the next read. */
void input_park(struct input *input);
/* Ends an input: its buffer and descriptor are given back. Reads after it are -EBADF. */
void input_close(struct input *input);
/* Set by a signal handler: every later read of any input is -EINTR. */
void input_interrupt(void);
bool input_interrupted(void);

#endif
