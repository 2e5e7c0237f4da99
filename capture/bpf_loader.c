/* SPDX-License-Identifier: MIT */
#include "capture/bpf_loader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "capture/bpf_event.h"

#if HAVE_LIB

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

enum {
    PID_NAMESPACE_INITIAL = 0xEFFFFFFC, /* inode of the first pid namespace */
    KERNEL_MAJOR = 5,
    KERNEL_MINOR = 8,
    LOCKS_MINOR = 11, /* before, maps count as locked memory, of which little is allowed */
    CAP_SYS_ADMIN_BIT = 21,
    CAP_SYS_RESOURCE_BIT = 24,
    CAP_PERFMON_BIT = 38,
    CAP_BPF_BIT = 39,
    RING_BYTES_MIN = 1 << 18,
    SLICE_MS = 5,         /* the ring is looked at this often */
    BUSY_RECORDS = 20000, /* after so many at once, at once again */
    LOSSES_EVERY_MS = 200,
    RUN_EXTRA_NS = 180, /* to a program and back, as tests/bench/capture_cost measures it */
};

/* ---- probe ------------------------------------------------------------------------------- */

static unsigned long long caps_held(void)
{
    char line[256];
    unsigned long long caps = 0;
    FILE *status = fopen("/proc/self/status", "re");

    if (!status)
        return ~0ull; /* unknown: let the kernel answer */
    while (fgets(line, sizeof(line), status))
        if (sscanf(line, "CapEff: %llx", &caps) == 1)
            break;
    fclose(status);
    return caps;
}

static bool lockdown_confidential(void)
{
    char text[128] = "";
    FILE *file = fopen("/sys/kernel/security/lockdown", "re");

    if (!file)
        return false;
    if (!fgets(text, sizeof(text), file))
        text[0] = '\0';
    fclose(file);
    return strstr(text, "[confidentiality]") != NULL;
}

bool bpf_loader_kernel_old(void)
{
    return getenv("IOTAPE_BPF_OLD") != NULL;
}

bool bpf_loader_kernel_before(int major_number, int minor_number)
{
    struct utsname names;
    int major_here = 0, minor_here = 0;

    if (uname(&names) != 0 || sscanf(names.release, "%d.%d", &major_here, &minor_here) != 2)
        return false;
    return major_here < major_number ||
           (major_here == major_number && minor_here < minor_number);
}

static bool memory_may_be_locked(unsigned long long caps)
{
    struct rlimit limit;

    return !bpf_loader_kernel_before(KERNEL_MAJOR, LOCKS_MINOR) ||
           caps >> CAP_SYS_RESOURCE_BIT & 1 ||
           (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY);
}

static int refuse(char *reason, size_t reason_size, const char *why, char *fix, size_t fix_size,
                  const char *how, int error)
{
    snprintf(reason, reason_size, "%s", why);
    snprintf(fix, fix_size, "%s", how);
    return error;
}

