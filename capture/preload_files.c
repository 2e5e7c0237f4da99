/* SPDX-License-Identifier: MIT */
/* Which descriptor is which file: a table filled when a file is opened, else at its first use.
 */
#include "capture/preload.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define CHUNK_FDS        1024u
#define CHUNK_COUNT      1024u
#define GENERATION_SHIFT 32

static uint64_t *chunks[CHUNK_COUNT];
static uint32_t files; /* numbers given out in this generation */
static uint32_t files_generation;

/* The word of a descriptor; NULL when there can be none (or no memory and make is set). */
static uint64_t *slot_at(int fd, bool make)
{
    unsigned int number = (unsigned int)fd / CHUNK_FDS;
    uint64_t *chunk, *expected = NULL;
    long made;

    if (UNLIKELY(fd < 0 || number >= CHUNK_COUNT))
        return NULL;
    chunk = __atomic_load_n(&chunks[number], __ATOMIC_ACQUIRE);
    if (UNLIKELY(!chunk)) {
        if (!make)
            return NULL;
        made = RAW(mmap, 0, CHUNK_FDS * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made < 0 && made > -4096)
            return NULL;
        chunk = (uint64_t *)made;
        if (!__atomic_compare_exchange_n(&chunks[number], &expected, chunk, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            RAW(munmap, chunk, CHUNK_FDS * sizeof(uint64_t));
            chunk = expected;
        }
    }
    return &chunk[(unsigned int)fd % CHUNK_FDS];
}

static void slot_store(int fd, uint64_t slot)
{
    uint64_t *at = slot_at(fd, slot != 0);

    if (at)
        __atomic_store_n(at, slot, __ATOMIC_RELAXED);
}

static uint64_t with_generation(uint64_t slot)
{
    return slot | (uint64_t)shim_generation() << GENERATION_SHIFT;
}

static unsigned int kind_of_mode(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG: return TRACE_FILE_REGULAR;
    case S_IFBLK: return TRACE_FILE_BLOCK;
    case S_IFDIR: return TRACE_FILE_DIRECTORY;
    case S_IFCHR: return TRACE_FILE_CHAR;
    case S_IFIFO: return TRACE_FILE_PIPE;
    case S_IFSOCK: return TRACE_FILE_SOCKET;
    default: return TRACE_FILE_OTHER;
    }
}

/* A number nobody in this process image has. */
static uint32_t next_file_number(void)
{
    uint32_t generation = shim_generation();

    /* The first file after a fork starts again: the collector keeps a table for each image. */
    if (__atomic_exchange_n(&files_generation, generation, __ATOMIC_ACQ_REL) != generation)
        __atomic_store_n(&files, 0, __ATOMIC_RELEASE);
    return __atomic_add_fetch(&files, 1, __ATOMIC_ACQ_REL);
}

static void entry_from_stat(struct ring_entry *entry, const struct stat *facts)
{
    uint64_t device = S_ISBLK(facts->st_mode) ? facts->st_rdev : facts->st_dev;

    memset(entry, 0, sizeof(*entry));
    entry->type = RING_FILE;
    entry->kind = kind_of_mode(facts->st_mode);
    entry->mode = facts->st_mode & 07777;
    entry->inode = facts->st_ino;
    entry->device = (uint64_t)major(device) << 20 | minor(device);
    entry->size_bytes = S_ISREG(facts->st_mode) ? (uint64_t)facts->st_size : TRACE_UNKNOWN_U64;
    if (S_ISREG(facts->st_mode) && facts->st_blocks * 512 < facts->st_size)
        entry->flags |= TRACE_FILE_SPARSE;
}

