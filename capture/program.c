/* SPDX-License-Identifier: MIT */
#include "capture/program.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SCRIPT_DEPTH 4
#define HEAD_BYTES   256

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

static uint64_t load(const unsigned char *at, unsigned int bytes)
{
    uint64_t value = 0;

    for (unsigned int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

const char *program_obstacle(enum program_kind kind)
{
    switch (kind) {
    case PROGRAM_STATIC: return "statically linked";
    case PROGRAM_SETUID: return "set-user-ID or with file capabilities";
    case PROGRAM_FOREIGN: return "built for another architecture or word size";
    case PROGRAM_OTHER_LIBC: return "linked with a C library other than glibc";
    default: return NULL;
    }
}

static bool is_file(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

static bool find_in_path(const char *name, char *path, size_t path_size)
{
    const char *at = getenv("PATH");

    if (!at)
        at = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        int length = (int)strcspn(at, ":");

        if (snprintf(path, path_size, "%.*s%s%s", length, at, length ? "/" : "", name) <
                (int)path_size &&
            is_file(path))
            return true;
        if (!at[length])
            return false;
        at += length + 1;
    }
}

/* Whoever runs it gains something. */
static bool gains_privileges(int fd)
{
    struct stat facts;

    if (fstat(fd, &facts) < 0)
        return false;
    if ((facts.st_mode & S_ISUID) && facts.st_uid != geteuid())
        return true;
    if ((facts.st_mode & S_ISGID) && (facts.st_mode & S_IXGRP) && facts.st_gid != getegid())
        return true;
    return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static enum program_kind look_at_interpreter(int fd, uint64_t offset, uint64_t bytes)
{
    char name[HEAD_BYTES];
    ssize_t got;

    if (bytes >= sizeof(name))
        bytes = sizeof(name) - 1;
    got = pread(fd, name, bytes, (off_t)offset);
    if (got <= 0)
        return PROGRAM_MISSING;
    name[got] = '\0';
    return strstr(name, "ld-linux") ? PROGRAM_DYNAMIC : PROGRAM_OTHER_LIBC;
}

static enum program_kind look_at_elf(int fd, const char *path, const unsigned char *head)
{
    unsigned char entry[56];
    uint64_t offset, size, count;

    if (head[EI_CLASS] != ELFCLASS64 || head[EI_DATA] != ELFDATA2LSB ||
        load(head + 18, 2) != OWN_MACHINE)
        return PROGRAM_FOREIGN;
    offset = load(head + 32, 8);
    size = load(head + 54, 2);
    count = load(head + 56, 2);
    if (size < sizeof(entry))
        return PROGRAM_MISSING;
    for (uint64_t i = 0; i < count; i++) {
        if (pread(fd, entry, sizeof(entry), (off_t)(offset + i * size)) != sizeof(entry))
            return PROGRAM_MISSING;
        if (load(entry, 4) == PT_INTERP)
            return look_at_interpreter(fd, load(entry + 8, 8), load(entry + 32, 8));
    }
    /* The dynamic linker run by hand has no interpreter either. */
    return strstr(path, "/ld-linux") ? PROGRAM_DYNAMIC : PROGRAM_STATIC;
}

/* The interpreter's path of "#! /bin/sh -e". */
static bool script_interpreter(const char *head, char *path, size_t path_size)
{
    const char *start = head + 2 + strspn(head + 2, " \t");
    size_t length = strcspn(start, " \t\n");

    if (length == 0 || length >= path_size)
        return false;
    memcpy(path, start, length);
    path[length] = '\0';
    return true;
}

enum program_kind program_look(const char *name, pid_t pid, char *path, size_t path_size)
{
    unsigned char head[HEAD_BYTES + 1];
    enum program_kind kind = PROGRAM_MISSING;
    ssize_t got;
    int fd;

    if (!strchr(name, '/')) {
        if (!find_in_path(name, path, path_size))
            return PROGRAM_MISSING;
    } else if (name[0] != '/' && pid > 0) {
        snprintf(path, path_size, "/proc/%ld/cwd/%s", (long)pid, name);
    } else {
        snprintf(path, path_size, "%s", name);
    }
    for (int depth = 0; depth < SCRIPT_DEPTH; depth++) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            return PROGRAM_MISSING;
        got = pread(fd, head, HEAD_BYTES, 0);
        head[got > 0 ? got : 0] = '\0';
        if (got >= 64 && !memcmp(head, ELFMAG, SELFMAG)) {
            kind = look_at_elf(fd, path, head);
            if (kind == PROGRAM_DYNAMIC && gains_privileges(fd))
                kind = PROGRAM_SETUID;
            close(fd);
            return kind;
        }
        close(fd);
        if (got < 3 || memcmp(head, "#!", 2) ||
            !script_interpreter((const char *)head, path, path_size))
            return PROGRAM_MISSING;
    }
    return kind;
}
