/* SPDX-License-Identifier: MIT */
/*
 * Path texts out of what the BPF programs deliver: components from the leaf to the root, and a
 * program's own path argument relative to such a folder.
 */
#ifndef CAPTURE_BPF_PATH_H
#define CAPTURE_BPF_PATH_H

#include <stddef.h>

/*
 * Both write a NUL-ended absolute path into out and return its length, or -ENAMETOOLONG.
 *
 * components: size bytes of NUL-ended names, leaf first; none is the root folder "/".
 */
int bpf_path_from_components(const char *components, size_t size, char *out, size_t out_size);
/* text below base, with "." , ".." and doubled slashes resolved as text (symbolic links are
 * not followed). An absolute text ignores base; base may be NULL, which stands for "/". */
int bpf_path_join(const char *base, const char *text, char *out, size_t out_size);

#endif
