/* SPDX-License-Identifier: MIT */
/* Attaching processes and threads to the collector; fork, vfork and the end of threads. */
#include "capture/preload.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define AREA_BYTES (RING_HEADER_BYTES + (1u << 20))
#define ENV_ROOM   512

struct shim_process {
    bool configured; /* there is a collector to talk to */
    bool gone;       /* and it does not answer: nothing is recorded any more */
    uint32_t pid;
    uint64_t image;
    uint64_t generation; /* counts process images made by fork; from 1 */
    struct ring_header *area;
    uint64_t area_bytes; /* of the circular part */
    uint64_t ring_bytes;
    uint32_t flags;
    uint64_t next_id; /* of asynchronous ops */
    uint64_t early;   /* ops that could not be recorded for want of a ring */
    struct sockaddr_un address;
    socklen_t address_bytes;
    pthread_key_t key;
    bool key_made;
};

static struct shim_process process;
/* Two words: the live generation, and a lock. Fork empties both in the child. */
static uint64_t not_live[2];
uint64_t *shim_live = not_live;
__thread struct shim_thread shim_thread = {.generation = UINT64_MAX};
static char env_ring[ENV_ROOM], env_preload[ENV_ROOM];

const char *shim_env_ring(void)
{
    return env_ring[0] ? env_ring : NULL;
}

const char *shim_env_preload(void)
{
    return env_preload[0] ? env_preload : NULL;
}

bool shim_all_fds(void)
{
    return process.flags & RING_ENV_ALL_FDS;
}

uint16_t shim_generation(void)
{
    return (uint16_t)process.generation;
}

uint64_t shim_next_id(void)
{
    return __atomic_add_fetch(&process.next_id, 1, __ATOMIC_RELAXED);
}

/* Unmaps the thread's ring at its end; the collector takes what is left. */
static void thread_end(void *unused)
{
    struct ring_header *ring = shim_thread.ring;
    size_t bytes;

    if (!ring || shim_thread.generation != *shim_live)
        return;
    bytes = RING_HEADER_BYTES + ((size_t)shim_thread.mask + 1) * sizeof(struct ring_record);
    shim_thread.ring = NULL;
    shim_thread.generation = UINT64_MAX;
    __atomic_store_n(&ring->closed, 1, __ATOMIC_RELEASE);
    RAW(munmap, ring, bytes);
}

/* Sends one area over; 0 or -errno. The message fits any socket buffer, nothing waits. */
static int area_send(uint32_t area, int memfd, uint64_t bytes)
{
    struct ring_hello hello = {.magic = RING_MAGIC,
                               .version = RING_VERSION,
                               .area = area,
                               .pid = process.pid,
                               .image = process.image,
                               .bytes = bytes};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {&hello, sizeof(hello)};
    struct msghdr message;
    long sock, err;

    hello.tid = (uint32_t)RAW(gettid);
    hello.ppid = (uint32_t)RAW(getppid);
    RAW(prctl, PR_GET_NAME, hello.comm);
    memset(&message, 0, sizeof(message));
    memset(&control, 0, sizeof(control));
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &memfd, sizeof(int));
    sock = RAW(socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0)
        return (int)sock;
    err = RAW(connect, sock, &process.address, process.address_bytes);
    if (err >= 0)
        err = RAW(sendmsg, sock, &message, MSG_NOSIGNAL);
    RAW(close, sock);
    return err < 0 ? (int)err : 0;
}

