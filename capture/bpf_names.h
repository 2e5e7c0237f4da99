/* SPDX-License-Identifier: MIT */
/*
 * The files of a bpf capture: their identity in the kernel, the name each has now, and its
 * number in the session's table. A renamed file gets another entry there, under the new name.
 */
#ifndef CAPTURE_BPF_NAMES_H
#define CAPTURE_BPF_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "capture/bpf_event.h"
#include "capture/bpf_table.h"
#include "capture/recorder.h"

struct bpf_names {
    struct session *session;
    struct bpf_table files;      /* struct bpf_file_key -> struct bpf_name */
    struct bpf_table paths;      /* hash of a path -> the struct bpf_name that has it now */
    char path[BPF_PATH_MAX * 2]; /* scratch */
};

void bpf_names_init(struct bpf_names *self, struct session *session);
void bpf_names_release(struct bpf_names *self);
/* A file is met, or opened under a name. size is of the event with its text: -EBADMSG when the
 * two do not fit, else an error of the session or -ENOMEM. */
int bpf_names_event(struct bpf_names *self, const struct bpf_event_file *event,
                    size_t size) TRACE_MUST_CHECK;
/* The number of an op's file; TRACE_NONE_U32 for an empty key. One whose path was lost with the
 * ring full is named by its inode. */
int bpf_names_number(struct bpf_names *self, const struct bpf_file_key *key,
                     uint32_t *ret_number) TRACE_MUST_CHECK;
/* A file known by an absolute path alone, an argument of a name-space call. kind: enum
 * trace_file_kind, for one that has not been met. */
int bpf_names_by_path(struct bpf_names *self, const char *path, uint8_t kind,
                      uint32_t *ret_number) TRACE_MUST_CHECK;
/* After a rename the file, or all files of the folder, have the new name. */
int bpf_names_renamed(struct bpf_names *self, const char *from,
                      const char *to) TRACE_MUST_CHECK;

#endif
