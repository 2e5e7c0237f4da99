/* SPDX-License-Identifier: MIT */
#include "convert/input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/ahead.h"
#include "convert/unpack.h"

#define FIRST_CAPACITY (512u << 10)
#define LARGEST_READ   (4u << 20)
#define MEMBERS_MAX    1000000u

/*
 * A tar whose members are inputs. Members are mostly read one after the other, so the archive
 * that one member was read from stays open for the next: what is packed is unpacked once, not
 * once a member.
 */
struct input_archive {
    struct unpack *spare; /* stands in its member number spare_member */
    size_t spare_member, users;
};

struct input {
    char *name;
    char *path; /* NULL: memory */
    const void *bytes;
    size_t bytes_length;
    struct input_archive *archive; /* shared by its members; NULL when it is no tar */
    size_t member;
    bool once; /* a pipe: cannot be opened again */
    bool closed;
    struct diag *diag;
    struct unpack *unpack;
    struct ahead *ahead; /* instead of unpack, once opened, when it is packed */
    uint8_t *buffer;     /* one byte more than capacity: a line's NUL */
    size_t capacity, start, end;
    bool at_end;
    bool begun;         /* what may stand before a text has been passed over */
    uint64_t lead;      /* that many bytes */
    int error;
    uint64_t offset; /* of buffer[start] */
    uint64_t line;
};

static volatile sig_atomic_t interrupted;

void input_interrupt(void)
{
    interrupted = 1;
}

bool input_interrupted(void)
{
    return interrupted != 0;
}

const char *input_name(const struct input *input)
{
    return input->name;
}

uint64_t input_line_number(const struct input *input)
{
    return input->line;
}

uint64_t input_offset(const struct input *input)
{
    return input->offset;
}

/* ---- lists ---------------------------------------------------------------------------- */

static int list_add(struct input_list *list, const char *name, const char *member,
                    struct diag *diag, struct input **ret_input)
{
    struct input *input;

    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        struct input **items = realloc(list->items, capacity * sizeof(*items));

        if (!items)
            return diag_errno(diag, -ENOMEM, "%s", name);
        list->items = items;
        list->capacity = capacity;
    }
    input = calloc(1, sizeof(*input));
    if (!input)
        return diag_errno(diag, -ENOMEM, "%s", name);
    if (!strcmp(name, "-"))
        name = "standard input";
    input->name = malloc(strlen(name) + (member ? strlen(member) + 1 : 0) + 1);
    if (!input->name) {
        free(input);
        return diag_errno(diag, -ENOMEM, "%s", name);
    }
    strcpy(input->name, name);
    if (member) {
        strcat(input->name, ":");
        strcat(input->name, member);
    }
    input->diag = diag;
    list->items[list->count++] = input;
    *ret_input = input;
    return 0;
}

int input_list_add_memory(struct input_list *list, const char *name, const void *bytes,
                          size_t length, struct diag *diag)
{
    struct input *input;
    int err = list_add(list, name, NULL, diag, &input);

    if (err < 0)
        return err;
    input->bytes = bytes;
    input->bytes_length = length;
    return 0;
}

/* A tar: one input a member. Listing a compressed tar reads it through once. */
static int add_members(struct input_list *list, const char *path, struct unpack *unpack,
                       const char *member_name, struct diag *diag)
{
    struct input_archive *archive = calloc(1, sizeof(*archive));
    size_t member = 0;
    int err = archive ? 0 : diag_errno(diag, -ENOMEM, "%s", path);

    while (err == 0) {
        struct input *input;

        err = member < MEMBERS_MAX
                  ? list_add(list, path, member_name, diag, &input)
                  : diag_set(diag, -E2BIG, "%s: more than %u members", path, MEMBERS_MAX);
        if (err == 0) {
            input->path = strdup(path);
            input->archive = archive;
            archive->users++;
            input->member = member++;
            err = input->path ? unpack_next_member(unpack, &member_name)
                              : diag_errno(diag, -ENOMEM, "%s", path);
        }
    }
    if (archive && !archive->users)
        free(archive);
    return err == -ENOENT ? 0 : err;
}

/* Standard input that is a tar goes to an unlinked file first: members are read more than once.
 */
