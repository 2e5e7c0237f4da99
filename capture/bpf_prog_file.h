/* SPDX-License-Identifier: MIT */
/*
 * BPF side: from a descriptor to its file, and the delivery of a file's path. The path is read
 * from the dentries, so it is right whatever the process did with its descriptors (dup, fork,
 * passing over a socket) and whether or not it is still there to ask.
 */
#ifndef CAPTURE_BPF_PROG_FILE_H
#define CAPTURE_BPF_PROG_FILE_H

#include "capture/bpf_prog.h"

enum {
    PATH_DEPTH_MAX = 40,
    NAME_BYTES_MAX = 256,
};

static __always_inline struct task_struct *task_get(void)
{
    return (struct task_struct *)bpf_get_current_task();
}

static __always_inline struct file *file_of_fd(int fd)
{
    struct files_struct *files;
    struct fdtable *table;
    struct file **array, *file = NULL;
    unsigned int count;

    GET(files, struct task_struct, task_get(), files);
    GET(table, struct files_struct, files, fdt);
    GET(count, struct fdtable, table, max_fds);
    if ((unsigned int)fd >= count)
        return NULL;
    GET(array, struct fdtable, table, fd);
    bpf_probe_read_kernel(&file, sizeof(file), &array[fd]);
    return file;
}

/* Of folders only fsync is I/O: it is what makes a rename or an unlink last. */
static __always_inline bool mode_kept(__u16 mode, bool folders)
{
    mode &= KERNEL_MODE_TYPE;
    return all_fds || mode == KERNEL_MODE_REG || mode == KERNEL_MODE_BLK ||
           (folders && mode == KERNEL_MODE_DIR);
}

/*
 * Functions that are not static are verified once, on their own, whoever calls them: the walk
 * below would otherwise be followed again at every place it is used from. They take numbers
 * only: pointers are allowed since 5.12.
 *
 * Writes the components of the path at `from` (struct path *) from the leaf up to the task's
 * root into the scratch text. Returns their bytes, and BPF_FILE_* above bit 32.
 */
__noinline __u64 path_walk(__u64 from)
{
    struct scratch *s = scratch_get();
    struct fs_struct *fs = BPF_CORE_READ(task_get(), fs);
    struct dentry *root = BPF_CORE_READ(fs, root.dentry);
    struct vfsmount *root_mount = BPF_CORE_READ(fs, root.mnt);
    struct dentry *dentry = BPF_CORE_READ((struct path *)from, dentry);
    struct vfsmount *mount = BPF_CORE_READ((struct path *)from, mnt);
    struct dentry *leaf = dentry;
    __u64 flags = BPF_FILE_TRUNCATED;

    if (!s)
        return flags << 32;
    s->at = 0; /* in memory, so that the verifier need not tell its values apart */
    for (int i = 0; i < PATH_DEPTH_MAX; i++) {
        struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
        __u32 at = s->at & (BPF_PATH_MAX - 1);
        long n;

        if (dentry == root && mount == root_mount) {
            flags = 0;
            break;
        }
        if (dentry == parent || dentry == BPF_CORE_READ(mount, mnt_root)) {
            struct mount *own = (void *)mount - bpf_core_field_offset(struct mount, mnt);
            struct mount *above = BPF_CORE_READ(own, mnt_parent);

            if (above == own || !above) {
                flags = 0;
                break;
            }
            dentry = BPF_CORE_READ(own, mnt_mountpoint);
            mount = (void *)above + bpf_core_field_offset(struct mount, mnt);
            continue;
        }
        n = bpf_probe_read_kernel_str(&s->out.text[at], NAME_BYTES_MAX,
                                      BPF_CORE_READ(dentry, d_name.name));
        if (n > 0)
            s->at = at + n;
        if (s->at >= BPF_PATH_MAX - NAME_BYTES_MAX)
            break;
        dentry = parent;
    }
    if (!s->at && leaf == BPF_CORE_READ(leaf, d_parent) && leaf != root) {
        /* No folder above it: memfd, anonymous inodes, detached mounts. */
        long n = bpf_probe_read_kernel_str(s->out.text, NAME_BYTES_MAX,
                                           BPF_CORE_READ(leaf, d_name.name));

        s->at = n > 0 ? n : 0;
        flags |= BPF_FILE_PSEUDO;
    }
    if (!BPF_CORE_READ(leaf, d_hash.pprev) && leaf != BPF_CORE_READ(leaf, d_parent))
        flags |= BPF_FILE_DELETED;
    return s->at | flags << 32;
}

/* Puts the scratch head and `bytes` of text into the ring; 0 when it is full. */
static __always_inline int scratch_output(struct scratch *s, __u32 bytes)
{
    bytes = (bytes + sizeof(s->out.head) + 7) & ~7u;
    if (bytes > sizeof(s->out.head) + BPF_PATH_MAX + NAME_BYTES_MAX)
        return 0;
    return bpf_ringbuf_output(&events, &s->out, bytes, BPF_RB_NO_WAKEUP) == 0;
}