/* The kernel's own idea of a descriptor's path. Unlinked files have " (deleted)" at the end. */
static size_t path_of_fd(int fd, char *path, size_t room, bool unlinked)
{
    static const char deleted[] = " (deleted)";
    char link[40] = "/proc/self/fd/";
    char digits[12];
    size_t at = strlen(link), count = 0;
    long length;

    do {
        digits[count++] = (char)('0' + fd % 10);
        fd /= 10;
    } while (fd > 0);
    while (count > 0)
        link[at++] = digits[--count];
    link[at] = '\0';
    length = RAW(readlinkat, AT_FDCWD, link, path, room);
    if (length <= 0)
        return 0;
    at = (size_t)length;
    if (unlinked && at > sizeof(deleted) - 1 &&
        !memcmp(path + at - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1))
        at -= sizeof(deleted) - 1;
    return at;
}

static uint64_t slot_flags_of_open(int open_flags)
{
    uint64_t slot = 0;

    if (open_flags & O_APPEND)
        slot |= SLOT_APPEND;
    if (open_flags & O_DIRECT)
        slot |= SLOT_DIRECT;
    if ((open_flags & O_SYNC) == O_SYNC)
        slot |= SLOT_SYNC;
    else if (open_flags & O_DSYNC)
        slot |= SLOT_DSYNC;
    return slot;
}

static bool kind_is_recorded(unsigned int kind)
{
    return kind == TRACE_FILE_REGULAR || kind == TRACE_FILE_BLOCK ||
           kind == TRACE_FILE_DIRECTORY || shim_all_fds();
}

/* Asks the kernel what fd is, tells the collector, remembers it. */
static uint64_t slot_resolve(int fd, int open_flags, const struct file_before *before)
{
    struct stat facts;
    struct ring_entry entry;
    char path[RING_PATH_MAX];
    uint64_t slot = SLOT_KNOWN;
    size_t length;

    if (RAW(newfstatat, fd, "", &facts, AT_EMPTY_PATH) < 0)
        return SLOT_IGNORED;
    entry_from_stat(&entry, &facts);
    if (!kind_is_recorded(entry.kind)) {
        slot = with_generation(SLOT_KNOWN | SLOT_IGNORED);
        slot_store(fd, slot);
        return slot;
    }
    if (before && before->asked) {
        if (!before->exists) {
            entry.flags |= TRACE_FILE_CREATED;
            entry.size_bytes = 0;
        } else if (before->size_bytes != TRACE_UNKNOWN_U64) {
            entry.size_bytes = before->size_bytes;
        }
    }
    length = path_of_fd(fd, path, sizeof(path), facts.st_nlink == 0);
    if (length == 0) { /* a root without /proc */
        length = sizeof("(unnamed)") - 1;
        memcpy(path, "(unnamed)", length);
    }
    entry.number = next_file_number();
    if (!shim_entry(&entry, path, length))
        return SLOT_LOST;
    slot |= entry.number | slot_flags_of_open(open_flags);
    if (entry.kind == TRACE_FILE_BLOCK)
        slot |= SLOT_BLOCK;
    if (entry.kind != TRACE_FILE_BLOCK && entry.kind != TRACE_FILE_REGULAR)
        slot |= SLOT_NOSEEK;
    slot = with_generation(slot);
    slot_store(fd, slot);
    return slot;
}

uint64_t file_slot(int fd)
{
    uint64_t *at = slot_at(fd, true);
    uint64_t slot;
    long open_flags;

    if (!at)
        return SLOT_IGNORED;
    slot = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (__builtin_expect((slot & SLOT_KNOWN) &&
                             (uint16_t)(slot >> GENERATION_SHIFT) == shim_generation(),
                         1))
        return slot;
    open_flags = RAW(fcntl, fd, F_GETFL);
    return slot_resolve(fd, open_flags < 0 ? 0 : (int)open_flags, NULL);
}

void file_forget(int fd)
{
    if (!shim_in_vfork())
        slot_store(fd, 0);
}

void file_forget_range(unsigned int first, unsigned int last)
{
    if (shim_in_vfork())
        return;
    if (last >= CHUNK_FDS * CHUNK_COUNT)
        last = CHUNK_FDS * CHUNK_COUNT - 1;
    for (unsigned int fd = first; fd <= last; fd++) {
        if (!chunks[fd / CHUNK_FDS])
            fd |= CHUNK_FDS - 1;
        else
            slot_store((int)fd, 0);
    }
}

