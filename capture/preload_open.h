/* SPDX-License-Identifier: MIT */
/* Recording an open, for open itself and for stdio's, whose own call no shim sees. */
#ifndef CAPTURE_PRELOAD_OPEN_H
#define CAPTURE_PRELOAD_OPEN_H

#include "capture/preload.h"

struct open_call {
    int dir_fd;
    const char *path;
    int flags;
    struct file_before before;
};

/* Before the call; NULL when it is not recorded. */
struct ring_record *open_begin(struct open_call *call, int dir_fd, const char *path, int flags);
/* After it, with its descriptor or -1 and errno, which is kept. */
void open_end(struct ring_record *record, struct open_call *call, int fd);

#endif