int bpf_loader_probe(char *reason, size_t reason_size, char *fix, size_t fix_size)
{
    unsigned long long caps = caps_held();
    struct stat ns;
    int fd, error;

    if (!(caps >> CAP_SYS_ADMIN_BIT & 1) &&
        !(caps >> CAP_BPF_BIT & caps >> CAP_PERFMON_BIT & 1))
        return refuse(reason, reason_size, "needs CAP_BPF and CAP_PERFMON", fix, fix_size,
                      "run it as root, or: setcap cap_bpf,cap_perfmon,cap_dac_read_search,"
                      "cap_sys_ptrace=ep iotape-capture",
                      -EPERM);
    if (!memory_may_be_locked(caps))
        return refuse(reason, reason_size, "needs CAP_SYS_RESOURCE on a kernel before 5.11",
                      fix, fix_size,
                      "run it as root, or with ulimit -l unlimited, or: setcap cap_bpf,"
                      "cap_perfmon,cap_dac_read_search,cap_sys_ptrace,cap_sys_resource=ep "
                      "iotape-capture",
                      -EPERM);
    /* The ring buffer and CAP_BPF are of 5.8. What newer kernels do better is asked for one by
     * one (features_set). */
    if (bpf_loader_kernel_before(KERNEL_MAJOR, KERNEL_MINOR))
        return refuse(reason, reason_size, "this kernel is older than 5.8", fix, fix_size,
                      "use a newer kernel, or --recorder preload", -ENOSYS);
    if (access(KERNEL_BTF, R_OK) != 0)
        return refuse(reason, reason_size,
                      "the kernel has no type information (" KERNEL_BTF ")", fix, fix_size,
                      "use a kernel built with CONFIG_DEBUG_INFO_BTF=y", -ENOENT);
    if (lockdown_confidential())
        return refuse(
            reason, reason_size, "the kernel is locked down to confidentiality", fix, fix_size,
            "boot with lockdown=integrity, or without secure boot's lockdown", -EPERM);
    if (stat("/proc/self/ns/pid", &ns) == 0 && ns.st_ino != PID_NAMESPACE_INITIAL)
        return refuse(reason, reason_size,
                      "runs inside a pid namespace, where process numbers"
                      " are not the kernel's",
                      fix, fix_size,
                      "run it on the host, or start the container with --pid=host", -EPERM);
    fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "iotape_probe", 0, 0, 4096 * 4, NULL);
    if (fd < 0) {
        error = -errno;
        snprintf(reason, reason_size, "the kernel refuses a BPF ring buffer: %s",
                 strerror(-error));
        snprintf(fix, fix_size,
                 error == -EPERM ? "run it as root outside a restricted container"
                                 : "use a newer kernel");
        return error;
    }
    close(fd);
    return 0;
}

/* ---- open, set, load --------------------------------------------------------------------- */

/* libbpf describes a refusal by printing: which program, and the verifier's log, whose last
 * line before its statistics is why. Both are kept for the diag. */
static __thread char printed[512];

static void keep_verdict(const char *log)
{
    const char *end = strstr(log, "\nprocessed "), *begin = end;

    while (begin && begin > log && begin[-1] != '\n')
        begin--;
    if (begin)
        snprintf(printed + strlen(printed), sizeof(printed) - strlen(printed), ": %.*s",
                 (int)(end - begin), begin);
}