/* A shared area of its own, mapped here and known to the collector. */
static int area_make(uint32_t area, uint64_t bytes, struct ring_header **ret_header)
{
    struct ring_header *header;
    long fd = RAW(memfd_create, "iotape", MFD_CLOEXEC | MFD_ALLOW_SEALING), mapped, err;

    if (fd < 0)
        return (int)fd;
    err = RAW(ftruncate, fd, bytes);
    if (err >= 0)
        err = RAW(fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    if (err < 0)
        goto out;
    mapped = RAW(mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped < 0 && mapped > -4096) {
        err = mapped;
        goto out;
    }
    header = (struct ring_header *)mapped;
    RAW(madvise, header, bytes, MADV_DONTFORK);
    header->magic = RING_MAGIC;
    if (area == RING_THREAD)
        header->slots = (uint32_t)((bytes - RING_HEADER_BYTES) / sizeof(struct ring_record));
    err = area_send(area, (int)fd, bytes);
    if (err < 0)
        RAW(munmap, header, bytes);
    else
        *ret_header = header;
out:
    RAW(close, fd);
    return err < 0 ? (int)err : 0;
}

/* The collector has gone: say so once and for all. A full backlog or want of memory may pass.
 */
static void attach_failed(int err)
{
    if (err == -ECONNREFUSED || err == -ENOENT || err == -EACCES || err == -EPERM)
        process.gone = true;
}

static bool process_attach(void)
{
    struct ring_header *area;
    int err;

    process.pid = (uint32_t)RAW(getpid);
    process.image = stamp_ns() ^ ((uint64_t)process.pid << 44);
    process.generation++;
    process.area = NULL;
    err = area_make(RING_PROCESS, AREA_BYTES, &area);
    if (err) {
        attach_failed(err);
        process.generation--;
        return false;
    }
    process.area_bytes = AREA_BYTES - RING_HEADER_BYTES;
    process.area = area;
    __atomic_store_n(shim_live, process.generation, __ATOMIC_RELEASE);
    return true;
}

static bool thread_attach(void)
{
    struct ring_header *ring;
    int err = area_make(RING_THREAD, process.ring_bytes, &ring);

    if (err) {
        attach_failed(err);
        return false;
    }
    ring->dropped_early = __atomic_exchange_n(&process.early, 0, __ATOMIC_RELAXED);
    shim_thread.slots = (struct ring_record *)((char *)ring + RING_HEADER_BYTES);
    shim_thread.mask = ring->slots - 1;
    shim_thread.ring = ring;
    shim_thread.generation = *shim_live;
    if (process.key_made)
        pthread_setspecific(process.key, ring);
    return true;
}

/* One thread at a time gets a forked process going; others wait a few system calls. */
static void process_lock(void)
{
    while (__atomic_exchange_n(&shim_live[1], 1, __ATOMIC_ACQUIRE))
        RAW(sched_yield);
}

static bool process_ready(void)
{
    if (!*shim_live) {
        process_lock();
        if (!*shim_live)
            process_attach();
        __atomic_store_n(&shim_live[1], 0, __ATOMIC_RELEASE);
    }
    return *shim_live != 0;
}

bool shim_process_ready(void)
{
    bool ready;

    if (*shim_live)
        return true;
    if (!process.configured || process.gone || shim_thread.attaching)
        return false;
    shim_thread.attaching = true;
    ready = process_ready();
    shim_thread.attaching = false;
    return ready;
}

bool shim_attach(void)
{
    int saved = errno;
    bool attached = false;

    if (!process.configured || process.gone)
        return false;
    if (shim_thread.attaching) { /* a signal handler in the middle of it */
        __atomic_add_fetch(&process.early, 1, __ATOMIC_RELAXED);
        return false;
    }
    shim_thread.attaching = true;
    shim_thread.ring = NULL;
    attached = process_ready() && thread_attach();
    if (!attached)
        __atomic_add_fetch(&process.early, 1, __ATOMIC_RELAXED);
    shim_thread.attaching = false;
    errno = saved;
    return attached;
}

bool shim_entry(struct ring_entry *entry, const char *text, size_t text_bytes)
{
    struct ring_header *area = process.area;
    uint64_t tail, room = process.area_bytes, at, pad;
    uint32_t bytes = (uint32_t)((sizeof(*entry) + text_bytes + 7) & ~(size_t)7);
    char *buffer;

    if (!*shim_live || !area || text_bytes > RING_PATH_MAX)
        return false;
    buffer = (char *)area + RING_HEADER_BYTES;
    tail = __atomic_load_n(&area->tail, __ATOMIC_RELAXED);
    do {
        at = tail % room;
        pad = at + bytes > room ? room - at : 0;
        if (tail + pad + bytes - __atomic_load_n(&area->head, __ATOMIC_ACQUIRE) > room)
            return false;
    } while (!__atomic_compare_exchange_n(&area->tail, &tail, tail + pad + bytes, true,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    if (pad) {
        /* The end of the buffer may have room for no more than the first two words. */
        memcpy(buffer + at + 4, &(uint32_t){RING_PAD}, 4);
        __atomic_store_n((uint32_t *)(void *)(buffer + at), (uint32_t)pad, __ATOMIC_RELEASE);
        at = 0;
    }
    entry->text_bytes = (uint32_t)text_bytes;
    memcpy(buffer + at + 4, (char *)entry + 4, sizeof(*entry) - 4);
    memcpy(buffer + at + sizeof(*entry), text, text_bytes);
    __atomic_store_n((uint32_t *)(void *)(buffer + at), bytes, __ATOMIC_RELEASE);
    return true;
}

static void shim_unseen_by_process(const char *kind)
{
    struct ring_entry entry = {.type = RING_UNSEEN, .size_bytes = 1};

    shim_entry(&entry, kind, strlen(kind));
}

void shim_seal(void)
{
    if (!process.configured || process.gone)
        return;
    if (shim_process_ready())
        shim_unseen_by_process(
            "I/O of a program after it forbade itself system calls (seccomp)");
    process.gone = true;
    /* No thread is of this generation: each finds that there is nothing to attach to. */
    __atomic_store_n(shim_live, UINT64_MAX - 1, __ATOMIC_RELEASE);
}

bool shim_sealed(void)
{
    return process.gone;
}

bool shim_in_vfork(void)
{
    return *shim_live && !process.gone && process.pid != (uint32_t)RAW(getpid);
}

void shim_unseen(const char *kind, uint64_t count)
{
    struct ring_entry entry = {.type = RING_UNSEEN, .size_bytes = count};

    if (shim_ready())
        shim_entry(&entry, kind, strlen(kind));
}

/* "NAME:BYTES:FLAGS" */
static bool parse_env(const char *text)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    char *end;

    if (length == 0 || length > sizeof(process.address.sun_path) - 1)
        return false;
    process.address.sun_family = AF_UNIX;
    memcpy(process.address.sun_path + 1, text, length);
    process.address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    process.ring_bytes = strtoull(colon + 1, &end, 10);
    if (*end != ':' || process.ring_bytes < 65536 || process.ring_bytes > UINT64_C(1) << 30 ||
        (process.ring_bytes & (process.ring_bytes - 1)))
        return false;
    process.ring_bytes += RING_HEADER_BYTES;
    process.flags = (uint32_t)strtoul(end + 1, NULL, 10);
    shim_content = process.flags & RING_ENV_CONTENT;
    return true;
}

static void keep_env(char *kept, const char *name, const char *value)
{
    size_t length = strlen(name);

    if (!value || length + strlen(value) + 2 > ENV_ROOM)
        return;
    memcpy(kept, name, length);
    kept[length] = '=';
    strcpy(kept + length + 1, value);
}

/* Runs when the program is loaded. Calls made before it go through unrecorded and uncounted:
 * they are those of other libraries' own loading. */
static void __attribute__((constructor)) shim_start(void)
{
    const char *text = getenv(RING_ENV);
    int saved = errno;
    long page;

    real_find_all();
    if (!text || !parse_env(text))
        goto out;
    keep_env(env_ring, RING_ENV, text);
    keep_env(env_preload, "LD_PRELOAD", getenv("LD_PRELOAD"));
    page = RAW(mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page < 0 && page > -4096)
        goto out;
    if (RAW(madvise, page, 4096, MADV_WIPEONFORK) < 0)
        goto out;
    stamp_start();
    process.key_made = pthread_key_create(&process.key, thread_end) == 0;
    shim_live = (uint64_t *)page;
    process.configured = true;
    if (!process_attach())
        process.configured = false;
out:
    errno = saved;
}
