/* SPDX-License-Identifier: MIT */
/*
 * witness -o FILE -- CMD ...
 *
 * Runs CMD and writes when each read and write of it and its children was issued, as seen by
 * the kernel: through read and write calls, io_submit and io_uring. The outside judge of a
 * replay's own stamps. FILE gets a comment line with CLOCK_MONOTONIC and CLOCK_REALTIME at one
 * moment, then per request
 *
 *     issue_ns,taken_ns,read|write,fd,offset,length,tid
 *
 * in CLOCK_MONOTONIC: the start of the call that carried it, and when the kernel took it from
 * an io_uring. The length of a vectored request is "*". Exits as CMD does; 77 when BPF cannot
 * run.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/witness.h"

#ifndef HAVE_BPF
#define HAVE_BPF 0
#endif

#if HAVE_LIB && HAVE_BPF

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

__asm__(".section .rodata\n"
        ".balign 8\n"
        "witness_start:\n"
        ".incbin \"" BPF_OBJECT "\"\n"
        "witness_end:\n"
        ".previous\n");
extern const char witness_start[], witness_end[];

struct witness {
    struct witness_event *events;
    size_t count, room;
};

static int keep(void *context, void *bytes, size_t size)
{
    struct witness *self = context;

    if (self->count == self->room) {
        size_t room = self->room ? self->room * 2 : 65536;
        struct witness_event *grown = realloc(self->events, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        self->events = grown;
        self->room = room;
    }
    memcpy(&self->events[self->count++], bytes, sizeof(struct witness_event));
    return 0;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
    return 0;
}

/* The place of a variable of .rodata in its map's first value. */
static void *variable(struct bpf_object *object, const char *name)
{
    const struct btf *btf = bpf_object__btf(object);
    int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
    const struct btf_type *section = btf__type_by_id(btf, (__u32)id);
    struct bpf_map *map;
    size_t size;

    for (int i = 0; i < btf_vlen(section); i++) {
        const struct btf_var_secinfo *at = &btf_var_secinfos(section)[i];
        const char *text = btf__name_by_offset(btf, btf__type_by_id(btf, at->type)->name_off);

        if (strcmp(text, name) != 0)
            continue;
        bpf_object__for_each_map(
            map, object) if (strstr(bpf_map__name(map), ".rodata")) return (char *)
                bpf_map__initial_value(map, &size) +
            at->offset;
    }
    return NULL;
}

static void calls_fill(unsigned char *calls)
{
    calls[SYS_read] = WITNESS_POSITION;
    calls[SYS_write] = WITNESS_POSITION | WITNESS_WRITE;
    calls[SYS_pread64] = WITNESS_RANGE;
    calls[SYS_pwrite64] = WITNESS_RANGE | WITNESS_WRITE;
    calls[SYS_readv] = WITNESS_VECTOR;
    calls[SYS_writev] = WITNESS_VECTOR | WITNESS_WRITE;
    calls[SYS_preadv] = calls[SYS_preadv2] = WITNESS_VECTOR_AT;
    calls[SYS_pwritev] = calls[SYS_pwritev2] = WITNESS_VECTOR_AT | WITNESS_WRITE;
    calls[SYS_io_submit] = WITNESS_AIO;
    calls[SYS_io_uring_enter] = WITNESS_URING;
}

/* What load attached, for unload. */
static struct bpf_link *links[8];
static size_t link_count;

static void unload(struct bpf_object *object)
{
    while (link_count > 0)
        bpf_link__destroy(links[--link_count]);
    bpf_object__close(object);
}

static struct bpf_object *load(void)
{
    LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "witness");
    struct bpf_object *object;
    struct btf *kernel = btf__load_vmlinux_btf();
    struct bpf_program *program;
    bool new_name;

    libbpf_set_print(quiet);
    object = kernel ? bpf_object__open_mem(witness_start, (size_t)(witness_end - witness_start),
                                           &opts)
                    : NULL;
    if (!object) {
        btf__free(kernel);
        return NULL;
    }
    *(bool *)variable(object, "have_cast") =
        btf__find_by_name_kind(kernel, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
    calls_fill(variable(object, "calls"));
    new_name =
        btf__find_by_name_kind(kernel, "btf_trace_io_uring_submit_req", BTF_KIND_TYPEDEF) > 0;
    program =
        bpf_object__find_program_by_name(object, new_name ? "on_request_old" : "on_request");
    bpf_program__set_autoload(program, false);
    btf__free(kernel);
    if (bpf_object__load(object) != 0) {
        bpf_object__close(object);
        return NULL;
    }
    bpf_object__for_each_program(program, object) if (bpf_program__autoload(program))
    {
        struct bpf_link *link = bpf_program__attach(program);

        if (!link || link_count == sizeof(links) / sizeof(links[0])) {
            bpf_link__destroy(link);
            unload(object);
            return NULL;
        }
        links[link_count++] = link;
    }
    return object;
}

