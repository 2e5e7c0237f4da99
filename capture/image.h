/* SPDX-License-Identifier: MIT */
/*
 * The collector's side of ring.h: one process image and the rings of its threads, turned into
 * ops of the session. What the traced program shares is checked, never trusted. One thread.
 */
#ifndef CAPTURE_IMAGE_H
#define CAPTURE_IMAGE_H

#include <sys/types.h>

#include "capture/pending.h"
#include "capture/ring.h"
#include "capture/recorder.h"

struct image_ring {
    struct image_ring *next;
    struct ring_header *header; /* mapped */
    const struct ring_record *records;
    size_t bytes;
    uint32_t slots, stream;
    uint64_t head;                   /* next to be taken */
    uint64_t dropped, dropped_files, dropped_done, passed; /* as counted so far */
    uint32_t tid;                                          /* as the process sees it */
    bool passing; /* from its first op on: what came before the shim knew is passed over here */
    bool early_counted;
    uint64_t stuck_head, stuck_since_ns; /* an op that has not ended while later ones have */
};

struct image {
    struct image *next;
    uint64_t id;
    pid_t pid;                    /* as we see it */
    uint32_t told_pid, told_ppid; /* as it sees them */
    int pidfd;                    /* readable when the process has ended; -1 = none */
    bool ended;                   /* nothing more will be written */
    struct ring_header *area;
    size_t area_bytes;
    uint64_t area_head;
    uint32_t *files; /* number -> session file, TRACE_NONE_U32 = not told yet */
    uint32_t file_room;
    struct image_ring *rings;
    struct pending pending;
    uint64_t batch_base; /* of this image's batch numbers */
    bool distrusted;     /* it wrote nonsense: no longer read */
};

/* Its threads that a sample of one stream in so many does not keep stop recording. */
void image_sample(struct image *image, unsigned int one_in);
/* Maps the process area in memfd (which stays the caller's). -EBADMSG for a hello that cannot
 * be right. */
int image_new(struct image **ret_image, const struct ring_hello *hello, pid_t pid,
              int memfd) TRACE_MUST_CHECK;
int image_add_ring(struct image *image, struct session *session, const struct ring_hello *hello,
                   int memfd, unsigned int one_in) TRACE_MUST_CHECK;
/* Delivers what there is; a count of ops, or -errno of the session. */
int image_drain(struct image *image, struct session *session, uint64_t now_ns) TRACE_MUST_CHECK;
/* After the last drain of an ended image: what is in flight, as such. */
int image_finish(struct image *image, struct session *session) TRACE_MUST_CHECK;
void image_free(struct image *image); /* NULL is fine */

#endif