static int spool_stdin(char path[32], struct unpack *unpack, struct diag *diag)
{
    static uint8_t chunk[1u << 16];
    const char *dir = getenv("TMPDIR");
    char name[4096];
    int64_t got;
    int fd;

    snprintf(name, sizeof(name), "%s/iotape-stdin.XXXXXX", dir && *dir ? dir : "/tmp");
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return diag_errno(diag, -errno, "%s", name);
    unlink(name);
    while ((got = unpack_read(unpack, chunk, sizeof(chunk))) > 0)
        for (int64_t done = 0; done < got;) {
            ssize_t put = write(fd, chunk + done, (size_t)(got - done));

            if (put < 0 && errno != EINTR) {
                got = diag_errno(diag, -errno, "temporary copy of standard input");
                close(fd);
                return (int)got;
            }
            done += put > 0 ? put : 0;
        }
    snprintf(path, 32, "/dev/fd/%d", fd);
    return (int)got;
}

static bool head_may_be_tar(const uint8_t *head, int64_t length)
{
    return length > 262 && !memcmp(head + 257, "ustar", 5);
}

/* 1 and the opened first member when path is a tar, 0 when not. */
static int open_tar(const char *path, struct unpack **ret_unpack, const char **ret_name,
                    struct diag *diag)
{
    const uint8_t *head;
    struct unpack *unpack;
    int64_t length;
    int err;

    err = unpack_open_path(&unpack, path, diag);
    if (err < 0)
        return err;
    length = unpack_head(unpack, &head);
    if (length < 0 || !unpack_head_is_packed(head, (size_t)length)) {
        unpack_free(unpack);
        return length < 0 ? (int)length : 0;
    }
    err = unpack_open_packed(&unpack, unpack, 0, ret_name, diag);
    if (err < 0)
        return err == -ENOENT ? 0 : err;
    if (!*ret_name) {
        unpack_free(unpack);
        return 0;
    }
    *ret_unpack = unpack;
    return 1;
}

static int add_stdin(struct input_list *list, struct diag *diag)
{
    struct unpack *unpack = NULL;
    struct input *input;
    const uint8_t *head;
    const char *member;
    char path[32];
    int64_t length;
    int err = unpack_open_path(&unpack, "-", diag);

    if (err < 0)
        return err;
    length = unpack_head(unpack, &head);
    err = length < 0 ? (int)length : 0;
    if (err == 0 && head_may_be_tar(head, length)) {
        struct unpack *tar;

        err = spool_stdin(path, unpack, diag);
        unpack_free(unpack);
        if (err == 0)
            err = open_tar(path, &tar, &member, diag);
        if (err <= 0)
            return err ? err : diag_set(diag, -EBADMSG, "standard input: not a tar after all");
        err = add_members(list, path, tar, member, diag);
        unpack_free(tar);
        return err;
    }
    if (err == 0)
        err = list_add(list, "-", NULL, diag, &input);
    if (err < 0) {
        unpack_free(unpack);
        return err;
    }
    input->once = true;
    input->unpack = unpack;
    return 0;
}

int input_list_add_path(struct input_list *list, const char *path, struct diag *diag)
{
    struct unpack *unpack = NULL;
    const char *member = NULL;
    struct input *input;
    int err;

    if (!strcmp(path, "-"))
        return add_stdin(list, diag);
    err = unpack_open_path(&unpack, path, diag);
    if (err < 0)
        return err;
    if (!unpack_is_seekable(unpack)) {
        /* A fifo or a process substitution: opened once. */
        err = list_add(list, path, NULL, diag, &input);
        if (err < 0) {
            unpack_free(unpack);
            return err;
        }
        input->once = true;
        input->unpack = unpack;
        return 0;
    }
    unpack_free(unpack);
    err = open_tar(path, &unpack, &member, diag);
    if (err < 0)
        return err;
    if (err > 0) {
        err = add_members(list, path, unpack, member, diag);
        unpack_free(unpack);
        return err;
    }
    err = list_add(list, path, NULL, diag, &input);
    if (err < 0)
        return err;
    input->path = strdup(path);
    return input->path ? 0 : diag_errno(diag, -ENOMEM, "%s", path);
}