static int write_out(const struct witness *self, const char *path)
{
    struct timespec mono, real;
    FILE *out = fopen(path, "we");

    if (!out)
        return -errno;
    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME, &real);
    fprintf(out, "# monotonic %lld realtime %lld\n",
            (long long)mono.tv_sec * 1000000000 + mono.tv_nsec,
            (long long)real.tv_sec * 1000000000 + real.tv_nsec);
    for (size_t i = 0; i < self->count; i++) {
        const struct witness_event *e = &self->events[i];
        char length[24] = "*";

        if (!e->vector)
            snprintf(length, sizeof(length), "%" PRIu64, (uint64_t)e->length);
        fprintf(out, "%" PRIu64 ",%" PRIu64 ",%s,%d,%" PRId64 ",%s,%u\n", (uint64_t)e->issue_ns,
                (uint64_t)e->taken_ns, e->write ? "write" : "read", e->fd, (int64_t)e->offset,
                length, e->tid);
    }
    return fclose(out) == 0 ? 0 : -errno;
}

/* Forks CMD, which waits until it is watched. */
static pid_t start(char **argv, struct bpf_object *object)
{
    struct bpf_map *targets = bpf_object__find_map_by_name(object, "targets");
    __u32 key, one = 1;
    int go[2];
    char byte;
    pid_t pid;

    if (pipe(go) != 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) == 1) {
            close(go[0]);
            execvp(argv[0], argv);
        }
        _exit(127);
    }
    close(go[0]);
    key = (__u32)pid;
    if (pid > 0 && bpf_map_update_elem(bpf_map__fd(targets), &key, &one, BPF_ANY) == 0 &&
        write(go[1], "g", 1) != 1)
        pid = -1;
    close(go[1]);
    return pid;
}

static uint64_t dropped(struct bpf_object *object)
{
    struct bpf_map *map;
    uint64_t value = 0;
    __u32 zero = 0;

    bpf_object__for_each_map(map, object) if (strstr(bpf_map__name(map), ".bss"))
        bpf_map_lookup_elem(bpf_map__fd(map), &zero, &value);
    return value;
}

static int run(const char *path, char **argv)
{
    struct bpf_object *object = load();
    struct witness witness = {0};
    struct ring_buffer *ring;
    int status = 0, rc;
    pid_t pid;

    if (!object) {
        fprintf(stderr, "witness: BPF cannot run here: %s\n", strerror(errno));
        return 77;
    }
    ring = ring_buffer__new(bpf_map__fd(bpf_object__find_map_by_name(object, "events")), keep,
                            &witness, NULL);
    signal(SIGINT, SIG_IGN); /* CMD's to handle; we end after it */
    pid = start(argv, object);
    if (!ring || pid < 0) {
        fprintf(stderr, "witness: %s\n", strerror(errno));
        return 1;
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        ring_buffer__consume(ring);
        usleep(20000);
    }
    ring_buffer__consume(ring);
    rc = write_out(&witness, path);
    if (rc)
        fprintf(stderr, "witness: %s: %s\n", path, strerror(-rc));
    if (dropped(object)) {
        fprintf(stderr, "witness: %llu requests were not seen\n",
                (unsigned long long)dropped(object));
        rc = -EOVERFLOW;
    }
    ring_buffer__free(ring);
    unload(object);
    free(witness.events);
    return rc ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#else

static int run(const char *path, char **argv)
{
    fprintf(stderr, "witness: built without libbpf or clang\n");
    return 77;
}

#endif

int main(int argc, char **argv)
{
    if (argc < 5 || strcmp(argv[1], "-o") != 0 || strcmp(argv[3], "--") != 0) {
        fprintf(stderr, "usage: witness -o FILE -- CMD ...\n");
        return 2;
    }
    return run(argv[2], argv + 4);
}