void file_copy(int from, int to)
{
    uint64_t *at = slot_at(from, false);

    if (!shim_in_vfork())
        slot_store(to, at ? __atomic_load_n(at, __ATOMIC_RELAXED) : 0);
}

void file_flags_changed(int fd, int open_flags)
{
    uint64_t *at = slot_at(fd, false);
    uint64_t slot;

    if (!at || shim_in_vfork())
        return;
    slot = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (!(slot & SLOT_KNOWN))
        return;
    slot &= ~(SLOT_APPEND | SLOT_DIRECT); /* the two that F_SETFL can change */
    __atomic_store_n(at, slot | (slot_flags_of_open(open_flags) & (SLOT_APPEND | SLOT_DIRECT)),
                     __ATOMIC_RELAXED);
}

void file_before(struct file_before *before, int dir_fd, const char *path)
{
    struct stat facts;

    before->asked = true;
    before->exists = RAW(newfstatat, dir_fd, path, &facts, 0) >= 0;
    before->size_bytes =
        before->exists && S_ISREG(facts.st_mode) ? (uint64_t)facts.st_size : TRACE_UNKNOWN_U64;
}

uint64_t file_opened(int fd, int open_flags, const struct file_before *before)
{
    return slot_resolve(fd, open_flags, before);
}

uint64_t file_size(int fd)
{
    struct stat facts;

    if (RAW(newfstatat, fd, "", &facts, AT_EMPTY_PATH) < 0 || !S_ISREG(facts.st_mode))
        return TRACE_UNKNOWN_U64;
    return (uint64_t)facts.st_size;
}

/* dir_fd's path and the rest, without resolving "." and "..": what is left of a name whose file
 * is not open. */
static size_t path_join(int dir_fd, const char *path, char *joined, size_t room)
{
    size_t length = strnlen(path, room), used = 0;
    long cwd;

    if (path[0] != '/') {
        if (dir_fd == AT_FDCWD) {
            cwd = RAW(getcwd, joined, room);
            used = cwd > 0 ? (size_t)cwd - 1 : 0;
        } else {
            used = path_of_fd(dir_fd, joined, room, false);
        }
        while (path[0] == '.' && path[1] == '/') {
            path += 2;
            length -= 2;
        }
        if (used > 0 && used < room && joined[used - 1] != '/')
            joined[used++] = '/';
    }
    if (used + length > room)
        return 0;
    memcpy(joined + used, path, length);
    return used + length;
}

size_t file_absolute(const char *path, char *joined, size_t room)
{
    return path_join(AT_FDCWD, path, joined, room);
}

uint32_t file_named(int dir_fd, const char *path, bool follow)
{
    struct ring_entry entry;
    struct stat facts;
    char joined[RING_PATH_MAX];
    size_t length;
    long err;

    err = RAW(newfstatat, dir_fd, path, &facts, follow ? 0 : AT_SYMLINK_NOFOLLOW);
    if (!path || err == -EFAULT)
        return 0;
    if (err >= 0) {
        entry_from_stat(&entry, &facts);
    } else {
        memset(&entry, 0, sizeof(entry));
        entry.type = RING_FILE;
        entry.size_bytes = TRACE_UNKNOWN_U64;
    }
    length = path_join(dir_fd, path, joined, sizeof(joined));
    if (length == 0)
        return 0;
    entry.number = next_file_number();
    return shim_entry(&entry, joined, length) ? entry.number : 0;
}

uint32_t slot_op_flags(uint64_t slot)
{
    uint32_t flags = 0;

    if (slot & SLOT_DIRECT)
        flags |= TRACE_F_DIRECT;
    if (slot & SLOT_SYNC)
        flags |= TRACE_F_SYNC;
    if (slot & SLOT_DSYNC)
        flags |= TRACE_F_DSYNC;
    return flags;
}
