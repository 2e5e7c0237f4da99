/* SPDX-License-Identifier: MIT */
/* The kernel's aio calls with what is recorded of them; for libaio's names and for syscall().
 * Each returns what the system call would: a result or -errno. */
#ifndef CAPTURE_PRELOAD_LIBAIO_H
#define CAPTURE_PRELOAD_LIBAIO_H

#include "capture/preload.h"

struct iocb;
struct io_event;

long libaio_submit(uint64_t context, long count, struct iocb **iocbs);
/* number: SYS_io_getevents or SYS_io_pgetevents. */
long libaio_getevents(long number, uint64_t context, long min, long max,
                      struct io_event *events, struct timespec *timeout, void *mask);
long libaio_destroy(uint64_t context);

#endif
