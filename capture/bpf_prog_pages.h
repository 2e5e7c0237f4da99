/* SPDX-License-Identifier: MIT */
/*
 * BPF side: mapped files. A load or store makes no call, but a page it brings into the page
 * cache, and a page it makes dirty (which will be written back once), pass a tracepoint. What
 * the thread's own call on the same file does there is that call's, and left out.
 */
#ifndef CAPTURE_BPF_PROG_PAGES_H
#define CAPTURE_BPF_PROG_PAGES_H

#include "capture/bpf_prog_sample.h"
#include "traces/trace.h"

enum {
    TASK_KERNEL_THREAD = 0x00200000, /* PF_KTHREAD */
    TASK_IO_WORKER = 0x00000010,     /* PF_IO_WORKER: io_uring's */
    MEMORY_FILE_SYSTEM = 0x01021994, /* tmpfs: its pages are all there is */
};

static __always_inline __u64 folio_bytes(struct folio *folio)
{
    struct folio___before_6_15 *old = (void *)folio;
    unsigned long flags = 0;

    bpf_probe_read_kernel(&flags, sizeof(flags), folio);
    if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
        return page_bytes;
    if (bpf_core_field_exists(folio->_nr_pages))
        return BPF_CORE_READ(folio, _nr_pages) * page_bytes;
    if (bpf_core_field_exists(old->_folio_nr_pages))
        return BPF_CORE_READ(old, _folio_nr_pages) * page_bytes;
    return page_bytes;
}

/* A file known by its inode alone; user space looks for its path among the mappings. */
__noinline int inode_announce(__u64 inode_address)
{
    struct inode *inode = (struct inode *)inode_address;
    struct scratch *s = scratch_get();
    struct bpf_event_file *event;
    struct bpf_file_key key = {};
    __u32 one = 1;

    if (!s)
        return 0;
    inode_key(inode, &key);
    event = &s->out.head.file;
    event_head(&event->head, BPF_EVENT_FILE, 0, 0);
    event->head.flags = BPF_FILE_BY_INODE;
    event->key = key;
    event->mode = BPF_CORE_READ(inode, i_mode);
    event->rdev = BPF_CORE_READ(inode, i_rdev);
    event->blocks = BPF_CORE_READ(inode, i_blocks);
    event->size_bytes = BPF_CORE_READ(inode, i_size);
    event->path_bytes = 0;
    event->unused = 0;
    if (!scratch_output(s, 0))
        return 0;
    bpf_map_update_elem(&seen_files, &key, &one, BPF_ANY);
    return 1;
}

/* Is the page this call's doing? */
static __always_inline bool page_of_call(struct bpf_thread *thread,
                                         const struct bpf_file_key *key)
{
    __u8 class;

    if (!thread->call)
        return false;
    class = calls[(thread->call - 1) & (BPF_CALLS_MAX - 1)].class;
    switch (class) {
    case BPF_CLASS_MAP: /* MAP_POPULATE */ return false;
    case BPF_CLASS_COPY:
    case BPF_CLASS_OPEN:
    case BPF_CLASS_PATH:
    case BPF_CLASS_AIO_SUBMIT:
    case BPF_CLASS_AIO_REAP:
    case BPF_CLASS_URING_ENTER: return true;
    default: return key_equal(key, &thread->key);
    }
}

static __always_inline int page_tell(struct folio *folio, __u8 kind)
{
    unsigned int task_flags = BPF_CORE_READ(task_get(), flags);
    struct bpf_event_op *event;
    struct bpf_file_key key = {};
    struct bpf_thread *thread;
    struct super_block *sb;
    struct inode *inode;
    __u16 mode;

    if (task_flags & (TASK_KERNEL_THREAD | TASK_IO_WORKER))
        return 0;
    thread = thread_get();
    if (!thread || sample_passes())
        return 0;
    inode = BPF_CORE_READ(folio, mapping, host);
    mode = BPF_CORE_READ(inode, i_mode) & KERNEL_MODE_TYPE;
    sb = BPF_CORE_READ(inode, i_sb);
    if (mode != KERNEL_MODE_REG || BPF_CORE_READ(sb, s_magic) == MEMORY_FILE_SYSTEM)
        return 0;
    inode_key(inode, &key);
    if (page_of_call(thread, &key))
        return 0;
    if (!bpf_map_lookup_elem(&seen_files, &key))
        inode_announce((__u64)inode);
    thread_announce(thread);
    event = event_reserve(sizeof(*event));
    if (!event)
        return 0;
    __builtin_memset(event, 0, sizeof(*event));
    event_head(&event->head, BPF_EVENT_OP, kind, BPF_CLASS_PAGES);
    event->head.api = TRACE_API_MMAP;
    event->issue_ns = bpf_ktime_get_ns();
    event->done_ns = event->issue_ns;
    event->offset = (__u64)BPF_CORE_READ(folio, index) * page_bytes;
    event->length = folio_bytes(folio);
    event->file = key;
    event_submit(event);
    return 0;
}

#endif