__attribute__((format(printf, 2, 0))) static int keep_printed(enum libbpf_print_level level,
                                                              const char *format, va_list args)
{
    char *text;

    if (getenv("IOTAPE_BPF_DEBUG"))
        return vfprintf(stderr, format, args);
    if (level != LIBBPF_WARN || vasprintf(&text, format, args) < 0)
        return 0;
    if (strstr(text, "BEGIN PROG LOAD LOG"))
        keep_verdict(text);
    else if (!printed[0] || (strstr(text, "failed") && !strstr(printed, "failed")))
        snprintf(printed, sizeof(printed), "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
    return 0;
}

bool bpf_loader_has_tracepoint(struct bpf_loader *self, const char *name, int *ret_arguments)
{
    const struct btf_type *type;
    char text[128];
    int id;

    snprintf(text, sizeof(text), "btf_trace_%s", name);
    id = btf__find_by_name_kind(self->kernel, text, BTF_KIND_TYPEDEF);
    if (id <= 0)
        return false;
    type = btf__type_by_id(self->kernel, (__u32)id);
    type = btf__type_by_id(self->kernel, type->type);               /* pointer */
    type = type ? btf__type_by_id(self->kernel, type->type) : NULL; /* function */
    if (ret_arguments) /* the first is the attachment's own */
        *ret_arguments = type ? btf_vlen(type) - 1 : 0;
    return true;
}

int bpf_loader_kernel_number(struct bpf_loader *self, const char *enumerator)
{
    for (__u32 id = 1; id < btf__type_cnt(self->kernel); id++) {
        const struct btf_type *type = btf__type_by_id(self->kernel, id);
        const struct btf_enum *row = btf_is_enum(type) ? btf_enum(type) : NULL;

        for (int i = 0; row && i < btf_vlen(type); i++)
            if (strcmp(btf__name_by_offset(self->kernel, row[i].name_off), enumerator) == 0)
                return row[i].val;
    }
    return -ENOENT;
}

/* Finds a variable of .rodata by name in the object's own type information. */
static int rodata_find(const struct btf *btf, const char *name, size_t *ret_offset,
                       size_t *ret_size)
{
    int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
    const struct btf_type *section = id > 0 ? btf__type_by_id(btf, id) : NULL;
    const struct btf_var_secinfo *var = section ? btf_var_secinfos(section) : NULL;

    for (int i = 0; section && i < btf_vlen(section); i++, var++) {
        const struct btf_type *type = btf__type_by_id(btf, var->type);

        if (strcmp(btf__name_by_offset(btf, type->name_off), name) == 0) {
            *ret_offset = var->offset;
            *ret_size = var->size;
            return 0;
        }
    }
    return -ENOENT;
}

/* Tells the programs of a feature, if they ask for it. */
static int feature_set(struct bpf_loader *self, const char *name, bool has)
{
    size_t offset, size;

    if (rodata_find(bpf_object__btf(self->object), name, &offset, &size))
        return 0;
    return bpf_loader_set(self, name, &has, sizeof(has));
}

static bool has_helper(enum bpf_func_id helper)
{
    return libbpf_probe_bpf_helper(BPF_PROG_TYPE_RAW_TRACEPOINT, helper, NULL) == 1;
}

static int features_set(struct bpf_loader *self)
{
    bool old = bpf_loader_kernel_old();
    bool cast =
        !old && btf__find_by_name_kind(self->kernel, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
    bool task = !old && has_helper(BPF_FUNC_get_current_task_btf);
    bool ancestor = !old && has_helper(BPF_FUNC_get_current_ancestor_cgroup_id);
    int rc = feature_set(self, "have_cast", cast);

    if (!rc)
        rc = feature_set(self, "have_task", task);
    return rc ? rc : feature_set(self, "have_ancestor", ancestor);
}

int bpf_loader_open(struct bpf_loader *self, const void *bytes, size_t size, struct diag *diag)
{
    LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "iotape");

    /* Types this kernel has not, libbpf looks for among the modules', which only
     * CAP_SYS_ADMIN may; unless it is told where the types are. */
    if (!(caps_held() >> CAP_SYS_ADMIN_BIT & 1))
        opts.btf_custom_path = KERNEL_BTF;
    memset(self, 0, sizeof(*self));
    self->diag = diag;
    printed[0] = '\0';
    libbpf_set_print(keep_printed);
    self->object = bpf_object__open_mem(bytes, size, &opts);
    if (!self->object)
        return diag_errno(diag, -errno, "BPF object: %s", printed);
    self->kernel = btf__load_vmlinux_btf();
    if (!self->kernel)
        return diag_errno(diag, -errno, KERNEL_BTF);
    return features_set(self);
}

int bpf_loader_set(struct bpf_loader *self, const char *name, const void *value, size_t size)
{
    struct bpf_map *map = NULL, *each;
    size_t offset, have, bytes;
    char *image;
    int rc = rodata_find(bpf_object__btf(self->object), name, &offset, &have);

    if (rc)
        return diag_set(self->diag, rc, "BPF object: no variable %s", name);
    if (have != size)
        return diag_set(self->diag, -EINVAL, "BPF object: %s has %zu bytes, not %zu", name,
                        have, size);
    bpf_object__for_each_map(each, self->object)
    {
        const char *text = bpf_map__name(each);
        size_t length = strlen(text);

        if (length >= 7 && strcmp(text + length - 7, ".rodata") == 0)
            map = each;
    }
    image = map ? (char *)bpf_map__initial_value(map, &bytes) : NULL;
    if (!image || offset + size > bytes)
        return diag_set(self->diag, -EINVAL, "BPF object: no .rodata");
    memcpy(image + offset, value, size);
    return 0;
}

void bpf_loader_skip(struct bpf_loader *self, const char *program)
{
    struct bpf_program *found = bpf_object__find_program_by_name(self->object, program);

    if (found)
        bpf_program__set_autoload(found, false);
}

static int ring_event(void *context, void *bytes, size_t size)
{
    struct bpf_loader *self = context;
    int rc = self->event(self->event_context, bytes, size);

    if (rc < 0)
        self->event_error = rc;
    return rc < 0 ? rc : 0;
}

static uint32_t ring_bytes_round(uint64_t bytes)
{
    uint64_t power = RING_BYTES_MIN;

    while (power < bytes && power < 1u << 30)
        power *= 2;
    return (uint32_t)power;
}

int bpf_loader_load(struct bpf_loader *self, uint64_t ring_bytes,
                    int (*event)(void *context, const void *bytes, size_t size),
                    void *event_context)
{
    uint64_t size = ring_bytes_round(ring_bytes);
    struct bpf_map *ring = bpf_object__find_map_by_name(self->object, "events");
    int rc;

    if (!ring)
        return diag_set(self->diag, -EINVAL, "BPF object: no map events");
    bpf_map__set_max_entries(ring, (uint32_t)size);
    printed[0] = '\0';
    rc = bpf_object__load(self->object);
    if (rc)
        return diag_errno(self->diag, rc, "loading the BPF programs: %s", printed);
    self->cpus = libbpf_num_possible_cpus();
    self->lost_told = calloc((size_t)self->cpus * BPF_LOST_KINDS, sizeof(*self->lost_told));
    if (!self->lost_told)
        return -ENOMEM;
    self->event = event;
    self->event_context = event_context;
    self->ring = ring_buffer__new(bpf_map__fd(ring), ring_event, self, NULL);
    if (!self->ring)
        return diag_errno(self->diag, -errno, "BPF ring buffer of %llu bytes",
                          (unsigned long long)size);
    return 0;
}

int bpf_loader_attach(struct bpf_loader *self)
{
    struct bpf_program *program;
    size_t count = 0;

    bpf_object__for_each_program(program, self->object) count++;
    self->links = calloc(count + 1, sizeof(*self->links));
    if (!self->links)
        return -ENOMEM;
    bpf_object__for_each_program(program, self->object)
    {
        if (!bpf_program__autoload(program))
            continue;
        self->links[self->link_count] = bpf_program__attach(program);
        if (!self->links[self->link_count])
            return diag_errno(self->diag, -errno, "attaching the BPF program %s",
                              bpf_program__name(program));
        self->link_count++;
    }
    return 0;
}

void bpf_loader_detach(struct bpf_loader *self)
{
    while (self->link_count)
        bpf_link__destroy(self->links[--self->link_count]);
}

int bpf_loader_map_fd(struct bpf_loader *self, const char *name)
{
    struct bpf_map *map = bpf_object__find_map_by_name(self->object, name);

    return map ? bpf_map__fd(map) : -ENOENT;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Waking the reader would cost the target more than the event itself, so the reader sleeps in
 * short slices: a ring holds many times what a slice brings. */
int bpf_loader_poll(struct bpf_loader *self, int timeout_ms)
{
    int left = timeout_ms;

    for (;;) {
        struct timespec slice = {.tv_nsec = (left < SLICE_MS ? left : SLICE_MS) * 1000000L};

        if (left > 0 && self->last_records < BUSY_RECORDS && nanosleep(&slice, NULL) != 0)
            left = 0; /* a signal: the program wants to see to it */
        self->last_records = ring_buffer__consume(self->ring);
        if (self->event_error)
            return self->event_error;
        left -= SLICE_MS;
        if (self->last_records != 0 || left <= 0)
            return self->last_records;
    }
}

static const char *lost_name(unsigned int kind)
{
    static const char *const names[BPF_LOST_KINDS] = {
        [BPF_LOST_RING] = "ring-full",         [BPF_LOST_USER] = "user-read",
        [BPF_LOST_THREADS] = "thread-table",   [BPF_LOST_BATCH] = "batch-too-long",
        [BPF_LOST_COMPAT] = "32-bit calls",    [BPF_LOST_FIXED] = "registered-file",
        [BPF_LOST_REQUESTS] = "request-table", [BPF_LOST_DONE] = "completion, ring-full",
    };

    return names[kind];
}

/* The figures of all programs, summed. */
static void programs_info(const struct bpf_loader *self, struct bpf_prog_info *ret_sum)
{
    struct bpf_program *program;

    memset(ret_sum, 0, sizeof(*ret_sum));
    bpf_object__for_each_program(program, self->object)
    {
        struct bpf_prog_info info = {0};
        __u32 size = sizeof(info);

        if (bpf_program__fd(program) < 0 ||
            bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) != 0)
            continue;
        ret_sum->recursion_misses += info.recursion_misses;
        ret_sum->run_time_ns += info.run_time_ns;
        ret_sum->run_cnt += info.run_cnt;
    }
}

int bpf_loader_cost(struct bpf_loader *self, uint64_t *ret_ns)
{
    struct bpf_prog_info sum;

    if (self->stats_fd == 0)
        self->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
    if (self->stats_fd < 0)
        return -EOPNOTSUPP;
    programs_info(self, &sum);
    *ret_ns = sum.run_time_ns + sum.run_cnt * RUN_EXTRA_NS;
    return 0;
}

static void tell_misses(struct bpf_loader *self, struct session *session)
{
    struct bpf_prog_info sum;
    uint64_t misses;

    programs_info(self, &sum);
    misses = sum.recursion_misses;
    if (misses > self->misses_told)
        session_lost(session, "bpf-miss", -1, misses - self->misses_told);
    self->misses_told = misses;
}

static void tell_losses(struct bpf_loader *self, struct session *session)
{
    int fd = bpf_loader_map_fd(self, "lost");
    uint64_t *values = calloc((size_t)self->cpus, sizeof(*values));

    for (__u32 kind = 0; values && kind < BPF_LOST_KINDS; kind++) {
        if (bpf_map_lookup_elem(fd, &kind, values) != 0)
            continue;
        for (int cpu = 0; cpu < self->cpus; cpu++) {
            uint64_t *told =
                &self->lost_told[kind * (unsigned int)self->cpus + (unsigned int)cpu];
            uint64_t more = values[cpu] - *told;

            if (!more)
                continue;
            if (kind == BPF_LOST_COMPAT || kind == BPF_LOST_DONE)
                session_unseen(session, lost_name(kind), more);
            else
                session_lost(session, lost_name(kind), cpu, more);
            *told = values[cpu];
        }
    }
    free(values);
}

/* Of programs that sample: what they passed over. */
static void tell_passed(struct bpf_loader *self, struct session *session)
{
    int fd = bpf_loader_map_fd(self, "passed");
    uint64_t *values = fd >= 0 ? calloc((size_t)self->cpus, sizeof(*values)) : NULL, sum = 0;
    __u32 zero = 0;

    if (values && bpf_map_lookup_elem(fd, &zero, values) == 0) {
        for (int cpu = 0; cpu < self->cpus; cpu++)
            sum += values[cpu];
        session_passed(session, sum - self->passed_told);
        self->passed_told = sum;
    }
    free(values);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void bpf_loader_tell_losses(struct bpf_loader *self, struct session *session, bool now)
{
    if (!now && now_ms() - self->losses_ms < LOSSES_EVERY_MS)
        return;
    self->losses_ms = now_ms();
    tell_losses(self, session);
    tell_misses(self, session);
    tell_passed(self, session);
}

void bpf_loader_release(struct bpf_loader *self)
{
    bpf_loader_detach(self);
    if (self->stats_fd > 0)
        close(self->stats_fd);
    free(self->links);
    free(self->lost_told);
    ring_buffer__free(self->ring);
    bpf_object__close(self->object);
    btf__free(self->kernel);
    memset(self, 0, sizeof(*self));
}

#endif
