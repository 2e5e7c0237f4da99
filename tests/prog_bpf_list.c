/* SPDX-License-Identifier: MIT */
/* Prints the number of BPF programs loaded in the kernel, for the check that a capture leaves
 * none behind. Exit 77 when it may not ask. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    union bpf_attr attr;
    unsigned int id = 0, count = 0;

    for (;;) {
        memset(&attr, 0, sizeof(attr));
        attr.start_id = id;
        if (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr, sizeof(attr)) != 0)
            break;
        id = attr.next_id;
        count++;
    }
    if (errno != ENOENT)
        return 77;
    printf("%u\n", count);
    return 0;
}
