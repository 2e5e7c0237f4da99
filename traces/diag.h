/* SPDX-License-Identifier: MIT */
/*
 * Where an error is described, once, by the function that knows. Callers hand the code up;
 * only a program's main.c prints the text and picks the exit status.
 *
 * A diag belongs to one thread. The first error set is kept: later ones are consequences.
 */
#ifndef TRACES_DIAG_H
#define TRACES_DIAG_H

struct diag {
    int error;       /* 0, or the -errno that came with the text */
    char text[1024]; /* one line, no newline: "t.tape: byte 40960: checksum wrong" */
    /* Things worth a line that are not errors (a downgrade, a damaged block). NULL: dropped. */
    void (*note)(void *context, const char *text);
    void *note_context;
};

#define DIAG_INIT {0}

/* Stores error (negative) and the text unless one is stored already; returns error. diag may
 * be NULL. Control characters in the text become '?': bytes of hostile files are quoted here. */
int diag_set(struct diag *diag, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As diag_set, and appends ": " and the words of strerror(-error). */
int diag_errno(struct diag *diag, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Hands a line to the program's note function. */
void diag_note(struct diag *diag, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void diag_clear(struct diag *diag);

#endif
