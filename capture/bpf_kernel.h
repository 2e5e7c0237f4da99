/* SPDX-License-Identifier: MIT */
/*
 * The kernel's structs as far as the BPF programs look into them. Only names and types matter:
 * the loader moves every access to where the running kernel has the field (CO-RE), so no
 * kernel headers are needed to build.
 *
 * GET(value, type, pointer, field) reads a field: with one plain load where the kernel lets a
 * pointer be cast (have_cast, 6.2 and newer), else through a helper call.
 */
#ifndef CAPTURE_BPF_KERNEL_H
#define CAPTURE_BPF_KERNEL_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define KERNEL __attribute__((preserve_access_index))

#define KERNEL_MODE_TYPE     0170000
#define KERNEL_MODE_DIR      0040000
#define KERNEL_MODE_REG      0100000
#define KERNEL_MODE_BLK      0060000
#define KERNEL_FMODE_CREATED (1u << 20)
#define KERNEL_AT_FDCWD      (-100)

struct super_block {
    __u32 s_dev;
    unsigned long s_magic;
} KERNEL;

struct inode;

struct address_space {
    struct inode *host;
} KERNEL;

struct inode {
    __u16 i_mode;
    struct super_block *i_sb;
    unsigned long i_ino;
    __u32 i_rdev;
    __s64 i_size;
    __u64 i_blocks;
    __u32 i_generation;
} KERNEL;

struct qstr {
    const unsigned char *name;
} KERNEL;

struct hlist_bl_node {
    struct hlist_bl_node **pprev;
} KERNEL;

struct dentry {
    struct hlist_bl_node d_hash;
    struct dentry *d_parent;
    struct qstr d_name;
    struct inode *d_inode;
} KERNEL;

struct vfsmount {
    struct dentry *mnt_root;
} KERNEL;

struct mount {
    struct mount *mnt_parent;
    struct dentry *mnt_mountpoint;
    struct vfsmount mnt;
} KERNEL;

struct path {
    struct vfsmount *mnt;
    struct dentry *dentry;
} KERNEL;

struct file {
    __u32 f_mode;
    struct address_space *f_mapping;
    struct inode *f_inode;
    unsigned int f_flags;
    struct path f_path;
    __s64 f_pos;
} KERNEL;

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
} KERNEL;

struct files_struct {
    struct fdtable *fdt;
} KERNEL;

struct fs_struct {
    struct path root, pwd;
} KERNEL;

struct signal_struct {
    struct {
        int counter;
    } live;
} KERNEL;

struct kernfs_node {
    __u64 id;
} KERNEL;

struct cgroup;

struct cgroup_subsys_state {
    struct cgroup *cgroup;
    struct cgroup_subsys_state *parent;
} KERNEL;

struct cgroup {
    struct cgroup_subsys_state self;
    struct kernfs_node *kn;
} KERNEL;

struct css_set {
    struct cgroup *dfl_cgrp;
} KERNEL;

struct thread_info {
    unsigned long flags;
    __u32 status;
} KERNEL;

struct task_struct {
    struct thread_info thread_info;
    int pid, tgid;
    struct task_struct *real_parent, *group_leader;
    unsigned int flags;
    char comm[16];
    struct css_set *cgroups;
    struct fs_struct *fs;
    struct files_struct *files;
    struct signal_struct *signal;
} KERNEL;

struct filename {
    const char *name;
} KERNEL;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
    unsigned long r10, r9, r8, dx, si, di, orig_ax;
} KERNEL;
#define REGS_ARG0(r)     ((r)->di)
#define REGS_ARG1(r)     ((r)->si)
#define REGS_ARG2(r)     ((r)->dx)
#define REGS_ARG3(r)     ((r)->r10)
#define REGS_ARG4(r)     ((r)->r8)
#define REGS_ARG5(r)     ((r)->r9)
#define REGS_CALL(r)     ((r)->orig_ax)
#define TASK_COMPAT_WORD thread_info.status
#define TASK_COMPAT_BIT  2
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
    __u64 regs[31];
} KERNEL;
struct pt_regs {
    __u64 regs[31];
    __u64 orig_x0;
    __s32 syscallno;
} KERNEL;
#define REGS_ARG0(r)     ((r)->orig_x0)
#define REGS_ARG1(r)     ((r)->regs[1])
#define REGS_ARG2(r)     ((r)->regs[2])
#define REGS_ARG3(r)     ((r)->regs[3])
#define REGS_ARG4(r)     ((r)->regs[4])
#define REGS_ARG5(r)     ((r)->regs[5])
#define REGS_CALL(r)     ((r)->syscallno)
#define TASK_COMPAT_WORD thread_info.flags
#define TASK_COMPAT_BIT  (1ul << 22)
#else
#error "the argument registers of this architecture are not known here"
#endif

/* ---- io_uring ---------------------------------------------------------------------------- */

struct kiocb {
    __s64 ki_pos;
} KERNEL;

struct io_rw {
    struct kiocb kiocb;
    __u64 addr;
    __u32 len;
    __u32 flags;
} KERNEL;

