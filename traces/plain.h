/* SPDX-License-Identifier: MIT */
/*
 * Text of hostile files that a terminal may be shown. Control characters, those of UTF-8's second
 * set (U+0080 to U+009F, which terminals obey too) among them, become '?'. All else is kept.
 */
#ifndef TRACES_PLAIN_H
#define TRACES_PLAIN_H

#include <stddef.h>

/* How many bytes the control character that text begins with takes: 0 when it is none. */
size_t plain_control(const char *text);
/* In place; the text gets no longer. */
void plain_clean(char *text);

#endif