/* Leaves the archive that was read from to the members that follow. */
static void leave_archive(struct input *input)
{
    struct input_archive *archive = input->archive;

    unpack_free(archive->spare);
    archive->spare = ahead_end(input->ahead);
    archive->spare_member = input->member;
    input->ahead = NULL;
}

void input_close(struct input *input)
{
    if (input->archive && input->ahead)
        leave_archive(input);
    unpack_free(input->unpack);
    ahead_free(input->ahead);
    input->unpack = NULL;
    input->ahead = NULL;
    free(input->buffer);
    input->buffer = NULL;
    input->capacity = input->start = input->end = 0;
    input->closed = true;
}

void input_park(struct input *input)
{
    if (input->once || input->offset != input->lead)
        return;
    input_close(input);
    input->closed = false;
    input->at_end = false;
    input->begun = false;
    input->offset = input->lead = input->line = 0;
}

void input_list_release(struct input_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct input *input = list->items[i];

        input_close(input);
        if (input->archive && --input->archive->users == 0) {
            unpack_free(input->archive->spare);
            free(input->archive);
        }
        free(input->name);
        free(input->path);
        free(input);
    }
    free(list->items);
    memset(list, 0, sizeof(*list));
}

/* ---- reading -------------------------------------------------------------------------- */

/* The archive as another member left it, moved on to this one. -ENOENT: there is none. */
static int open_spare(struct input *input, struct unpack **ret_unpack)
{
    struct input_archive *archive = input->archive;
    struct unpack *unpack;
    int err = 0;

    if (!archive || !archive->spare || archive->spare_member >= input->member)
        return -ENOENT;
    unpack = archive->spare;
    archive->spare = NULL;
    unpack_set_diag(unpack, input->diag);
    for (size_t at = archive->spare_member; at < input->member && err == 0; at++)
        err = unpack_next_member(unpack, NULL);
    if (err < 0) {
        unpack_free(unpack);
        return err;
    }
    *ret_unpack = unpack;
    return 0;
}

static int open_packed(struct input *input)
{
    struct unpack *packed = input->unpack;
    int err;

    input->unpack = NULL;
    err = unpack_open_packed(&packed, packed, input->member, NULL, input->diag);
    if (err == -ENOENT) /* compressed nothing */
        return unpack_open_memory(&input->unpack, input->name, NULL, 0, input->diag);
    return err < 0 ? err : ahead_start(&input->ahead, packed, input->diag);
}

static int input_open(struct input *input)
{
    struct unpack *unpack;
    const uint8_t *head;
    int64_t length;
    int err = 0;

    if (input->closed)
        return diag_errno(input->diag, -EBADF, "%s", input->name);
    if (input->ahead)
        return 0;
    err = open_spare(input, &unpack);
    if (err != -ENOENT)
        return err < 0 ? err : ahead_start(&input->ahead, unpack, input->diag);
    err = 0;
    if (!input->unpack)
        err = input->path ? unpack_open_path(&input->unpack, input->path, input->diag)
                          : unpack_open_memory(&input->unpack, input->name, input->bytes,
                                               input->bytes_length, input->diag);
    if (err < 0)
        return err;
    length = unpack_head(input->unpack, &head);
    if (length < 0)
        return (int)length;
    return unpack_head_is_packed(head, (size_t)length) ? open_packed(input) : 0;
}

static int64_t read_some(struct input *input, void *buffer, size_t bytes)
{
    return input->ahead ? ahead_read(input->ahead, buffer, bytes)
                        : unpack_read(input->unpack, buffer, bytes);
}

/* Room for bytes at the read position, kept data moved to the front when it must. */
static int make_room(struct input *input, size_t bytes)
{
    size_t kept = input->end - input->start;

    if (input->start + bytes <= input->capacity)
        return 0;
    if (bytes > input->capacity / 2 || !input->buffer) {
        size_t capacity = input->capacity                       ? input->capacity
                          : input->bytes_length && !input->path ? 4096
                                                                : FIRST_CAPACITY;
        uint8_t *buffer;

        while (capacity < bytes * 2)
            capacity *= 2;
        buffer = malloc(capacity + 1);
        if (!buffer)
            return diag_errno(input->diag, -ENOMEM, "%s", input->name);
        if (kept)
            memcpy(buffer, input->buffer + input->start, kept);
        free(input->buffer);
        input->buffer = buffer;
        input->capacity = capacity;
    } else {
        memmove(input->buffer, input->buffer + input->start, kept);
    }
    input->start = 0;
    input->end = kept;
    return 0;
}

