/* SPDX-License-Identifier: MIT */
#include "traces/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "traces/plain.h"

__attribute__((format(printf, 3, 0))) static void text_format(char *text, size_t size,
                                                              const char *format, va_list args)
{
    vsnprintf(text, size, format, args);
    /* Text of hostile files is quoted in messages: nothing in it may steer a terminal. */
    plain_clean(text);
}

int diag_set(struct diag *diag, int error, const char *format, ...)
{
    va_list args;

    if (!diag || diag->error)
        return error;
    diag->error = error;
    va_start(args, format);
    text_format(diag->text, sizeof(diag->text), format, args);
    va_end(args);
    return error;
}

int diag_errno(struct diag *diag, int error, const char *format, ...)
{
    va_list args;
    size_t length;
    char words[128];

    if (!diag || diag->error)
        return error;
    diag->error = error;
    va_start(args, format);
    text_format(diag->text, sizeof(diag->text), format, args);
    va_end(args);
    length = strlen(diag->text);
    /* The GNU strerror_r: may return a static string instead of filling words. */
    snprintf(diag->text + length, sizeof(diag->text) - length, ": %s",
             strerror_r(-error, words, sizeof(words)));
    return error;
}

void diag_note(struct diag *diag, const char *format, ...)
{
    char text[sizeof(diag->text)];
    va_list args;

    if (!diag || !diag->note)
        return;
    va_start(args, format);
    text_format(text, sizeof(text), format, args);
    va_end(args);
    diag->note(diag->note_context, text);
}

void diag_clear(struct diag *diag)
{
    diag->error = 0;
    diag->text[0] = '\0';
}