struct io_sync { /* fsync, sync_file_range, fallocate */
    __s64 len, off;
    int flags, mode;
} KERNEL;

struct io_fadvise {
    __u64 offset;
    __u64 len;
    __u32 advice;
} KERNEL;

struct io_fadvise___old { /* up to 6.6 */
    __u32 len;
} KERNEL;

struct io_ftrunc {
    __s64 len;
} KERNEL;

struct io_open_how {
    __u64 flags;
};

struct open_how {
    __u64 flags;
} KERNEL;

struct io_open {
    int dfd;
    struct filename *filename;
    struct open_how how;
} KERNEL;

struct io_close {
    int fd;
} KERNEL;

struct io_unlink {
    int dfd;
    int flags;
    struct filename *filename;
} KERNEL;

struct io_mkdir {
    int dfd;
    __u16 mode;
    struct filename *filename;
} KERNEL;

struct io_rename {
    int old_dfd, new_dfd;
    struct filename *oldpath, *newpath;
} KERNEL;

struct io_link { /* symlinkat too */
    int old_dfd, new_dfd;
    struct filename *oldpath, *newpath;
} KERNEL;

struct io_cqe {
    __u64 user_data;
    __s32 res;
    int fd;
} KERNEL;

struct io_rsrc_node {
    unsigned long file_ptr;
} KERNEL;

struct io_rsrc_data {
    unsigned int nr;
    struct io_rsrc_node **nodes;
} KERNEL;

struct io_file_table {
    struct io_rsrc_data data;
} KERNEL;

/* One word since there are any. Not relocated: the type is gone from later kernels, and a
 * search for it among the modules' types takes more rights than the rest. */
struct io_fixed_file {
    unsigned long file_ptr;
};

struct io_file_table___array { /* up to 6.12 */
    struct io_fixed_file *files;
} KERNEL;

struct io_ring_ctx {
    unsigned int flags;
    struct io_file_table file_table;
} KERNEL;

struct io_kiocb {
    __u8 opcode;
    __u32 flags;
    struct io_cqe cqe;
    struct io_ring_ctx *ctx;
} KERNEL;

struct io_uring_cqe { /* as the completion tracepoint hands it over since 6.14 */
    __u64 user_data;
    __s32 res;
} KERNEL;

/* ---- block devices ----------------------------------------------------------------------- */

struct gendisk {
    int major, first_minor;
} KERNEL;

struct block_device {
    struct gendisk *bd_disk;
} KERNEL;

struct bvec_iter {
    __u64 bi_sector;
    unsigned int bi_size;
} KERNEL;

struct bio {
    struct bio *bi_next;
    struct block_device *bi_bdev;
    unsigned int bi_opf;
    __u8 bi_status;
    struct bvec_iter bi_iter;
} KERNEL;

struct bio___disk { /* up to 5.11 */
    struct gendisk *bi_disk;
} KERNEL;

struct request_queue {
    struct gendisk *disk;
} KERNEL;

struct request {
    struct request_queue *q;
    unsigned int cmd_flags;
    unsigned int __data_len;
    __u64 __sector;
    struct bio *bio;
} KERNEL;

struct request___disk { /* up to 5.16 */
    struct gendisk *rq_disk;
} KERNEL;

/* ---- page cache -------------------------------------------------------------------------- */

enum pageflags {
    PG_head = 6
};

/* From 5.16. The first word is the flags, whatever type they have had. */
struct folio {
    struct address_space *mapping;
    unsigned long index;
    unsigned int _nr_pages; /* valid for those with PG_head */
} KERNEL;

struct folio___before_6_15 {
    unsigned int _folio_nr_pages;
} KERNEL;

/* ---- reading ----------------------------------------------------------------------------- */

extern void *bpf_rdonly_cast(void *pointer, __u32 btf_id) __ksym __weak;

/* Set by the loader: what this kernel's BPF has. Nothing beyond 5.8 is needed. */
extern const volatile bool have_cast;     /* bpf_rdonly_cast, 6.2 */
extern const volatile bool have_task;     /* bpf_get_current_task_btf, 5.11 */
extern const volatile bool have_ancestor; /* bpf_get_current_ancestor_cgroup_id, 5.15 */

/* In the programs for kernels before (bpf_plain.bpf.c) it is not even named: libbpf would look
 * for it among the modules, which takes more rights than the rest. */
#ifdef BPF_PLAIN
#define GET(value, type, pointer, field)                                                       \
    bpf_core_read(&(value), sizeof(value), &((type *)(pointer))->field)
#else
#define GET(value, type, pointer, field)                                                       \
    do {                                                                                       \
        if (have_cast)                                                                         \
            (value) =                                                                          \
                ((type *)bpf_rdonly_cast((void *)(pointer), bpf_core_type_id_kernel(type)))    \
                    ->field;                                                                   \
        else                                                                                   \
            bpf_core_read(&(value), sizeof(value), &((type *)(pointer))->field);               \
    } while (0)
#endif

#endif
