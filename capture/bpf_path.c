/* SPDX-License-Identifier: MIT */
#include "capture/bpf_path.h"

#include <errno.h>
#include <string.h>

int bpf_path_from_components(const char *components, size_t size, char *out, size_t out_size)
{
    size_t length = 0, at = size;

    if (out_size < 2)
        return -ENAMETOOLONG;
    while (at > 0) {
        size_t end = at - 1, start = end; /* components[end] is the NUL */

        while (start > 0 && components[start - 1] != '\0')
            start--;
        if (end > start) {
            if (length + 1 + (end - start) + 1 > out_size)
                return -ENAMETOOLONG;
            out[length++] = '/';
            memcpy(out + length, components + start, end - start);
            length += end - start;
        }
        at = start;
    }
    if (length == 0)
        out[length++] = '/';
    out[length] = '\0';
    return (int)length;
}

/* Appends the components of text to out, which holds an absolute path without a last slash. */
static int append_resolved(char *out, size_t out_size, size_t length, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "/");

        if (n == 2 && text[0] == '.' && text[1] == '.') {
            while (length > 0 && out[length - 1] != '/')
                length--;
            if (length > 0)
                length--;
        } else if (n > 0 && !(n == 1 && text[0] == '.')) {
            if (length + 1 + n + 1 > out_size)
                return -ENAMETOOLONG;
            out[length++] = '/';
            memcpy(out + length, text, n);
            length += n;
        }
        text += n;
        text += strspn(text, "/");
    }
    return (int)length;
}

int bpf_path_join(const char *base, const char *text, char *out, size_t out_size)
{
    int length = 0;

    if (out_size < 2)
        return -ENAMETOOLONG;
    if (text[0] != '/' && base)
        length = append_resolved(out, out_size, 0, base);
    if (length >= 0)
        length = append_resolved(out, out_size, (size_t)length, text);
    if (length < 0)
        return length;
    if (length == 0)
        out[length++] = '/';
    out[length] = '\0';
    return length;
}