static __always_inline void inode_key(struct inode *inode, struct bpf_file_key *ret_key)
{
    struct super_block *sb;

    GET(ret_key->inode, struct inode, inode, i_ino);
    GET(ret_key->generation, struct inode, inode, i_generation);
    GET(sb, struct inode, inode, i_sb);
    GET(ret_key->device, struct super_block, sb, s_dev);
}

/* The file's inode; NULL when there is no file, or its kind is not recorded. */
static __always_inline struct inode *inode_kept(struct file *file, bool folders)
{
    struct inode *inode;
    __u16 mode;

    if (!file)
        return NULL;
    GET(inode, struct file, file, f_inode);
    GET(mode, struct inode, inode, i_mode);
    return mode_kept(mode, folders) ? inode : NULL;
}

/* The file's identity; false when its kind is not recorded. */
static __always_inline bool file_key(struct file *file, struct bpf_file_key *ret_key,
                                     bool folders)
{
    struct inode *inode = inode_kept(file, folders);

    if (!inode)
        return false;
    inode_key(inode, ret_key);
    return true;
}

/* Delivers the facts and the path of a struct file; more: further BPF_FILE_* flags. Returns
 * whether it could. */
__noinline int file_announce(__u64 file_address, __u32 more)
{
    struct file *file = (struct file *)file_address;
    struct inode *inode = BPF_CORE_READ(file, f_inode);
    struct scratch *s = scratch_get();
    struct bpf_event_file *event;
    struct bpf_file_key key = {};
    __u32 one = 1;
    __u64 walked;

    if (!s)
        return 0;
    inode_key(inode, &key);
    event = &s->out.head.file;
    walked = path_walk(file_address + bpf_core_field_offset(struct file, f_path));
    event_head(&event->head, BPF_EVENT_FILE, 0, 0);
    event->head.flags = (walked >> 32) | more;
    event->key = key;
    event->mode = BPF_CORE_READ(inode, i_mode);
    event->rdev = BPF_CORE_READ(inode, i_rdev);
    event->blocks = BPF_CORE_READ(inode, i_blocks);
    /* A block device's size is on the inode of its page cache. */
    event->size_bytes = BPF_CORE_READ(file, f_mapping, host, i_size);
    event->path_bytes = (__u32)walked;
    event->unused = 0;
    if (!scratch_output(s, (__u32)walked))
        return 0;
    bpf_map_update_elem(&seen_files, &key, &one, BPF_ANY);
    return 1;
}

static __always_inline bool key_equal(const struct bpf_file_key *a,
                                      const struct bpf_file_key *b)
{
    return a->inode == b->inode && a->device == b->device && a->generation == b->generation;
}

/* As file_key, and sees to it that the file has been delivered; known: the last that was. */
static __always_inline bool file_meet(struct bpf_file_key *known, struct file *file,
                                      struct bpf_file_key *ret_key, bool folders)
{
    if (!file_key(file, ret_key, folders))
        return false;
    if (key_equal(ret_key, known))
        return true;
    if (bpf_map_lookup_elem(&seen_files, ret_key) || file_announce((__u64)file, 0))
        *known = *ret_key;
    return true;
}

/* ---- path arguments ---------------------------------------------------------------------- */

static __always_inline void path_output(struct scratch *s, __u8 which, __u32 bytes)
{
    struct bpf_event_path *event = &s->out.head.path;

    event_head(&event->head, BPF_EVENT_PATH, which, 0);
    event->path_bytes = bytes;
    event->unused = 0;
    scratch_output(s, bytes);
}

/* The folder a relative path starts from. */
__noinline int path_base(int dirfd, __u32 which)
{
    struct scratch *s = scratch_get();
    __u64 from;

    if (!s)
        return 0;
    if (dirfd == KERNEL_AT_FDCWD) {
        from =
            (__u64)BPF_CORE_READ(task_get(), fs) + bpf_core_field_offset(struct fs_struct, pwd);
    } else {
        from = (__u64)file_of_fd(dirfd);
        if (!from)
            return 0;
        from += bpf_core_field_offset(struct file, f_path);
    }
    path_output(s, which, (__u32)path_walk(from));
    return 0;
}

/* A path argument: its text, and before it its folder when it is relative. */
__noinline int path_deliver(__u64 address, int dirfd, __u32 which, int in_kernel)
{
    struct scratch *s = scratch_get();
    const void *text = (const void *)address;
    long n;

    if (!s)
        return 0;
    if (in_kernel)
        n = bpf_probe_read_kernel_str(s->out.text, 4, text);
    else
        n = bpf_probe_read_user_str(s->out.text, 4, text);
    if (n <= 0) {
        lost_add(BPF_LOST_USER, 1);
        return 0;
    }
    if (s->out.text[0] != '/')
        path_base(dirfd, which);
    if (in_kernel)
        n = bpf_probe_read_kernel_str(s->out.text, BPF_PATH_MAX, text);
    else
        n = bpf_probe_read_user_str(s->out.text, BPF_PATH_MAX, text);
    if (n > 0)
        path_output(s, which + 1, n);
    return 0;
}

#endif
