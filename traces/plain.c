/* SPDX-License-Identifier: MIT */
#include "traces/plain.h"

size_t plain_control(const char *text)
{
    unsigned char first = (unsigned char)text[0], second;

    if (first == 0)
        return 0;
    if (first < 0x20 || first == 0x7f)
        return 1;
    second = (unsigned char)text[1];
    return first == 0xc2 && second >= 0x80 && second < 0xa0 ? 2 : 0;
}

void plain_clean(char *text)
{
    char *to = text;

    while (*text) {
        size_t control = plain_control(text);

        *to++ = control ? '?' : *text;
        text += control ? control : 1;
    }
    *to = '\0';
}
