/* SPDX-License-Identifier: MIT */
/*
 * Inside the preload shim. Everything here runs in somebody else's program, on any of its
 * threads, in signal handlers, after fork and in the child of vfork: no allocation, no locks
 * around anything that can wait, no libc calls that are interposed (raw_* instead), errno kept.
 *
 * The pattern of a wrapper:
 *
 *     struct ring_record *record = op_begin(fd, TRACE_READ, TRACE_API_SYNC, offset, length);
 *     ssize_t got = REAL(pread64)(fd, buffer, length, offset);
 *     if (record)
 *         op_end(record, got);
 *     return got;
 *
 * Include this first: it undoes build flags that would rename the functions to be wrapped.
 */
#ifndef CAPTURE_PRELOAD_H
#define CAPTURE_PRELOAD_H

#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1 /* no inline getc and the like in libc's headers */
#endif

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#include "capture/ring.h"
#include "traces/trace.h"

#define EXPORT      __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- the functions underneath (preload_real.c) ------------------------------------------- */

struct real_function {
    void **slot;
    const char *name;
};

/* DEFINE_REAL(read) once a file; REAL(read) is then the next definition of it. All are looked
 * up when the shim is initialised, an earlier call looks its own up. */
#define DEFINE_REAL(name)                                                                      \
    static void *real_##name;                                                                  \
    static const struct real_function real_entry_##name                                        \
        __attribute__((section("iotape_reals"), used, aligned(8))) = {&real_##name, #name}
#define REAL(name)                                                                             \
    ((__typeof__(&name))(real_##name ? real_##name : real_find(&real_entry_##name)))

void *real_find(const struct real_function *function);
void real_find_all(void);

/* A system call without errno, cancellation or interposition: a result or -errno. */
static inline long raw_syscall(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "the preload recorder knows x86-64 and arm64"
#endif
}

#define RAW(name, ...) RAW_PAD(SYS_##name, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define RAW_PAD(number, a, b, c, d, e, f, ...)                                                 \
    raw_syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* ---- process and threads (preload_process.c) --------------------------------------------- */

struct shim_thread {
    uint64_t generation;      /* of the process it attached in */
    struct ring_header *ring; /* NULL: not recording */
    struct ring_record *slots;
    uint32_t mask;
    volatile uint64_t read_ticks, read_ns; /* when the clock was last read */
    uint64_t sampled_ns;                   /* when its last sample of content was taken */
    bool attaching, in_table;              /* not to be entered again by a signal handler */
};

extern __thread struct shim_thread shim_thread __attribute__((tls_model("initial-exec")));
/* On a page that fork empties in the child: 0 there until the child has attached itself. */
extern uint64_t *shim_live;

/*
 * CLOCK_MONOTONIC. Reading the clock costs as much as all else that recording an op does, so
 * for a millisecond after a reading the processor's counter is taken in its place, at the rate
 * that it was last seen to have (preload_clock.c); within some 50 ns of the clock.
 */
uint64_t stamp_slow_ns(void);
extern uint64_t shim_tick_rate;   /* ns a tick, times 2^32; 0 = the counter is not used */
extern uint64_t shim_tick_window; /* ticks for which a reading is good */
static inline uint64_t stamp_ns(void)
{
#if defined(__x86_64__)
    uint64_t rate = shim_tick_rate, ticks;

    if (__builtin_expect(rate != 0, 1)) {
        ticks = __builtin_ia32_rdtsc() - shim_thread.read_ticks;
        if (__builtin_expect(ticks < shim_tick_window, 1))
            return shim_thread.read_ns + (uint64_t)(((unsigned __int128)ticks * rate) >> 32);
    }
#endif
    return stamp_slow_ns();
}
/* Finds out whether the counter can be used; once a process. */
void stamp_start(void);

/* Makes this thread (after fork: this process) known to the collector; false when it does not
 * record. */
bool shim_attach(void);
static inline bool shim_ready(void)
{
    if (UNLIKELY(shim_thread.generation != *shim_live))
        return shim_attach();
    return shim_thread.ring != NULL;
}
/* As shim_ready, but for the process alone: shim_entry works. */
bool shim_process_ready(void);
/* The program is about to forbid itself system calls: the shim makes none from here on, records
 * nothing more, and says so to the collector. */
void shim_seal(void);
bool shim_sealed(void);
/* True in a child of vfork, which must leave the parent's tables alone. */
bool shim_in_vfork(void);
bool shim_all_fds(void);
uint16_t shim_generation(void);
/* Puts an entry with its text into the process area: false when it is full or there is none. */
bool shim_entry(struct ring_entry *entry, const char *text, size_t text_bytes);
/* Counts I/O that is known to have happened and cannot be given as ops. */
void shim_unseen(const char *kind, uint64_t count);
uint64_t shim_next_id(void);
/* The value of RING_ENV and of LD_PRELOAD that the shim was started with, "NAME=value"; NULL
 * when it does not record. */
const char *shim_env_ring(void);
const char *shim_env_preload(void);

/* ---- files (preload_files.c) ------------------------------------------------------------- */

/* What is known of a descriptor, in one word: file number, generation, flags. */
#define SLOT_KNOWN   (UINT64_C(1) << 48)
#define SLOT_IGNORED (UINT64_C(1) << 49) /* not a file that is recorded */
#define SLOT_APPEND  (UINT64_C(1) << 50)
#define SLOT_DIRECT  (UINT64_C(1) << 51)
#define SLOT_SYNC    (UINT64_C(1) << 52)
#define SLOT_DSYNC   (UINT64_C(1) << 53)
#define SLOT_NOSEEK  (UINT64_C(1) << 54) /* has no position: pipes and the like */
#define SLOT_BLOCK   (UINT64_C(1) << 55) /* a block device */
#define SLOT_LOST    (UINT64_C(1) << 56) /* could not be told: the process area is full */

/* Looks the descriptor up, asking the kernel when it is not known. Never 0: SLOT_IGNORED. */
uint64_t file_slot(int fd);
/* It has been closed, or is about to be. */
void file_forget(int fd);
void file_forget_range(unsigned int first, unsigned int last);
void file_copy(int from, int to); /* dup */
void file_flags_changed(int fd, int open_flags);
/* Facts of a file before a call that may create or empty it. */
struct file_before {
    bool exists, asked;
    uint64_t size_bytes;
};
void file_before(struct file_before *before, int dir_fd, const char *path);
/* A descriptor that has just been opened: its slot. */
uint64_t file_opened(int fd, int open_flags, const struct file_before *before);
/* A number for a path that is not (or no longer) open, relative to dir_fd; 0 when it cannot be
 * told. follow: the facts of what a symlink points to. */
uint32_t file_named(int dir_fd, const char *path, bool follow);
/* path from the working folder, without a NUL: its length, 0 when it does not fit. */
size_t file_absolute(const char *path, char *joined, size_t room);
/* Its size now; TRACE_UNKNOWN_U64 when it has none. */
uint64_t file_size(int fd);
static inline uint32_t slot_file(uint64_t slot)
{
    return (uint32_t)slot;
}
uint32_t slot_op_flags(uint64_t slot);

/* ---- content (preload_content.c) --------------------------------------------------------- */

/* Set by --content. */
extern bool shim_content;
void content_sample(const void *buffer, size_t bytes);
/* A write to a recorded file succeeded (or has been handed over): its bytes may be sampled. */
static inline void content_written(const void *buffer, size_t bytes)
{
    if (UNLIKELY(shim_content))
        content_sample(buffer, bytes);
}

/* ---- ops (preload_ops.c) ----------------------------------------------------------------- */

/* Reserves a slot of this thread's ring, filled for an op that begins now; NULL when the ring
 * is full (counted). */
struct ring_record *op_reserve(unsigned int kind, unsigned int api);
/* For the completion of an asynchronous op: where there is no room, the op is not counted as
 * dropped, for it is in the ring. */
struct ring_record *op_reserve_done(void);
/* As op_reserve for an op on fd; NULL too when fd is not recorded. */
struct ring_record *op_begin(int fd, unsigned int kind, unsigned int api, uint64_t offset,
                             uint64_t length);
/* result is what the call returned: -1 means errno. errno is kept. */
void op_end(struct ring_record *record, int64_t result);
/* As op_end for a call that used and moved fd's position: works the offset out. */
void op_end_position(struct ring_record *record, int fd, int64_t result);
/* The flags of an op with these RWF_ flags. */
uint32_t rwf_op_flags(int rwf);
/* As op_end with the result as the kernel gives it, at end_ns. */
void op_end_at(struct ring_record *record, int64_t result, uint64_t end_ns);

#endif
