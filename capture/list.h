/* SPDX-License-Identifier: MIT */
/* iotape capture --list: the recorders, whether they can run here, and what each sees. */
#ifndef CAPTURE_LIST_H
#define CAPTURE_LIST_H

#include <stdio.h>

void list_print(FILE *out);

#endif
