/* SPDX-License-Identifier: MIT */
/*
 * The text strace writes, as records: what is in front of a call (process, time), its name,
 * arguments and result. Slices point into the caller's line.
 *
 * Arguments may hold anything: ") = " inside them, quotes, paths with brackets; so a call's end
 * is found by walking the arguments, not by searching.
 */
#ifndef CONVERT_STRACE_TEXT_H
#define CONVERT_STRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strace_slice {
    const char *at;
    size_t length;
};

enum strace_shape {
    STRACE_FOREIGN,    /* nothing strace writes */
    STRACE_BLANK,      /* an empty line, or strace talking (attached, stack lines, dumps) */
    STRACE_CALL,       /* name(args) = result */
    STRACE_UNFINISHED, /* name(args <unfinished ...> */
    STRACE_RESUMED,    /* <... name resumed> args) = result */
    STRACE_PARTIAL,    /* a call, or a resumed one, whose end is not in this line */
    STRACE_EXIT,       /* +++ exited with 0 +++, +++ killed by SIGKILL +++ */
    STRACE_SUPERSEDED, /* +++ superseded by execve in pid N +++ */
    STRACE_SIGNAL,     /* --- SIGCHLD {...} --- */
    STRACE_ATTACHED,   /* strace: Process N attached */
};

enum strace_clock {
    STRACE_NO_TIME,
    STRACE_DAY_TIME, /* time_ns since midnight */
    STRACE_UNIX_TIME,
    STRACE_STEP_TIME, /* time_ns since the line before */
};

struct strace_line {
    enum strace_shape shape;
    enum strace_clock clock;
    bool has_pid, bracketed; /* bracketed: [pid N] */
    uint32_t pid, other_pid; /* other_pid: of superseded and attached */
    int64_t time_ns;
    uint64_t grid_ns;         /* what its digits can tell apart */
    struct strace_slice comm; /* of -Y */
    struct strace_slice name, args, result;
    uint64_t duration_ns; /* -T; UINT64_MAX when absent */
};

void strace_line_parse(const char *line, size_t length, struct strace_line *ret_line);

/*
 * From the first byte of arguments to the ')' that ends them and is followed by " = "; NULL
 * when it is not there. Quotes, brackets, comments and the <...> behind descriptors are walked
 * over.
 */
const char *strace_args_end(const char *at, const char *end);
/* Top-level arguments, without blanks around them: stores up to max, returns how many there
 * are. */
size_t strace_args_split(struct strace_slice args, struct strace_slice *ret_args, size_t max);
/* The value behind "NAME=" at the top level of a {...} or of a list of such fields. */
bool strace_field(struct strace_slice list, const char *name, struct strace_slice *ret_value);
/* The elements of a [...]; as strace_args_split. */
size_t strace_list_split(struct strace_slice list, struct strace_slice *ret_items, size_t max);

bool strace_is(struct strace_slice slice, const char *text);
/* text is one of the words of A|B|C. */
bool strace_has_word(struct strace_slice slice, const char *text);
bool strace_contains(struct strace_slice slice, const char *text);
/* A number at the start: decimal, 0x hex, 0 octal, with sign. */
bool strace_number(struct strace_slice slice, int64_t *ret_value);
bool strace_unsigned(struct strace_slice slice, uint64_t *ret_value);

/* A descriptor argument: "3", "3</path>", "AT_FDCWD", "AT_FDCWD</dir>"; fd is -100 for
 * AT_FDCWD. */
struct strace_fd {
    int fd;
    struct strace_slice
        shown; /* inside the outer <>, without "<char 1:3>"; empty when not shown */
    struct strace_slice device; /* "char 1:3", "block 8:0"; empty */
    bool deleted;
};
bool strace_fd_parse(struct strace_slice slice, struct strace_fd *ret_fd);

/* Undoes the escapes of "..." (or of bare text) into buffer: the length, which never exceeds
 * size, or -1 when it is no string, was cut by strace ("..."...), or does not fit. */
int strace_unquote(struct strace_slice slice, char *buffer, size_t size);
int strace_unescape(struct strace_slice slice, char *buffer, size_t size);
/* Does the quoted text begin with a slash, however that is written? */
bool strace_is_absolute(struct strace_slice path);

/* O_RDWR|O_CREAT|0100 as Linux's asm-generic numbers; unknown words add nothing. */
uint32_t strace_open_flags(struct strace_slice slice);
/* -errno from the words behind a -1: " ENOENT (No such ...)"; -EIO when there is no such name.
 */
int strace_errno(struct strace_slice after);

#endif