#define LEAD_BYTES 256

/* A byte order mark and blank lines before a text are no part of it. Binary formats begin with
 * neither: what stands behind the blank lines must be printable. */
static void pass_lead(struct input *input)
{
    const uint8_t *bytes = input->buffer + input->start;
    size_t have = input->end - input->start, mark = 0, at, lines = 0;

    if (have >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        mark = 3;
    for (at = mark; at < have; at++) {
        if (bytes[at] == '\r' && at + 1 < have && bytes[at + 1] == '\n')
            at++;
        if (bytes[at] != '\n')
            break;
        lines++;
    }
    for (size_t i = at; i < have && i < at + 32; i++)
        if (bytes[i] < ' ' && bytes[i] != '\t' && bytes[i] != '\r' && bytes[i] != '\n')
            at = mark;
    if (at == have)
        at = mark;
    input->begun = true;
    input->line = at > mark ? lines : 0;
    input->lead = at;
    input->start += at;
    input->offset += at;
}

/* Reads on until bytes are buffered or the input ends. */
static int fill(struct input *input, size_t bytes)
{
    int err = input->error;

    if (err == 0 && (!input->buffer || input->closed))
        err = input_open(input);
    if (err == 0)
        err = make_room(input, bytes < LEAD_BYTES ? LEAD_BYTES : bytes);
    while (err == 0 && !input->at_end &&
           input->end - input->start < (input->begun || bytes > LEAD_BYTES ? bytes : LEAD_BYTES)) {
        size_t room = input->capacity - input->end;
        int64_t got;

        if (interrupted) {
            err = diag_set(input->diag, -EINTR, "%s: interrupted", input->name);
            break;
        }
        got = read_some(input, input->buffer + input->end,
                        room < LARGEST_READ ? room : LARGEST_READ);
        if (got < 0)
            err = (int)got;
        else if (got == 0)
            input->at_end = true;
        else
            input->end += (size_t)got;
        if (err == 0 && !input->begun &&
            (input->at_end || input->end - input->start >= LEAD_BYTES))
            pass_lead(input);
    }
    input->error = err;
    return err;
}

int64_t input_peek(struct input *input, const uint8_t **ret_bytes, size_t bytes)
{
    if (bytes > INPUT_PEEK_MAX)
        return -EINVAL;
    if (input->end - input->start < bytes && !input->at_end) {
        int err = fill(input, bytes);

        if (err < 0)
            return err;
    }
    *ret_bytes = input->buffer + input->start;
    return (int64_t)(input->end - input->start < bytes ? input->end - input->start : bytes);
}

void input_skip(struct input *input, size_t bytes)
{
    if (bytes > input->end - input->start)
        bytes = input->end - input->start;
    input->start += bytes;
    input->offset += bytes;
}

/* The line [start, start + length) with taken bytes consumed. */
static int give_line(struct input *input, size_t length, size_t taken, char **ret_line,
                     size_t *ret_length)
{
    char *line = (char *)input->buffer + input->start;

    input_skip(input, taken);
    input->line++;
    if (length && line[length - 1] == '\r')
        length--;
    line[length] = '\0';
    *ret_line = line;
    *ret_length = length;
    return 1;
}

int input_line(struct input *input, char **ret_line, size_t *ret_length)
{
    size_t scanned = 0;

    for (;;) {
        size_t have = input->end - input->start;
        uint8_t *newline = have > scanned ? memchr(input->buffer + input->start + scanned, '\n',
                                                   have - scanned)
                                          : NULL;
        int err;

        if (newline) {
            size_t length = (size_t)(newline - (input->buffer + input->start));

            return give_line(input, length, length + 1, ret_line, ret_length);
        }
        if (input->at_end)
            return have ? give_line(input, have, have, ret_line, ret_length) : 0;
        if (have >= INPUT_LINE_MAX)
            return diag_set(input->diag, -E2BIG, "%s:%llu: a line longer than %u bytes",
                            input->name, (unsigned long long)input->line + 1, INPUT_LINE_MAX);
        scanned = have;
        err = fill(input, have + 1);
        if (err < 0)
            return err;
    }
}
